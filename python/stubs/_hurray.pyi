class AlignedAllocatorCtx:

    def __enter__(self) -> None:
        ...

    def __exit__(self, exc_type: object | None, exc_value: object | None, traceback: object | None) -> None:
        ...

    def __init__(self) -> None:
        ...

    def __reduce_ex__(self, protocol: SupportsIndex, /) -> NoReturn:
        ...

class BlockPagedLayout(Layout):

    def __init__(self, page_size: int, num_pages: int, paged_axis: int, num_seqs: int, kv_role: Literal['key', 'value', 'fused']='key', layer_index: int | None=None, block_table_index_type: Literal['uint32', 'uint64']='uint32') -> None:
        ...

    @property
    def block_table_index_type(self) -> Literal['uint32', 'uint64']:
        ...

    @property
    def kv_role(self) -> Literal['key', 'value', 'fused']:
        ...

    @property
    def layer_index(self) -> int | None:
        ...

    @property
    def num_pages(self) -> int:
        ...

    @property
    def num_seqs(self) -> int:
        ...

    @property
    def page_size(self) -> int:
        ...

    @property
    def paged_axis(self) -> int:
        ...

    def validate_index_buffers(self, seq_ptr: Sequence[int] | numpy.typing.NDArray[Any], block_table: Sequence[int] | numpy.typing.NDArray[Any]) -> None:
        ...

    def validate_quantization_compatibility(self, quantization: PerTensorAffine | PerChannelAffine | PerBlockAffine | NF4 | MXFP) -> None:
        ...

class BufferHandle:

    def __copy__(self) -> BufferHandle:
        ...

    def __deepcopy__(self, memo: Any) -> BufferHandle:
        ...

    def __eq__(self, other: object, /) -> bool:
        ...

    def __hash__(self) -> int:
        ...

    def __reduce__(self) -> tuple[Any, ...]:
        ...

    def __repr__(self) -> str:
        ...

    @property
    def alignment(self) -> int:
        ...

    @property
    def byte_size(self) -> int:
        ...

    @property
    def device(self) -> Device:
        ...

    @property
    def is_empty(self) -> bool:
        ...

    @property
    def sync_mode(self) -> Literal['producer_synced', 'event', 'consumer_stream']:
        ...

class ColMajorLayout(Layout):

    def __init__(self) -> None:
        ...

class Composite:

    def __copy__(self) -> Composite:
        ...

    def __deepcopy__(self, memo: dict[int, Any]) -> Composite:
        ...

    def __eq__(self, other: object, /) -> bool:
        ...
    __hash__: ClassVar[None]

    def __init__(self, composition_rule: Literal['partition', 'overlay', 'group'], *, shape: Sequence[int], dtype: Dtype, members: Iterable[Tensor | Composite], combine_op: Literal['replace', 'add'] | None=None) -> None:
        ...

    def __reduce_ex__(self, protocol: SupportsIndex, /) -> tuple[Any, ...]:
        ...

    def __repr__(self) -> str:
        ...

    @property
    def descriptor(self) -> Descriptor:
        ...

    @property
    def dtype(self) -> Dtype:
        ...

    @property
    def layout(self) -> Layout:
        ...

    def materialize(self) -> Tensor:
        ...

    @property
    def member_count(self) -> int:
        ...

    @property
    def member_roles(self) -> tuple[Literal['base', 'correction'] | None, ...]:
        ...

    @property
    def members(self) -> tuple[Tensor | Composite, ...]:
        ...

    @property
    def ndim(self) -> int:
        ...

    @property
    def shape(self) -> tuple[int | None, ...]:
        ...

class CompositeLayout(Layout):

    def __init__(self, composition_rule: Literal['partition', 'overlay', 'group'], member_count: int, combine_op: Literal['replace', 'add'] | None=None) -> None:
        ...

    @property
    def combine_op(self) -> Literal['replace', 'add'] | None:
        ...

    @property
    def composition_rule(self) -> Literal['partition', 'overlay', 'group']:
        ...

    @property
    def member_count(self) -> int:
        ...

