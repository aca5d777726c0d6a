"""The invalid descriptors: for each row of 01-descriptor.md section 6, every alternative of it."""

import dataclasses
import struct

from . import formulas
from .descriptors import (
    INF, MAIN, NAN, PRIVATE_FLOAT, agreed_layout, big_csf, eight_levels, plain)
from .formulas import DYNAMIC
from .wire import (
    NONE32, Handle, Layout, Parts, Tensor, col, composite, coo, csc, csf, csr, extension, f64, hilbert, i32, i64, level,
    morton, mxfp, nf4, opaque_scheme, paged, per_block, per_channel, per_tensor, private, row, strided, tiled, u8, u16,
    u32, u64)


@dataclasses.dataclass
class Case:
    name: str
    row: str
    parts: Parts
    code: str
    field: str
    offset: int
    options: dict


def bad(row_number, name, parts, code, field, at=None, **options):
    """`at`: where the error is, if not at the first byte of `field`."""
    if isinstance(parts, Tensor):
        parts = parts.parts()
    if at is None:
        at = parts.offset(field)
    return Case(f"{row_number:02}_{name}", str(row_number), parts, code, field, at, options)


def shortened(parts, size):
    """descriptor_length says `size`, and so many bytes are there."""
    return parts.cut(size).with_length(size)


def ends_in(tensor, field, name=None, keep=0):
    """A descriptor that ends `keep` bytes into `field`."""
    parts = tensor.parts()
    at = parts.offset(field)
    return bad(7, name or field.replace(".", "_").replace("[", "_").replace("]", ""), shortened(parts, at + keep),
               "truncated", field, at, **agreed_layout(tensor.layout))


def f32(x):
    return struct.pack("<f", x)


TWO = Tensor(shape=(2,))
GRID = {name: (layout, shape) for name, (layout, shape) in MAIN.items()}


def of(name, kind="float32", **sections):
    return plain(*MAIN[name], kind, **sections)


def scalar(**changes):
    return Tensor(**changes)


def framing():
    def text(raw):
        parts = Parts()
        parts.put("magic", raw[:4])
        if raw[4:]:
            parts.put("(the rest)", raw[4:])
        return parts

    yield bad(1, "no_bytes", Parts([("(nothing)", b"", "")]), "truncated", "descriptor_length", 0)
    yield bad(1, "three_bytes", text(b"GET"), "truncated", "descriptor_length", 3)
    yield bad(1, "nine_bytes", scalar().parts().cut(9), "truncated", "descriptor_length", 9)
    yield bad(1, "four_bytes_wrong_magic", text(b"GET "), "invalid magic", "magic", 0)
    yield bad(1, "five_bytes_wrong_major", text(b"HRRYF"), "unsupported version", "version_major", 4)
    yield bad(2, "magic", scalar().parts().swap({"magic": b"HRRX"}), "invalid magic", "magic")
    for major in (0, 2, 255):
        yield bad(3, f"major_{major}", scalar(version=(major, 0)), "unsupported version", "version_major")
    yield bad(3, "file", text(b"HRRYFILE\1\0\0\0"), "unsupported version", "version_major", 4)
    for length in (0, 19):
        yield bad(4, f"length_{length}", scalar().parts().with_length(length), "length mismatch",
                  "descriptor_length")
    yield bad(5, "length_over_limit", scalar().parts().with_length(2**24 + 1), "out of bounds", "descriptor_length")
    yield bad(5, "length_huge", scalar().parts().with_length(2**32 - 1), "out of bounds", "descriptor_length")
    yield bad(6, "one_byte_short", scalar().parts().cut(44), "truncated", "descriptor_length", 44)
    yield bad(6, "ten_bytes", scalar().parts().cut(10), "truncated", "descriptor_length", 10)
    yield bad(6, "newer_minor", scalar(version=(1, 7)).parts().cut(44), "truncated", "descriptor_length", 44)


def cuts():
    yield ends_in(scalar(), "byte_offset", "header")
    yield ends_in(Tensor(shape=(2, 3)), "shape[1]", "shape", 1)
    yield ends_in(Tensor(shape=(2, 3)), "byte_offset", keep=7)
    yield ends_in(Tensor(shape=(2,), layout=strided(1)), "layout.strides[0]", "strides", 4)
    yield ends_in(of("tiled"), "layout.tile_shape[1]", "tiled_tile_shape")
    yield ends_in(of("tiled"), "layout.outer_layout", "tiled_outer_layout")
    yield ends_in(of("tiled"), "layout.inner_layout", "tiled_inner_layout")
    yield ends_in(of("tiled"), "layout.reserved", "tiled_reserved", 1)
    both = plain(tiled((2, 3), outer_strides=[-4, 1], inner_strides=[1, -2]), (4, 6), "float32")
    yield ends_in(both, "layout.outer_strides[1]", "tiled_outer_strides", 7)
    yield ends_in(both, "layout.inner_strides[0]", "tiled_inner_strides")
    nested = plain(tiled((8, 8), inner_tiled=level((4, 2))), (16, 24), "int8")
    parts = nested.parts()
    at = parts.offset("layout.inner_tiled.tile_shape[0]")
    yield bad(7, "tiled_next_level", shortened(parts, at), "truncated", "layout.tile_shape[0]", at)
    yield ends_in(of("morton"), "layout.morton_bits[1]", "morton_bits")
    yield ends_in(of("hilbert"), "layout.hilbert_rank", "hilbert_rank")
    yield ends_in(of("coo"), "layout.is_sorted", "coo_is_sorted")
    yield ends_in(of("coo"), "layout.reserved", "coo_reserved", 6)
    yield ends_in(of("csr"), "layout.nnz", "csr_nnz", 5)
    yield ends_in(of("csc"), "layout.reserved", "csc_reserved")
    yield ends_in(of("csf"), "layout.mode_order[2]", "csf_mode_order")
    yield ends_in(of("csf"), "layout.reserved", "csf_reserved")
    for field in ("page_size", "num_pages", "paged_axis", "num_seqs", "kv_role", "layer_index",
                  "block_table_index_type", "reserved"):
        yield ends_in(of("paged"), f"layout.{field}", f"paged_{field}")
    for field in ("composition_rule", "combine_op", "reserved", "member_count"):
        yield ends_in(of("partition"), f"layout.{field}", f"head_{field}")
    for field in ("extension_layout_id", "extension_data_length", "extension_data"):
        yield ends_in(of("private"), f"layout.{field}", f"private_{field}")
    data = of("private").parts()
    yield bad(7, "private_data_length", data.swap({"layout.extension_data_length": u32(2**32 - 1)}), "truncated",
              "layout.extension_data", **agreed_layout(MAIN["private"][0]))
    yield ends_in(TWO, "buffer_count", "buffer_count")
    yield ends_in(TWO, "buffers[0].byte_size", "buffer_table")
    yield ends_in(TWO, "buffers[0].reserved", "buffer_reserved")
    yield bad(7, "buffer_table_255", TWO.parts().swap({"buffer_count": u8(255)}), "truncated",
              "buffers[1].byte_size", len(TWO.parts().raw()))
    q = plain(row(), (4, 32), "int8").quantized_with(per_block(1, 8, 1, 2))
    yield ends_in(q, "quantization_length", keep=3)
    cut = shortened(q.parts(), q.parts().offset("quantization.scale_type_tag"))
    yield bad(7, "quantization_cut", cut, "truncated", "quantization", cut.offset("quantization.scheme_tag"))
    yield bad(7, "quantization", q.parts().swap({"quantization_length": u32(4000)}), "truncated", "quantization",
              q.parts().offset("quantization.scheme_tag"))
    shard = Tensor(shape=(2,), shard=((4,), (0,)))
    yield ends_in(shard, "shard.parent_shape[0]", "shard_parent_shape")
    yield ends_in(shard, "shard.shard_offset[0]", "shard", 1)
    yield ends_in(Tensor(shape=(2,), statistics={}), "statistics.computed_mask", "statistics_start", 3)
    yield ends_in(Tensor(shape=(2,), statistics={}), "statistics.value_stddev", "statistics")
    tail = ends_in(Tensor(shape=(2,), statistics={}), "statistics.reserved (end)", "statistics_end", 3)
    yield dataclasses.replace(tail, field="statistics.reserved")
    ext = plain(row(), (2,), PRIVATE_FLOAT)
    yield ends_in(ext, "extension_type.bit_width", "extension_start")
    yield ends_in(ext, "extension_type.exponent_bias", "extension")
    yield ends_in(Tensor(shape=(2,), role="base"), "composite_member.member_role", "member_start")
    yield ends_in(Tensor(shape=(2,), role="base"), "composite_member.reserved", "member", 14)


