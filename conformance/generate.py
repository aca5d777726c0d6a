#!/usr/bin/env python3
"""Writes valid/ and invalid/: descriptors as text, the same bytes on every run.

A vector is lines of hexadecimal bytes, each with a comment after '#'. An invalid one ends with a line
"error: ...", the sentence that the C++ library gives for it; this script leaves that line as it finds
it, and the tests fill it in when HURRAY_UPDATE_VECTORS is set, for review in the diff.
"""

import pathlib
import struct

HERE = pathlib.Path(__file__).resolve().parent
DYNAMIC = 2**64 - 1

# 01-descriptor.md section 2.2: tag, name, bits.
DTYPES = [
    (0x01, "float16", 16), (0x02, "bfloat16", 16), (0x03, "float32", 32), (0x04, "float64", 64),
    (0x10, "int8", 8), (0x11, "uint8", 8), (0x12, "int16", 16), (0x13, "uint16", 16),
    (0x14, "int32", 32), (0x15, "uint32", 32), (0x16, "int64", 64), (0x17, "uint64", 64),
    (0x20, "bool", 1), (0x40, "float8_e4m3", 8), (0x41, "float8_e5m2", 8),
    (0x42, "float8_e8m0", 8), (0x43, "float4_e2m1", 4), (0x44, "float6_e2m3", 6),
    (0x45, "float6_e3m2", 6), (0x46, "float128", 128), (0x48, "int4", 4), (0x49, "uint4", 4),
    (0x4A, "int2", 2), (0x4B, "uint2", 2), (0x50, "complex64", 64), (0x51, "complex128", 128),
]
FLOAT32 = 0x03
ROW, COL, STRIDED, CSR = 0x01, 0x02, 0x03, 0x07