class CooLayout(Layout):

    def __init__(self, nnz: int, is_sorted: bool=False) -> None:
        ...

    @property
    def is_sorted(self) -> bool:
        ...

    @property
    def nnz(self) -> int:
        ...

class CscLayout(Layout):

    def __init__(self, nnz: int) -> None:
        ...

    @property
    def nnz(self) -> int:
        ...

class CsfLayout(Layout):

    def __init__(self, nnz: int, mode_order: Sequence[int]) -> None:
        ...

    @property
    def mode_order(self) -> tuple[int, ...]:
        ...

    @property
    def nnz(self) -> int:
        ...

class CsrLayout(Layout):

    def __init__(self, nnz: int) -> None:
        ...

    @property
    def nnz(self) -> int:
        ...

class Descriptor:

    def __copy__(self) -> Descriptor:
        ...

    def __deepcopy__(self, memo: Any) -> Descriptor:
        ...

    def __eq__(self, other: object, /) -> bool:
        ...
    __hash__: ClassVar[None]

    def __reduce__(self) -> tuple[Any, ...]:
        ...

    def __repr__(self) -> str:
        ...

    @property
    def buffer_count(self) -> int:
        ...

    @property
    def buffer_handles(self) -> tuple[BufferHandle, ...]:
        ...

    @property
    def byte_offset(self) -> int:
        ...

    @staticmethod
    def decode(data: Any, *, permissive: bool=False) -> Descriptor:
        ...

    @property
    def device(self) -> Device | None:
        ...

    def differences(self, other: Descriptor, *, ignore: Iterable[str]=('alignment',)) -> tuple[tuple[str, object, object], ...]:
        ...

    @property
    def dtype(self) -> Dtype:
        ...

    def encode(self) -> bytes:
        ...

    @property
    def encoded_len(self) -> int:
        ...

    @property
    def extension_type(self) -> ExtensionType | None:
        ...

    @property
    def layout(self) -> Layout:
        ...

    @property
    def ndim(self) -> int:
        ...

    @property
    def quantization(self) -> PerTensorAffine | PerChannelAffine | PerBlockAffine | NF4 | MXFP | None:
        ...

    @property
    def shape(self) -> tuple[int | None, ...]:
        ...

    @property
    def shard(self) -> Shard | None:
        ...

    @property
    def size(self) -> int | None:
        ...

    @property
    def statistics(self) -> Statistics | None:
        ...

    @property
    def version(self) -> tuple[int, int]:
        ...

class Device:

    def __copy__(self) -> Device:
        ...

    def __deepcopy__(self, memo: Any) -> Device:
        ...

    def __eq__(self, other: object, /) -> bool:
        ...

    def __hash__(self) -> int:
        ...

    def __init__(self, kind: str | int, device_id: int | None=None, memory_class: str | int | None=None) -> None:
        ...

    def __reduce__(self) -> tuple[Any, ...]:
        ...

    def __repr__(self) -> str:
        ...

    @property
    def device_id(self) -> int:
        ...

    @property
    def is_private(self) -> bool:
        ...

    @property
    def kind(self) -> Literal['cpu', 'cuda', 'rocm', 'metal', 'vulkan', 'webgpu', 'hexagon', 'level_zero', 'opencl', 'private']:
        ...

    @property
    def memory_class(self) -> Literal['standard', 'host_pinned', 'unified', 'peer', 'private']:
        ...

    @property
    def memory_class_tag(self) -> int:
        ...

    @property
    def tag(self) -> int:
        ...

class Dtype:

    def __copy__(self) -> Dtype:
        ...

    def __deepcopy__(self, memo: Any) -> Dtype:
        ...

    def __eq__(self, other: object, /) -> bool:
        ...

    def __hash__(self) -> int:
        ...

    def __reduce__(self) -> tuple[Any, ...]:
        ...

    def __repr__(self) -> str:
        ...

    def __str__(self) -> str:
        ...

    @property
    def bit_width(self) -> int:
        ...

    @property
    def element_alignment(self) -> int:
        ...

    @staticmethod
    def from_name(name: str) -> Dtype:
        ...

    @staticmethod
    def from_tag(tag: int) -> Dtype:
        ...

    @property
    def is_array_api(self) -> bool:
        ...

    @property
    def is_float(self) -> bool:
        ...

    @property
    def is_integer(self) -> bool:
        ...

    @property
    def is_signed(self) -> bool:
        ...

    @property
    def is_sub_byte(self) -> bool:
        ...

    @property
    def name(self) -> str:
        ...

    @property
    def tag(self) -> int:
        ...

    @property
    def tier(self) -> int:
        ...