def header():
    for bit in (5, 6, 17, 31):
        parts = scalar().parts()
        yield bad(8, f"flag_bit_{bit}", parts.swap({"flags": u32(1 << bit)}), "reserved bits", "flags")
    for tag in (0x00, 0xFF):
        yield bad(9, f"type_{tag:02x}", Tensor(tag, handles=[Handle(4)]), "invalid tag", "type_tag")
    for tag in (0x05, 0x0F, 0x18, 0x1F, 0x21, 0x3F, 0x47, 0x4C, 0x4F, 0x52, 0x7F, 0x80, 0xEF):
        yield bad(10, f"type_{tag:02x}", Tensor(tag, handles=[Handle(4)]), "invalid tag", "type_tag")
    yield bad(11, "extension_flag_on_float32", scalar().parts().swap({"flags": u32(4)}), "inconsistent", "flags")
    yield bad(11, "extension_section_on_float32", scalar(extension=extension(32)), "inconsistent", "flags")
    for tag in (0xF0, 0xFE):
        yield bad(11, f"private_type_{tag:02x}_without_flag", Tensor(tag, handles=[Handle(4)]), "inconsistent", "flags")
    for tag in (0x00, 0xFF):
        yield bad(12, f"layout_{tag:02x}", scalar().parts().swap({"layout_tag": u8(tag)}), "invalid tag", "layout_tag")
    for tag in (0x0C, 0x3F, 0x41, 0x7F, 0x80, 0xEF):
        yield bad(13, f"layout_{tag:02x}", scalar().parts().swap({"layout_tag": u8(tag)}), "invalid tag", "layout_tag")
    for name, rank in (("65", 65), ("huge", 2**32 - 1)):
        yield bad(14, f"rank_{name}", scalar().parts(rank), "out of bounds", "rank")
    for name, layout, shape in (
            ("col_major_rank_0", col(), ()), ("strided_rank_0", strided(), ()), ("tiled_rank_0", tiled(()), ()),
            ("morton_rank_0", morton(), ()), ("morton_rank_64", morton(*(1,) * 64), (1,) * 64),
            ("coo_rank_0", coo(0), ()), ("csr_rank_0", csr(0), ()), ("csr_rank_1", csr(0), (3,)),
            ("csr_rank_3", csr(0), (3, 3, 3)), ("csc_rank_1", csc(0), (3,)), ("csc_rank_3", csc(0), (3, 3, 3)),
            ("csf_rank_2", csf(0, 0, 1), (3, 3)), ("csf_rank_0", csf(0), ()), ("paged_rank_2", paged(2, 1, 1), (3, 3)),
            ("paged_rank_4", paged(2, 1, 1), (3, 3, 3, 3)), ("hilbert_rank_0", hilbert(1, 2), ()),
            ("hilbert_rank_1", hilbert(1, 2), (2,)), ("hilbert_rank_64", hilbert(1, 64), (2,) * 64)):
        yield bad(15, name, Tensor(shape=shape, layout=layout, handles=[Handle(0)]), "inconsistent", "rank")
    head = Tensor(shape=(4,), layout=composite("group", 0))
    yield bad(16, "head_quantized", head.replace(dtype=formulas.DTYPES["int8"], quantization=per_tensor(1.0)),
              "inconsistent", "flags")
    yield bad(16, "head_member", head.replace(role="base"), "inconsistent", "flags")
    yield bad(17, "csf_shard", of("csf", shard=((3, 4, 5), (0, 0, 0))), "inconsistent", "flags")
    yield bad(17, "paged_shard", of("paged", shard=((8, 3, 4), (0, 0, 0))), "inconsistent", "flags")


