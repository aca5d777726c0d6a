"""The vectors of conformance/ through the module, by the same manifest as in C++."""

import json
import math
import pathlib
import struct

import hurray
import numpy
import pytest

FOLDER = pathlib.Path(__file__).resolve().parents[2] / "conformance"
MANIFEST = json.loads((FOLDER / "manifest.json").read_text(encoding="utf-8"))
DYNAMIC = 2**64 - 1


def entries(kind, *outcomes):
    return [e for e in MANIFEST["vectors"] if e["kind"] == kind and e["outcome"] in outcomes]


def read(entry):
    """The vector's bytes, and the sentence of an invalid one."""
    raw, sentence = bytearray(), ""
    for line in (FOLDER / f"{entry['name']}.txt").read_text(encoding="utf-8").splitlines():
        if line.startswith("error: "):
            sentence = line.removeprefix("error: ")
            continue
        body, _, times = line.partition("#")[0].partition(" x ")
        raw += bytes.fromhex(body) * int(times or 1)
    return bytes(raw), sentence


def agreed_only(entry):
    """The module counts private values as agreed and has no other option of the decoder."""
    return set(entry.get("options", {})) <= {"agreed"}


def number(value):
    return int(value) if isinstance(value, str) else value


def check_descriptor(found, expect, where, alignments=True):
    assert found.byte_offset == number(expect["byte_offset"]), where
    assert found.version == tuple(expect["version"]), where
    if expect["dtype"].startswith("0x"):
        assert found.dtype.tag == int(expect["dtype"], 16), where
    else:
        assert found.dtype.name == expect["dtype"], where
    wanted = [None if n == "dynamic" else number(n) for n in expect["shape"]]
    assert [None if n == DYNAMIC else n for n in found.shape] == wanted, where
    assert found.layout.name == expect["layout"], where
    assert found.buffer_count == len(expect["buffers"]), where
    for handle, e in zip(found.buffer_handles, expect["buffers"], strict=True):
        assert handle.byte_size == number(e["byte_size"]), where
        if alignments:
            assert handle.alignment == e["alignment"], where
        assert handle.sync_mode == e["sync_mode"], where
        if not e["memory_class"].startswith("0x"):
            assert handle.device.memory_class == e["memory_class"], where
        if not e["device"].startswith("0x"):
            assert handle.device.kind == e["device"], where
    shard = expect.get("shard")
    assert (found.shard is not None) == (shard is not None), where
    if shard is not None:
        assert found.shard.parent_shape == tuple(map(number, shard["parent_shape"])), where
        assert found.shard.shard_offset == tuple(map(number, shard["shard_offset"])), where
    statistics = expect.get("statistics")
    assert (found.statistics is not None) == (statistics is not None), where
    for name, value in (statistics or {}).items():
        got = getattr(found.statistics, name)
        if name in ("sparsity_ratio", "value_min", "value_max", "value_abs_max", "value_mean", "value_stddev"):
            assert struct.pack(">d", got).hex() == value, (where, name)
        else:
            assert got == number(value), (where, name)


def test_descriptors():
    count = 0
    for entry in entries("descriptor", "valid", "opaque"):
        if not agreed_only(entry):
            continue
        raw, _ = read(entry)
        found = hurray.Descriptor.decode(raw + b"what follows is not looked at")
        check_descriptor(found, entry["expect"], entry["name"])
        if entry["expect"].get("reencodes", True):
            assert found.encode() == raw, entry["name"]
            assert found.encoded_len == len(raw), entry["name"]
            again = hurray.Descriptor.decode(found.encode())
            assert again == found or "nan" in repr(found.statistics), entry["name"]
        count += 1
    assert count > 950


def test_invalid_descriptors():
    count = 0
    for entry in entries("descriptor", "invalid"):
        raw, sentence = read(entry)
        if "options" in entry:
            continue
        with pytest.raises(hurray.InvalidDescriptorError) as caught:
            hurray.Descriptor.decode(raw)
        assert sentence in str(caught.value), entry["name"]
        count += 1
    assert count > 580


def shown(kind, value):
    if kind == "int":
        return int(value)
    if kind.startswith("complex"):
        half = "float32" if kind == "complex64" else "float64"
        return [shown(half, value.real), shown(half, value.imag)]
    if math.isnan(value):
        return "nan"
    return struct.pack(">f" if kind == "float32" else ">d", value).hex()


def check_values(tensor, expect, where):
    """Values of what NumPy has a type for."""
    try:
        array = tensor.to_numpy()
    except (hurray.UnsupportedError, ImportError):
        return False
    kind = expect["value_type"]
    if kind == "bits" or array.dtype.kind not in "biufcV":
        return False
    if kind in ("float32", "float64"):
        array = array.astype(kind)
    wanted = [int(v) if kind == "int" else v for v in expect["values"]]
    assert array.shape == tuple(expect["shape"]), where
    assert [shown(kind, v) for v in array.ravel().tolist()] == wanted, where
    return True


