"""All vectors with their entries of the manifest."""

import dataclasses

from . import broken, containers, data, descriptors, formulas
from .containers import File, stream, summed, walk
from .descriptors import NAN, PRIVATE_FLOAT
from .wire import (
    Layout, Parts, Tensor, col, coo, csr, number, per_channel, plain, private, row,
    statistics_expect, u8, u16, u32, u64)


@dataclasses.dataclass
class Vector:
    name: str  # path below conformance/, without ".txt"
    parts: Parts
    entry: dict
    comments: list


def vector(folder, kind, name, parts, outcome, comments=(), options=None, row=None, error=None, expect=None):
    """`row`: one id of `rows`, or several."""
    entry = {"name": f"{folder}/{name}", "kind": kind, "outcome": outcome}
    rows = [row] if isinstance(row, str) else row
    for key, value in (("rows", rows), ("options", options), ("error", error), ("expect", expect)):
        if value:
            entry[key] = value
    return Vector(entry["name"], parts, entry, list(comments))


# ------------------------------------------------------------------------------------------------
# Descriptors


def all_descriptors():
    for name, t, options in descriptors.valid():
        yield vector("valid/descriptor", "descriptor", name, t.parts(), "valid", options=options, expect=t.expect())
    for name, t, options in descriptors.newer():
        yield vector("newer/descriptor", "descriptor", name, t.parts(), "valid", expect=t.expect() | {
            "reencodes": False})
    for name, t, options in descriptors.opaque():
        yield vector("permissive/descriptor", "descriptor", name, t.parts(), "opaque",
                     row=name.split("_")[0].lstrip("0"), options={"permissive": True} | options, expect=t.expect())
    for name, t, options in descriptors.agreed():
        yield vector("permissive/descriptor", "descriptor", f"agreed_{name}", t.parts(), "opaque", options=options,
                     expect=t.expect())
    for name, t, bit in descriptors.dropped_groups():
        expect = t.expect()
        mask = expect["statistics"]["computed_mask"]
        expect["statistics"] = statistics_expect(t.statistics | {"computed_mask": mask & ~(1 << bit)})
        expect["statistics"]["computed_mask"] = mask
        yield vector("permissive/descriptor", "descriptor", name, t.parts(), "valid", row="58",
                     options={"permissive": True}, expect=expect)
    for case in broken.invalid():
        error = {"code": case.code, "field": case.field, "offset": case.offset, "origin": "descriptor"}
        yield vector("invalid/descriptor", "descriptor", case.name, case.parts, "invalid", row=case.row,
                     options=plain(case.options), error=error)


# ------------------------------------------------------------------------------------------------
# Items of streams and files


def item(t):
    """What a reader must make of a tensor, with its values, or of a head with its members."""
    e = t.expect()
    if t.layout.name == "composite":
        e["members"] = [item(m) for m in t.members]
        # The values of a private type are copied, never added.
        if t.layout.fields["composition_rule"] != "group":
            e["value_type"], e["values"] = formulas.shown_materialized(t)
        return e
    e["value_type"], e["values"] = formulas.shown_values(t)
    if t.tokens is not None:
        e["tokens_per_sequence"] = t.tokens
    return e


def groups():
    """Tensors that share a stream: those whose names begin alike."""
    def grouped(pairs, keys, rest):
        found = {}
        for name, t in pairs:
            key = next((k for k in keys if name.startswith(k)), rest)
            found.setdefault(key, []).append((name, t))
        return found

    keys = sorted([*data.DENSE, *data.SPARSE, "csf", "paged", "scalar", "worked", "packing", "every", "edges"],
                  key=lambda k: -len(k))
    yield from ((f"plain_{k}", v) for k, v in grouped(data.plain(), keys, "rest").items())
    keys = ("tensor", "channel", "block", "nf4", "mxfp", "paged", "coo", "csr", "csc")
    yield from ((f"quantized_{k}", v) for k, v in grouped(data.quantized(), keys, "layouts").items())


def labelled(parts, names):
    """Frame numbers of the field names replaced by labels."""
    return Parts((f"{names[int(n.split('/')[0])]}/{n.split('/', 1)[1]}", raw, note) for n, raw, note in parts)