def layouts():
    for name, size in (("tiled", 2), ("coo", 7), ("csr", 8), ("csc", 8), ("csf", 8), ("paged", 6), ("partition", 2)):
        for k in {0, size - 1}:
            reserved = bytearray(size)
            reserved[k] = 1 if k else 0x80
            yield bad(18, f"{name}_reserved_{'first' if k == 0 else 'last'}",
                      of(name).parts().swap({"layout.reserved": bytes(reserved)}), "reserved bits", "layout.reserved")
    nested = plain(tiled((8, 8), inner_tiled=level((4, 2))), (16, 24), "int8").parts()
    at = nested.offset("layout.inner_tiled.reserved")
    yield bad(18, "tiled_second_level", nested.swap({"layout.inner_tiled.reserved": b"\0\1"}), "reserved bits",
              "layout.reserved", at)

    t = of("tiled").parts()
    for k in (0, 1):
        yield bad(19, f"tile_size_0_{k}", t.swap({f"layout.tile_shape[{k}]": u64(0)}), "invalid value",
                  f"layout.tile_shape[{k}]")
    for tag in (0x00, 0x04, 0x05, 0xFF):
        yield bad(19, f"outer_layout_{tag:02x}", t.swap({"layout.outer_layout": u8(tag)}), "invalid value",
                  "layout.outer_layout")
    for tag in (0x00, 0x05, 0x40, 0xFF):
        yield bad(19, f"inner_layout_{tag:02x}", t.swap({"layout.inner_layout": u8(tag)}), "invalid value",
                  "layout.inner_layout")
    yield bad(19, "second_level_tile_size_0", nested.swap({"layout.inner_tiled.tile_shape[0]": u64(0)}),
              "invalid value", "layout.tile_shape[0]", nested.offset("layout.inner_tiled.tile_shape[0]"))
    yield bad(19, "second_level_outer_layout", nested.swap({"layout.inner_tiled.outer_layout": u8(4)}),
              "invalid value", "layout.outer_layout", nested.offset("layout.inner_tiled.outer_layout"))

    deep = plain(eight_levels(), (200,), "int8").parts()
    last = "layout." + "inner_tiled." * 7
    yield bad(20, "ninth_level", deep.swap({f"{last}inner_layout": u8(4)}), "out of bounds", "layout.inner_layout",
              deep.offset(f"{last}inner_layout"))
    nine = level([256], inner_tiled=eight_levels().fields)
    ninth = plain(Layout("tiled", **nine), (1,), "int8").parts()
    yield bad(20, "ninth_level_written", ninth, "out of bounds", "layout.inner_layout",
              ninth.offset(f"{last}inner_layout"))
    uneven = plain(tiled((2, 6), inner_tiled=level((2, 4))), (4, 12), "int8").parts()
    yield bad(21, "does_not_divide", uneven, "inconsistent", "layout.tile_shape[1]",
              uneven.offset("layout.inner_tiled.tile_shape[1]"))
    larger = plain(tiled((2, 2), inner_tiled=level((4, 2))), (4, 12), "int8").parts()
    yield bad(21, "larger_than_the_tile_around_it", larger, "inconsistent", "layout.tile_shape[0]",
              larger.offset("layout.inner_tiled.tile_shape[0]"))
    third = plain(tiled((8,), inner_tiled=level((4,), inner_tiled=level((3,)))), (8,), "int8").parts()
    yield bad(21, "third_level", third, "inconsistent", "layout.tile_shape[0]",
              third.offset("layout.inner_tiled.inner_tiled.tile_shape[0]"))

    for k in (0, 1):
        yield bad(22, f"morton_bits_0_{k}", of("morton").parts().swap({f"layout.morton_bits[{k}]": u32(0)}),
                  "invalid value", f"layout.morton_bits[{k}]")
    curve = of("hilbert").parts()
    yield bad(22, "hilbert_order_0", curve.swap({"layout.hilbert_order": u32(0)}), "invalid value",
              "layout.hilbert_order")
    for n in (0, 1):
        yield bad(22, f"hilbert_rank_{n}", curve.swap({"layout.hilbert_rank": u32(n)}), "invalid value",
                  "layout.hilbert_rank")
    zorder = of("morton").parts()
    yield bad(23, "morton_64_bits", zorder.swap({"layout.morton_bits[0]": u32(32), "layout.morton_bits[1]": u32(32)}),
              "overflow", "layout.morton_bits[1]")
    yield bad(23, "morton_bits_huge", zorder.swap({"layout.morton_bits[0]": u32(2**32 - 1)}), "overflow",
              "layout.morton_bits[0]")
    yield bad(23, "morton_bits_wrap", zorder.swap({"layout.morton_bits[0]": u32(2**31),
                                                   "layout.morton_bits[1]": u32(2**31)}), "overflow",
              "layout.morton_bits[0]")
    yield bad(23, "hilbert_order_32", curve.swap({"layout.hilbert_order": u32(32)}), "overflow",
              "layout.hilbert_order")
    yield bad(23, "hilbert_order_wraps", curve.swap({"layout.hilbert_order": u32(2**31)}), "overflow",
              "layout.hilbert_order")
    yield bad(24, "morton_shape_too_large", Tensor("int8", (4, 5), morton(2, 2)), "inconsistent",
              "layout.morton_bits[1]")
    yield bad(24, "morton_shape_far_too_large", Tensor("int8", (2**63, 4), morton(2, 2)), "inconsistent",
              "layout.morton_bits[0]")
    for name, shape in (("3", (4, 3)), ("5", (5, 4)), ("0", (4, 0))):
        yield bad(24, f"hilbert_shape_{name}", Tensor("int8", shape, hilbert(2, 2), handles=[Handle(32)]),
                  "inconsistent", "layout.hilbert_order")
    yield bad(24, "hilbert_rank_3", curve.swap({"layout.hilbert_rank": u32(3)}), "inconsistent", "layout.hilbert_rank")
    for n in (2, 255):
        yield bad(25, f"is_sorted_{n}", of("coo").parts().swap({"layout.is_sorted": u8(n)}), "invalid value",
                  "layout.is_sorted")
    for name, shape in (("coo", (3, 3)), ("csr", (3, 3)), ("csc", (3, 3)), ("csf", (3, 3, 1))):
        layout = csf(10, 0, 1, 2) if name == "csf" else Layout(name, nnz=10, is_sorted=True)
        yield bad(26, f"{name}_nnz_above_count", Tensor(shape=shape, layout=layout), "out of bounds", "layout.nnz")
    yield bad(26, "empty_coo_nnz_1", Tensor(shape=(4, 0), layout=coo(1)), "out of bounds", "layout.nnz")
    yield bad(26, "nnz_huge", Tensor(shape=(3, 3), layout=csr(2**64 - 1), handles=[Handle(64)] * 3), "out of bounds",
              "layout.nnz")
    yield bad(27, "mode_order_twice", plain(csf(5, 0, 1, 1), (3, 4, 5), "int16"), "invalid value",
              "layout.mode_order[2]")
    yield bad(27, "mode_order_out_of_range", plain(csf(5, 0, 3, 1), (3, 4, 5), "int16"), "invalid value",
              "layout.mode_order[1]")
    yield bad(27, "mode_order_huge", plain(csf(5, 2**32 - 1, 0, 1), (3, 4, 5), "int16"), "invalid value",
              "layout.mode_order[0]")
    pages = of("paged").parts()
    for field, raw, name in (("page_size", u32(0), "page_size_0"), ("paged_axis", u32(1), "paged_axis_1"),
                             ("kv_role", u8(3), "kv_role_3"), ("block_table_index_type", u8(2), "index_type_2")):
        yield bad(28, name, pages.swap({f"layout.{field}": raw}), "invalid value", f"layout.{field}")
    yield bad(29, "num_pages_2_32", pages.swap({"layout.num_pages": u64(2**32)}), "inconsistent", "layout.num_pages")
    yield bad(29, "tokens_without_sequences", pages.swap({"layout.num_seqs": u32(0)}), "inconsistent",
              "layout.num_seqs")
    head = of("partition").parts()
    for rule in (0x00, 0x04, 0xEF, 0xFF, 0xF0, 0xFE):
        yield bad(30, f"rule_{rule:02x}", head.swap({"layout.composition_rule": u8(rule)}), "invalid tag",
                  "layout.composition_rule")
    yield bad(30, "rule_f0_agreed_but_strict", head.swap({"layout.composition_rule": u8(0xF0)}), "invalid tag",
              "layout.composition_rule", agreed={"rules": [0xF0]})
    yield bad(30, "rule_f0_permissive_but_not_agreed", head.swap({"layout.composition_rule": u8(0xF0)}),
              "invalid tag", "layout.composition_rule", permissive=True)
    for rule, name, op in ((1, "partition", 1), (1, "partition", 0xF0), (3, "group", 2), (2, "overlay", 0),
                           (2, "overlay", 3), (2, "overlay", 0xF0)):
        yield bad(31, f"{name}_op_{op:02x}", head.swap({"layout.composition_rule": u8(rule),
                                                        "layout.combine_op": u8(op)}), "inconsistent",
                  "layout.combine_op")
    for rule, name, op in ((1, "partition", 0), (2, "overlay", 1), (3, "group", 0)):
        yield bad(32, f"{name}_open", head.swap({
            "layout.composition_rule": u8(rule), "layout.combine_op": u8(op),
            "layout.member_count": u32(2**32 - 1)}), "invalid value", "layout.member_count")
    yield bad(32, "overlay_of_none", Tensor(shape=(4,), layout=composite("overlay", 0, "add")), "invalid value",
              "layout.member_count")
    yield bad(33, "partition_dynamic", Tensor(shape=(4, DYNAMIC), layout=composite("partition", 1)), "inconsistent",
              "shape[1]")
    yield bad(33, "overlay_dynamic", Tensor(shape=(DYNAMIC,), layout=composite("overlay", 1, "add")), "inconsistent",
              "shape[0]")
    yield bad(33, "partition_empty_and_dynamic", Tensor(shape=(0, DYNAMIC), layout=composite("partition", 0)),
              "inconsistent", "shape[1]")
    yield bad(33, "partition_volume", Tensor(shape=(2**63, 2**63, 4), layout=composite("partition", 1)), "overflow",
              "shape", 20)
    yield bad(34, "private_layout", of("private"), "invalid tag", "layout.extension_layout_id", agreed={})
    yield bad(34, "private_layout_another_id", of("private"), "invalid tag", "layout.extension_layout_id",
              agreed={"layouts": [[0xF0, 8]]})
    yield bad(34, "private_layout_another_tag", of("private"), "invalid tag", "layout.extension_layout_id",
              agreed={"layouts": [[0xF1, str(0x1122334455667788)]]})


