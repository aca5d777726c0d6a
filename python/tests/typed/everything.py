"""Every public name, as typed code uses it. Type checkers read this; nothing runs it.

What a name gives is stated where it is used, so that a type that is lost (or changes) is an error.
"""

import os
import socket
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, cast

import numpy as np
from numpy.typing import NDArray

import hurray
from hurray import (
    bfloat16,
    bool as hurray_bool,
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
from hurray.dtype import (
    complex64,
    complex128,
    float4_e2m1,
    float6_e2m3,
    float6_e3m2,
    float8_e4m3,
    float8_e5m2,
    float8_e8m0,
    float128,
    int2,
    int4,
    uint2,
    uint4,
)


def constants() -> None:
    version: str = hurray.__version__
    floors: tuple[int, int] = hurray.MIN_BUFFER_ALIGNMENT, hurray.PAGE_ALIGNMENT
    types: list[hurray.Dtype] = [
        bfloat16, hurray_bool, float16, float32, float64, int8, int16, int32, int64, uint8, uint16, uint32, uint64,
        complex64, complex128, float4_e2m1, float6_e2m3, float6_e3m2, float8_e4m3, float8_e5m2, float8_e8m0, float128,
        int2, int4, uint2, uint4,
    ]
    d = hurray.device
    devices: list[hurray.Device] = [
        d.cpu, d.cuda, d.rocm, d.metal, d.vulkan, d.webgpu, d.hexagon, d.level_zero, d.opencl,
    ]
    print(version, floors, types, devices)


def dtypes() -> None:
    t: hurray.Dtype = hurray.Dtype.from_name("int4")
    u: hurray.Dtype = hurray.Dtype.from_tag(t.tag)
    numbers: tuple[int, int, int] = t.bit_width, t.tier, t.element_alignment
    facts: list[bool] = [t.is_integer, t.is_float, t.is_signed, t.is_sub_byte, t.is_array_api, t == u]
    table: dict[hurray.Dtype, str] = {t: t.name}
    size: int = hurray.buffer_size_bytes(t, 7)
    print(numbers, facts, table, size)


def devices() -> None:
    d = hurray.Device("cuda", 1, "unified")
    kind: str = d.kind
    memory_class: str = d.memory_class
    numbers: tuple[int, int, int] = d.tag, d.device_id, d.memory_class_tag
    print(kind, memory_class, numbers, d.is_private, {d: 1}, hurray.Device(0xF2))


def layouts(t: hurray.Tensor) -> None:
    made: list[hurray.Layout] = [
        hurray.RowMajorLayout(),
        hurray.ColMajorLayout(),
        hurray.StridedLayout((4, 1)),
        hurray.TiledLayout([4, 4], outer_layout="strided", outer_strides=[2, 1]),
        hurray.MortonLayout([3, 3]),
        hurray.HilbertLayout(3, 2),
        hurray.CooLayout(2, is_sorted=True),
        hurray.CsrLayout(4),
        hurray.CscLayout(4),
        hurray.CsfLayout(5, [0, 1, 2]),
        hurray.BlockPagedLayout(16, 8, 0, 2, kv_role="value", layer_index=3, block_table_index_type="uint64"),
        hurray.CompositeLayout("overlay", 3, combine_op="add"),
        hurray.PrivateExtensionLayout(0xF0, 7, b"data"),
        hurray.UnknownLayout(0x0C),
    ]
    for layout in made:
        facts: tuple[int, str, int | None, bool, bool] = (
            layout.tag, layout.name, layout.buffer_count, layout.is_dense, layout.is_virtual,
        )
        layout.validate_against_shape([8, None])
        print(facts, {layout: 1})
    layout = t.layout
    if isinstance(layout, hurray.StridedLayout):
        strides: tuple[int, ...] = layout.strides
        print(strides)
    elif isinstance(layout, hurray.TiledLayout):
        tile: tuple[int, ...] = layout.tile_shape
        outer: tuple[int, ...] | None = layout.outer_strides
        inner: tuple[int, ...] | None = layout.inner_strides
        nested: hurray.TiledLayout | None = layout.inner_tiled
        orders: tuple[str, str] = layout.outer_layout, layout.inner_layout
        print(tile, outer, inner, nested, orders)
    elif isinstance(layout, hurray.MortonLayout):
        morton_bits: tuple[int, ...] = layout.morton_bits
        print(morton_bits)
    elif isinstance(layout, hurray.HilbertLayout):
        print(layout.hilbert_order + layout.hilbert_rank)
    elif isinstance(layout, hurray.CooLayout):
        print(layout.nnz + 1, layout.is_sorted)
    elif isinstance(layout, (hurray.CsrLayout, hurray.CscLayout)):
        print(layout.nnz + 1)
    elif isinstance(layout, hurray.CsfLayout):
        mode_order: tuple[int, ...] = layout.mode_order
        print(layout.nnz + 1, mode_order)
    elif isinstance(layout, hurray.BlockPagedLayout):
        role: Literal["key", "value", "fused"] = layout.kv_role
        index: Literal["uint32", "uint64"] = layout.block_table_index_type
        layer: int | None = layout.layer_index
        print(role, index, layer, layout.page_size + layout.num_pages + layout.paged_axis + layout.num_seqs)
        layout.validate_index_buffers([0, 1], np.array([0], np.uint32))
        layout.validate_quantization_compatibility(hurray.PerTensorAffine(0.5, 0))
    elif isinstance(layout, hurray.CompositeLayout):
        rule: Literal["partition", "overlay", "group"] = layout.composition_rule
        op: Literal["replace", "add"] | None = layout.combine_op
        print(rule, op, layout.member_count + 1)
    elif isinstance(layout, hurray.PrivateExtensionLayout):
        data: bytes = layout.extension_data
        print(data, layout.extension_layout_id + 1)
    elif isinstance(layout, hurray.UnknownLayout):
        raw: bytes = layout.raw_bytes
        print(raw)
    what: Literal["named", "reserved", "private", "invalid"] = hurray.layout_tag_kind(7)
    print(what)


def schemes(t: hurray.Tensor) -> None:
    made = (
        hurray.PerTensorAffine(0.5, 3),
        hurray.PerChannelAffine.symmetric(0, 1),
        hurray.PerChannelAffine.asymmetric(0, 1, 2),
        hurray.PerBlockAffine.symmetric(1, 32, 1, hurray.float16),
        hurray.PerBlockAffine.asymmetric(1, 32, 1, 2, hurray.float16),
        hurray.NF4(0, 64, 1),
        hurray.MXFP(0, 32, 1),
    )
    payloads: list[bytes] = [scheme.encode() for scheme in made]
    scheme = t.quantization
    if isinstance(scheme, hurray.PerTensorAffine):
        pair: tuple[float, int] = scheme.scale, scheme.zero_point
        print(pair)
    elif isinstance(scheme, (hurray.NF4, hurray.MXFP)):
        print(scheme.axis + scheme.block_size + scheme.scale_buffer_index)
    elif isinstance(scheme, hurray.PerChannelAffine):
        zeros: int | None = scheme.zero_point_buffer_index
        print(zeros, scheme.axis + scheme.scale_buffer_index)
    elif isinstance(scheme, hurray.PerBlockAffine):
        scale_type: hurray.Dtype = scheme.scale_type
        print(scale_type, scheme.axis + scheme.block_size + scheme.scale_buffer_index, scheme.zero_point_buffer_index)
    again = hurray.decode_quantization(payloads[0])
    assert again == made[0]


def sections(t: hurray.Tensor) -> None:
    statistics = hurray.Statistics(nnz=3, value_min=0.0, value_max=1.0, value_abs_max=1.0, has_nan=False, has_inf=False)
    floats: list[float | None] = [
        statistics.sparsity_ratio, statistics.value_min, statistics.value_max, statistics.value_abs_max,
        statistics.value_mean, statistics.value_stddev,
    ]
    counts: list[int | None] = [statistics.nnz, statistics.nm_n, statistics.nm_m]
    flags: list[bool | None] = [statistics.has_nan, statistics.has_inf]
    print(floats, counts, flags, statistics.computed_mask + 1)
    shard = hurray.Shard([4, 4], [2, 0])
    boxes: tuple[tuple[int, ...], tuple[int, ...]] = shard.parent_shape, shard.shard_offset
    e = hurray.ExtensionType(24, is_signed=True)
    widths: list[int] = [
        e.bit_width, e.sign_bits, e.exponent_bits, e.mantissa_bits, e.exponent_bias, e.packing_factor,
        e.buffer_size_bytes(10),
    ]
    yes: list[bool] = [e.is_float, e.is_signed, e.has_nan, e.has_inf]
    print(boxes, widths, yes, {shard: 1, e: 2})
    held: tuple[hurray.Statistics | None, hurray.Shard | None, hurray.ExtensionType | None] = (
        t.statistics, t.shard, t.extension_type,
    )
    print(held)


def descriptors(t: hurray.Tensor) -> None:
    d: hurray.Descriptor = t.descriptor
    wire: bytes = d.encode()
    same: hurray.Descriptor = hurray.Descriptor.decode(memoryview(wire), permissive=True)
    for field, mine, theirs in d.differences(same, ignore=("alignment",)):
        print(field + ":", mine, theirs)
    shape: tuple[int | None, ...] = d.shape
    version: tuple[int, int] = d.version
    device: hurray.Device | None = d.device
    size: int | None = d.size
    print(shape, version, device, size, d.ndim + d.byte_offset + d.encoded_len + d.buffer_count, d.dtype, d.layout)
    print(d.statistics, d.shard, d.extension_type, d.quantization)
    handles: tuple[hurray.BufferHandle, ...] = t.buffer_handles
    hurray.validate_colocation(handles)
    for handle in handles:
        mode: Literal["producer_synced", "event", "consumer_stream"] = handle.sync_mode
        place: hurray.Device = handle.device
        print(mode, place, handle.byte_size + handle.alignment, handle.is_empty, {handle: 1})


def tensors() -> hurray.Tensor:
    t = hurray.Tensor(
        bytes(24), hurray.float32, [2, 3], hurray.device.cpu, aux_buffers=[bytes(4)], layout=hurray.RowMajorLayout(),
        quantization=hurray.PerChannelAffine.symmetric(0, 1), statistics=hurray.Statistics(),
        shard=hurray.Shard([2, 3], [0, 0]), extension_type=None, byte_offset=0,
    )
    shape: tuple[int | None, ...] = t.shape
    size: int | None = t.size
    print(shape, size, t.ndim + t.nbytes + t.buffer_count, t.dtype, t.device, t.readonly)
    views: list[hurray.Tensor] = [
        t.buffer(0), t.values, t.indices, t.col_indices, t.row_ptr, t.row_indices, t.col_ptr, t.transpose(), t.to_cpu(),
        t.to_dense(), t.dequantize(),
    ]
    t.validate(data=True)
    count: int = t.nnz
    array: NDArray[Any] = t.to_numpy(copy=None, storage=False)
    also: NDArray[Any] = np.asarray(t)
    print(views, count, array, also, t.__array__(), t.__array_interface__["data"], t.__dlpack_device__())
    capsules: list[object] = [t.__dlpack__(stream=None, max_version=(1, 1)), t.__hurray__()]
    print(capsules, memoryview(t))
    return t


def partners(t: hurray.Tensor) -> None:
    # Their types are known where they are installed.
    torch = cast(object, t.to_torch(copy=None, device="cpu"))  # pyright: ignore
    scipy = cast(object, t.to_scipy())
    taken: list[hurray.Tensor] = [
        hurray.from_torch(torch, copy=None),
        hurray.from_scipy(scipy, copy=None),
        hurray.from_numpy(np.zeros(3), copy=False),
        hurray.from_dlpack(np.zeros(3), device=hurray.device.cpu, copy=True),
        hurray.asarray([[1, 2], [3, 4]], dtype=hurray.int16, device=None, copy=None),
        hurray.sparse_coo(np.zeros(2), np.zeros((2, 2), np.uint64), [4, 4], copy=None),
        hurray.from_hurray(t),
    ]
    print(taken)
    with hurray.aligned_allocator():
        print(np.zeros(4))
    context: hurray.AlignedAllocatorCtx = hurray.aligned_allocator()
    print(context)


def creation(x: hurray.Tensor) -> list[hurray.Tensor]:
    return [
        hurray.zeros([2, 3], dtype=hurray.float32, device=hurray.device.cpu),
        hurray.ones((2, 3)),
        hurray.empty([2], dtype=hurray.uint8, alignment=4096),
        hurray.full([2], 3.5, dtype=hurray.float64),
        hurray.zeros_like(x),
        hurray.ones_like(x, dtype=hurray.int8),
        hurray.empty_like(x, device=hurray.device.cpu),
        hurray.full_like(x, 7),
        hurray.arange(10),
        hurray.arange(0, 10, 2, dtype=hurray.int32),
        hurray.linspace(0, 1, 5, endpoint=False),
        hurray.eye(3, 4, k=1),
    ]


def composites(t: hurray.Tensor) -> None:
    c = hurray.Composite("overlay", shape=[2, 3], dtype=hurray.float32, members=[t, t], combine_op="add")
    members: tuple[hurray.Tensor | hurray.Composite, ...] = c.members
    roles: tuple[str | None, ...] = c.member_roles
    print(members, roles, c.member_count + c.ndim, c.layout, c.shape, c.dtype, c.descriptor, c.materialize())


def files(path: Path, t: hurray.Tensor) -> None:
    values: Mapping[str, Any] = {"t": t, "a": np.zeros(3), "raw": b"bytes"}
    hurray.save(path, values, kv={"epoch": 3, "tags": ["x"]}, sync=False, checksums=True)
    with hurray.FileWriter(path, kv={"epoch": 3}, checksums=True, sync=False) as file_writer:
        file_writer.write("w", values["w"])
        file_writer.kv["epoch"] = 4
        file_writer.finish()
    saved: None = hurray.save_async(path, values, kv=None, sync=False, checksums=True, snapshot=True).result()
    assert saved is None
    loaded = hurray.load(os.fspath(path), names=["t"], mode="map", verify=True)
    kv: dict[str, Any] = hurray.load_kv(path)
    hurray.convert(path, "m.safetensors", progress=lambda done, total: None, checksums=True, sync=False)
    print(kv)
    for name, item in loaded.items():
        if isinstance(item, hurray.Composite):
            print(name.upper(), item.members)
        else:
            print(name.upper(), item.nbytes + 1)
    with hurray.open(path, mode="copy_on_write", verify=None, max_tensors=10) as f:
        opened: hurray.file.File = f
        names: tuple[str, ...] = f.names
        listed: Iterator[str] = iter(f)
        d: hurray.Descriptor = f.descriptor("t")
        first = f["t"]
        print(opened, names, listed, d, first, f.kv, len(f), "t" in f, f.get("u"), f.path, f.mode, f.closed)
        print(f.has_checksums, f.member_names, f.descriptors())
        f.verify(["t"])
        part: hurray.Tensor = f.read("t", (0, slice(None)), out=None, copy=True, verify=False)
        hurray.save("m.hrry", {"t": hurray.zeros([1])}, max_shard_size="5GB")
        f.prefetch(["t"], max_bytes=1 << 20)
        f.prefetch({"t": 0})
        cost: hurray.file.ReadCounts = f.io
        print(part, cost.bytes_wanted + cost.bytes_read + cost.requests)
        f.close()


def streams(path: Path, t: hurray.Tensor, connection: socket.socket) -> None:
    with hurray.StreamWriter(cross_machine=False) as writer:
        writer.write(t)
        writer.write(np.zeros(3))
        writer.write_composite(hurray.Composite("group", shape=[], dtype=hurray.float32, members=[t]))
    data: bytes = writer.getvalue()
    hurray.StreamWriter(path).finish()
    with hurray.StreamReader(data, max_descriptor_bytes=1 << 20, expected_items=3) as reader:
        for item in reader:
            both: hurray.Tensor | hurray.Composite = item
            print(both)
    hurray.StreamReader(connection, read_timeout=2.5, max_tensor_bytes=1 << 30, max_item_members=4).close()
    with hurray.share({"w": hurray.zeros([2])}, kv={"a": 1}) as shared:
        number: int = shared.fileno()
        print(hurray.open(number).names, hurray.load(number), hurray.load_kv(number), shared.name)
        shared.close()
    decoder = hurray.StreamDecoder(max_buffer_bytes=1 << 20, expected_items=3)
    items: list[hurray.Tensor | hurray.Composite] = decoder.feed(data)
    decoder.finish()
    print(items)


def printing() -> None:
    hurray.set_print_options(sparse_display="content")
    display: Literal["metadata", "content"] = hurray.get_print_options()["sparse_display"]
    with hurray.print_options(sparse_display=display):
        pass
    context: hurray.PrintOptionsCtx = hurray.print_options()
    print(context)


def errors() -> None:
    kinds: list[type[Exception]] = [
        hurray.InvalidDescriptorError, hurray.BufferError, hurray.CopyRequiredError, hurray.UnsupportedError,
        hurray.InternalError, hurray.FileError, hurray.StreamError,
    ]
    try:
        hurray.load("nothing.hrry")
    except hurray.FileError as error:
        print(error.errno, error.filename, kinds)
