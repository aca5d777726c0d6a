"""GGUF files, seen as .hrry files (docs/formats.md), with the package of GGUF itself as the witness."""

import io
import pickle
import struct

import numpy as np
import pytest

import hurray
import processes

gguf = pytest.importorskip("gguf")
Type = gguf.GGMLQuantizationType
Value = gguf.GGUFValueType

MODES = ["map", "copy_on_write", "memory"]
AFFINE = [Type.Q4_0, Type.Q5_0, Type.Q8_0, Type.Q6_K]
PLAIN = {Type.F32: np.float32, Type.F16: np.float16, Type.F64: np.float64, Type.I8: np.int8, Type.I16: np.int16,
         Type.I32: np.int32, Type.I64: np.int64}  # fmt: skip
BLOCKS = [t for t, (size, _) in gguf.GGML_QUANT_SIZES.items() if size > 1 and t not in AFFINE]
RANDOM = np.random.default_rng(7)


def blocks(kind, rows):
    """`rows` rows of three blocks: quantized where the witness can, else any bytes with finite scales."""
    size, bytes_ = gguf.GGML_QUANT_SIZES[kind]
    values = (RANDOM.standard_normal((rows, 3 * size)) * 10).astype(np.float32)
    values[0, :size] = 0
    try:
        return gguf.quants.quantize(values, kind)
    except NotImplementedError:
        made = RANDOM.integers(0, 256, (rows, 3, bytes_), np.uint8)
        if kind == Type.Q6_K:
            d = RANDOM.standard_normal((rows, 3)).astype(np.float16)
            d[0], d[1] = [0, -0.0, 1], [6e-8, -65504, 65504]
            made[..., 208:] = d[..., None].view(np.uint8)
            made[2, :, 192:200] = 0
        return made.reshape(rows, 3 * bytes_)


QUANTIZED = {kind: blocks(kind, 5) for kind in AFFINE + BLOCKS}
ARRAYS = {kind: (RANDOM.standard_normal((4, 3, 10)) * 100).astype(dtype) for kind, dtype in PLAIN.items()}