def buffers():
    def one(*handle, **options):
        return Tensor(shape=(2,), handles=[Handle(*handle)])

    for name in ("row_major", "strided", "tiled", "morton", "hilbert", "coo", "csr", "csc", "csf", "paged"):
        yield bad(35, f"{name}_no_buffers" if name != "row_major" else "no_buffers",
                  of(name).replace(handles=[], byte_offset=0), "invalid value", "buffer_count")
    yield bad(35, "private_no_buffers", of("private").replace(handles=[]), "invalid value", "buffer_count",
              **agreed_layout(MAIN["private"][0]))
    yield bad(35, "head_with_a_buffer", of("partition").replace(handles=[Handle(0)]), "inconsistent", "buffer_count")
    alignment = "buffers[0].alignment"
    for name, size, value in (("0", 8, 0), ("48", 8, 48), ("32", 8, 32), ("1", 8, 1), ("all_bits", 8, 2**32 - 1)):
        yield bad(36, f"alignment_{name}", one(size).parts().swap({alignment: u32(value)}), "invalid value", alignment)
    for name, value in (("0", 0), ("3", 3)):
        yield bad(36, f"alignment_{name}_empty", Tensor(shape=(0,)).parts().swap({alignment: u32(value)}),
                  "invalid value", alignment)
    yield bad(36, "alignment_third", of("csr").parts().swap({"buffers[2].alignment": u32(32)}), "invalid value",
              "buffers[2].alignment")
    for tag in (0x09, 0x80, 0xEF, 0xFF):
        yield bad(37, f"device_{tag:02x}", one(8, 64, tag), "invalid tag", "buffers[0].device_tag")
    for mode in (0x03, 0x80, 0xFE, 0xFF):
        yield bad(38, f"sync_{mode:02x}", one(8, 64, 1, mode), "invalid tag", "buffers[0].sync_mode")
    for tag in (0x04, 0x80, 0xEF, 0xFF):
        yield bad(39, f"class_{tag:02x}", one(8, 64, 1, 0, tag), "invalid tag", "buffers[0].memory_class")
    yield bad(39, "class_private", one(8, 64, 0xF0, 0, 0xF0), "invalid tag", "buffers[0].memory_class", agreed={})
    yield bad(39, "class_private_another", one(8, 64, 0xF0, 0, 0xF0), "invalid tag", "buffers[0].memory_class",
              agreed={"memory_classes": [0xF1]})
    yield bad(40, "handle_reserved", one(8, 64, 0, 0, 0, 1), "reserved bits", "buffers[0].reserved")
    yield bad(40, "handle_reserved_third", of("csr").parts().swap({"buffers[2].reserved": u8(0x80)}), "reserved bits",
              "buffers[2].reserved")
    for device, memory_class in ((0, 3), (3, 3), (5, 1), (5, 2), (5, 3), (6, 3), (8, 3), (0xF0, 1), (0xF0, 2),
                                 (0xF0, 3)):
        yield bad(41, f"device_{device:02x}_class_{memory_class}", one(8, 64, device, 0, memory_class),
                  "inconsistent", "buffers[0].memory_class")
    for device in range(9):
        yield bad(41, f"device_{device:02x}_class_private", one(8, 64, device, 0, 0xF0), "inconsistent",
                  "buffers[0].memory_class", agreed={"memory_classes": [0xF0]})
    yield bad(42, "cpu_event", one(8, 64, 0, 1), "inconsistent", "buffers[0].sync_mode")
    yield bad(42, "cpu_consumer_stream", one(8, 64, 0, 2), "inconsistent", "buffers[0].sync_mode")
    yield bad(42, "cpu_event_empty", Tensor(shape=(0,), handles=[Handle(0, 1, 0, 1)]), "inconsistent",
              "buffers[0].sync_mode")
    for mode in (1, 2):
        yield bad(42, f"network_sync_{mode}", one(8, 64, 1, mode), "inconsistent", "buffers[0].sync_mode",
                  cross_machine=True)
    small = Tensor(shape=(3, 3), layout=csr(2))
    handles = small.handles
    yield bad(43, "device_differs", small.replace(handles=[handles[0], Handle(16, 64, 1), handles[2]]),
              "inconsistent", "buffers[1].device_tag")
    cuda = [Handle(h.byte_size, 64, 1) for h in handles]
    yield bad(43, "class_differs", small.replace(handles=cuda[:2] + [Handle(32, 64, 1, 0, 2)]), "inconsistent",
              "buffers[2].memory_class")
    empty = Tensor("int8", (3, 0)).quantized_with(per_channel(0, 1))
    yield bad(43, "empty_buffer_differs", empty.replace(handles=[Handle(0), Handle(12, 64, 1)]), "inconsistent",
              "buffers[1].device_tag")
    yield bad(43, "parameters_elsewhere", Tensor("int8", (3,)).quantized_with(per_channel(0, 1)).replace(
        handles=[Handle(3, 64, 1), Handle(12)]), "inconsistent", "buffers[1].device_tag")
    yield bad(44, "sum_of_sizes", small.replace(handles=[Handle(2**63 - 1), Handle(1), Handle(32)]), "overflow",
              "buffers[1].byte_size")
    yield bad(44, "sum_wraps", small.replace(handles=[Handle(2**63 - 1), Handle(2**63), Handle(1)]), "overflow",
              "buffers[1].byte_size")
    yield bad(44, "one_size", one(2**63), "overflow", "buffers[0].byte_size")


BLOCKS = plain(row(), (4, 32), "int8")


