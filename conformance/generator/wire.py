"""Values to bytes, each field with its name: the descriptor of 01-descriptor.md, and the text form of a vector."""

import dataclasses
import struct

from . import formulas
from .formulas import DTYPES, DYNAMIC, BY_TAG


def u8(x):
    return bytes([x])


def u16(x):
    return struct.pack("<H", x)


def u32(x):
    return struct.pack("<I", x)


def i32(x):
    return struct.pack("<i", x)


def u64(x):
    return struct.pack("<Q", x)


def i64(x):
    return struct.pack("<q", x)


def f64(x):
    return struct.pack("<d", x)


def bits_of(raw):
    return raw[::-1].hex()


class Parts(list):
    """(name, bytes, note) in wire order. A name may come twice; the first one counts."""

    def put(self, name, raw, note=""):
        self.append((name, raw, note))

    def find(self, name):
        for i, part in enumerate(self):
            if part[0] == name:
                return i
        raise KeyError(name)

    def offset(self, name):
        """Where the field begins."""
        return sum(len(part[1]) for part in self[:self.find(name)])

    def swap(self, changes):
        """The same with other bytes in the named fields. Lengths stay as they are written."""
        copy = Parts(self)
        for name, raw in changes.items():
            i = copy.find(name)
            copy[i] = (name, raw, "")
        return copy

    def insert_after(self, name, added, raw):
        copy = Parts(self)
        copy.insert(copy.find(name) + 1, (added, raw, ""))
        return copy

    def without(self, *names):
        return Parts(part for part in self if part[0] not in names)

    def cut(self, size):
        """The first `size` bytes."""
        copy = Parts()
        for name, raw, note in self:
            if size <= 0:
                break
            copy.append((name, raw[:size], note))
            size -= len(raw)
        return copy

    def raw(self):
        return b"".join(raw for _, raw, _ in self)

    def with_length(self, length=None):
        """descriptor_length made right (or `length`)."""
        return self.swap({"descriptor_length": u32(len(self.raw()) if length is None else length)})


# ------------------------------------------------------------------------------------------------
# Buffers, layouts

DEVICES = ["cpu", "cuda", "rocm", "metal", "vulkan", "webgpu", "hexagon", "level_zero", "opencl"]
MEMORY_CLASSES = ["standard", "host_pinned", "unified", "peer"]
SYNC_MODES = ["producer_synced", "event", "consumer_stream"]


def named(names, tag):
    return names[tag] if tag < len(names) else f"0x{tag:02x}"


@dataclasses.dataclass
class Handle:
    byte_size: int
    alignment: int = 0
    device: int = 0
    sync_mode: int = 0
    memory_class: int = 0
    reserved: int = 0

    def __post_init__(self):
        self.alignment = self.alignment or (64 if self.byte_size else 1)

    def expect(self):
        return {"byte_size": number(self.byte_size), "alignment": self.alignment,
                "device": named(DEVICES, self.device), "sync_mode": named(SYNC_MODES, self.sync_mode),
                "memory_class": named(MEMORY_CLASSES, self.memory_class)}


def number(x):
    """A JSON number that every reader gets exactly, else its decimal digits."""
    return x if -2**53 < x < 2**53 else str(x)


def numbers(values):
    return [number(x) for x in values]


LAYOUT_TAGS = {"row_major": 0x01, "col_major": 0x02, "strided": 0x03, "tiled": 0x04, "morton": 0x05, "coo": 0x06,
               "csr": 0x07, "csc": 0x08, "csf": 0x09, "block_paged": 0x0A, "composite": 0x0B, "hilbert": 0x40}
INDEX_TYPES = ["uint32", "uint64"]
KV_ROLES = ["key", "value", "fused"]
RULES = {"partition": 1, "overlay": 2, "group": 3}
OPS = {None: 0, "replace": 1, "add": 2}