class ExtensionType:

    def __copy__(self) -> ExtensionType:
        ...

    def __deepcopy__(self, memo: Any) -> ExtensionType:
        ...

    def __eq__(self, other: object, /) -> bool:
        ...

    def __hash__(self) -> int:
        ...

    def __init__(self, bit_width: int, *, is_float: bool=False, is_signed: bool=False, sign_bits: int=0, exponent_bits: int=0, mantissa_bits: int=0, exponent_bias: int=0, has_nan: bool=False, has_inf: bool=False) -> None:
        ...

    def __reduce__(self) -> tuple[Any, ...]:
        ...

    def __repr__(self) -> str:
        ...

    @property
    def bit_width(self) -> int:
        ...

    def buffer_size_bytes(self, element_count: int) -> int:
        ...

    @property
    def exponent_bias(self) -> int:
        ...

    @property
    def exponent_bits(self) -> int:
        ...

    @property
    def has_inf(self) -> bool:
        ...

    @property
    def has_nan(self) -> bool:
        ...

    @property
    def is_float(self) -> bool:
        ...

    @property
    def is_signed(self) -> bool:
        ...

    @property
    def mantissa_bits(self) -> int:
        ...

    @property
    def packing_factor(self) -> int:
        ...

    @property
    def sign_bits(self) -> int:
        ...

class FileWriter:

    def __enter__(self) -> FileWriter:
        ...

    def __exit__(self, exc_type: object | None, exc_value: object | None, traceback: object | None) -> None:
        ...

    def __init__(self, path: str | os.PathLike[str], *, kv: Mapping[str, Any] | None=None, checksums: bool=True, sync: bool=True) -> None:
        ...

    def finish(self) -> None:
        ...

    @property
    def kv(self) -> dict[str, Any]:
        ...

    def write(self, name: str, item: Any) -> None:
        ...

class HilbertLayout(Layout):

    def __init__(self, hilbert_order: int, hilbert_rank: int) -> None:
        ...

    @property
    def hilbert_order(self) -> int:
        ...

    @property
    def hilbert_rank(self) -> int:
        ...

class Layout:

    def __copy__(self) -> Layout:
        ...

    def __deepcopy__(self, memo: Any) -> Layout:
        ...

    def __eq__(self, other: object, /) -> bool:
        ...

    def __hash__(self) -> int:
        ...

    def __reduce__(self) -> tuple[Any, ...]:
        ...

    def __repr__(self) -> str:
        ...

    @property
    def buffer_count(self) -> int | None:
        ...

    @property
    def is_dense(self) -> bool:
        ...

    @property
    def is_virtual(self) -> bool:
        ...

    @property
    def name(self) -> Literal['row_major', 'col_major', 'strided', 'tiled', 'morton', 'hilbert', 'coo', 'csr', 'csc', 'csf', 'block_paged', 'composite', 'extension']:
        ...

    @property
    def tag(self) -> int:
        ...

    def validate_against_shape(self, shape: Sequence[int | None]) -> None:
        ...
MIN_BUFFER_ALIGNMENT: int = 64

class MXFP(_Quantization):

    def __init__(self, axis: int, block_size: int, scale_buffer_index: int) -> None:
        ...

    @property
    def axis(self) -> int:
        ...

    @property
    def block_size(self) -> int:
        ...

    @property
    def scale_buffer_index(self) -> int:
        ...

class MortonLayout(Layout):

    def __init__(self, morton_bits: Sequence[int]) -> None:
        ...

    @property
    def morton_bits(self) -> tuple[int, ...]:
        ...

