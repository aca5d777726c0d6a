"""The worked examples of the reference pages, typed off by hand: the writer and the formulas must give them."""

from . import containers, data, descriptors, formulas, vectors
from .formulas import dense_offset, dense_range, extent
from .wire import (
    Parts, col, composite, coo, hilbert, level, morton, mxfp, nf4, paged, per_block, per_channel, per_tensor, private,
    quantization_parts, row, strided, tiled)

HEX = {
    # 01-descriptor.md section 7
    "worked_a": """
        48 52 52 59 01 00 45 00 00 00 00 00 00 00 03 01 03 00 00 00
        05 00 00 00 00 00 00 00 07 00 00 00 00 00 00 00 02 00 00 00 00 00 00 00
        40 00 00 00 00 00 00 00 01 58 01 00 00 00 00 00 00 80 00 00 00 00 00 00 00""",
    "worked_b": """
        48 52 52 59 01 00 4D 00 00 00 00 00 00 00 12 03 02 00 00 00
        04 00 00 00 00 00 00 00 03 00 00 00 00 00 00 00 3C 00 00 00 00 00 00 00
        F8 FF FF FF FF FF FF FF FE FF FF FF FF FF FF FF 01
        40 00 00 00 00 00 00 00 40 00 00 00 00 00 00 00""",
    "worked_c": """
        48 52 52 59 01 00 85 00 00 00 03 00 00 00 10 01 02 00 00 00
        06 00 00 00 00 00 00 00 0A 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 02
        3C 00 00 00 00 00 00 00 00 01 00 00 01 00 02 00
        18 00 00 00 00 00 00 00 00 01 00 00 01 00 02 00
        14 00 00 00 02 01 01 00 00 00 00 00 01 00 00 00 FF FF FF FF 03 00 00 00
        0C 00 00 00 00 00 00 00 0A 00 00 00 00 00 00 00 06 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00""",
    "worked_d": """
        48 52 52 59 01 00 B1 00 00 00 1E 00 00 00 F3 01 01 00 00 00
        06 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 01
        12 00 00 00 00 00 00 00 40 00 00 00 00 00 00 00
        06 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00
        2F 00 00 00 00 00 00 00 03 00 00 00 00 00 00 00 00 00 00 00 00 00 E0 3F
        00 00 00 00 00 00 00 C0 00 00 00 00 00 00 10 40 00 00 00 00 00 00 10 40 AB AA AA AA AA AA E2 3F
        B1 4D 7C 3F 16 5D FD 3F 00 00 00 00 00 00 00 00
        18 00 00 00 01 01 00 01 08 0F 00 00 7F 00 00 00 01 01 00 00
        01 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00""",
}

# 05-stream.md section 7
STREAM = """
    48 52 52 59 01 00 35 00 00 00 00 00 00 00 13 01 01 00 00 00 02 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 01
    04 00 00 00 00 00 00 00 40 00 00 00 00 00 00 00 0A 00 14 00
    48 52 52 59 01 00 35 00 00 00 00 00 00 00 03 01 01 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 01
    00 00 00 00 00 00 00 00 01 00 00 00 00 00 00 00"""
GROUP = """
    48 52 52 59 01 00 2D 00 00 00 00 00 00 00 03 0B 01 00 00 00 02 00 00 00 00 00 00 00
    00 00 00 00 00 00 00 00  03 00 00 00 01 00 00 00  00"""

# 04-file.md section 13, without the padding between 0x75 and 0x1000.
FILE_START = """
    48 52 52 59 46 49 4C 45 01 00 00 00 05 00 00 00 00 10 00 00 40 00 00 00 00 00 00 00 FF FF FF FF FF FF FF FF
    00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00
    48 52 52 59 01 00 35 00 00 00 00 00 00 00 12 01 01 00 00 00 03 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 01
    06 00 00 00 00 00 00 00 40 00 00 00 00 00 00 00"""
FILE_END = """
    01 00 FE FF 2C 01 00 00 01 00 00 00 03 00 72 65 76 02 07 00 00 00 00 00 00 00 00 00 00 00 00 00
    01 00 00 00 00 00 00 00 01 00 74 40 00 00 00 00 00 00 00 35 00 00 00 00 10 00 00 00 00 00 00
    06 00 00 00 00 00 00 00 00 00 00 00
    20 10 00 00 00 00 00 00 2B 00 00 00 00 00 00 00 08 10 00 00 00 00 00 00 12 00 00 00 11 C5 7C CD
    00 00 00 00 48 52 52 59"""


def same(raw, text):
    wanted = bytes.fromhex(text)
    assert raw == wanted, f"\n{raw.hex(' ')}\n{wanted.hex(' ')}"


def fields(layout, text):
    p = Parts()
    layout.parts(p)
    same(p.raw(), text)


