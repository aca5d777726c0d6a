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


def items(reader, entry):
    """What the module takes of a stream: it may end where the module has no class for a tensor."""
    try:
        yield from reader
    except hurray.UnsupportedError as error:
        assert entry["name"] not in SUPPORTED, (entry["name"], error)


# Streams that the module reads to their end.
SUPPORTED = {f"valid/stream/{name}" for name in (
    "no_tensors", "plain_edges", "plain_every", "plain_packing", "worked_two_frames",
    "worked_two_frames_cut_between", "device_tensor")}


def test_streams():
    tensors = values = 0
    for entry in entries("stream", "valid"):
        if not agreed_only(entry):
            continue
        raw, _ = read(entry)
        wanted = entry["expect"]["items"]
        got = 0
        for item, expect in zip(items(hurray.StreamReader(raw), entry), wanted, strict=False):
            where = f"{entry['name']} {expect.get('label', '')}"
            got += 1
            if not isinstance(item, hurray.Tensor):
                continue
            check_descriptor(item.descriptor, expect, where, alignments=False)
            tensors += 1
            if "values" in expect and expect["layout"] in ("row_major", "col_major", "strided"):
                values += check_values(item, expect, where)
        if entry["name"] in SUPPORTED:
            assert got == len(wanted), entry["name"]
    assert tensors > 90 and values > 60


def test_invalid_streams():
    kept = unsupported = 0
    for entry in entries("stream", "invalid"):
        raw, sentence = read(entry)
        options = entry.get("options", {})
        if not set(options) <= {"max_descriptor_bytes", "max_buffer_bytes", "max_composite_depth", "cross_machine"}:
            continue
        try:
            for _ in hurray.StreamReader(raw, **options):
                pass
        except hurray.UnsupportedError:
            unsupported += 1
            continue
        except (hurray.StreamError, hurray.InvalidDescriptorError) as error:
            assert sentence in str(error), entry["name"]
            kept += 1
            continue
        raise AssertionError(f"{entry['name']} was accepted")
    assert kept > 20
    print(f"{unsupported} streams end at a tensor that the module has no class for")


def test_files(tmp_path):
    path = tmp_path / "vector.hrry"
    tensors = values = 0
    for entry in entries("file", "valid"):
        raw, _ = read(entry)
        path.write_bytes(raw)
        expect = entry["expect"]
        with hurray.open(path) as file:
            assert list(file) == expect["names"], entry["name"]
            for name, e in expect["tensors"].items():
                where = f"{entry['name']} {name}"
                if "error" in e:
                    with pytest.raises(hurray.InvalidDescriptorError):
                        file[name]
                    continue
                try:
                    tensor = file[name]
                except hurray.UnsupportedError:
                    continue
                if not isinstance(tensor, hurray.Tensor):
                    continue
                check_descriptor(tensor.descriptor, e, where, alignments=False)
                tensors += 1
                if "values" in e and e["layout"] in ("row_major", "col_major", "strided"):
                    values += check_values(tensor, e, where)
    assert tensors > 40 and values > 30


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
        if "file 28" in entry["rows"] or "options" in entry:
            continue
        raw, sentence = read(entry)
        path.write_bytes(raw)
        with pytest.raises((hurray.FileError, hurray.InvalidDescriptorError)) as caught:
            with hurray.open(path) as file:
                for name in file:
                    file[name]
        assert sentence in str(caught.value).replace(f"{path}: ", ""), entry["name"]
        kept += 1
    assert kept > 110


def test_numbers_of_vectors():
    """So that none is left out unseen."""
    assert len(entries("descriptor", "valid")) >= 970 and len(entries("descriptor", "invalid")) >= 600
    assert len(entries("stream", "invalid")) + len(entries("file", "invalid")) >= 220
    assert numpy.unique([e["name"] for e in MANIFEST["vectors"]]).size == len(MANIFEST["vectors"])