class NF4(_Quantization):

    def __init__(self, axis: int, block_size: int, scale_buffer_index: int) -> None:
        ...

    @property
    def axis(self) -> int:
        ...

    @property
    def block_size(self) -> int:
        ...

    @property
    def scale_buffer_index(self) -> int:
        ...
PAGE_ALIGNMENT: int = 4096

class PerBlockAffine(_Quantization):

    @staticmethod
    def asymmetric(axis: int, block_size: int, scale_buffer_index: int, zero_point_buffer_index: int, scale_type: Dtype) -> PerBlockAffine:
        ...

    @property
    def axis(self) -> int:
        ...

    @property
    def block_size(self) -> int:
        ...

    @property
    def scale_buffer_index(self) -> int:
        ...

    @property
    def scale_type(self) -> Dtype:
        ...

    @staticmethod
    def symmetric(axis: int, block_size: int, scale_buffer_index: int, scale_type: Dtype) -> PerBlockAffine:
        ...

    @property
    def zero_point_buffer_index(self) -> int | None:
        ...

class PerChannelAffine(_Quantization):

    @staticmethod
    def asymmetric(axis: int, scale_buffer_index: int, zero_point_buffer_index: int) -> PerChannelAffine:
        ...

    @property
    def axis(self) -> int:
        ...

    @property
    def scale_buffer_index(self) -> int:
        ...

    @staticmethod
    def symmetric(axis: int, scale_buffer_index: int) -> PerChannelAffine:
        ...

    @property
    def zero_point_buffer_index(self) -> int | None:
        ...

class PerTensorAffine(_Quantization):

    def __eq__(self, other: object, /) -> bool:
        ...
    __hash__: ClassVar[None]

    def __init__(self, scale: float, zero_point: int) -> None:
        ...

    @property
    def scale(self) -> float:
        ...

    @property
    def zero_point(self) -> int:
        ...

class PrintOptionsCtx:

    def __enter__(self) -> None:
        ...

    def __exit__(self, exc_type: object, exc_value: object, traceback: object) -> None:
        ...

    def __init__(self, *, sparse_display: Literal['metadata', 'content'] | None=None) -> None:
        ...

    def __reduce_ex__(self, protocol: SupportsIndex, /) -> NoReturn:
        ...

class PrivateExtensionLayout(Layout):

    def __init__(self, tag: int, extension_layout_id: int, extension_data: Any | None=None) -> None:
        ...

    @property
    def extension_data(self) -> bytes:
        ...

    @property
    def extension_layout_id(self) -> int:
        ...

class RowMajorLayout(Layout):

    def __init__(self) -> None:
        ...

class Shard:

    def __copy__(self) -> Shard:
        ...

    def __deepcopy__(self, memo: Any) -> Shard:
        ...

    def __eq__(self, other: object, /) -> bool:
        ...

    def __hash__(self) -> int:
        ...

    def __init__(self, parent_shape: Sequence[int], shard_offset: Sequence[int]) -> None:
        ...

    def __reduce__(self) -> tuple[Any, ...]:
        ...

    def __repr__(self) -> str:
        ...

    @property
    def parent_shape(self) -> tuple[int, ...]:
        ...

    @property
    def shard_offset(self) -> tuple[int, ...]:
        ...

class Statistics:

    def __copy__(self) -> Statistics:
        ...

    def __deepcopy__(self, memo: Any) -> Statistics:
        ...

    def __eq__(self, other: object, /) -> bool:
        ...
    __hash__: ClassVar[None]

    def __init__(self, *, nnz: int | None=None, sparsity_ratio: float | None=None, value_min: float | None=None, value_max: float | None=None, value_abs_max: float | None=None, value_mean: float | None=None, value_stddev: float | None=None, nm_n: int | None=None, nm_m: int | None=None, has_nan: bool | None=None, has_inf: bool | None=None) -> None:
        ...

    def __reduce__(self) -> tuple[Any, ...]:
        ...

    def __repr__(self) -> str:
        ...

    @property
    def computed_mask(self) -> int:
        ...

    @property
    def has_inf(self) -> bool | None:
        ...

    @property
    def has_nan(self) -> bool | None:
        ...

    @property
    def nm_m(self) -> int | None:
        ...

    @property
    def nm_n(self) -> int | None:
        ...

    @property
    def nnz(self) -> int | None:
        ...

    @property
    def sparsity_ratio(self) -> float | None:
        ...

    @property
    def value_abs_max(self) -> float | None:
        ...

    @property
    def value_max(self) -> float | None:
        ...

    @property
    def value_mean(self) -> float | None:
        ...

    @property
    def value_min(self) -> float | None:
        ...

    @property
    def value_stddev(self) -> float | None:
        ...