class Layout:
    """`fields` are those of 08-python-api.md section 8.1, by the same names."""

    def __init__(self, name, **fields):
        self.name, self.fields = name, fields

    @property
    def tag(self):
        return LAYOUT_TAGS.get(self.name) or self.fields["tag"]

    def own_buffers(self, rank):
        return {"coo": 2, "csr": 3, "csc": 3, "csf": 2 * rank + 1, "block_paged": 3, "composite": 0}.get(
            self.name, 1)

    def parts(self, p):
        f = self.fields
        if self.name == "strided":
            for k, s in enumerate(f["strides"]):
                p.put(f"layout.strides[{k}]", i64(s), str(s))
        elif self.name == "tiled":
            tiled_parts(p, f, "")
        elif self.name == "morton":
            for k, b in enumerate(f["morton_bits"]):
                p.put(f"layout.morton_bits[{k}]", u32(b), str(b))
        elif self.name == "hilbert":
            p.put("layout.hilbert_order", u32(f["hilbert_order"]), str(f["hilbert_order"]))
            p.put("layout.hilbert_rank", u32(f["hilbert_rank"]), str(f["hilbert_rank"]))
        elif self.name == "coo":
            p.put("layout.nnz", u64(f["nnz"]), str(f["nnz"]))
            p.put("layout.is_sorted", u8(f["is_sorted"]), str(int(f["is_sorted"])))
            p.put("layout.reserved", bytes(7))
        elif self.name in ("csr", "csc"):
            p.put("layout.nnz", u64(f["nnz"]), str(f["nnz"]))
            p.put("layout.reserved", bytes(8))
        elif self.name == "csf":
            p.put("layout.nnz", u64(f["nnz"]), str(f["nnz"]))
            for k, d in enumerate(f["mode_order"]):
                p.put(f"layout.mode_order[{k}]", u32(d), str(d))
            p.put("layout.reserved", bytes(8))
        elif self.name == "block_paged":
            p.put("layout.page_size", u32(f["page_size"]), str(f["page_size"]))
            p.put("layout.num_pages", u64(f["num_pages"]), str(f["num_pages"]))
            p.put("layout.paged_axis", u32(f["paged_axis"]), str(f["paged_axis"]))
            p.put("layout.num_seqs", u32(f["num_seqs"]), str(f["num_seqs"]))
            p.put("layout.kv_role", u8(KV_ROLES.index(f["kv_role"])), f["kv_role"])
            layer = f["layer_index"]
            p.put("layout.layer_index", u32(0xFFFFFFFF if layer is None else layer),
                  "none" if layer is None else str(layer))
            p.put("layout.block_table_index_type", u8(INDEX_TYPES.index(f["block_table_index_type"])),
                  f["block_table_index_type"])
            p.put("layout.reserved", bytes(6))
        elif self.name == "composite":
            rule = f["composition_rule"]
            p.put("layout.composition_rule", u8(RULES[rule] if isinstance(rule, str) else rule), str(rule))
            op = f["combine_op"]
            p.put("layout.combine_op", u8(op if isinstance(op, int) else OPS[op]), str(op or "does not apply"))
            p.put("layout.reserved", bytes(2))
            p.put("layout.member_count", u32(f["member_count"]), str(f["member_count"]))
        elif self.name == "extension":
            p.put("layout.extension_layout_id", u64(f["extension_layout_id"]))
            p.put("layout.extension_data_length", u32(len(f["extension_data"])))
            if f["extension_data"]:
                p.put("layout.extension_data", f["extension_data"])

    def expect(self):
        f = dict(self.fields)
        if self.name == "extension":
            return {"tag": f"0x{f['tag']:02x}", "extension_layout_id": number(f["extension_layout_id"]),
                    "extension_data": f["extension_data"].hex()}
        return plain(f)