def payload(q, text):
    p = Parts()
    quantization_parts(p, q)
    same(p.raw()[4:], text)


def check_descriptors():
    made = {name: t for name, t, _ in descriptors.valid()}
    for name, text in HEX.items():
        same(made[name].parts().raw(), text)
    sizes = {"scalar_float32": 45, "scalar_overlay": 37, "rank_64_sections": 1749, "rank_64_strided_sections": 2261,
             "rank_63_morton_sections": 1977, "rank_64_csf_sections": 3045, "rank_64_tiled_eight_sections": 10485,
             "rank_64_tiled_eight_255_buffers": 14517, "row_major_f32_3x4": 61}
    for name, size in sizes.items():
        assert len(made[name].parts().raw()) == size, (name, len(made[name].parts().raw()))


def check_fields():
    zeros = "00 " * 7
    fields(strided(-3, 1), "FD FF FF FF FF FF FF FF 01" + zeros)
    fields(tiled((2, 3), inner="col_major"), f"02 {zeros} 03 {zeros} 01 02 00 00")
    fields(coo(5), f"05 {zeros} 01 {zeros}")
    fields(paged(2, 6, 3, "value", 7),
           f"02 00 00 00 06 {zeros} 00 00 00 00 03 00 00 00 01 07 00 00 00 00 00 00 00 00 00 00")
    fields(composite("overlay", 3, "add"), "02 02 00 00 03 00 00 00")
    fields(composite("partition", 3), "01 00 00 00 03 00 00 00")
    fields(private(0xF0, 0x1122334455667788, b"abc"), "88 77 66 55 44 33 22 11 03 00 00 00 61 62 63")
    payload(per_tensor(0.0625, 120), "01 01 00 00 00 00 80 3D 78 00 00 00 00 00 00 00")
    payload(per_channel(1, 1, 2), "02 01 00 00 01 00 00 00 01 00 00 00 02 00 00 00 03 00 00 00")
    payload(per_channel(0, 3), "02 01 01 00 00 00 00 00 03 00 00 00 FF FF FF FF 03 00 00 00")
    payload(per_block(1, 32, 1, None, "float16"),
            "03 01 01 00 01 00 00 00 20 00 00 00 01 00 00 00 FF FF FF FF 01 00 00 00")
    payload(nf4(0, 64, 1), "04 01 00 00 00 00 00 00 40 00 00 00 01 00 00 00")
    payload(mxfp(1, 32, 1), "05 01 00 00 01 00 00 00 20 00 00 00 01 00 00 00")


def check_addresses():
    def at(layout, index, shape):
        return dense_offset(layout, index, shape)

    assert at(row(), (1, 2, 1), (2, 5, 3)) == 22 and at(col(), (1, 2, 1), (2, 5, 3)) == 15
    assert dense_range(strided(-3, 1), (5, 2)) == (-12, 1)
    assert extent(32, -12, 1) == (48, 8) and extent(4, -4, 1) == (2, 1) and extent(6, -5, 0) == (6, 3)
    column = tiled((2, 3), inner="col_major")
    assert (at(column, (3, 4), (5, 7)), at(column, (4, 5), (5, 7)), dense_range(column, (5, 7))) == (27, 46, (0, 53))
    nested = tiled((8, 8), inner_tiled=level((4, 2), outer="col_major"))
    assert at(nested, (13, 19), (16, 24)) == 347 and dense_range(nested, (16, 24)) == (0, 383)
    strides = tiled((2, 3), outer_strides=[-4, 1], inner_strides=[1, -2])
    assert dense_range(strides, (4, 6)) == (-28, 7)
    assert (at(strides, (0, 2), (4, 6)), at(strides, (3, 5), (4, 6))) == (-4, -21)
    assert [at(morton(1, 3), (k, c), (2, 6)) for k in (0, 1) for c in range(6)] == [
        0, 2, 4, 6, 8, 10, 1, 3, 5, 7, 9, 11]
    assert at(morton(3, 2), (5, 2), (8, 4)) == 25 and at(morton(3, 3, 3), (3, 5, 1), (8, 8, 8)) == 143
    square = [[0, 3, 4, 5], [1, 2, 7, 6], [14, 13, 8, 9], [15, 12, 11, 10]]
    assert [[at(hilbert(2, 2), (a, b), (4, 4)) for b in range(4)] for a in range(4)] == square
    cube = [(0, 0, 0), (0, 0, 1), (0, 1, 1), (0, 1, 0), (1, 1, 0), (1, 1, 1), (1, 0, 1), (1, 0, 0)]
    assert [at(hilbert(1, 3), i, (2, 2, 2)) for i in cube] == list(range(8))
    assert at(hilbert(3, 2), (5, 2), (8, 8)) == 55 and at(hilbert(2, 3), (3, 1, 2), (4, 4, 4)) == 48
    for e, index in ((1, (0, 1, 0)), (7, (0, 0, 1)), (21, (1, 3, 3)), (42, (2, 3, 3)), (63, (3, 0, 0))):
        assert at(hilbert(2, 3), index, (4, 4, 4)) == e
    cache = data.cache("uint8")
    places = formulas.paged_places(cache)
    assert [places[i] for i in ((0, 2, 1, 2), (2, 0, 0, 0), (2, 3, 1, 2), (2, 4, 2, 3))] == [30, 96, 18, 131]
    assert places[2, 3, 0, 0] // 12 == 1


