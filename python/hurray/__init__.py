"""Tensor interchange with buffer metadata that tells the truth.

A `Tensor` is a description (element type, shape, layout, placement) and the memory that it speaks of. It
comes from arrays, files and streams and goes to them. Nothing here computes, and nothing copies unless
`copy=` allows it. Sizes and strides count logical elements, `byte_size`, `alignment` and `nbytes` bytes.

Tensors: Tensor, Composite, Descriptor, BufferHandle, validate_colocation
Making them: zeros, ones, empty, full, zeros_like, ones_like, empty_like, full_like, arange, linspace, eye
Arrays of others: from_numpy, from_torch, from_scipy, sparse_coo, from_dlpack, from_hurray, asarray,
    aligned_allocator, AlignedAllocatorCtx; back with numpy.asarray(t) and t.to_numpy(), t.to_torch(),
    t.to_scipy(), DLPack, the buffer protocol
Files: save, save_async, FileWriter, load, load_kv, open, convert, file
Between processes: share
Streams: StreamWriter, StreamReader, StreamDecoder
Element types and devices: Dtype, dtype, buffer_size_bytes, Device, device; float16, bfloat16, float32,
    float64, int8, uint8, int16, uint16, int32, uint32, int64, uint64, bool
Layouts: Layout, RowMajorLayout, ColMajorLayout, StridedLayout, TiledLayout, MortonLayout, HilbertLayout,
    CooLayout, CsrLayout, CscLayout, CsfLayout, BlockPagedLayout, CompositeLayout,
    PrivateExtensionLayout, UnknownLayout, layout_tag_kind
Quantization: PerTensorAffine, PerChannelAffine, PerBlockAffine, NF4, MXFP, decode_quantization
More about a tensor: Statistics, Shard, ExtensionType
Printing: set_print_options, get_print_options, print_options, PrintOptionsCtx
Errors: InvalidDescriptorError, BufferError, CopyRequiredError, UnsupportedError, FileError, StreamError,
    InternalError
Constants: MIN_BUFFER_ALIGNMENT, PAGE_ALIGNMENT

The modules hurray.numpy, hurray.torch and hurray.jax, each imported where it is wanted, read and write files
through the calls that programs for safetensors make.

Every function says in its help what it takes, what it gives and what it raises.
"""

from . import _beside

_beside.check(__path__[0])
del _beside

from . import _hurray
from ._errors import (
    BufferError,
    CopyRequiredError,
    FileError,
    InternalError,
    InvalidDescriptorError,
    StreamError,
    UnsupportedError,
)
from ._hurray import (
    MIN_BUFFER_ALIGNMENT,
    MXFP,
    NF4,
    PAGE_ALIGNMENT,
    AlignedAllocatorCtx,
    BlockPagedLayout,
    BufferHandle,
    ColMajorLayout,
    Composite,
    CompositeLayout,
    CooLayout,
    CscLayout,
    CsfLayout,
    CsrLayout,
    Descriptor,
    Device,
    Dtype,
    ExtensionType,
    FileWriter,
    HilbertLayout,
    Layout,
    MortonLayout,
    PerBlockAffine,
    PerChannelAffine,
    PerTensorAffine,
    PrintOptionsCtx,
    PrivateExtensionLayout,
    RowMajorLayout,
    Shard,
    Statistics,
    StreamDecoder,
    StreamReader,
    StreamWriter,
    StridedLayout,
    Tensor,
    TiledLayout,
    UnknownLayout,
    aligned_allocator,
    arange,
    asarray,
    buffer_size_bytes,
    decode_quantization,
    empty,
    empty_like,
    eye,
    from_dlpack,
    from_hurray,
    from_numpy,
    from_scipy,
    from_torch,
    full,
    full_like,
    get_print_options,
    layout_tag_kind,
    linspace,
    load,
    load_kv,
    ones,
    ones_like,
    open as open,
    print_options,
    save,
    save_async,
    set_print_options,
    sparse_coo,
    validate_colocation,
    zeros,
    zeros_like,
)
from ._converting import convert
from ._sharing import share
from . import device, dtype, file
from .dtype import (
    bfloat16,
    bool,
    float16,
    float32,
    float64,
    int8,
    int16,
    int32,
    int64,
    uint8,
    uint16,
    uint32,
    uint64,
)

#: The release, as in the distribution's metadata.
__version__ = getattr(_hurray, "__version__")

# Without `open`, which a star import would hide.
__all__ = [
    "AlignedAllocatorCtx",
    "BlockPagedLayout",
    "BufferError",
    "BufferHandle",
    "ColMajorLayout",
    "Composite",
    "CompositeLayout",
    "CooLayout",
    "CopyRequiredError",
    "CscLayout",
    "CsfLayout",
    "CsrLayout",
    "Descriptor",
    "Device",
    "Dtype",
    "ExtensionType",
    "FileError",
    "FileWriter",
    "HilbertLayout",
    "InternalError",
    "InvalidDescriptorError",
    "Layout",
    "MIN_BUFFER_ALIGNMENT",
    "MXFP",
    "MortonLayout",
    "NF4",
    "PAGE_ALIGNMENT",
    "PerBlockAffine",
    "PerChannelAffine",
    "PerTensorAffine",
    "PrintOptionsCtx",
    "PrivateExtensionLayout",
    "RowMajorLayout",
    "Shard",
    "Statistics",
    "StreamDecoder",
    "StreamError",
    "StreamReader",
    "StreamWriter",
    "StridedLayout",
    "Tensor",
    "TiledLayout",
    "UnknownLayout",
    "UnsupportedError",
    "aligned_allocator",
    "arange",
    "asarray",
    "bfloat16",
    "bool",
    "buffer_size_bytes",
    "convert",
    "decode_quantization",
    "device",
    "dtype",
    "empty",
    "empty_like",
    "eye",
    "file",
    "float16",
    "float32",
    "float64",
    "from_dlpack",
    "from_hurray",
    "from_numpy",
    "from_scipy",
    "from_torch",
    "full",
    "full_like",
    "get_print_options",
    "int16",
    "int32",
    "int64",
    "int8",
    "layout_tag_kind",
    "linspace",
    "load",
    "load_kv",
    "ones",
    "ones_like",
    "print_options",
    "save",
    "save_async",
    "set_print_options",
    "share",
    "sparse_coo",
    "uint16",
    "uint32",
    "uint64",
    "uint8",
    "validate_colocation",
    "zeros",
    "zeros_like",
]