def valid_streams():
    for group, tensors in groups():
        parts = labelled(stream(*(t for _, t in tensors)), [name for name, _ in tensors])
        yield vector("valid/stream", "stream", group, parts, "valid", expect={
            "items": [{"label": name} | item(t) for name, t in tensors]})
    for name, head in data.composites():
        # L21: read, and never written.
        more = {"written": False} if name == "partition_with_empty_member" else {}
        yield vector("valid/stream", "stream", f"composite_{name}", stream(head), "valid",
                     expect={"items": [item(head)]} | more)
    yield vector("valid/stream", "stream", "no_tensors", Parts(), "valid", ["A stream of no tensors: no bytes."],
                 expect={"items": []})
    yield vector("valid/stream", "stream", "worked_two_frames", worked_stream(), "valid",
                 expect={"items": [item(t) for t in WORKED_STREAM]})
    yield vector("valid/stream", "stream", "worked_two_frames_cut_between", worked_stream().cut(57), "valid",
                 expect={"items": [item(WORKED_STREAM[0])]})
    several = [data.dense("int8", (2,), row()), data.partition_30("int8"), data.dense("bool", (9,), row()),
               data.head("float32", (), "group", []), data.dense("float64", (), row())]
    yield vector("valid/stream", "stream", "composites_between_tensors", stream(*several), "valid",
                 expect={"items": [item(t) for t in several]})
    dynamic = Tensor("int8", (formulas.DYNAMIC, 2), row(), buffers=[b"\1\2\3\4"])
    yield vector("valid/stream", "stream", "dynamic_size_does_not_disturb", stream(dynamic, several[0]), "valid",
                 expect={"items": [dynamic.expect(), item(several[0])]})
    cuda = Tensor("int8", (2,), row(), buffers=[b"\1\2"], placement=(1, 1, 2))
    yield vector("valid/stream", "stream", "device_tensor", stream(cuda), "valid", expect={"items": [cuda.expect()]})
    for name, t in (("private_layout", Tensor("int8", (2,), private(), buffers=[b"\1\2\3", b""])),
                    ("private_scheme", Tensor("int8", (2,), row(), buffers=[b"\1\2", b"\3"], quantization={
                        "scheme": "0xf0", "scheme_version": 3, "flags": 9, "payload": b"abc"}))):
        options = {"agreed": {"layouts": [[0xF0, 7]], "schemes": [0xF0]}}
        yield vector("valid/stream", "stream", f"agreed_{name}", stream(t, several[0]), "valid", options=options,
                     expect={"items": [t.expect(), item(several[0])]})
    unknown = Tensor(0x18, (2,), row(), buffers=[b"\1\2\3"])
    yield vector("permissive/stream", "stream", "unknown_type", stream(unknown, several[0]), "opaque",
                 options={"permissive": True}, expect={"items": [unknown.expect(), item(several[0])]})


WORKED_STREAM = [data.tensor("uint16", (2,), row(), [b"\x0a\0\x14\0"]), data.tensor("float32", (0,), row(), [b""])]


def worked_stream():
    return stream(*WORKED_STREAM)


def composite_code(row):
    return "limit exceeded" if row == "M7" else "inconsistent"