def quantization():
    base = BLOCKS.quantized_with(per_tensor(0.5))
    for n in (0, 3):
        yield bad(45, f"quantization_length_{n}", base.parts().swap({"quantization_length": u32(n)}),
                  "length mismatch", "quantization_length")
    schemes = {"per_tensor": BLOCKS.quantized_with(per_tensor(0.5)),
               "per_channel": BLOCKS.quantized_with(per_channel(0, 1, 2)),
               "per_block": BLOCKS.quantized_with(per_block(1, 8, 1, 2)),
               "nf4": plain(row(), (4, 32), "uint4").quantized_with(nf4(1, 8, 1)),
               "mxfp": BLOCKS.quantized_with(mxfp(1, 32, 1))}
    for name, t in schemes.items():
        parts = t.parts()
        start = parts.offset("quantization.scheme_tag")
        length = len(parts.raw()) - start - 1
        short = parts.swap({"quantization_length": u32(length)}).cut(start + length).with_length()
        yield bad(45, f"{name}_one_byte_short", short, "length mismatch", "quantization_length")
    yield bad(45, "header_only", base.parts().swap({"quantization_length": u32(4)}).cut(
        base.parts().offset("quantization.scale")).with_length(), "length mismatch", "quantization_length")

    def scheme(tag, **options):
        return Tensor("int8", (8,), handles=[Handle(8)], quantization=opaque_scheme(tag, bytes(12)))

    for tag in (0x00, 0xFF):
        yield bad(46, f"scheme_{tag:02x}", scheme(tag), "invalid tag", "quantization.scheme_tag")
        yield bad(46, f"scheme_{tag:02x}_permissive", scheme(tag), "invalid tag", "quantization.scheme_tag",
                  permissive=True)
    for tag in (0x06, 0x3F, 0x40, 0x5F, 0x60, 0x7F, 0x80, 0xEF, 0xF0, 0xFE):
        private_tag = {"agreed": {}} if tag >= 0xF0 else {}
        yield bad(47, f"scheme_{tag:02x}", scheme(tag), "invalid tag", "quantization.scheme_tag", **private_tag)
    yield bad(47, "scheme_f0_another", scheme(0xF0), "invalid tag", "quantization.scheme_tag",
              agreed={"schemes": [0xF1]})
    for name, t in schemes.items():
        for version in (0, 2):
            yield bad(48, f"{name}_version_{version}", t.parts().swap({"quantization.scheme_version": u8(version)}),
                      "unsupported version", "quantization.scheme_version")
    for name, flag in (("per_tensor", 1), ("per_channel", 2), ("per_block", 0x8000), ("nf4", 1), ("mxfp", 1)):
        yield bad(49, f"{name}_flag", schemes[name].parts().swap({"quantization.flags": u16(flag)}), "reserved bits",
                  "quantization.flags")
    for name, size in (("per_tensor", 4), ("per_channel", 3), ("per_block", 3)):
        yield bad(49, f"{name}_reserved", schemes[name].parts().swap({
            "quantization.reserved": bytes(size - 1) + b"\1"}), "reserved bits", "quantization.reserved")

    for name, raw in (("0", f32(0.0)), ("negative_0", f32(-0.0)), ("inf", f32(INF)), ("negative_inf", f32(-INF)),
                      ("nan", f32(NAN))):
        yield bad(50, f"scale_{name}", base.parts().swap({"quantization.scale": raw}), "invalid value",
                  "quantization.scale")
    for dtype, values in (("int8", (-129, 128)), ("uint8", (-1, 256)), ("int16", (-32769, 32768)),
                          ("uint16", (-1, 65536)), ("uint32", (-1,)), ("int4", (-9, 8)), ("uint4", (-1, 16)),
                          ("int2", (-3, 2)), ("uint2", (-1, 4))):
        for z in values:
            yield bad(50, f"zero_point_{dtype}_{'low' if z < 0 else 'high'}",
                      plain(row(), (4, 32), dtype).quantized_with(per_tensor(0.5, z)), "invalid value",
                      "quantization.zero_point")
    for name, tag in (("float16", 1), ("float64", 4), ("00", 0)):
        yield bad(50, f"per_channel_scale_{name}", schemes["per_channel"].parts().swap({
            "quantization.scale_type_tag": u8(tag)}), "invalid value", "quantization.scale_type_tag")
    for name, tag in (("00", 0), ("float64", 4), ("int8", 0x10), ("e8m0", 0x42)):
        yield bad(50, f"per_block_scale_{name}", schemes["per_block"].parts().swap({
            "quantization.scale_type_tag": u8(tag)}), "invalid value", "quantization.scale_type_tag")
    for name, sizes in (("per_block", (0, 1, 3, 24, 2**32 - 1)), ("nf4", (0, 4, 12)), ("mxfp", (0, 8, 24, 4096))):
        for k in sizes:
            yield bad(50, f"{name}_block_size_{k}", schemes[name].parts().swap({
                "quantization.block_size": u32(k)}), "invalid value", "quantization.block_size")

    for name, q, types in (
            ("per_tensor", per_tensor(0.5), ("float32", "int64", "uint64", "bool", "float8_e4m3", "float8_e8m0",
                                             "complex64", "float4_e2m1")),
            ("per_channel", per_channel(0, 1), ("float16", "int64", "bool")),
            ("per_block", per_block(1, 8, 1), ("int16", "uint16", "int32", "uint32", "float32", "float4_e2m1")),
            ("nf4", nf4(1, 8, 1), ("int4", "uint8", "float4_e2m1")),
            ("mxfp", mxfp(1, 32, 1), ("uint8", "uint4", "int2", "float8_e8m0", "float16"))):
        for dtype in types:
            yield bad(51, f"{name}_of_{dtype}", plain(row(), (4, 32), dtype).quantized_with(q), "inconsistent",
                      "quantization.scheme_tag")
    yield bad(51, "private_type", plain(row(), (4, 32), PRIVATE_FLOAT).quantized_with(per_tensor(0.5)),
              "inconsistent", "quantization.scheme_tag")
    for name, t, k in (("per_block", BLOCKS, per_block(1, 64, 1)),
                       ("nf4", plain(row(), (4, 32), "uint4"), nf4(0, 8, 1)),
                       ("mxfp", plain(row(), (4, 48), "int8"), mxfp(1, 32, 1)),
                       ("mxfp_larger", BLOCKS, mxfp(1, 64, 1)),
                       ("mxfp_empty", plain(row(), (4, 0), "int8"), mxfp(1, 32, 1))):
        yield bad(51, f"{name}_block_size_does_not_suit", t.quantized_with(k), "inconsistent",
                  "quantization.block_size")
    for name, dtype, q in (("per_channel", "int8", per_channel(0, 1)), ("per_block", "int8", per_block(0, 2, 1)),
                           ("nf4", "uint4", nf4(0, 8, 1)), ("mxfp", "int8", mxfp(0, 32, 1))):
        t = Tensor(dtype, (DYNAMIC, 32), handles=[Handle(0), Handle(0)], quantization=q)
        yield bad(51, f"{name}_axis_dynamic", t, "inconsistent", "quantization.axis")
    pool = plain(paged(16, 6, 3), (40, 32, 32), "int8")
    pool.handles[1] = Handle(4 * 6)
    nibbles = plain(paged(16, 6, 3), (40, 32, 32), "uint4")
    nibbles.handles[1] = Handle(4 * 6)

    def on_pages(t, q, parameters):
        return t.replace(quantization=q, handles=t.handles + [Handle(parameters)])

    yield bad(51, "paged_channel_of_tokens", on_pages(pool, per_channel(0, 3), 160), "inconsistent",
              "quantization.axis")
    yield bad(51, "paged_block_of_heads", on_pages(pool, per_block(1, 16, 3), 384), "inconsistent",
              "quantization.axis")
    yield bad(51, "paged_block_size", on_pages(pool, per_block(0, 8, 3), 384), "inconsistent",
              "quantization.block_size")
    yield bad(51, "paged_nf4", on_pages(nibbles, nf4(2, 8, 3), 384), "inconsistent", "quantization.scheme_tag")
    yield bad(51, "paged_mxfp", on_pages(pool, mxfp(2, 32, 3), 96), "inconsistent", "quantization.scheme_tag")

    for name in ("per_channel", "per_block", "nf4", "mxfp"):
        parts = schemes[name].parts()
        yield bad(52, f"{name}_axis_2", parts.swap({"quantization.axis": u32(2)}), "out of bounds",
                  "quantization.axis")
        count = len(schemes[name].handles)
        yield bad(52, f"{name}_scales", parts.swap({"quantization.scale_buffer_index": u32(count)}), "out of bounds",
                  "quantization.scale_buffer_index")
    yield bad(52, "scales_none", schemes["nf4"].parts().swap({"quantization.scale_buffer_index": u32(NONE32)}),
              "out of bounds", "quantization.scale_buffer_index")
    yield bad(52, "scalar_axis", Tensor("int8", (), handles=[Handle(1), Handle(4)], quantization=per_channel(0, 1)),
              "out of bounds", "quantization.axis")
    for name in ("per_channel", "per_block"):
        yield bad(52, f"{name}_zero_points", schemes[name].parts().swap({
            "quantization.zero_point_buffer_index": u32(3)}), "out of bounds", "quantization.zero_point_buffer_index")
        yield bad(53, f"{name}_zero_points_in_elements", schemes[name].parts().swap({
            "quantization.zero_point_buffer_index": u32(0)}), "inconsistent", "quantization.zero_point_buffer_index")
        yield bad(53, f"{name}_symmetric_with_zero_points", schemes[name].parts().swap({
            "quantization.flags": u16(1)}), "inconsistent", "quantization.zero_point_buffer_index")
        yield bad(53, f"{name}_asymmetric_without", schemes[name].parts().swap({
            "quantization.zero_point_buffer_index": u32(NONE32)}), "inconsistent",
            "quantization.zero_point_buffer_index")
    for name, own in (("row_major", 1), ("coo", 2), ("csr", 3), ("csc", 3), ("csf", 7), ("paged", 3)):
        t = of(name, "int8").quantized_with(per_channel(1, own))
        yield bad(53, f"{name}_scales_in_own_buffer", t.parts().swap({
            "quantization.scale_buffer_index": u32(own - 1)}), "inconsistent", "quantization.scale_buffer_index")
    yield bad(53, "private_layout_scales_in_elements", of("private", "int8").replace(
        quantization=per_channel(1, 0)), "inconsistent", "quantization.scale_buffer_index",
        **agreed_layout(MAIN["private"][0]))