def written(path, keys=(), tensors=(), alignment=None):
    """`keys`: name, value, type and, of an array, element type; `tensors`: name, array and type."""
    writer = gguf.GGUFWriter(path, "llama")
    if alignment:
        writer.add_custom_alignment(alignment)
    for key in keys:
        writer.add_key_value(*key)
    for name, array, kind in tensors:
        writer.add_tensor(name, array, raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    tensors = [(kind.name, array, kind) for kind, array in (ARRAYS | QUANTIZED).items()]
    bf16 = gguf.quants.quantize(ARRAYS[Type.F32], Type.BF16)
    tensors.append(("BF16", bf16, Type.BF16))
    return written(tmp_path_factory.mktemp("gguf") / "m.gguf", [("note", "héllo", Value.STRING)], tensors)


def bits(values):
    return np.ascontiguousarray(values, np.float32).view(np.uint32)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", PLAIN, ids=lambda k: k.name)
def test_plain_types(path, kind, mode):
    with hurray.open(path, mode=mode) as f:
        assert f.format == "gguf" and f.mode == mode
        t = f[kind.name].to_numpy()
        assert t.dtype == PLAIN[kind] and np.array_equal(t, ARRAYS[kind])
        assert np.array_equal(f.read(kind.name, (slice(1, 3), 2)).to_numpy(), ARRAYS[kind][1:3, 2])


def test_bfloat16(path):
    t = hurray.load(path)["BF16"]
    stored = gguf.quants.quantize(ARRAYS[Type.F32], Type.BF16)
    assert t.dtype == hurray.bfloat16 and t.shape == (4, 3, 10)
    assert np.array_equal(bits(t.to_numpy().astype(np.float32)), bits(gguf.quants.dequantize(stored, Type.BF16)))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", AFFINE, ids=lambda k: k.name)
def test_affine_types_decode_to_the_same_bits(path, kind, mode):
    expected = gguf.quants.dequantize(QUANTIZED[kind], kind)
    with hurray.open(path, mode=mode) as f:
        t = f[kind.name]
        assert t.shape == expected.shape and t.dtype == (hurray.dtype.int4 if kind == Type.Q4_0 else hurray.dtype.int8)
        t.validate()
        values = t.dequantize().to_numpy()
        assert np.array_equal(values, expected)
        # Blocks with a scale of 0 lose the signs of their zeros.
        not_0 = (expected.reshape(-1, 16) != 0).any(1)
        assert np.array_equal(bits(values).reshape(-1, 16)[not_0], bits(expected).reshape(-1, 16)[not_0])
        assert not not_0.all() and not_0.mean() > 0.5
        with pytest.raises(hurray.UnsupportedError, match="take the whole tensor"):
            f.read(kind.name, slice(1, 4))


@pytest.mark.parametrize("kind", BLOCKS, ids=lambda k: k.name)
def test_other_types_are_kept_block_for_block(path, kind):
    with hurray.open(path) as f:
        t = f[kind.name].to_numpy()
        assert t.dtype == np.uint8 and np.array_equal(t, QUANTIZED[kind])
        assert np.array_equal(f.read(kind.name, slice(1, 4)).to_numpy(), t[1:4])
        types = dict(zip(f.kv["gguf.block_tensors"], f.kv["gguf.block_types"], strict=True))
        assert Type[types[kind.name]] == kind
        assert len(types) == len(BLOCKS)
        assert gguf.quant_shape_from_byte_shape(t.shape, kind) == (5, 3 * gguf.GGML_QUANT_SIZES[kind][0])


def test_every_type_of_the_witness_is_known(path):
    assert set(hurray.open(path).names) == {kind.name for kind in gguf.GGML_QUANT_SIZES}


NARROW = {Value.UINT8: "B", Value.INT8: "b", Value.UINT16: "H", Value.INT16: "h", Value.UINT32: "I", Value.INT32: "i",
          Value.FLOAT32: "f", Value.BOOL: "?", Value.UINT64: "Q", Value.INT64: "q", Value.FLOAT64: "d"}  # fmt: skip
NUMBERS = {Value.UINT8: [0, 255], Value.INT8: [-128, 127], Value.UINT16: [0, 65535], Value.INT16: [-32768, 32767],
           Value.UINT32: [0, 2**32 - 1], Value.INT32: [-(2**31), 2**31 - 1], Value.FLOAT32: [float(np.float32(0.1)), -np.inf],
           Value.BOOL: [True, False], Value.UINT64: [0, 2**64 - 1], Value.INT64: [-(2**63), 2**63 - 1],
           Value.FLOAT64: [0.1, 1e300], Value.STRING: ["", "wört"]}  # fmt: skip
KEYS = [(f"{kind.name}.{i}", value, kind) for kind, pair in NUMBERS.items() for i, value in enumerate(pair)] + [
    (f"{kind.name}.array", pair * 3, Value.ARRAY, kind) for kind, pair in NUMBERS.items()
]


def stored(value, number):
    """The bytes of one value of a GGUF type."""
    if number == Value.STRING:
        text = value.encode()
        return struct.pack("<Q", len(text)) + text
    return struct.pack("<" + NARROW[Value(number)], value)


def test_every_key_can_be_written_again(tmp_path):
    path = written(tmp_path / "k.gguf", KEYS)
    kv = hurray.load_kv(path)
    types = kv.pop("gguf.types")
    assert list(kv) == ["general.architecture", *(key[0] for key in KEYS)] and len(types) == len(kv)
    assert all(kv[key[0]] == key[1] and type(kv[key[0]]) is type(key[1]) for key in KEYS)
    made = b""
    for (key, value), code in zip(kv.items(), types, strict=True):
        made += stored(key, Value.STRING)
        number = ord(code.lower()) - ord("a")
        if code.islower():
            made += struct.pack("<I", number) + stored(value, number)
        else:
            made += struct.pack("<IIQ", Value.ARRAY, number, len(value)) + b"".join(stored(v, number) for v in value)
    assert path.read_bytes()[24 : 24 + len(made)] == made


def test_kv_is_what_the_witness_reads(path):
    reader = gguf.GGUFReader(path)
    kv = hurray.load_kv(path)
    assert kv["note"] == reader.get_field("note").contents() == "héllo"
    assert kv["general.architecture"] == "llama" and kv["gguf.types"] == "ii"
    assert [t.name for t in reader.tensors] == list(hurray.open(path).names)


@pytest.mark.parametrize("alignment", [8, 64, 4096])
def test_alignment(tmp_path, alignment):
    small = [(f"t{i}", np.arange(i + 1, dtype=np.int8), Type.I8) for i in range(5)]
    path = written(tmp_path / "a.gguf", (), small, alignment)
    with hurray.open(path) as f:
        assert f.kv["general.alignment"] == alignment
        for name, array, _ in small:
            assert np.array_equal(f[name].to_numpy(), array)


@pytest.mark.parametrize("kind", ["descriptor", "object", "bytes"])
def test_over_every_source(path, kind):
    with open(path, "rb") as file:
        source = {"descriptor": file.fileno(), "object": file, "bytes": io.BytesIO(path.read_bytes())}[kind]
        with hurray.open(source) as f:
            assert f.format == "gguf"
            expected = gguf.quants.dequantize(QUANTIZED[Type.Q8_0], Type.Q8_0)
            assert np.array_equal(f["Q8_0"].dequantize().to_numpy(), expected)


def test_they_pickle(path):
    f = pickle.loads(pickle.dumps(hurray.open(path)))
    assert f.format == "gguf" and np.array_equal(f["F32"].to_numpy(), ARRAYS[Type.F32])


def test_convert_and_save(path, tmp_path):
    processes.command("convert", path, tmp_path / "a.hrry")
    with hurray.open(path) as f, hurray.open(tmp_path / "a.hrry", verify=True) as g:
        assert g.format == "hrry" and f.names == g.names and f.kv == g.kv
        hurray.save(tmp_path / "b.hrry", {name: f[name] for name in f}, kv=f.kv)
        for name in f:
            assert f.descriptor(name) == g.descriptor(name)
            for k in range(len(f[name].buffer_handles)):
                assert np.array_equal(f[name].buffer(k).to_numpy(), g[name].buffer(k).to_numpy())
    assert (tmp_path / "a.hrry").read_bytes() == (tmp_path / "b.hrry").read_bytes()


def test_infinite_scales_are_named(tmp_path):
    block = np.zeros((1, 34), np.uint8)
    block[0, :2] = [0x00, 0x7C]
    path = written(tmp_path / "i.gguf", (), [("w", block, Type.Q8_0)])
    with hurray.open(path) as f, pytest.raises(hurray.FileError, match="scale is not a finite number"):
        f["w"]


def test_big_endian_files_are_refused_by_name(tmp_path):
    writer = gguf.GGUFWriter(tmp_path / "b.gguf", "llama", endianess=gguf.GGUFEndian.BIG)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.close()
    with pytest.raises(hurray.UnsupportedError, match="big-endian GGUF"):
        hurray.open(tmp_path / "b.gguf")