def invalid_streams():
    def bad(row_id, name, parts, code, field=None, offset=None, origin="stream", options=None, comments=()):
        error = {"code": code} | ({"origin": origin} if origin else {})
        if field is not None:
            error["field"] = field
        if offset is not None:
            error["offset"] = offset
        return vector("invalid/stream", "stream", name, parts, "invalid", row=row_id, error=error, options=options,
                      comments=comments)

    worked = worked_stream()
    for n in (1, 4, 9):
        yield bad("stream 2", f"2_cut_{n}", worked.cut(n), "truncated", "descriptor_length", n)
    yield bad("stream 2", "2_cut_58", worked.cut(58), "truncated", "descriptor_length", 58)
    for name, raw in (("http", b"GET / HTTP/1.1\r\n"), ("zeros", bytes(64)), ("two_bytes_between", None)):
        if raw is None:
            parts = worked.insert_after("0/data[0]", "(padding)", bytes(2))
            yield bad("stream 3", "3_padding_between", parts, "invalid magic", "magic", 57)
            continue
        parts = Parts()
        parts.put("(foreign)", raw)
        yield bad("stream 3", f"3_{name}", parts, "invalid magic", "magic", 0)
    file_start = Parts()
    file_start.put("magic", b"HRRYFILE")
    file_start.put("(more)", bytes(56))
    yield bad("stream 3", "3_file", file_start, "unsupported version", "version_major", 4)
    yield bad("stream 3", "3_major_2", worked.swap({"1/version_major": u8(2)}), "unsupported version",
              "version_major", 61)
    yield bad("stream 4", "4_length_19", worked.swap({"0/descriptor_length": u32(19)}), "length mismatch",
              "descriptor_length", 6)
    yield bad("stream 4", "4_length_over_limit", worked.swap({"0/descriptor_length": u32(2**24 + 1)}),
              "limit exceeded", "descriptor_length", 6)
    yield bad("stream 4", "4_length_over_own_limit", worked, "limit exceeded", "descriptor_length", 6,
              options={"max_descriptor_bytes": 52})
    for n in (10, 52, 109):
        yield bad("stream 5", f"5_cut_{n}", worked.cut(n), "truncated", "descriptor_length", n)
    yield bad("stream 5", "5_flags", worked.swap({"0/flags": u32(32)}), "reserved bits", "flags", 10, "descriptor")
    yield bad("stream 5", "5_second_frame", worked.swap({"1/rank": u32(65)}), "out of bounds", "rank", 16,
              "descriptor")
    yield bad("stream 5", "5_longer_than_there_is", worked.swap({"1/descriptor_length": u32(4000)}), "truncated",
              "descriptor_length", 110)
    unknown = Tensor("int8", (2,), Layout("unknown", tag=0x0C, raw_bytes=bytes(17)), handles=[])
    yield bad("stream 5", "5_unknown_layout", stream(unknown.replace(buffers=[])), "invalid tag", "layout_tag", 15,
              "descriptor")
    yield bad("stream 5", "5_unknown_layout_permissive", stream(unknown.replace(buffers=[]), WORKED_STREAM[0]),
              "invalid tag", "layout_tag", origin=None, options={"permissive": True},
              comments=["Its buffer table cannot be found and its data not skipped: the stream ends here."])
    cuda = stream(Tensor("int8", (2,), row(), buffers=[b"\1\2"], placement=(1, 2, 0)))
    yield bad("stream 6", "6_between_machines", cuda, "inconsistent", "buffers[0].sync_mode",
              options={"cross_machine": True})
    yield bad("stream 6", "6_buffer_limit", worked, "limit exceeded", "buffers[0].byte_size",
              options={"max_buffer_bytes": 3})
    three = stream(data.matrix_m("int16", [1, 2, 3, 4, 5], "csr"))
    yield bad("stream 6", "6_tensor_limit", three, "limit exceeded", "buffers", options={"max_tensor_bytes": 89})
    yield bad("stream 6", "6_third_buffer", three, "limit exceeded", "buffers[1].byte_size",
              options={"max_buffer_bytes": 39})
    for n in (53, 56):
        yield bad("stream 7", f"7_cut_{n}", worked.cut(n), "truncated", "buffers[0].byte_size", n)
    yield bad("stream 7", "7_third_buffer", three.cut(len(three.raw()) - 1), "truncated", "buffers[2].byte_size",
              len(three.raw()) - 1)
    huge = stream(Tensor("int8", (2,), row(), buffers=[b"\1\2"])).swap({"0/buffers[0].byte_size": u64(2**62)})
    yield bad("stream 7", "7_declares_2_62_bytes", huge, "truncated", "buffers[0].byte_size", len(huge.raw()))
    group = stream(data.head("float32", (2,), "group", [data.dense("int8", (2,), row(), [5, 0xFB])]))
    yield bad("stream 5", "5_cut_in_member", group.cut(60), "truncated", "descriptor_length", 60)
    yield bad("stream 7", "7_cut_in_member_data", group.cut(99), "truncated", "buffers[0].byte_size", 99)
    for name, head in data.torn():
        if name == "C1_four_billion":
            yield bad("stream 6", "6_four_billion_members", stream(head), "limit exceeded", origin=None)
        else:
            yield bad(["C1", "stream 8"], f"composite_{name}", stream(head), "truncated", origin=None)
    for name, row_id, head, _ in data.bad_composites():
        yield bad(row_id, f"composite_{name}", stream(head), composite_code(row_id), origin=None)
    depth = stream(dict(data.composites())["partition_nested"])
    yield bad(["M7"], "composite_M7_own_limit", depth, "limit exceeded", origin=None,
              options={"max_composite_depth": 1})
    yield bad("stream 6", "6_members_limit", stream(data.partition_30("int8")), "limit exceeded",
              origin=None, options={"max_item_members": 2})


def data_vectors():
    for name, row_id, t, buffer, element in data.bad_data():
        error = {"check": row_id, "buffer": buffer}
        if element is not None:
            error["offset"] = element * data.number_bytes(t, buffer)
        yield vector("invalid/data", "stream", name, stream(t), "data_invalid", row=row_id, error=error,
                     expect={"items": [t.expect()]})


# ------------------------------------------------------------------------------------------------
# Files


def file_expect(f):
    tensors = dict(zip(f.names, f.tensors, strict=True))
    order = [name for name, *_ in f.entries]
    expect = {"names": order, "flags": f.flags,
              "entries": {name: [number(x) for x in rest] for name, *rest in f.entries},
              "kv": [[key, containers.kv_expect(kind, value)] for key, kind, value in f.kv or []],
              "tensors": {}, "members": {}}
    names = iter(f.names)

    def assign(t):
        name = next(names)
        children = [assign(m) for m in t.members]
        if t.layout.name == "composite":
            expect["members"][name] = children
        return name

    # Pre-order of names is that of `walk`.
    seen = set()
    for name, t in tensors.items():
        if name not in seen:
            start = f.names.index(name)
            span = list(walk([t]))
            seen.update(f.names[start:start + len(span)])
            names = iter(f.names[start:])
            assign(t)
    for name in order:
        t = tensors[name]
        e = t.expect()
        if t.layout.name == "composite":
            if t.layout.fields["composition_rule"] != "group":
                e["value_type"], e["values"] = formulas.shown_materialized(t)
        elif t.handles[0].device == 0:
            e["value_type"], e["values"] = formulas.shown_values(t)
            if t.tokens is not None:
                e["tokens_per_sequence"] = t.tokens
        expect["tensors"][name] = e
    return expect


def worked_file(**more):
    t = data.tensor("int16", (3,), row(), [b"\x01\x00\xfe\xff\x2c\x01"])
    return File([t], ["t"], [("rev", "int64", 7)], **more)