class StreamDecoder:

    def __init__(self, *, max_descriptor_bytes: int | None=None, max_buffer_bytes: int | None=None, max_composite_depth: int | None=None, cross_machine: bool | None=None, max_tensor_bytes: int | None=None, max_item_members: int | None=None, expected_items: int | None=None) -> None:
        ...

    def feed(self, data: Buffer) -> list[Tensor | Composite]:
        ...

    def finish(self) -> None:
        ...

class StreamReader:

    def __enter__(self) -> StreamReader:
        ...

    def __exit__(self, exc_type: object | None, exc_value: object | None, traceback: object | None) -> None:
        ...

    def __init__(self, source: str | os.PathLike[str] | Buffer | Any, *, max_descriptor_bytes: int | None=None, max_buffer_bytes: int | None=None, max_composite_depth: int | None=None, cross_machine: bool | None=None, max_tensor_bytes: int | None=None, max_item_members: int | None=None, expected_items: int | None=None, read_timeout: float | None=None) -> None:
        ...

    def __iter__(self) -> StreamReader:
        ...

    def __next__(self) -> Tensor | Composite:
        ...

    def __reduce_ex__(self, protocol: SupportsIndex, /) -> NoReturn:
        ...

    def close(self) -> None:
        ...

class StreamWriter:

    def __enter__(self) -> StreamWriter:
        ...

    def __exit__(self, exc_type: object | None, exc_value: object | None, traceback: object | None) -> None:
        ...

    def __init__(self, destination: str | os.PathLike[str] | Any | None=None, *, cross_machine: bool | None=None) -> None:
        ...

    def __reduce_ex__(self, protocol: SupportsIndex, /) -> NoReturn:
        ...

    def finish(self) -> None:
        ...

    def getvalue(self) -> bytes:
        ...

    def write(self, item: Any) -> None:
        ...

    def write_composite(self, composite: Composite) -> None:
        ...

class StridedLayout(Layout):

    def __init__(self, strides: Sequence[int]) -> None:
        ...

    @property
    def strides(self) -> tuple[int, ...]:
        ...