def check_values():
    made = dict(data.plain())
    assert formulas.numbers(made["worked_reversed_i16"]) == [30, 28, 26, 22, 20, 18, 14, 12, 10, 6, 4, 2]
    m = [[0, 0, 0, 0, 7, 0], [-2, 0, 0, 9, 0, 4], [0] * 6, [0, 0, 0, 1, 0, 0]]
    for which in data.SPARSE:
        assert formulas.numbers(made[f"worked_m_{which}"]) == sum(m, [])
    tree = formulas.stored_numbers(made["worked_csf"])
    assert tree == dict(data.TREE_ENTRIES)
    for name, values in (("bool", [0, 1, 1, 0, 0, 0, 1, 0, 1, 1]), ("int4", [-3, 7, -8, 1, 2]),
                         ("uint2", [2, 0, 3, 1, 1]), ("int2", [-2, -1, 0, 1, -1]),
                         ("e2m3", [-1.625, 2.75, -4, 0.75, -0.125]), ("e3m2", [-1.25, 3.5, -8, 0.375, -0.0625])):
        assert formulas.numbers(made[f"packing_{name}"]) == values, name
    assert formulas.numbers(made["every_f4"])[:8] == [0, 0.5, 1, 1.5, 2, 3, 4, 6]
    quantized = dict(data.quantized())
    assert formulas.numbers(quantized["tensor_worked"]) == [5.0, 0.0]
    assert formulas.numbers(quantized["tensor_q6_signed"])[0] == 4294967296.0
    assert formulas.numbers(quantized["tensor_q6_unsigned"])[0] == formulas.round_to(formulas.FLOAT32, 3999999995)
    assert formulas.shown_values(quantized["nf4_every_code"])[1][12] == "00000000"  # scale 0
    assert formulas.float_bits("float32", formulas.round_to(
        formulas.FLOAT32, formulas.NF4[12] * 2.5)) == "3f8d06f3"
    assert formulas.numbers(quantized["mxfp_worked"])[:2] == [1.0, -0.375]
    assert [formulas.block_of((2, 5, 3), 1, 2, i) for i in ((0, 4, 0), (0, 0, 1), (1, 3, 0), (1, 4, 2))] == [
        2, 3, 10, 17]
    assert formulas.block_count((2, 5, 3), 1, 2) == 18


def check_containers():
    same(vectors.worked_stream().raw(), STREAM)
    head = dict(data.composites())["group_worked"]
    raw = containers.stream(head).raw()
    assert len(raw) == 100 and raw[-2:] == b"\x05\xfb"
    same(raw[:45], GROUP)
    file = vectors.worked_file().parts.raw()
    same(file[:0x75], FILE_START)
    assert not any(file[0x75:0x1000]) and len(file) == 4211
    same(file[0x1000:], FILE_END)
    empty = containers.File([]).parts.raw()
    assert len(empty) == 120 and empty[-12:-8] == bytes.fromhex("8C28B28A")[::-1]
    second = vectors.second_file()
    assert (len(second.parts.raw()), second.kv_offset, second.index_offset, second.index_length) == (
        24832, 24584, 24592, 200)
    assert second.parts[second.parts.find("index_crc32c")][1] == bytes.fromhex("456BB112")[::-1]
    assert {name: tuple(rest) for name, *rest in second.entries} == {
        "sp": (64, 109, 4096, 8216), "none": (12312, 61, 16384, 0), "grid": (16384, 53, 16440, 0),
        "grid.0": (16440, 93, 20480, 2), "grid.1": (20488, 93, 24576, 4)}
    sums = vectors.checksum_file()
    raw = sums.parts.raw()
    assert (len(raw), sums.kv_offset, sums.kv_length, sums.index_offset) == (4275, 4104, 82, 4192)
    payload_bytes = sums.kv[1][2]
    words = [payload_bytes[i:i + 4][::-1].hex().upper() for i in (12, 16, 20, 32, 36, 40)]
    assert words == ["CD7CC511", "A3295638", "CD740F8E", "B1696D50", "8227BCA4", "2FA6319D"], words


def check():
    check_descriptors()
    check_fields()
    check_addresses()
    check_values()
    check_containers()