def checksum_file():
    """The worked file with the entry of section 16."""
    plain_file = worked_file(hint=1)
    raw = plain_file.parts.raw()
    start = plain_file.parts.offset("index_entry_count")
    crc = containers.crc32c
    key = b"hurray.crc32c"
    own = u16(len(key)) + key + u8(6) + u32(44)
    section = u32(2) + raw[plain_file.kv_offset + 4:plain_file.kv_offset + plain_file.kv_length] + own
    payload = b"HRRYSUM1" + u8(1) + u8(20) + bytes(2) + u32(crc(raw[start:start + plain_file.index_length]))
    payload += u32(crc(raw[:64])) + u32(crc(section)) + u64(1)
    payload += u32(crc(raw[64:64 + 53])) + u32(crc(raw[4096:4102]))
    payload += u32(crc(payload))
    f = File([data.tensor("int16", (3,), row(), [b"\x01\x00\xfe\xff\x2c\x01"])], ["t"],
             [("rev", "int64", 7), ("hurray.crc32c", "bytes", payload)], hint=1)
    f.shown_kv = f.kv[:1]
    return f


def second_file(**more):
    """04-file.md section 14."""
    sp = data.tensor("float32", (2, 4), csr(3), [data.floats(0.5, 2.0, -1.0), data.u64s(1, 0, 3),
                                                 data.u64s(0, 1, 3)])
    none = data.tensor("float16", (0, 7), row(), [b""])
    grid = data.head("int8", (2, 3), "partition", [
        data.boxed((2, 3), (0, 0), data.tensor("int8", (2, 1), row(), [b"\1\2"])),
        data.boxed((2, 3), (0, 1), data.tensor("int8", (2, 2), row(), [b"\3\4\5\6"]))])
    return File([sp, none, grid], ["sp", "none", "grid", "grid.0", "grid.1"], [], flags=7, order=[2, 3, 4, 1, 0],
                **more)


EVERY_KV = [
    ("text", "string", "grüße\0€\U0001f600"), ("empty", "string", ""), ("least", "int64", -2**63),
    ("most", "int64", 2**63 - 1), ("huge", "uint64", 2**64 - 1), ("tenth", "float64", 0.1), ("nan", "float64", NAN),
    ("yes", "bool", True), ("no", "bool", False), ("raw", "bytes", bytes(range(7))), ("nothing", "bytes", b""),
    ("words", "array", ("string", ["a", "", "ccc"])), ("numbers", "array", ("int64", [1, -2, 3])),
    ("unsigned", "array", ("uint64", [0, 2**64 - 1])), ("reals", "array", ("float64", [0.5, -0.0])),
    ("truths", "array", ("bool", [True, False, True])), ("blobs", "array", ("bytes", [b"\xff", b""])),
    ("no elements", "array", ("float64", [])), ("k" * 300, "bool", True)]