class Tensor:

    def __array__(self, dtype: object=None, copy: bool | None=None) -> numpy.typing.NDArray[Any]:
        ...

    @property
    def __array_interface__(self) -> dict[str, Any]:
        ...

    def __buffer__(self, flags: int, /) -> memoryview:
        ...

    def __copy__(self) -> Tensor:
        ...

    def __deepcopy__(self, memo: dict[int, Any]) -> Tensor:
        ...

    def __dlpack__(self, *, stream: int | None=None, max_version: tuple[int, int] | None=None, dl_device: tuple[int, int] | None=None, copy: bool | None=None) -> Any:
        ...
    __dlpack_c_exchange_api__: ClassVar[object]

    def __dlpack_device__(self) -> tuple[int, int]:
        ...
    __hash__: ClassVar[None]

    def __hurray__(self, stream: int | None=None, *, copy: bool=False) -> Any:
        ...

    def __init__(self, buffer: Any, dtype: Dtype, shape: Sequence[int | None], device: Device | None=None, *, aux_buffers: Sequence[Any] | None=None, layout: Layout | None=None, quantization: PerTensorAffine | PerChannelAffine | PerBlockAffine | NF4 | MXFP | None=None, statistics: Statistics | None=None, shard: Shard | None=None, extension_type: ExtensionType | None=None, byte_offset: int=0) -> None:
        ...

    def __reduce_ex__(self, protocol: SupportsIndex, /) -> tuple[Any, ...]:
        ...

    def __repr__(self) -> str:
        ...

    def __str__(self) -> str:
        ...

    def buffer(self, index: int) -> Tensor:
        ...

    @property
    def buffer_count(self) -> int:
        ...

    @property
    def buffer_handles(self) -> tuple[BufferHandle, ...]:
        ...

    @property
    def col_indices(self) -> Tensor:
        ...

    @property
    def col_ptr(self) -> Tensor:
        ...

    def dequantize(self) -> Tensor:
        ...

    @property
    def descriptor(self) -> Descriptor:
        ...

    @property
    def device(self) -> Device:
        ...

    @property
    def dtype(self) -> Dtype:
        ...

    @property
    def extension_type(self) -> ExtensionType | None:
        ...

    @property
    def indices(self) -> Tensor:
        ...

    @property
    def layout(self) -> Layout:
        ...

    @property
    def nbytes(self) -> int:
        ...

    @property
    def ndim(self) -> int:
        ...

    @property
    def nnz(self) -> int:
        ...

    @property
    def quantization(self) -> PerTensorAffine | PerChannelAffine | PerBlockAffine | NF4 | MXFP | None:
        ...

    @property
    def readonly(self) -> bool:
        ...

    @property
    def row_indices(self) -> Tensor:
        ...

    @property
    def row_ptr(self) -> Tensor:
        ...

    @property
    def shape(self) -> tuple[int | None, ...]:
        ...

    @property
    def shard(self) -> Shard | None:
        ...

    @property
    def size(self) -> int | None:
        ...

    @property
    def statistics(self) -> Statistics | None:
        ...

    def to_cpu(self) -> Tensor:
        ...

    def to_dense(self) -> Tensor:
        ...

    def to_numpy(self, *, copy: bool | None=None, storage: bool=False) -> numpy.typing.NDArray[Any]:
        ...

    def to_scipy(self) -> Any:
        ...

    def to_torch(self, *, copy: bool | None=None, device: object=None) -> torch.Tensor:
        ...

    def transpose(self) -> Tensor:
        ...

    def validate(self, *, data: bool=True) -> None:
        ...

    @property
    def values(self) -> Tensor:
        ...

class TiledLayout(Layout):

    def __init__(self, tile_shape: Sequence[int], outer_layout: Literal['row_major', 'col_major', 'strided']='row_major', inner_layout: Literal['row_major', 'col_major', 'strided', 'tiled']='row_major', outer_strides: Sequence[int] | None=None, inner_strides: Sequence[int] | None=None, inner_tiled: TiledLayout | None=None) -> None:
        ...

    @property
    def inner_layout(self) -> Literal['row_major', 'col_major', 'strided', 'tiled']:
        ...

    @property
    def inner_strides(self) -> tuple[int, ...] | None:
        ...

    @property
    def inner_tiled(self) -> TiledLayout | None:
        ...

    @property
    def outer_layout(self) -> Literal['row_major', 'col_major', 'strided']:
        ...

    @property
    def outer_strides(self) -> tuple[int, ...] | None:
        ...

    @property
    def tile_shape(self) -> tuple[int, ...]:
        ...

class UnknownLayout(Layout):

    def __init__(self, tag: int, raw_bytes: Any | None=None) -> None:
        ...

    @property
    def raw_bytes(self) -> bytes:
        ...

class _Quantization:

    def __eq__(self, other: object, /) -> bool:
        ...

    def encode(self) -> bytes:
        ...

def aligned_allocator() -> AlignedAllocatorCtx:
    ...

def arange(start: float, stop: float | None=None, step: float | None=None, *, dtype: Dtype | None=None, device: Device | None=None) -> Tensor:
    ...

def asarray(obj: object, *, dtype: Dtype | None=None, device: Device | None=None, copy: bool | None=None) -> Tensor:
    ...

def buffer_size_bytes(dtype: Dtype, count: int) -> int:
    ...

def decode_quantization(data: Any) -> PerTensorAffine | PerChannelAffine | PerBlockAffine | NF4 | MXFP:
    ...