def check_item(item, expect, where):
    """A tensor, or a composite with what it binds; how many tensors and how many with values."""
    check_descriptor(item.descriptor, expect, where, alignments=False)
    if expect["layout"] != "composite":
        assert type(item) is hurray.Tensor, where
        dense = expect["layout"] in ("row_major", "col_major", "strided")
        dense &= "HAS_QUANTIZATION" not in expect["flags"]  # its codes are not its values
        return 1, dense and "values" in expect and check_values(item, expect, where)
    fields = expect["layout_fields"]
    assert (item.layout.composition_rule, item.layout.combine_op) == (
        fields["composition_rule"],
        fields["combine_op"],
    ), where
    assert item.member_count == fields["member_count"] == len(expect["members"]), where
    overlay = fields["composition_rule"] == "overlay"
    for role, member in zip(item.member_roles, expect["members"], strict=True):
        assert role == (member["member_role"] if overlay else None), where
    parts = [
        check_item(member, e, f"{where}, member {i}")
        for i, (member, e) in enumerate(zip(item.members, expect["members"], strict=True))
    ]
    values = sum(value for _, value in parts)
    if "values" in expect:
        values += check_values(item.materialize(), expect, where)
    return 1 + sum(count for count, _ in parts), values


def test_streams():
    tensors = values = 0
    for entry in entries("stream", "valid"):
        if not agreed_only(entry):
            continue
        raw, _ = read(entry)
        for item, expect in zip(hurray.StreamReader(raw), entry["expect"]["items"], strict=True):
            found = check_item(item, expect, f"{entry['name']} {expect.get('label', '')}")
            tensors, values = tensors + found[0], values + found[1]
    assert tensors > 500 and values > 150


def test_invalid_streams():
    kept = 0
    known = {"max_descriptor_bytes", "max_buffer_bytes", "max_tensor_bytes", "max_item_members",
             "max_composite_depth", "cross_machine"}  # fmt: skip
    for entry in entries("stream", "invalid"):
        raw, sentence = read(entry)
        options = entry.get("options", {})
        if not set(options) <= known:
            continue
        with pytest.raises((hurray.StreamError, hurray.InvalidDescriptorError)) as caught:
            for _ in hurray.StreamReader(raw, **options):
                pass
        assert sentence in str(caught.value), entry["name"]
        kept += 1
    assert kept > 60


def with_members(expect, name):
    """What the file says of a name, with its members inside as in a stream."""
    members = [with_members(expect, member) for member in expect.get("members", {}).get(name, ())]
    return {**expect["tensors"][name], "members": members}


def test_files(tmp_path):
    path = tmp_path / "vector.hrry"
    tensors = values = 0
    for entry in entries("file", "valid"):
        raw, _ = read(entry)
        path.write_bytes(raw)
        expect = entry["expect"]
        inside = [name for names in expect.get("members", {}).values() for name in names]
        with hurray.open(path) as file:
            assert list(file) == [name for name in expect["names"] if name not in inside], entry["name"]
            assert sorted(file.member_names) == sorted(inside), entry["name"]
            for name, e in expect["tensors"].items():
                where = f"{entry['name']} {name}"
                if "error" in e:
                    with pytest.raises(hurray.InvalidDescriptorError):
                        file[name]
                    continue
                check_descriptor(file.descriptor(name), e, where)
                found = check_item(file[name], with_members(expect, name), where)
                tensors, values = tensors + found[0], values + found[1]
        if not any("error" in e for e in expect["tensors"].values()):
            assert list(hurray.load(path)) == [n for n in expect["names"] if n not in inside]
    assert tensors > 100 and values > 70


def check_kv(value, expect):
    if expect["type"] == "array":
        assert len(value) == len(expect["value"])
        for one, wanted in zip(value, expect["value"], strict=True):
            check_kv(one, {"type": expect["of"], "value": wanted})
    elif expect["type"] == "bytes":
        assert value.hex() == expect["value"]
    elif expect["type"] == "float64":
        assert struct.pack(">d", value).hex() == expect["value"]
    elif expect["type"] == "bool":
        assert value is expect["value"]
    else:
        assert value == (number(expect["value"]) if "int" in expect["type"] else expect["value"])


def test_key_values(tmp_path):
    path = tmp_path / "vector.hrry"
    count = 0
    for entry in entries("file", "valid"):
        path.write_bytes(read(entry)[0])
        kv = hurray.load_kv(path)
        assert list(kv) == [key for key, _ in entry["expect"]["kv"]], entry["name"]
        for key, expect in entry["expect"]["kv"]:
            check_kv(kv[key], expect)
            count += 1
    assert count > 20


def test_invalid_files(tmp_path):
    path = tmp_path / "vector.hrry"
    kept = 0
    for entry in entries("file", "invalid"):
        raw, sentence = read(entry)
        options = entry.get("options", {})
        path.write_bytes(raw)
        with pytest.raises((hurray.FileError, hurray.InvalidDescriptorError)) as caught:
            with hurray.open(path, **options) as file:
                for name in file:
                    file[name]
        assert sentence in str(caught.value).replace(f"{path}: ", ""), entry["name"]
        kept += 1
    assert kept > 160


def test_numbers_of_vectors():
    """So that none is left out unseen."""
    assert len(entries("descriptor", "valid")) >= 970 and len(entries("descriptor", "invalid")) >= 600
    assert len(entries("stream", "invalid")) + len(entries("file", "invalid")) >= 220
    assert numpy.unique([e["name"] for e in MANIFEST["vectors"]]).size == len(MANIFEST["vectors"])