def valid_files():
    def good(name, f, comments=(), **more):
        expect = file_expect(f)
        if hasattr(f, "shown_kv"):
            expect["kv"] = [[key, containers.kv_expect(kind, value)] for key, kind, value in f.shown_kv]
        return vector("valid/file", "file", name, f.parts, "valid", comments, expect=expect | more)

    yield good("worked_minimal", worked_file())
    yield good("worked_empty", File([]))
    yield good("worked_second", second_file())
    yield good("worked_checksums", checksum_file(), has_checksums=True)
    yield good("no_kv", File([data.dense("int8", (2,), row())], kv=None))
    yield good("no_crc", File([data.dense("int8", (2,), row())], flags=1))
    yield good("every_kv_type", File([], kv=EVERY_KV))
    two = [data.dense("int8", (3,), row()), data.dense("float64", (2, 2), col())]
    yield good("kv_flag_clear", File(two, kv=[("k", "bool", True)], flags=4),
               ["The trailer decides whether there is a KV section, not the flag (D7)."])
    yield good("kv_flag_set_without_kv", File(two, kv=None, flags=5))
    yield good("hint_is_the_count", File(two, hint=2))
    yield good("hint_lies", File(two, hint=7), ["The hint is never trusted."])
    yield good("alignment_2_mib", File(two[:1], alignment=2**21))
    yield good("alignment_16384", File(two, alignment=2**14))
    yield good("gap_before_trailer", File(two, gap=b"\xaa" * 5), ["Gaps are not looked at (F7)."])
    yield good("names", File([two[0]] * 8, [
        "a", "aa", "a/b.c d", "\0", "\n\x1b[31m", "grüße", "\U0001f600", "x" * 1000]))
    yield good("index_order_reversed", File(two, ["first", "second"], order=[1, 0]))
    yield good("sorted", File(two + two, ["a", "a\0", "b", "ba"], flags=7))
    newer = File(two, kv=[("k", "bool", True)], container=(1, 3))
    parts = newer.parts.swap({"header.reserved": b"\1\2", "header.reserved (end)": b"\3" * 28,
                              "trailer.reserved": b"\4" * 4})
    parts = parts.insert_after("kv[0].value", "(newer)", b"\xee\xee").swap(
        {"kv_length": u32(newer.kv_length + 2)})
    size = len([p for p in parts if p[0] == "(padding)"][-1][1])
    last = max(i for i, p in enumerate(parts) if p[0] == "(padding)")
    assert size >= 2
    parts[last] = ("(padding)", bytes(size - 2), "")
    parts = parts.insert_after("index[1].flags", "(newer)", b"\xdd" * 3).swap(
        {"index_length": u64(newer.index_length + 3)})
    yield good_parts(good("newer_minor", newer, [
        "A later minor version may use what is reserved today, and add bytes after the last entries."]), summed(parts))
    yield good("empty_tensors", File([
        data.dense("float16", (0, 7), row()), data.tensor("int8", (2, 3), csr(0), [b"", b"", data.u64s(0, 0, 0)]),
        data.tensor("float32", (2, 3), coo(0), [b"", b""])]))
    yield good("empty_last_buffer", File([
        data.dense("int8", (3, 0), row(), quantization=None).quantized_with(per_channel(1, 1), [b""]),
        data.tensor("int8", (2, 0), coo(0), [b"\7\7", b""]), data.dense("int16", (5,), row())]),
        ["Padding in front of a last buffer of 0 bytes counts in data_length."])
    yield good("larger_buffer", File([data.tensor("int8", (2,), row(), [bytes(range(100))])]))
    every = [t for name, t in data.plain() if name in (
        "coo_i8", "csr_f64", "csc_bf16", "csf_u4", "paged_i8", "tiled_bool", "tiled_nested_i8", "morton_i2",
        "hilbert_f6e2m3", "strided_reversed_private24")]
    assert len(every) == 10
    yield good("every_layout", File(every))
    some = [t for name, t in data.quantized() if name in (
        "block_columns", "nf4_partial", "csr_channel", "paged_slots_zero", "channel_shared")]
    assert len(some) == 5
    yield good("quantized", File(some))
    tree = dict(data.composites())
    for name in ("partition_worked", "partition_nested", "partition_of_overlay", "overlay_add", "overlay_add_q4_1",
                 "group_of_nothing", "group_of_composites", "group_depth_8", "partition_of_nothing"):
        yield good(f"composite_{name}", File([tree[name]], kv=None))
    yield good("composite_padded_to_alignment", File([tree["partition_worked"], two[0]], head_padding=4096),
               ["Existing writers pad to the data alignment after a head: readers go by the index."])
    yield good("composite_index_any_order", File(
        [two[0], tree["partition_worked"], two[1]], ["z", "m", "p1", "p0", "p2", "a"], order=[5, 3, 0, 4, 1, 2]))
    cuda = Tensor("int8", (2,), row(), buffers=[b"\1\2"], placement=(1, 1, 2))
    yield good("device_tensor", File([cuda, two[0]]))
    private_type = data.dense(PRIVATE_FLOAT, (2,), row())
    yield good("private_type", File([private_type]))
    damaged = worked_file()
    both = File([two[0], damaged.tensors[0]], ["good", "bad"])
    entry = good("one_bad_descriptor", both, ["The container is sound, one descriptor is not: the other tensor is "
                                              "still there."])
    entry.parts = both.parts.swap({"bad/rank": u32(65)})
    entry.entry["expect"]["tensors"]["bad"] = {"error": {
        "code": "out of bounds", "field": "rank", "offset": 16, "origin": "descriptor"}}
    yield entry


def good_parts(entry, parts):
    entry.parts = parts
    return entry