def packed(bits, n):
    if bits == 6:
        return 3 * -(-n // 4)
    return -(-n * bits // 8)


class Parts(list):
    """(comment, bytes) in wire order; a part is replaced by the start of its comment."""

    def swap(self, comment, raw):
        at = [i for i, (text, _) in enumerate(self) if text.split(" ")[0] == comment]
        assert len(at) == 1, (comment, at)
        self[at[0]] = (self[at[0]][0], raw)
        return self

    def raw(self):
        return b"".join(raw for _, raw in self)

    def fix_length(self):
        return self.swap("descriptor_length", struct.pack("<I", len(self.raw())))


def handle(size, alignment=None, device=0, sync=0, cls=0, reserved=0):
    if alignment is None:
        alignment = 64 if size else 1
    return (size, alignment, device, sync, cls, reserved)


def descriptor(dtype=FLOAT32, layout=ROW, shape=(), byte_offset=0, fields=(), buffers=None,
               flags=None, sections=(), version=(1, 0), rank=None):
    bits = {tag: b for tag, _, b in DTYPES}.get(dtype, 32)
    n = 1
    for size in shape:
        n *= size
    if buffers is None:
        buffers = [handle(packed(bits, n))]
    if flags is None:
        flags = sum({"quantization": 1, "shard": 2, "extension": 4, "statistics": 8, "member": 16}[k]
                    for k, _ in sections)
    p = Parts()
    p.append(("magic", b"HRRY"))
    p.append(("version_major", bytes([version[0]])))
    p.append(("version_minor", bytes([version[1]])))
    p.append(("descriptor_length", bytes(4)))
    p.append(("flags", struct.pack("<I", flags)))
    p.append(("type_tag", bytes([dtype])))
    p.append(("layout_tag", bytes([layout])))
    p.append(("rank", struct.pack("<I", len(shape) if rank is None else rank)))
    for k, size in enumerate(shape):
        p.append((f"shape[{k}]", struct.pack("<Q", size)))
    p.append(("byte_offset", struct.pack("<Q", byte_offset)))
    p.extend(fields)
    p.append(("buffer_count", bytes([len(buffers)])))
    for i, (size, alignment, device, sync, cls, reserved) in enumerate(buffers):
        p.append((f"buffers[{i}].byte_size", struct.pack("<Q", size)))
        p.append((f"buffers[{i}].alignment", struct.pack("<I", alignment)))
        p.append((f"buffers[{i}].device_tag", bytes([device])))
        p.append((f"buffers[{i}].sync_mode", bytes([sync])))
        p.append((f"buffers[{i}].memory_class", bytes([cls])))
        p.append((f"buffers[{i}].reserved", bytes([reserved])))
    for _, parts in sections:
        p.extend(parts)
    return p.fix_length()


def strides(*values):
    return [(f"layout.strides[{k}]", struct.pack("<q", s)) for k, s in enumerate(values)]


def nnz(n, reserved=bytes(8)):
    return [("layout.nnz", struct.pack("<Q", n)), ("layout.reserved", reserved)]


def shard(parent, offset):
    return ("shard",
            [(f"shard.parent_shape[{k}]", struct.pack("<Q", n)) for k, n in enumerate(parent)]
            + [(f"shard.shard_offset[{k}]", struct.pack("<Q", n)) for k, n in enumerate(offset)])


def statistics(mask=0, nnz=0, sparsity=0.0, low=0.0, high=0.0, abs_max=0.0, mean=0.0, stddev=0.0,
               n=0, m=0, nan=0, inf=0, reserved=0, tail=bytes(4)):
    f64 = lambda v: struct.pack("<d", v)
    return ("statistics", [
        ("statistics.computed_mask", struct.pack("<I", mask)),
        ("statistics.reserved", struct.pack("<I", reserved)),
        ("statistics.nnz", struct.pack("<Q", nnz)),
        ("statistics.sparsity_ratio", f64(sparsity)),
        ("statistics.value_min", f64(low)),
        ("statistics.value_max", f64(high)),
        ("statistics.value_abs_max", f64(abs_max)),
        ("statistics.value_mean", f64(mean)),
        ("statistics.value_stddev", f64(stddev)),
        ("statistics.nm_n", bytes([n])),
        ("statistics.nm_m", bytes([m])),
        ("statistics.has_nan", bytes([nan])),
        ("statistics.has_inf", bytes([inf])),
        ("statistics.reserved (end)", tail),
    ])


def valid():
    yield "row_major_f32_3x4", descriptor(shape=(3, 4))
    yield "bool_packed_10", descriptor(dtype=0x20, shape=(10,))
    yield "strided_f32_3x4", descriptor(layout=STRIDED, shape=(3, 4), fields=strides(4, 1))
    yield "empty_f32_0x4", descriptor(shape=(0, 4), buffers=[handle(0, 64)])
    yield "csr_f32_3x3", descriptor(layout=CSR, shape=(3, 3), fields=nnz(2),
                                    buffers=[handle(8), handle(16), handle(32)])
    for tag, name, bits in DTYPES:
        yield f"dtype_{name}", descriptor(dtype=tag, shape=(3, 5))
        yield f"col_major_{name}", descriptor(dtype=tag, layout=COL, shape=(3, 5))
        yield f"scalar_{name}", descriptor(dtype=tag)
        reverse = packed(bits, 7) if bits != 6 else 6
        yield f"reversed_{name}", descriptor(
            dtype=tag, layout=STRIDED, shape=(7,), fields=strides(-1),
            byte_offset={1: 1, 2: 2, 4: 3, 6: 6}.get(bits, 6 * bits // 8),
            buffers=[handle({1: 2, 2: 3, 4: 4, 6: 9}.get(bits, reverse))])
    yield "offset_f32_5x7x2", descriptor(shape=(5, 7, 2), byte_offset=64,
                                         buffers=[handle(344, 128)])
    yield "reversed_i16_4x3", descriptor(dtype=0x12, layout=STRIDED, shape=(4, 3), byte_offset=60,
                                         fields=strides(-8, -2), buffers=[handle(64)])
    yield "broadcast_f32_1000x4", descriptor(layout=STRIDED, shape=(1000, 4), fields=strides(0, 1),
                                             buffers=[handle(16)])
    yield "strided_f32_5x2", descriptor(layout=STRIDED, shape=(5, 2), fields=strides(-3, 1),
                                        byte_offset=48, buffers=[handle(56)])
    yield "rank_64", descriptor(shape=(1,) * 64)
    yield "rank_64_strided_everything", descriptor(
        layout=STRIDED, shape=(1,) * 64, fields=strides(*range(-32, 32)),
        sections=[shard((2,) * 64, (1,) * 64), statistics(1, nnz=1)])
    yield "rank_9_shard", descriptor(shape=(1,) * 9, sections=[shard((3,) * 9, (2,) * 9)])
    yield "scalar_shard", descriptor(sections=[shard((), ())])
    yield "shard_f32_6x10", descriptor(shape=(6, 10), sections=[shard((12, 10), (6, 0))])
    yield "dynamic_f32", descriptor(shape=(DYNAMIC, 512), buffers=[handle(0)])
    yield "dynamic_empty", descriptor(shape=(0, DYNAMIC), buffers=[handle(0)])
    yield "dynamic_csr", descriptor(layout=CSR, shape=(DYNAMIC, 4), fields=nnz(1),
                                    buffers=[handle(4), handle(8), handle(0)])
    yield "empty_zero_wins", descriptor(shape=(2**60, 2**60, 0), buffers=[handle(0)])
    yield "empty_csr_4x0", descriptor(layout=CSR, shape=(4, 0), fields=nnz(0),
                                      buffers=[handle(0), handle(0), handle(40)])
    yield "larger_buffer", descriptor(shape=(2,), buffers=[handle(4096, 4096)])
    yield "statistics_all", descriptor(shape=(6,), sections=[statistics(
        0x3F, nnz=3, sparsity=0.5, low=-2.0, high=4.0, abs_max=4.0, mean=0.5833333333333334,
        stddev=1.8352263954, n=2, m=4, nan=0, inf=1)])
    yield "statistics_under_clear_bits", descriptor(shape=(6,), sections=[statistics(
        0, nnz=77, sparsity=-5.0, stddev=-1.0, n=9, m=1, nan=200, inf=3)])
    yield "statistics_nan", descriptor(shape=(6,), sections=[statistics(
        0x0E, sparsity=float("nan"), low=float("-inf"), high=float("inf"), abs_max=float("inf"),
        mean=float("nan"), stddev=float("nan"))])
    yield "csr_statistics", descriptor(
        layout=CSR, shape=(3, 3), fields=nnz(2), buffers=[handle(8), handle(16), handle(32)],
        sections=[shard((6, 3), (3, 0)), statistics(1, nnz=2)])
    yield "cuda_event_unified", descriptor(shape=(2,), buffers=[handle(8, 256, 1, 1, 2)])
    yield "rocm_consumer_stream", descriptor(shape=(2,), buffers=[handle(8, 64, 2, 2, 0)])
    yield "private_device", descriptor(shape=(2,), buffers=[handle(8, 64, 0xF2, 0, 0)])
    for device, classes in enumerate(([0, 1, 2], [0, 1, 2, 3], [0, 1, 2, 3], [0, 1, 2],
                                      [0, 1, 2, 3], [0], [0, 1, 2], [0, 1, 2, 3], [0, 1, 2])):
        for cls in classes:
            yield f"device_{device}_class_{cls}", descriptor(
                shape=(2,), buffers=[handle(8, 64, device, 0, cls)])


def newer_minor(extra):
    p = descriptor(shape=(2,), version=(1, 1))
    p.append(("(surplus)", extra))
    return p.fix_length()


def cut(parts, n):
    return Parts([("cut", parts.raw()[:n])])


def shortened(parts, n):
    """descriptor_length says n, and n bytes are there."""
    return cut(parts.swap("descriptor_length", struct.pack("<I", n)), n)


def surplus(parts, extra):
    parts.append(("(surplus)", extra))
    return parts.fix_length()


def quantization(tag, length=None, payload=b""):
    body = bytes([tag, 1, 0, 0]) + payload
    return ("quantization", [
        ("quantization_length", struct.pack("<I", len(body) if length is None else length)),
        ("quantization", body)])


def member(role, reserved=bytes(15)):
    return ("member", [("member_role", bytes([role])), ("member_reserved", reserved)])


def invalid():
    scalar = descriptor
    yield "01_no_bytes", Parts([("nothing", b"")])
    yield "01_nine_bytes", cut(scalar(), 9)
    yield "01_four_bytes_wrong_magic", Parts([("magic", b"GET ")])
    yield "01_five_bytes_wrong_major", Parts([("magic", b"HRRYF")])
    yield "02_magic", scalar().swap("magic", b"HRRX")
    yield "03_major_0", scalar(version=(0, 0))
    yield "03_major_2", scalar(version=(2, 0))
    yield "03_file", Parts([("magic", b"HRRYFILE\x01\x00\x00\x00")])
    yield "04_length_19", scalar().swap("descriptor_length", struct.pack("<I", 19))
    yield "05_length_over_limit", scalar().swap("descriptor_length", struct.pack("<I", 2**24 + 1))
    yield "06_one_byte_short", cut(scalar(), 44)
    yield "07_header", shortened(scalar(), 20)
    yield "07_shape", shortened(descriptor(shape=(2, 3)), 29)
    yield "07_strides", shortened(descriptor(layout=STRIDED, shape=(2,), fields=strides(1)), 40)
    yield "07_buffer_table", shortened(descriptor(shape=(2,)), 45)
    yield "07_shard", shortened(descriptor(shape=(2,), sections=[shard((4,), (0,))]), 62)
    yield "07_statistics", shortened(descriptor(shape=(2,), sections=[statistics()]), 100)
    yield "08_flag_bit_5", scalar(flags=0x20)
    yield "08_flag_bit_31", scalar(flags=0x80000000)
    yield "09_type_00", scalar(dtype=0x00)
    yield "09_type_ff", scalar(dtype=0xFF)
    for tag in (0x05, 0x18, 0x21, 0x47, 0x4C, 0x80, 0xEF):
        yield f"10_type_{tag:02x}", scalar(dtype=tag)
    yield "11_extension_flag_on_float32", scalar(flags=4)
    yield "11_private_type_without_flag", scalar(dtype=0xF0)
    yield "12_layout_00", scalar(layout=0x00)
    yield "12_layout_ff", scalar(layout=0xFF)
    for tag in (0x0C, 0x3F, 0x41, 0x7F, 0x80, 0xEF):
        yield f"13_layout_{tag:02x}", scalar(layout=tag)
    yield "14_rank_65", descriptor(rank=65)
    yield "14_rank_huge", descriptor(rank=2**32 - 1)
    yield "15_col_major_rank_0", descriptor(layout=COL)
    yield "15_strided_rank_0", descriptor(layout=STRIDED)
    yield "15_csr_rank_1", descriptor(layout=CSR, shape=(3,), fields=nnz(0))
    yield "15_csr_rank_3", descriptor(layout=CSR, shape=(3, 3, 3), fields=nnz(0))
    yield "18_csr_reserved", descriptor(layout=CSR, shape=(3, 3), fields=nnz(0, b"\0\0\0\1\0\0\0\0"),
                                        buffers=[handle(0), handle(0), handle(32)])
    yield "26_nnz_above_count", descriptor(layout=CSR, shape=(3, 3), fields=nnz(10),
                                           buffers=[handle(40), handle(80), handle(32)])
    yield "35_no_buffers", descriptor(shape=(0,), buffers=[])
    yield "36_alignment_0", descriptor(shape=(2,), buffers=[handle(8, 0)])
    yield "36_alignment_48", descriptor(shape=(2,), buffers=[handle(8, 48)])
    yield "36_alignment_32", descriptor(shape=(2,), buffers=[handle(8, 32)])
    yield "36_alignment_0_empty", descriptor(shape=(0,), buffers=[handle(0, 0)])
    yield "37_device_09", descriptor(shape=(2,), buffers=[handle(8, 64, 0x09)])
    yield "37_device_ff", descriptor(shape=(2,), buffers=[handle(8, 64, 0xFF)])
    yield "38_sync_3", descriptor(shape=(2,), buffers=[handle(8, 64, 1, 3)])
    yield "38_sync_ff", descriptor(shape=(2,), buffers=[handle(8, 64, 1, 0xFF)])
    yield "39_class_04", descriptor(shape=(2,), buffers=[handle(8, 64, 1, 0, 4)])
    yield "39_class_ff", descriptor(shape=(2,), buffers=[handle(8, 64, 1, 0, 0xFF)])
    yield "39_class_private", descriptor(shape=(2,), buffers=[handle(8, 64, 0xF0, 0, 0xF0)])
    yield "40_handle_reserved", descriptor(shape=(2,), buffers=[handle(8, 64, 0, 0, 0, 1)])
    for device, cls in ((0, 3), (3, 3), (5, 1), (5, 2), (5, 3), (6, 3), (8, 3), (0xF0, 1), (0xF0, 2),
                        (0xF0, 3)):
        yield f"41_device_{device:02x}_class_{cls}", descriptor(
            shape=(2,), buffers=[handle(8, 64, device, 0, cls)])
    yield "42_cpu_event", descriptor(shape=(2,), buffers=[handle(8, 64, 0, 1)])
    yield "42_cpu_event_empty", descriptor(shape=(0,), buffers=[handle(0, 1, 0, 1)])
    yield "43_device_differs", descriptor(layout=CSR, shape=(3, 3), fields=nnz(2),
                                          buffers=[handle(8), handle(16, 64, 1), handle(32)])
    yield "43_class_differs", descriptor(layout=CSR, shape=(3, 3), fields=nnz(2),
                                         buffers=[handle(8, 64, 1), handle(16, 64, 1),
                                                  handle(32, 64, 1, 0, 2)])
    yield "44_sum_of_sizes", descriptor(layout=CSR, shape=(3, 3), fields=nnz(2),
                                        buffers=[handle(2**63 - 1), handle(1), handle(32)])
    yield "44_one_size", descriptor(shape=(2,), buffers=[handle(2**63)])
    quantized = lambda *a: descriptor(dtype=0x10, shape=(8,), sections=[quantization(*a)])
    yield "45_quantization_length_3", quantized(1, 3, bytes(12))
    yield "45_quantization_length_short", quantized(2, None, bytes(8))
    yield "46_scheme_00", quantized(0, None, bytes(12))
    yield "46_scheme_ff", quantized(0xFF, None, bytes(12))
    yield "47_scheme_06", quantized(6, None, bytes(12))
    yield "47_scheme_f0", quantized(0xF0, None, bytes(12))
    yield "07_quantization", quantized(1, 4000, bytes(12))
    yield "54_dynamic_shape", descriptor(shape=(DYNAMIC,), buffers=[handle(0)],
                                         sections=[shard((8,), (0,))])
    yield "54_dynamic_parent", descriptor(shape=(2,), sections=[shard((DYNAMIC,), (0,))])
    yield "54_dynamic_offset", descriptor(shape=(2,), sections=[shard((8,), (DYNAMIC,))])
    yield "55_box_overflows", descriptor(shape=(2,), sections=[shard((8,), (2**64 - 2,))])
    yield "55_box_outside", descriptor(shape=(2, 3), sections=[shard((8, 8), (6, 6))])
    yield "56_mask_bit_6", descriptor(shape=(2,), sections=[statistics(0x40)])
    yield "57_statistics_reserved", descriptor(shape=(2,), sections=[statistics(reserved=1)])
    yield "57_statistics_tail", descriptor(shape=(2,), sections=[statistics(tail=b"\0\0\0\1")])
    yield "58_nm", descriptor(shape=(2,), sections=[statistics(0x10, n=3, m=2)])
    yield "58_has_nan", descriptor(shape=(2,), sections=[statistics(0x20, nan=2)])
    yield "58_has_inf", descriptor(shape=(2,), sections=[statistics(0x20, inf=255)])
    yield "58_sparsity_above", descriptor(shape=(2,), sections=[statistics(2, sparsity=1.5)])
    yield "58_sparsity_below", descriptor(shape=(2,), sections=[statistics(2, sparsity=-0.1)])
    yield "58_stddev", descriptor(shape=(2,), sections=[statistics(8, stddev=-1.0)])
    yield "59_nnz_differs", descriptor(layout=CSR, shape=(3, 3), fields=nnz(2),
                                       buffers=[handle(8), handle(16), handle(32)],
                                       sections=[statistics(1, nnz=3)])
    yield "65_member_role", descriptor(shape=(2,), sections=[member(2)])
    yield "65_member_reserved", descriptor(shape=(2,), sections=[member(1, bytes(14) + b"\1")])
    yield "66_trailing_byte", surplus(descriptor(shape=(2,)), b"\0")
    yield "67_two_buffers", descriptor(shape=(2,), buffers=[handle(8), handle(8)])
    yield "67_csr_two_buffers", descriptor(layout=CSR, shape=(3, 3), fields=nnz(2),
                                           buffers=[handle(8), handle(16)])
    yield "68_csr_byte_offset", descriptor(layout=CSR, shape=(3, 3), fields=nnz(2), byte_offset=8,
                                           buffers=[handle(16), handle(16), handle(32)])
    yield "68_byte_offset_beyond", descriptor(shape=(0,), byte_offset=1, buffers=[handle(0)])
    yield "69_count_overflows", descriptor(shape=(2**32, 2**31), buffers=[handle(64)])
    yield "69_strided_zero_strides", descriptor(layout=STRIDED, shape=(2**32, 2**32),
                                                fields=strides(0, 0), buffers=[handle(64)])
    yield "71_stride_overflows", descriptor(layout=STRIDED, shape=(2**40,), fields=strides(2**40),
                                            buffers=[handle(64)])
    yield "71_strides_add_up", descriptor(layout=STRIDED, shape=(2, 2),
                                          fields=strides(2**62 + 2**61, 2**62), buffers=[handle(64)])
    yield "72_extent_overflows", descriptor(shape=(2**61,), buffers=[handle(64)])
    yield "72_offset_overflows", descriptor(dtype=0x10, shape=(2**62 + 2**61,), byte_offset=2**62,
                                            buffers=[handle(2**63 - 1)])
    yield "73_buffer_too_small", descriptor(shape=(2,), buffers=[handle(7)])
    yield "73_offset_pushes_out", descriptor(shape=(2,), byte_offset=1, buffers=[handle(8)])
    yield "73_starts_before", descriptor(layout=STRIDED, shape=(4,), fields=strides(-1),
                                         byte_offset=8, buffers=[handle(64)])
    yield "73_six_bits_whole_groups", descriptor(dtype=0x44, shape=(5,), buffers=[handle(4)])
    yield "73_bool", descriptor(dtype=0x20, shape=(9,), buffers=[handle(1)])
    yield "74_values_short", descriptor(layout=CSR, shape=(3, 3), fields=nnz(2),
                                        buffers=[handle(7), handle(16), handle(32)])
    yield "74_row_ptr_short", descriptor(layout=CSR, shape=(3, 3), fields=nnz(2),
                                         buffers=[handle(8), handle(16), handle(31)])
    yield "74_nnz_overflows", descriptor(layout=CSR, shape=(2**32, 2**32), fields=nnz(2**62),
                                         buffers=[handle(8), handle(16), handle(32)])
    yield "74_rows_overflow", descriptor(layout=CSR, shape=(2**62, 1), fields=nnz(0),
                                         buffers=[handle(0), handle(0), handle(32)])
    # Valid, and not built yet: never called invalid.
    for tag in (0x04, 0x05, 0x06, 0x08, 0x09, 0x0A, 0x0B, 0x40, 0xF0, 0xFE):
        yield f"unsupported_layout_{tag:02x}", descriptor(layout=tag, shape=(2, 3))
    yield "unsupported_private_type", scalar(dtype=0xF3, flags=4)
    yield "unsupported_quantization", quantized(1, None, bytes(12))
    yield "unsupported_member", descriptor(shape=(2,), sections=[member(1)])


def text(parts, error=None):
    lines = []
    for comment, raw in parts:
        chunks = [raw[i:i + 16] for i in range(0, len(raw), 16)] or ([b""] if not parts.raw() else [])
        for k, chunk in enumerate(chunks):
            body = chunk.hex(" ")
            lines.append(f"{body:<48}# {comment}" if k == 0 else body)
    if error is not None:
        lines.append(error)
    return "\n".join(lines) + "\n"


def main():
    for kind, vectors in (("valid", valid()), ("invalid", invalid())):
        folder = HERE / kind / "descriptor"
        folder.mkdir(parents=True, exist_ok=True)
        names = set()
        for name, parts in vectors:
            path = folder / f"{name}.txt"
            assert name not in names, name
            names.add(name)
            error = None
            if kind == "invalid":
                old = path.read_text().splitlines() if path.exists() else []
                error = next((line for line in old if line.startswith("error:")), "error: ?")
            path.write_text(text(parts, error))
        for path in folder.glob("*.txt"):
            if path.stem not in names:
                path.unlink()
    # Newer minor versions: read, kept, not written back.
    folder = HERE / "newer" / "descriptor"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "minor_1_surplus.txt").write_text(text(newer_minor(b"\1\2\3")))
    (folder / "minor_1_plain.txt").write_text(text(newer_minor(b"")))


if __name__ == "__main__":
    main()