def sections():
    dynamic = Tensor(shape=(DYNAMIC,), handles=[Handle(0)], shard=((8,), (0,)))
    yield bad(54, "dynamic_shape", dynamic, "invalid value", "shard.shape[0]", dynamic.parts().offset(
        "shape[0]"))
    yield bad(54, "dynamic_parent", Tensor(shape=(2,), shard=((DYNAMIC,), (0,))), "invalid value",
              "shard.parent_shape[0]")
    yield bad(54, "dynamic_offset", Tensor(shape=(2,), shard=((8,), (DYNAMIC,))), "invalid value",
              "shard.shard_offset[0]")
    yield bad(54, "dynamic_second", Tensor(shape=(2, 2), shard=((8, DYNAMIC), (0, 0))), "invalid value",
              "shard.parent_shape[1]")
    yield bad(55, "box_overflows", Tensor(shape=(2,), shard=((8,), (2**64 - 2,))), "overflow",
              "shard.shard_offset[0]")
    yield bad(55, "box_outside", Tensor(shape=(2, 3), shard=((8, 8), (6, 6))), "out of bounds",
              "shard.shard_offset[1]")
    yield bad(55, "empty_box_outside", Tensor(shape=(0,), shard=((8,), (9,))), "out of bounds",
              "shard.shard_offset[0]")
    for name in ("coo", "csr", "csc", "morton", "hilbert", "tiled", "partition"):
        layout, shape = MAIN[name]
        yield bad(55, f"{name}_box_outside", of(name, shard=(shape, (0,) * (len(shape) - 1) + (1,))), "out of bounds",
                  f"shard.shard_offset[{len(shape) - 1}]")
    stats = {"nnz": 1, "sparsity_ratio": 0.5, "value_mean": 0.0, "value_stddev": 1.0, "nm_n": 1, "nm_m": 2,
             "has_nan": 0, "has_inf": 0}
    base = Tensor(shape=(2,), statistics=stats).parts()
    for bit in (6, 31):
        yield bad(56, f"mask_bit_{bit}", base.swap({"statistics.computed_mask": u32(1 << bit)}), "reserved bits",
                  "statistics.computed_mask")
    yield bad(57, "statistics_reserved", base.swap({"statistics.reserved": u32(1)}), "reserved bits",
              "statistics.reserved")
    yield bad(57, "statistics_tail", base.swap({"statistics.reserved (end)": b"\0\0\0\1"}), "reserved bits",
              "statistics.reserved", base.offset("statistics.reserved (end)"))
    for name, field, raw in (("nm", "nm_n", u8(3)), ("has_nan", "has_nan", u8(2)), ("has_inf", "has_inf", u8(255)),
                             ("sparsity_above", "sparsity_ratio", f64(1.0000000000000002)),
                             ("sparsity_below", "sparsity_ratio", f64(-5e-324)),
                             ("sparsity_infinite", "sparsity_ratio", f64(INF)),
                             ("stddev", "value_stddev", f64(-1.0)), ("stddev_infinite", "value_stddev", f64(-INF))):
        yield bad(58, name, base.swap({f"statistics.{field}": raw}), "invalid value", f"statistics.{field}")
    for name in ("coo", "csr", "csc", "csf"):
        yield bad(59, f"{name}_nnz_differs", of(name, statistics={"nnz": 6}), "inconsistent", "statistics.nnz")

    e = plain(row(), (2,), PRIVATE_FLOAT).parts()
    for width in (0, 3, 5, 6, 7, 9, 12, 20, 2**32 - 1):
        yield bad(60, f"width_{width}", e.swap({"extension_type.bit_width": u32(width)}), "invalid value",
                  "extension_type.bit_width")
    for width, factor in ((1, 1), (1, 4), (2, 2), (4, 1), (8, 0), (8, 2), (24, 3)):
        yield bad(61, f"width_{width}_factor_{factor}", e.swap({
            "extension_type.bit_width": u32(width), "extension_type.packing_factor": u8(factor)}), "inconsistent",
            "extension_type.packing_factor")
    for field in ("is_float", "is_signed", "sign_bits", "has_nan", "has_inf"):
        for n in (2, 255):
            yield bad(62, f"{field}_{n}", e.swap({f"extension_type.{field}": u8(n)}), "invalid value",
                      f"extension_type.{field}")
    yield bad(63, "signed_float", e.swap({"extension_type.is_signed": u8(1)}), "inconsistent",
              "extension_type.is_signed")
    integer = plain(row(), (2,), (0xF3, extension(24, is_signed=1))).parts()
    for field in ("sign_bits", "exponent_bits", "mantissa_bits", "exponent_bias", "has_nan", "has_inf"):
        raw = u32(1) if field == "exponent_bias" else u8(1)
        yield bad(63, f"integer_{field}", integer.swap({f"extension_type.{field}": raw}), "inconsistent",
                  f"extension_type.{field}")
    yield bad(64, "extension_reserved", e.swap({"extension_type.reserved": b"\1\0"}), "reserved bits",
              "extension_type.reserved")
    yield bad(64, "extension_tail", e.swap({"extension_type.reserved (end)": b"\0\1"}), "reserved bits",
              "extension_type.reserved", e.offset("extension_type.reserved (end)"))
    m = Tensor(shape=(2,), role="base").parts()
    for role in (2, 255):
        yield bad(65, f"member_role_{role}", m.swap({"composite_member.member_role": u8(role)}), "invalid value",
                  "composite_member.member_role")
    for name, k in (("first", 0), ("last", 14)):
        raw = bytearray(15)
        raw[k] = 1
        yield bad(65, f"member_reserved_{name}", m.swap({"composite_member.reserved": bytes(raw)}), "reserved bits",
                  "composite_member.reserved")

    def longer(t, extra=b"\0"):
        parts = Parts(t.parts())
        parts.put("(surplus)", extra)
        return parts.with_length()

    yield bad(66, "trailing_byte", longer(TWO), "length mismatch", "descriptor_length")
    yield bad(66, "trailing_section", longer(TWO, bytes(16)), "length mismatch", "descriptor_length")
    yield bad(66, "trailing_byte_of_a_head", longer(of("partition")), "length mismatch", "descriptor_length")
    yield bad(66, "trailing_byte_after_sections", longer(Tensor(shape=(2,), role="base", statistics={})),
              "length mismatch", "descriptor_length")
    yield bad(66, "trailing_byte_permissive", longer(TWO), "length mismatch", "descriptor_length", permissive=True)