def invalid_files():
    def bad(row_number, name, parts, code, field, offset=None, origin="file", options=None, tensor=None,
            row_id=None):
        if isinstance(parts, File):
            parts = parts.parts
        error = {"code": code}
        if field is not None:
            error |= {"field": field, "origin": origin}
        if offset is None and field is not None and origin == "file":
            try:
                offset = parts.offset(field)
            except KeyError:
                offset = None
        if offset is not None and offset >= 0:
            error["offset"] = offset
        if tensor is not None:
            error["tensor"] = tensor
        return vector("invalid/file", "file", f"{row_number:02}_{name}", parts, "invalid",
                      row=row_id or f"file {row_number}", error=error, options=options)

    base = worked_file()
    p = base.parts
    two_file = File([data.tensor("int16", (3,), row(), [b"\x01\x00\xfe\xff\x2c\x01"]),
                     data.tensor("uint8", (5,), row(), [b"\1\2\3\4\5"])], ["t", "uu"], [("rev", "int64", 7)])
    two = two_file.parts
    end = two_file.kv_offset
    HUGE = 0xFFFFFFFFFFFFFFF8

    def index(changes, parts=two):
        return summed(parts.swap(changes))

    short = File([]).parts
    yield bad(1, "size_111", short.cut(111), "truncated", "file_size")
    yield bad(1, "size_64", short.cut(64), "truncated", "file_size")
    yield bad(1, "no_bytes", Parts(), "invalid magic", "magic", 0)
    yield bad(2, "magic", p.swap({"magic": b"HRRYFILX"}), "invalid magic", "magic")
    yield bad(2, "stream", worked_stream(), "invalid magic", "magic", 0)
    for major in (0, 2, 255):
        yield bad(2, f"major_{major}", p.swap({"container_version_major": u8(major)}), "unsupported version",
                  "container_version_major")
    yield bad(3, "flag_bit_3", p.swap({"file_flags": u32(0x0D)}), "reserved bits", "file_flags")
    yield bad(3, "flag_bit_31_newer_minor", p.swap({
        "file_flags": u32(0x80000005), "container_version_minor": u8(7)}), "reserved bits", "file_flags")
    yield bad(4, "reserved_10", p.swap({"header.reserved": b"\0\1"}), "reserved bits", "header.reserved")
    yield bad(4, "reserved_36", p.swap({"header.reserved (end)": b"\1" + bytes(27)}), "reserved bits",
              "header.reserved", 36)
    yield bad(4, "reserved_63", p.swap({"header.reserved (end)": bytes(27) + b"\1"}), "reserved bits",
              "header.reserved", 36)
    for a in (0, 1, 64, 2048, 4097, 12288, 2**22, 2**31):
        yield bad(5, f"alignment_{a}", p.swap({"data_buffer_alignment": u32(a)}), "invalid value",
                  "data_buffer_alignment")
    for name, at, code in (("0", 0, "out of bounds"), ("56", 56, "out of bounds"), ("68", 68, "invalid value"),
                           ("beyond", end + 8, "out of bounds"), ("huge", HUGE, "out of bounds")):
        yield bad(6, f"first_{name}", two.swap({"first_descriptor_offset": u64(at)}), code,
                  "first_descriptor_offset")
    yield bad(7, "no_trailer", p.swap({"trailer_magic": b"HRRZ"}), "truncated", "trailer_magic", -1)
    yield bad(7, "cut", p.cut(len(p.raw()) - 1), "truncated", "trailer_magic", -1)
    yield bad(7, "reserved", p.swap({"trailer.reserved": b"\0\0\0\1"}), "reserved bits", "trailer.reserved")
    last = len(two.raw()) - 40
    for name, offset, code in (("beyond", last + 8, "out of bounds"), ("huge", HUGE, "out of bounds"),
                               ("56", 56, "out of bounds"), ("odd", two_file.index_offset + 1, "invalid value")):
        yield bad(8, f"index_offset_{name}", two.swap({"index_offset": u64(offset)}), code, "index_offset")
    for name, length in (("7", 7), ("beyond", last - two_file.index_offset + 1), ("huge", 2**64 - 1)):
        yield bad(8, f"index_length_{name}", two.swap({"index_length": u64(length)}), "out of bounds",
                  "index_length")
    for name, offset, length, code, field in (
            ("no_offset", 0, 18, "out of bounds", "kv_offset"), ("no_length", end, 0, "out of bounds", "kv_length"),
            ("length_3", end, 3, "out of bounds", "kv_length"), ("56", 56, 18, "out of bounds", "kv_offset"),
            ("odd", end + 4, 4, "invalid value", "kv_offset"),
            ("beyond_index", two_file.index_offset + 8, 4, "out of bounds", "kv_offset"),
            ("into_index", end, 25, "out of bounds", "kv_length"),
            ("huge", HUGE, 2**32 - 1, "out of bounds", "kv_offset")):
        yield bad(9, f"kv_{name}", two.swap({"kv_offset": u64(offset), "kv_length": u32(length)}), code, field)
    stored = int.from_bytes(two[two.find("index_crc32c")][1], "little")
    yield bad(10, "crc_differs", two.swap({"index_crc32c": u32(stored ^ 1)}), "checksum mismatch", "index_crc32c",
              two_file.index_offset)
    yield bad(10, "index_bit_flipped", two.swap({"index[1].data_length": u64(4)}), "checksum mismatch", "index_crc32c",
              two_file.index_offset)
    yield bad(10, "crc_without_flag", two.swap({"file_flags": u32(1)}), "inconsistent", "index_crc32c")
    yield bad(11, "index_limit", two, "limit exceeded", "max_index_bytes", options={
        "max_index_bytes": two_file.index_length - 1})
    yield bad(11, "kv_limit", two, "limit exceeded", "max_kv_bytes", options={"max_kv_bytes": 17})
    most = (two_file.index_length - 8) // 35
    for name, count in (("one_more", most + 1), ("2_32", 2**32), ("huge", 2**64 - 1)):
        yield bad(12, f"count_{name}", index({"index_entry_count": u64(count)}), "truncated", "index_entry_count")
    yield bad(12, "tensor_limit", two, "limit exceeded", "max_tensors", options={"max_tensors": 1})
    yield bad(13, "no_name", index({"index[0].name_length": u16(0)}), "invalid value", "index[0].name_length")
    yield bad(13, "name_cut", index({"index[1].name_length": u16(65535)}), "truncated", "index[1].name")
    for name, raw in (("ff", b"\xff\xff"), ("overlong", b"\xc0\x80"), ("half_a_character", b"a\xc3"), ("lone_tail", b"\x80a")):
        yield bad(13, f"name_{name}", index({"index[1].name": raw}), "invalid value", "index[1].name")
    three = File([two_file.tensors[0]], ["xyz"]).parts
    four = File([two_file.tensors[0]], ["wxyz"]).parts
    yield bad(13, "name_surrogate", index({"index[0].name": b"\xed\xa0\x80"}, three), "invalid value",
              "index[0].name")
    yield bad(13, "name_overlong_three", index({"index[0].name": b"\xe0\x80\x80"}, three), "invalid value",
              "index[0].name")
    yield bad(13, "name_above_10ffff", index({"index[0].name": b"\xf4\x90\x80\x80"}, four), "invalid value",
              "index[0].name")
    for i, flag in ((0, 1), (1, 2**31)):
        yield bad(13, f"entry_flags_{i}", index({f"index[{i}].flags": u32(flag)}), "reserved bits",
                  f"index[{i}].flags")
    yield bad(13, "entry_flags_newer_minor", index({"index[0].flags": u32(1), "container_version_minor": u8(1)}),
              "reserved bits", "index[0].flags")
    same = File([two_file.tensors[0]] * 3, ["ab", "aa", "ac"])
    yield bad(14, "name_twice", index({"index[2].name": b"ab"}, same.parts), "duplicate", "index[2].name", -1)
    yield bad(14, "sorted_twice", index({"index[2].name": b"ab"}, File(
        [two_file.tensors[0]] * 3, ["aa", "ab", "ac"], flags=7).parts), "duplicate", "index[2].name")
    yield bad(14, "not_sorted", File([two_file.tensors[0]] * 2, ["b", "a"], flags=7), "inconsistent", "index[1].name")
    yield bad(14, "prefix_after", File([two_file.tensors[0]] * 2, ["ab", "a"], flags=7), "inconsistent",
              "index[1].name")
    yield bad(15, "entry_too_many", index({"index_entry_count": u64(1)}), "length mismatch", "index_length",
              two.offset("index[1].name_length"))
    for name, offset, code in (("before", 56, "out of bounds"), ("odd", 68, "invalid value"),
                               ("beyond", end + 8, "out of bounds"), ("huge", HUGE, "out of bounds")):
        yield bad(16, f"descriptor_offset_{name}", index({"index[0].descriptor_offset": u64(offset)}), code,
                  "index[0].descriptor_offset")
    for name, length in (("19", 19), ("huge", 2**32 - 1)):
        yield bad(16, f"descriptor_length_{name}", index({"index[0].descriptor_length": u32(length)}),
                  "out of bounds", "index[0].descriptor_length")
    for name, offset, length, code in (
            ("before", 0, 6, "out of bounds"), ("unaligned", 4100, 6, "invalid value"),
            ("aligned_to_8_only", 4104, 6, "invalid value"), ("empty_odd", 4100, 0, "invalid value"),
            ("beyond", 16384, 6, "out of bounds"), ("huge", 0xFFFFFFFFFFFFF000, 6, "out of bounds")):
        yield bad(17, f"data_offset_{name}", index({
            "index[0].data_offset": u64(offset), "index[0].data_length": u64(length)}), code, "index[0].data_offset")
    for name, length in (("beyond", end - 4096 + 1), ("huge", 2**64 - 1)):
        yield bad(17, f"data_length_{name}", index({"index[0].data_length": u64(length)}), "out of bounds",
                  "index[0].data_length")
    yield bad(18, "data_on_descriptor", index({"index[0].data_length": u64(9)}), "inconsistent",
              "index[1].descriptor_offset", -1)
    alias = {f"index[1].{field}": two[two.find(f"index[0].{field}")][1]
             for field in ("descriptor_offset", "descriptor_length", "data_offset", "data_length")}
    yield bad(18, "two_names_for_one", index(alias), "inconsistent", "index[1].descriptor_offset", -1)
    yield bad(18, "descriptor_in_data", index({
        "index[1].descriptor_offset": u64(4096), "index[0].data_length": u64(6)}), "inconsistent",
        "index[1].descriptor_offset", -1)
    yield bad(18, "data_on_data", index({"index[1].data_offset": u64(4096), "index[1].descriptor_offset": u64(64),
                                         "index[0].descriptor_offset": u64(4104), "index[0].data_offset": u64(8192),
                                         "index[1].data_length": u64(4100)}), "inconsistent",
              "index[0].descriptor_offset", -1)
    yield bad(19, "first_differs", index({"index[0].descriptor_offset": u64(72)}), "inconsistent",
              "first_descriptor_offset")
    one = File([], kv=[("k", "string", "abc"), ("m", "bool", True)]).parts
    yield bad(20, "count_one_more", one.swap({"kv_count": u32(5)}), "truncated", "kv_count")
    yield bad(20, "count_huge", one.swap({"kv_count": u32(2**32 - 1)}), "truncated", "kv_count")
    yield bad(21, "no_key", one.swap({"kv[0].key_length": u16(0)}), "invalid value", "kv[0].key_length")
    yield bad(21, "key_cut", one.swap({"kv[1].key_length": u16(5)}), "truncated", "kv[1].key")
    yield bad(21, "key_no_utf8", one.swap({"kv[0].key": b"\xff"}), "invalid value", "kv[0].key")
    yield bad(21, "key_twice", one.swap({"kv[1].key": b"k"}), "duplicate", "kv[1].key")
    for tag in (0x00, 0x08, 0x80, 0xEF, 0xF0, 0xFE, 0xFF):
        yield bad(21, f"tag_{tag:02x}", one.swap({"kv[0].value_tag": u8(tag)}), "invalid tag", "kv[0].value_tag")
    yield bad(21, "bool_2", one.swap({"kv[1].value": u8(2)}), "invalid value", "kv[1].value")
    yield bad(21, "string_no_utf8", one.swap({"kv[0].value": u32(3) + b"\xed\xa0\x80"}), "invalid value",
              "kv[0].value", -1)
    yield bad(21, "string_cut", one.swap({"kv[0].value": u32(100) + b"abc"}), "truncated", "kv[0].value", -1)
    yield bad(21, "string_huge", one.swap({"kv[0].value": u32(2**32 - 1) + b"abc"}), "truncated", "kv[0].value", -1)
    number_cut = File([], kv=[("k", "int64", 5)]).parts.swap({"kv_length": u32(4 + 2 + 1 + 1 + 7)})
    yield bad(21, "int64_cut", number_cut, "truncated", "kv[0].value", -1)
    lists = File([], kv=[("k", "array", ("int64", [1, 2])), ("m", "array", ("bool", [])),
                         ("s", "array", ("string", ["a"]))]).parts
    for tag in (0x00, 0x07, 0x08, 0xF0, 0xFF):
        yield bad(21, f"array_of_{tag:02x}", lists.swap({"kv[0].value": u8(tag) + u32(2) + bytes(16)}),
                  "invalid tag", "kv[0].element_tag", lists.offset("kv[0].value"))
    yield bad(21, "empty_array_of_09", lists.swap({"kv[1].value": u8(9) + u32(0)}), "invalid tag",
              "kv[1].element_tag", lists.offset("kv[1].value"))
    yield bad(21, "array_count", lists.swap({"kv[0].value": u8(2) + u32(2**29) + bytes(16)}), "truncated",
              "kv[0].value", -1)
    yield bad(21, "array_of_strings_count", lists.swap({"kv[2].value": u8(1) + u32(2) + u32(1) + b"a"}),
              "truncated", "kv[2].value", -1)
    yield bad(22, "bytes_left", one.swap({"kv_count": u32(1)}), "length mismatch", "kv_length", -1)
    yield bad(23, "magic", two.swap({"t/magic": b"HRRX"}), "invalid magic", "magic", 0, "descriptor", tensor="t")
    yield bad(23, "major_2", two.swap({"t/version_major": u8(2)}), "unsupported version", "version_major", 4,
              "descriptor", tensor="t")
    for length in (52, 54):
        yield bad(23, f"length_{length}", index({"index[0].descriptor_length": u32(length)}), "length mismatch",
                  "index.descriptor_length", -1, tensor="t")
    yield bad(23, "descriptor_limit", two, "limit exceeded", "max_descriptor_bytes", -1, options={
        "max_descriptor_bytes": 52}, tensor="t")
    yield bad(24, "elements_do_not_fit", two.swap({"t/shape[0]": u64(4)}), "out of bounds", "byte_offset", 28,
              "descriptor", tensor="t")
    yield bad(24, "flags", two.swap({"uu/flags": u32(2**31)}), "reserved bits", "flags", 10, "descriptor",
              tensor="uu")
    yield bad(24, "unknown_layout", two.swap({"t/layout_tag": u8(0x0C)}), "invalid tag", "layout_tag", 15,
              "descriptor", tensor="t")
    for name, length in (("5", 5), ("0", 0), ("7", 7)):
        yield bad(25, f"data_length_{name}", index({"index[0].data_length": u64(length)}), "length mismatch",
                  "index.data_length", -1, tensor="t")
    yield bad(25, "byte_size_2_62", two.swap({"t/buffers[0].byte_size": u64(2**62)}), "length mismatch",
              "index.data_length", -1, tensor="t")
    empty = File([data.dense("int8", (0,), row()), two_file.tensors[1]], ["e", "f"], spacing=8).parts
    yield bad(25, "empty_with_data", index({"index[0].data_length": u64(4)}, empty), "length mismatch",
              "index.data_length", -1, tensor="e")
    pages = File([data.matrix_m("int16", [1, 2, 3, 4, 5], "csr")], ["m"]).parts
    yield bad(25, "padding_not_counted", index({"index[0].data_length": u64(10 + 40 + 40)}, pages),
              "length mismatch", "index.data_length", -1, tensor="m")
    for name, composite_head in data.torn():
        yield bad(28, name, File([composite_head], kv=None), "truncated", None, origin=None,
                  row_id=["file 28", "C1"])
    for name, row_id, composite_head, _ in data.bad_composites():
        yield bad(28, name, File([composite_head], kv=None), composite_code(row_id), None, origin=None,
                  row_id=["file 28", row_id])
    nested = dict(data.composites())["partition_nested"]
    yield bad(28, "M7_own_limit", File([nested], kv=None), "limit exceeded", None, origin=None, options={
        "max_composite_depth": 1}, row_id=["file 28", "M7"])


def everything():
    yield from all_descriptors()
    yield from valid_streams()
    yield from invalid_streams()
    yield from data_vectors()
    yield from valid_files()
    yield from invalid_files()