def plain(value):
    """JSON without numbers that a reader could round."""
    if isinstance(value, dict):
        return {k: plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    if isinstance(value, int) and not isinstance(value, bool):
        return number(value)
    return value


def tiled_parts(p, level, prefix):
    where = f"layout.{prefix}"
    for k, n in enumerate(level["tile_shape"]):
        p.put(f"{where}tile_shape[{k}]", u64(n), str(n))
    p.put(f"{where}outer_layout", u8(LAYOUT_TAGS[level["outer_layout"]]), level["outer_layout"])
    p.put(f"{where}inner_layout", u8(LAYOUT_TAGS[level["inner_layout"]]), level["inner_layout"])
    p.put(f"{where}reserved", bytes(2))
    for name in ("outer_strides", "inner_strides"):
        for k, s in enumerate(level.get(name, ())):
            p.put(f"{where}{name}[{k}]", i64(s), str(s))
    if "inner_tiled" in level:
        tiled_parts(p, level["inner_tiled"], prefix + "inner_tiled.")


def row():
    return Layout("row_major")


def col():
    return Layout("col_major")


def strided(*strides):
    return Layout("strided", strides=list(strides))


def level(tile, outer="row_major", inner="row_major", outer_strides=None, inner_strides=None, inner_tiled=None):
    fields = {"tile_shape": list(tile), "outer_layout": "strided" if outer_strides else outer,
              "inner_layout": "tiled" if inner_tiled else "strided" if inner_strides else inner}
    for name, value in (("outer_strides", outer_strides), ("inner_strides", inner_strides),
                        ("inner_tiled", inner_tiled)):
        if value:
            fields[name] = value
    return fields


def tiled(*args, **kwargs):
    return Layout("tiled", **level(*args, **kwargs))


def morton(*bits):
    return Layout("morton", morton_bits=list(bits))


def hilbert(order, rank):
    return Layout("hilbert", hilbert_order=order, hilbert_rank=rank)


def coo(nnz, is_sorted=True):
    return Layout("coo", nnz=nnz, is_sorted=is_sorted)


def csr(nnz):
    return Layout("csr", nnz=nnz)


def csc(nnz):
    return Layout("csc", nnz=nnz)


def csf(nnz, *order):
    return Layout("csf", nnz=nnz, mode_order=list(order))


def paged(page_size, num_pages, num_seqs, kv_role="key", layer_index=None, index="uint32"):
    return Layout("block_paged", page_size=page_size, num_pages=num_pages, paged_axis=0, num_seqs=num_seqs,
                  kv_role=kv_role, layer_index=layer_index, block_table_index_type=index)


def composite(rule, members, op=None):
    return Layout("composite", composition_rule=rule, combine_op=op, member_count=members)


def private(tag=0xF0, identity=7, data=b""):
    return Layout("extension", tag=tag, extension_layout_id=identity, extension_data=data)


# ------------------------------------------------------------------------------------------------
# Sections

SCHEME_TAGS = {"per_tensor_affine": 1, "per_channel_affine": 2, "per_block_affine": 3, "nf4": 4, "mxfp": 5}
NONE32 = 0xFFFFFFFF


def per_tensor(scale, zero_point=0):
    return {"scheme": "per_tensor_affine", "scale": formulas.round_to(formulas.FLOAT32, scale),
            "zero_point": zero_point}


def per_channel(axis, scales, zero_points=None):
    return {"scheme": "per_channel_affine", "symmetric": zero_points is None, "axis": axis,
            "scale_buffer_index": scales, "zero_point_buffer_index": zero_points}


def per_block(axis, block_size, scales, zero_points=None, scale_type="float32"):
    return {"scheme": "per_block_affine", "symmetric": zero_points is None, "axis": axis, "block_size": block_size,
            "scale_buffer_index": scales, "zero_point_buffer_index": zero_points, "scale_type": scale_type}


def nf4(axis, block_size, scales):
    return {"scheme": "nf4", "axis": axis, "block_size": block_size, "scale_buffer_index": scales}


def mxfp(axis, block_size, scales):
    return {"scheme": "mxfp", "axis": axis, "block_size": block_size, "scale_buffer_index": scales}


def opaque_scheme(tag, payload, version=1, flags=0):
    """A scheme that only its maker knows: 4 bytes of header, then `payload`."""
    return {"scheme": f"0x{tag:02x}", "scheme_version": version, "flags": flags, "payload": payload}


def quantization_parts(p, q):
    body = Parts()
    scheme = q["scheme"]
    tag = SCHEME_TAGS.get(scheme) or int(scheme, 16)
    flags = q.get("flags", 1 if q.get("symmetric") else 0)
    body.put("quantization.scheme_tag", u8(tag), scheme)
    body.put("quantization.scheme_version", u8(q.get("scheme_version", 1)))
    body.put("quantization.flags", u16(flags), "SYMMETRIC" if q.get("symmetric") else "")
    if "payload" in q:
        if q["payload"]:
            body.put("quantization.payload", q["payload"])
    elif scheme == "per_tensor_affine":
        body.put("quantization.scale", struct.pack("<f", q["scale"]), repr(q["scale"]))
        body.put("quantization.zero_point", i32(q["zero_point"]), str(q["zero_point"]))
        body.put("quantization.reserved", bytes(4))
    else:
        body.put("quantization.axis", u32(q["axis"]), str(q["axis"]))
        if "block_size" in q:
            body.put("quantization.block_size", u32(q["block_size"]), str(q["block_size"]))
        body.put("quantization.scale_buffer_index", u32(q["scale_buffer_index"]), str(q["scale_buffer_index"]))
        if "symmetric" in q:
            zero = q["zero_point_buffer_index"]
            body.put("quantization.zero_point_buffer_index", u32(NONE32 if zero is None else zero),
                     "none" if zero is None else str(zero))
            kind = q.get("scale_type", "float32")
            body.put("quantization.scale_type_tag", u8(DTYPES[kind].tag), kind)
            body.put("quantization.reserved", bytes(3))
    if q.get("surplus"):
        body.put("quantization.surplus", q["surplus"], "bytes past the payload: kept, not read")
    p.put("quantization_length", u32(len(body.raw())), str(len(body.raw())))
    p.extend(body)


def quantization_expect(q):
    e = {k: v for k, v in q.items() if k not in ("payload", "surplus", "flags")}
    e.setdefault("scheme_version", 1)
    if "scale" in q:
        e["scale"] = formulas.float_bits("float32", q["scale"])
    if "payload" in q:
        e["flags"] = q["flags"]
        e["payload"] = q["payload"].hex()
    if q.get("surplus"):
        e["surplus"] = q["surplus"].hex()
    return e


def parameter_indices(q):
    """Distinct parameter buffers that a scheme names."""
    if q is None:
        return []
    return sorted({q[k] for k in ("scale_buffer_index", "zero_point_buffer_index") if q.get(k) is not None})


def parameter_sizes(q, layout, shape):
    """Buffer index -> exact bytes (03-quantization.md section 4)."""
    if q is None or "scale_buffer_index" not in q:
        return {}
    count = formulas.parameter_count(q, layout, shape)
    sizes = {q["scale_buffer_index"]: formulas.scale_type(q).bits // 8 * count}
    if q.get("zero_point_buffer_index") is not None:
        where = q["zero_point_buffer_index"]
        sizes[where] = sizes.get(where, 0) + 4 * count
    return sizes


STATISTICS = [("nnz", "u64", 0), ("sparsity_ratio", "f64", 1), ("value_min", "f64", 2), ("value_max", "f64", 2),
              ("value_abs_max", "f64", 2), ("value_mean", "f64", 3), ("value_stddev", "f64", 3), ("nm_n", "u8", 4),
              ("nm_m", "u8", 4), ("has_nan", "u8", 5), ("has_inf", "u8", 5)]


def statistics_parts(p, s):
    mask = s.get("computed_mask")
    if mask is None:
        mask = sum({1 << bit for name, _, bit in STATISTICS if name in s})
    p.put("statistics.computed_mask", u32(mask), f"0x{mask:02x}")
    p.put("statistics.reserved", u32(0))
    for name, kind, _ in STATISTICS:
        x = s.get(name, 0)
        raw = {"u64": u64, "u8": u8}.get(kind, lambda v: v if isinstance(v, bytes) else f64(v))(x)
        p.put(f"statistics.{name}", raw, "" if isinstance(x, bytes) else str(x))
    p.put("statistics.reserved (end)", bytes(4))


def statistics_expect(s):
    mask = s.get("computed_mask")
    if mask is None:
        mask = sum({1 << bit for name, _, bit in STATISTICS if name in s})
    e = {"computed_mask": mask}
    for name, kind, bit in STATISTICS:
        if mask >> bit & 1:
            x = s.get(name, 0)
            e[name] = bits_of(x if isinstance(x, bytes) else f64(x)) if kind == "f64" else number(x)
    return e


EXTENSION = ["bit_width", "packing_factor", "is_float", "is_signed", "sign_bits", "exponent_bits", "mantissa_bits",
             "exponent_bias", "has_nan", "has_inf"]


def extension(bit_width, is_float=0, is_signed=0, sign_bits=0, exponent_bits=0, mantissa_bits=0, exponent_bias=0,
              has_nan=0, has_inf=0):
    return {"bit_width": bit_width, "packing_factor": 8 // bit_width if bit_width < 8 else 1, "is_float": is_float,
            "is_signed": is_signed, "sign_bits": sign_bits, "exponent_bits": exponent_bits,
            "mantissa_bits": mantissa_bits, "exponent_bias": exponent_bias, "has_nan": has_nan, "has_inf": has_inf}


def extension_parts(p, e):
    for name in EXTENSION:
        wide = name in ("bit_width", "exponent_bias")
        p.put(f"extension_type.{name}", (u32 if wide else u8)(e[name]), str(e[name]))
        if name == "mantissa_bits":
            p.put("extension_type.reserved", bytes(2))
    p.put("extension_type.reserved (end)", bytes(2))


# ------------------------------------------------------------------------------------------------
# Descriptors and tensors

FLAGS = {"HAS_QUANTIZATION": 1, "HAS_SHARD": 2, "HAS_EXTENSION_TYPE": 4, "HAS_STATISTICS": 8,
         "HAS_COMPOSITE_MEMBER": 16}


class Tensor:
    """A descriptor and, where a vector has data, the bytes of its buffers. `handles` are what the descriptor
    declares; by default they follow from `buffers`, else from the layout and the quantization scheme."""

    def __init__(self, dtype="float32", shape=(), layout=None, byte_offset=0, handles=None, buffers=None,
                 quantization=None, shard=None, statistics=None, extension=None, role=None, version=(1, 0),
                 tokens=None, members=(), placement=(0, 0, 0), surplus=b""):
        self.layout = layout or row()
        self.shape = list(shape)
        self.byte_offset = byte_offset
        self.quantization, self.shard, self.statistics = quantization, shard, statistics
        self.extension, self.role, self.version = extension, role, version
        self.tokens, self.members, self.surplus = tokens, members, surplus
        if isinstance(dtype, int):
            kind = formulas.Dtype(dtype, f"0x{dtype:02x}", extension["bit_width"] if extension else 0, "bits")
            self.dtype = BY_TAG.get(dtype, kind)
        else:
            self.dtype = DTYPES[dtype]
        self.bits = self.dtype.bits
        self.buffers = buffers
        if handles is None:
            sizes = [len(b) for b in buffers] if buffers is not None else self.least_sizes()
            device, sync_mode, memory_class = placement
            handles = [Handle(n, 0, device, sync_mode, memory_class) for n in sizes]
        self.handles = handles

    def least_sizes(self):
        sizes = formulas.least_buffers(self.layout, self.shape, self.bits, self.byte_offset)
        own = self.layout.own_buffers(len(self.shape))
        assert len(sizes) == own, (self.layout.name, sizes)
        parameters = parameter_sizes(self.quantization, self.layout, self.shape)
        return sizes + [parameters.get(own + i, 0) for i in range(len(parameters))]

    def flags(self):
        present = (self.quantization, self.shard, self.extension, self.statistics, self.role)
        return [name for name, section in zip(FLAGS, present, strict=True) if section is not None]

    def parts(self, rank=None):
        p = Parts()
        p.put("magic", b"HRRY")
        p.put("version_major", u8(self.version[0]))
        p.put("version_minor", u8(self.version[1]))
        p.put("descriptor_length", bytes(4))
        p.put("flags", u32(sum(FLAGS[name] for name in self.flags())), " ".join(self.flags()))
        p.put("type_tag", u8(self.dtype.tag), self.dtype.name)
        p.put("layout_tag", u8(self.layout.tag), self.layout.name)
        p.put("rank", u32(len(self.shape) if rank is None else rank))
        for k, n in enumerate(self.shape):
            p.put(f"shape[{k}]", u64(n), "dynamic" if n == DYNAMIC else str(n))
        p.put("byte_offset", u64(self.byte_offset), str(self.byte_offset))
        if self.layout.name == "unknown":
            p.put("(opaque)", self.layout.fields["raw_bytes"], "layout fields, buffer table and sections")
            return p.with_length()
        self.layout.parts(p)
        p.put("buffer_count", u8(len(self.handles)), str(len(self.handles)))
        for i, h in enumerate(self.handles):
            p.put(f"buffers[{i}].byte_size", u64(h.byte_size), str(h.byte_size))
            p.put(f"buffers[{i}].alignment", u32(h.alignment), str(h.alignment))
            p.put(f"buffers[{i}].device_tag", u8(h.device), named(DEVICES, h.device))
            p.put(f"buffers[{i}].sync_mode", u8(h.sync_mode), named(SYNC_MODES, h.sync_mode))
            p.put(f"buffers[{i}].memory_class", u8(h.memory_class), named(MEMORY_CLASSES, h.memory_class))
            p.put(f"buffers[{i}].reserved", u8(h.reserved))
        if self.quantization is not None:
            quantization_parts(p, self.quantization)
        if self.shard is not None:
            for name, values in zip(("parent_shape", "shard_offset"), self.shard, strict=True):
                for k, n in enumerate(values):
                    p.put(f"shard.{name}[{k}]", u64(n), str(n))
        if self.statistics is not None:
            statistics_parts(p, self.statistics)
        if self.extension is not None:
            extension_parts(p, self.extension)
        if self.role is not None:
            p.put("composite_member.member_role", u8({"correction": 0, "base": 1}.get(self.role, self.role)),
                  str(self.role))
            p.put("composite_member.reserved", bytes(15))
        if self.surplus:
            p.put("(surplus)", self.surplus, "of a newer minor version")
        return p.with_length()

    def expect(self):
        e = {"dtype": self.dtype.name, "shape": ["dynamic" if n == DYNAMIC else number(n) for n in self.shape],
             "byte_offset": number(self.byte_offset), "version": list(self.version), "flags": self.flags()}
        if self.layout.name == "unknown":
            return e | {"layout": "extension", "layout_fields": {
                "tag": f"0x{self.layout.tag:02x}", "raw_bytes": self.layout.fields["raw_bytes"].hex()}}
        e |= {"layout": self.layout.name, "layout_fields": self.layout.expect(),
              "buffers": [h.expect() for h in self.handles]}
        if self.quantization is not None:
            e["quantization"] = quantization_expect(self.quantization)
        if self.shard is not None:
            e["shard"] = {"parent_shape": numbers(self.shard[0]), "shard_offset": numbers(self.shard[1])}
        if self.statistics is not None:
            e["statistics"] = statistics_expect(self.statistics)
        if self.extension is not None:
            e["extension_type"] = {k: number(v) for k, v in self.extension.items()}
        if self.role is not None:
            e["member_role"] = self.role
        return e

    def replace(self, **changes):
        """A copy with other attributes; handles and data stay unless given."""
        copy = Tensor.__new__(Tensor)
        copy.__dict__ = dict(self.__dict__) | changes
        return copy

    def quantized_with(self, q, parameters=None):
        """A copy with a quantization section and its parameter buffers behind the own ones (sizes only, or
        data)."""
        own = self.layout.own_buffers(len(self.shape))
        copy = self.replace(quantization=q)
        if parameters is not None:
            copy.buffers = self.buffers[:own] + parameters
            sizes = [len(b) for b in parameters]
        else:
            by_index = parameter_sizes(q, self.layout, self.shape)
            sizes = [by_index.get(own + i, 0) for i in range(len(by_index))]
        first = self.handles[0] if self.handles else Handle(0)
        copy.handles = self.handles[:own] + [
            Handle(n, 0, first.device, first.sync_mode, first.memory_class) for n in sizes]
        return copy


# ------------------------------------------------------------------------------------------------
# The text form


def text(parts, comments=(), last=None):
    """Lines of hexadecimal bytes with the field's name behind '#'. "00 x 100": the bytes of the line, so many
    times."""
    lines = [f"# {comment}" for comment in comments]
    for name, raw, note in parts:
        comment = f"{name}  {note}" if note else name
        if len(raw) > 32 and len(set(raw)) == 1:
            body = [f"{raw[0]:02x} x {len(raw)}"]
        else:
            body = [raw[i:i + 16].hex(" ") for i in range(0, len(raw), 16)] or [""]
        lines.append(f"{body[0]:<48}# {comment}")
        lines.extend(body[1:])
    if last is not None:
        lines.append(last)
    return "\n".join(lines) + "\n"


def parse(source):
    """The bytes of a text vector."""
    out = bytearray()
    for line in source.splitlines():
        if line.startswith("error:"):
            continue
        body, _, times = line.partition("#")[0].partition(" x ")
        out += bytes.fromhex(body) * int(times or 1)
    return bytes(out)