def empty(shape: Sequence[int], *, dtype: Dtype | None=None, device: Device | None=None, alignment: int | None=None) -> Tensor:
    ...

def empty_like(x: Tensor, *, dtype: Dtype | None=None, device: Device | None=None) -> Tensor:
    ...

def eye(n_rows: int, n_cols: int | None=None, *, k: int=0, dtype: Dtype | None=None, device: Device | None=None) -> Tensor:
    ...

def from_dlpack(x: object, *, device: Device | None=None, copy: bool | None=None) -> Tensor:
    ...

def from_hurray(obj: Any) -> Tensor:
    ...

def from_numpy(array: object, *, copy: bool | None=None) -> Tensor:
    ...

def from_scipy(matrix: object, *, copy: bool | None=None) -> Tensor:
    ...

def from_torch(tensor: object, *, copy: bool | None=None) -> Tensor:
    ...

def full(shape: Sequence[int], fill_value: complex, *, dtype: Dtype | None=None, device: Device | None=None) -> Tensor:
    ...

def full_like(x: Tensor, fill_value: complex, *, dtype: Dtype | None=None, device: Device | None=None) -> Tensor:
    ...

def get_print_options() -> dict[Literal['sparse_display'], Literal['metadata', 'content']]:
    ...

def layout_tag_kind(tag: int) -> Literal['named', 'reserved', 'private', 'invalid']:
    ...

def linspace(start: complex, stop: complex, num: int, *, dtype: Dtype | None=None, device: Device | None=None, endpoint: bool=True) -> Tensor:
    ...

def load(path: str | os.PathLike[str] | int | IO[bytes], *, names: Iterable[str] | None=None, mode: Literal['map', 'copy_on_write', 'memory'] | None=None, verify: bool | None=None, max_index_bytes: int | None=None, max_tensors: int | None=None, max_kv_bytes: int | None=None, max_descriptor_bytes: int | None=None, max_tensor_bytes: int | None=None, max_composite_depth: int | None=None, max_spool_bytes: int | None=None) -> dict[str, Tensor | Composite]:
    ...

def load_kv(path: str | os.PathLike[str] | int | IO[bytes]) -> dict[str, Any]:
    ...

def ones(shape: Sequence[int], *, dtype: Dtype | None=None, device: Device | None=None) -> Tensor:
    ...

def ones_like(x: Tensor, *, dtype: Dtype | None=None, device: Device | None=None) -> Tensor:
    ...

def open(path: str | os.PathLike[str] | int | IO[bytes], *, mode: Literal['map', 'copy_on_write', 'memory'] | None=None, verify: bool | None=None, max_index_bytes: int | None=None, max_tensors: int | None=None, max_kv_bytes: int | None=None, max_descriptor_bytes: int | None=None, max_tensor_bytes: int | None=None, max_composite_depth: int | None=None, max_spool_bytes: int | None=None) -> hurray.file.File:
    ...

def print_options(*, sparse_display: Literal['metadata', 'content'] | None=None) -> PrintOptionsCtx:
    ...

def save(path: str | os.PathLike[str], tensors: Mapping[str, Any], *, kv: Mapping[str, Any] | None=None, sync: bool=True, checksums: bool=True, max_shard_size: int | str | None=None) -> None:
    ...

def save_async(path: str | os.PathLike[str], tensors: Mapping[str, Any], *, kv: Mapping[str, Any] | None=None, checksums: bool=True, sync: bool=True, snapshot: bool=True, max_shard_size: int | str | None=None) -> concurrent.futures.Future[None]:
    ...

def set_print_options(*, sparse_display: Literal['metadata', 'content'] | None=None) -> None:
    ...

def sparse_coo(values: object, indices: object, shape: Sequence[int], *, copy: bool | None=None) -> Tensor:
    ...

def validate_colocation(handles: Iterable[BufferHandle]) -> None:
    ...

def zeros(shape: Sequence[int], *, dtype: Dtype | None=None, device: Device | None=None) -> Tensor:
    ...

def zeros_like(x: Tensor, *, dtype: Dtype | None=None, device: Device | None=None) -> Tensor:
    ...