def whole():
    def more(t, *sizes):
        return t.replace(handles=t.handles + [Handle(n) for n in sizes])

    yield bad(67, "two_buffers", more(TWO, 8), "inconsistent", "buffer_count")
    for name in ("col_major", "strided", "tiled", "morton", "hilbert", "coo", "csr", "csc", "csf", "paged"):
        yield bad(67, f"{name}_one_more", more(of(name), 8), "inconsistent", "buffer_count")
    for name in ("coo", "csr", "csc", "csf", "paged"):
        t = of(name)
        yield bad(67, f"{name}_one_less", t.replace(handles=t.handles[:-1]), "inconsistent", "buffer_count")
    yield bad(67, "parameters_unnamed", more(BLOCKS.quantized_with(per_channel(0, 1)), 16), "inconsistent",
              "buffer_count")
    yield bad(67, "per_tensor_with_parameters", more(BLOCKS.quantized_with(per_tensor(0.5)), 16), "inconsistent",
              "buffer_count")
    yield bad(67, "parameters_skip_one", BLOCKS.replace(
        quantization=per_channel(0, 2), handles=BLOCKS.handles + [Handle(16), Handle(16)]), "inconsistent",
        "buffer_count")
    yield bad(67, "shared_with_one_more", more(BLOCKS.quantized_with(per_channel(0, 1, 1)), 16), "inconsistent",
              "buffer_count")
    yield bad(67, "opaque_scheme_of_csr", Tensor(
        "int8", (3, 3), csr(2), handles=[Handle(2), Handle(16)], quantization=opaque_scheme(0xF0, b"")),
        "inconsistent", "buffer_count", agreed={"schemes": [0xF0]})

    for name in ("coo", "csr", "csc", "csf", "paged", "partition"):
        yield bad(68, f"{name}_byte_offset", of(name).replace(byte_offset=8), "invalid value", "byte_offset")
    yield bad(68, "byte_offset_beyond", Tensor(shape=(0,), byte_offset=1, handles=[Handle(0)]), "out of bounds",
              "byte_offset")
    yield bad(68, "byte_offset_beyond_dynamic", Tensor(shape=(DYNAMIC,), byte_offset=9, handles=[Handle(8)]),
              "out of bounds", "byte_offset")
    yield bad(68, "byte_offset_huge", TWO.replace(byte_offset=2**64 - 1), "out of bounds", "byte_offset")
    yield bad(68, "private_byte_offset_beyond", of("private").replace(byte_offset=65), "out of bounds", "byte_offset",
              **agreed_layout(MAIN["private"][0]))
    yield bad(69, "count_overflows", Tensor(shape=(2**32, 2**31), handles=[Handle(64)]), "overflow", "shape", 20)
    yield bad(69, "count_wraps_to_0", Tensor(shape=(2**32, 2**32), handles=[Handle(64)]), "overflow", "shape", 20)
    yield bad(69, "col_major", Tensor(shape=(2**32, 2**31), layout=col(), handles=[Handle(64)]), "overflow", "shape",
              20)
    yield bad(69, "strided_zero_strides", Tensor(shape=(2**32, 2**32), layout=strided(0, 0), handles=[Handle(64)]),
              "overflow", "shape", 20)
    yield bad(69, "tiled", Tensor(shape=(2**32, 2**31), layout=tiled((2, 2)), handles=[Handle(64)]), "overflow",
              "shape", 20)
    yield bad(69, "hilbert_63", Tensor("bool", (2,) * 63, hilbert(1, 63)), "overflow", "shape", 20)
    yield bad(69, "morton_63", Tensor("bool", (2**31, 2**32), morton(31, 32)), "overflow", "shape", 20)
    tile = "layout.tile_shape"
    for name, shape, layout in (
            ("tile_product", (4, 4), tiled((2**32, 2**31))),
            ("tile_product_empty", (0, 4), tiled((2**32, 2**31))),
            ("tile_product_dynamic", (DYNAMIC, 4), tiled((2**32, 2**31))),
            ("tile_product_strided", (4, 4), tiled((2**32, 2**31), outer_strides=[0, 0], inner_strides=[0, 0])),
            ("grid_times_tile", (2**31 + 1, 2**31), tiled((2**31, 2**31))),
            ("second_level", (4, 4), tiled((2**32, 2**31), inner_tiled=level((2**32, 2**31))))):
        t = Tensor("int8", shape, layout, handles=[Handle(64)])
        yield bad(70, name, t, "overflow", tile, t.parts().offset(f"{tile}[0]"))
    for name, shape, layout in (
            ("stride_overflows", (2**40,), strided(2**40)), ("strides_add_up", (2, 2), strided(2**62 + 2**61, 2**62)),
            ("stride_most_negative", (3,), strided(-2**63)),
            ("strides_add_up_below", (2, 2), strided(-2**63, -1))):
        t = Tensor("int8", shape, layout, handles=[Handle(64)])
        yield bad(71, name, t, "overflow", "layout.strides", t.parts().offset("layout.strides[0]"))
    for name, layout in (("tiled_outer", tiled((2, 2), outer_strides=[2**62, 1])),
                         ("tiled_outer_negative", tiled((2, 2), outer_strides=[-2**62, -1])),
                         ("tiled_inner", tiled((3, 2), inner_strides=[2**62 + 1, 1]))):
        t = Tensor("int8", (4, 4), layout, handles=[Handle(64)])
        yield bad(71, name, t, "overflow", "layout.strides", t.parts().offset("layout.tile_shape[0]"))
    yield bad(72, "extent_overflows", Tensor(shape=(2**61,), handles=[Handle(64)]), "overflow", "byte_offset")
    yield bad(72, "extent_overflows_complex", Tensor("complex128", (2**60,), handles=[Handle(64)]), "overflow",
              "byte_offset")
    yield bad(72, "offset_overflows", Tensor("int8", (2**62 + 2**61,), byte_offset=2**62, handles=[Handle(2**63 - 1)]),
              "overflow", "byte_offset")
    yield bad(72, "strided_both_sides", Tensor("int8", (2, 2), strided(-2**62, 2**62), 2**62, [Handle(2**63 - 1)]),
              "overflow", "byte_offset")
    yield bad(72, "morton", Tensor("int8", (4, 4), morton(31, 32), handles=[Handle(64)]), "overflow", "byte_offset")
    yield bad(72, "hilbert", Tensor("int16", (2**31, 2**31), hilbert(31, 2), handles=[Handle(64)]), "overflow",
              "byte_offset")
    yield bad(72, "tiled", Tensor("int16", (2**31, 2**31), tiled((2**31, 2**31)), handles=[Handle(64)]), "overflow",
              "byte_offset")
    yield bad(72, "private_type", Tensor(0xF3, (2**62,), row(), handles=[Handle(64)], extension=extension(24)),
              "overflow", "byte_offset")

    yield bad(73, "buffer_too_small", Tensor(shape=(2,), handles=[Handle(7)]), "out of bounds", "byte_offset")
    yield bad(73, "scalar", Tensor(handles=[Handle(3)]), "out of bounds", "byte_offset")
    yield bad(73, "offset_pushes_out", Tensor(shape=(2,), byte_offset=1, handles=[Handle(8)]), "out of bounds",
              "byte_offset")
    yield bad(73, "starts_before", Tensor(shape=(4,), layout=strided(-1), byte_offset=8, handles=[Handle(64)]),
              "out of bounds", "byte_offset")
    yield bad(73, "starts_before_four_bits", Tensor("int4", (3, 2), strided(-2, 1), 1, [Handle(64)]), "out of bounds",
              "byte_offset")
    yield bad(73, "starts_before_six_bits", Tensor("float6_e2m3", (6,), strided(-1), 5, [Handle(64)]),
              "out of bounds", "byte_offset")
    yield bad(73, "six_bits_whole_groups", Tensor("float6_e2m3", (5,), handles=[Handle(4)]), "out of bounds",
              "byte_offset")
    yield bad(73, "bool", Tensor("bool", (9,), handles=[Handle(1)]), "out of bounds", "byte_offset")
    for name in ("col_major", "strided", "tiled", "morton", "hilbert"):
        t = of(name)
        yield bad(73, f"{name}_too_small", t.replace(handles=[Handle(t.handles[0].byte_size - 1)]), "out of bounds",
                  "byte_offset")
    t = plain(tiled((2, 3), outer_strides=[-4, 1], inner_strides=[1, -2]), (4, 6), "float32")
    yield bad(73, "tiled_starts_before", t.replace(byte_offset=t.byte_offset - 4), "out of bounds", "byte_offset")
    yield bad(73, "private_type", plain(row(), (3,), PRIVATE_FLOAT).replace(handles=[Handle(8)]), "out of bounds",
              "byte_offset")

    for name, indices in (("coo", (0, 1)), ("csr", (0, 1, 2)), ("csc", (0, 1, 2)), ("csf", (0, 1, 6)),
                          ("paged", (0, 2))):
        for i in indices:
            t = of(name)
            handles = list(t.handles)
            handles[i] = Handle(handles[i].byte_size - 1)
            yield bad(74, f"{name}_buffer_{i}_short", t.replace(handles=handles), "out of bounds",
                      f"buffers[{i}].byte_size")

    def declared(layout, shape, count, dtype="float32"):
        return Tensor(dtype, shape, layout, handles=[Handle(64)] * count)

    yield bad(74, "csr_nnz_overflows", declared(csr(2**62), (2**32, 2**32), 3), "overflow", "buffers[0].byte_size")
    yield bad(74, "csr_rows_overflow", Tensor(shape=(2**62, 1), layout=csr(0), handles=[
        Handle(0), Handle(0), Handle(32)]), "overflow", "buffers[2].byte_size")
    yield bad(74, "csr_rows_wrap", Tensor(shape=(2**64 - 2, 1), layout=csr(0), handles=[
        Handle(0), Handle(0), Handle(32)]), "overflow", "buffers[2].byte_size")
    yield bad(74, "csc_columns_overflow", Tensor(shape=(1, 2**61), layout=csc(0), handles=[
        Handle(0), Handle(0), Handle(32)]), "overflow", "buffers[2].byte_size")
    yield bad(74, "coo_indices_overflow", Tensor("bool", (2**32, 2**32), coo(2**59), handles=[
        Handle(2**56), Handle(64)]), "overflow", "buffers[1].byte_size")
    yield bad(74, "csf_leaves_overflow", Tensor("bool", (2**32, 2**32, 1), csf(2**60, 0, 1, 2), handles=[
        Handle(2**57)] + [Handle(64)] * 6), "overflow", "buffers[6].byte_size")
    yield bad(74, "paged_pool_overflows", Tensor("int8", (8, 2**32, 2**32), paged(2, 1, 1), handles=[
        Handle(64), Handle(64), Handle(64)]), "overflow", "buffers[0].byte_size")
    yield bad(74, "paged_pool_bytes_overflow", Tensor("float64", (8, 2**30, 2**30), paged(1, 2, 1), handles=[
        Handle(64), Handle(64), Handle(64)]), "overflow", "buffers[0].byte_size")

    for name, q in (("channel", per_channel(0, 1, 2)), ("block", per_block(1, 8, 1, 2, "float16"))):
        t = BLOCKS.quantized_with(q)
        for i, what in ((1, "scales"), (2, "zero_points")):
            for change, word in ((-1, "short"), (1, "long")):
                handles = list(t.handles)
                handles[i] = Handle(handles[i].byte_size + change)
                yield bad(75, f"{name}_{what}_{word}", t.replace(handles=handles), "inconsistent",
                          f"buffers[{i}].byte_size")
    for name, dtype, q in (("nf4", "uint4", nf4(1, 8, 1)), ("mxfp", "int8", mxfp(1, 32, 1))):
        t = plain(row(), (4, 32), dtype).quantized_with(q)
        for change, word in ((-1, "short"), (1, "long")):
            handles = [t.handles[0], Handle(t.handles[1].byte_size + change)]
            yield bad(75, f"{name}_scales_{word}", t.replace(handles=handles), "inconsistent",
                      "buffers[1].byte_size")
    t = BLOCKS.quantized_with(per_channel(0, 1, 1))
    yield bad(75, "shared_short", t.replace(handles=[t.handles[0], Handle(31)]), "inconsistent",
              "buffers[1].byte_size")
    slots = plain(paged(2, 6, 3), (8, 3, 4), "int8").quantized_with(per_block(0, 2, 3))
    yield bad(75, "paged_slots_short", slots.replace(handles=slots.handles[:3] + [Handle(44)]), "inconsistent",
              "buffers[3].byte_size")
    heads = plain(paged(2, 6, 3), (8, 3, 4), "int8").quantized_with(per_channel(1, 3))
    yield bad(75, "paged_heads_long", heads.replace(handles=heads.handles[:3] + [Handle(16)]), "inconsistent",
              "buffers[3].byte_size")
    sparse = plain(csr(5), (4, 32), "int8").quantized_with(per_block(1, 8, 3))
    yield bad(75, "csr_scales_for_stored_only", sparse.replace(handles=sparse.handles[:3] + [Handle(20)]),
              "inconsistent", "buffers[3].byte_size")
    huge = Tensor("int8", (2**63, 2**40), coo(1), handles=[Handle(1), Handle(16), Handle(8)])
    yield bad(75, "block_count_overflows", huge.replace(quantization=per_block(1, 2, 2)), "overflow",
              "buffers[2].byte_size")
    yield bad(75, "channel_bytes_overflow", huge.replace(quantization=per_channel(0, 2)), "overflow",
              "buffers[2].byte_size")
    yield bad(75, "empty_channel_not_empty", Tensor("int8", (3, 0), handles=[Handle(0), Handle(4)],
                                                    quantization=per_channel(1, 1)), "inconsistent",
              "buffers[1].byte_size")
    yield bad(75, "dynamic_channel_short", Tensor("int8", (DYNAMIC, 32), handles=[Handle(0), Handle(127)],
                                                  quantization=per_channel(1, 1)), "inconsistent",
              "buffers[1].byte_size")


def order():
    """Two faults: the one that the rules judge first is the one that is reported."""
    yield bad(8, "flags_before_type", Tensor(0x00, handles=[Handle(4)]).parts().swap({"flags": u32(32)}),
              "reserved bits", "flags")
    yield bad(26, "layout_before_buffers", Tensor(shape=(3, 3), layout=csr(10), handles=[Handle(8, 48)] * 3),
              "out of bounds", "layout.nnz")
    yield bad(49, "sections_before_sizes", Tensor(
        "int8", (8,), handles=[Handle(1)], quantization=per_tensor(0.5)).parts().swap({
            "quantization.flags": u16(1)}), "reserved bits", "quantization.flags")
    yield bad(67, "count_before_offset", Tensor(shape=(2,), byte_offset=100, handles=[Handle(8), Handle(8)]),
              "inconsistent", "buffer_count")


def invalid():
    for group in (framing, cuts, header, layouts, buffers, quantization, sections, whole, order):
        yield from group()
