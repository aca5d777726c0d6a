"""Files of other formats, seen as .hrry files (09-models-and-frameworks.md section 2)."""

import io
import json
import pickle

import ml_dtypes
import numpy as np
import pytest

import hurray
import processes

safetensors = pytest.importorskip("safetensors.numpy")

MODES = ["map", "copy_on_write", "memory"]
ARRAYS = {
    "w": np.arange(3000, dtype=np.float32).reshape(30, 100),
    "half": np.arange(12, dtype=np.float16).reshape(3, 4),
    "bf": np.linspace(-3, 3, 10).astype(ml_dtypes.bfloat16),
    "f8": np.linspace(-3, 3, 7).astype(ml_dtypes.float8_e4m3fn),
    "mask": (np.arange(77) % 3 == 0).reshape(7, 11),
    "i": np.array(7, np.int64),
    "none": np.zeros((0, 5), np.uint8),
    "odd": np.arange(5, dtype=np.uint8),
    "behind": np.arange(9, dtype=np.int8),
}


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    path = tmp_path_factory.mktemp("formats") / "m.safetensors"
    safetensors.save_file(ARRAYS, path, {"format": "np", "note": "héllo"})
    return path


def same(a, b):
    return a.shape == b.shape and a.dtype == b.dtype and a.tobytes() == b.tobytes()


@pytest.mark.parametrize("mode", MODES)
def test_safetensors_are_files(path, mode):
    with hurray.open(path, mode=mode) as f:
        assert f.format == "safetensors" and f.mode == mode and f.kv == {"format": "np", "note": "héllo"}
        assert set(f.names) == set(ARRAYS) and f.member_names == () and not f.has_checksums
        for name, array in ARRAYS.items():
            t = f[name]
            assert same(t.to_numpy(), array) and t.buffer_handles[0].alignment >= 64 or array.size == 0
            assert f.descriptor(name).shape == array.shape
            if array.ndim:
                assert same(f.read(name, slice(1, 3)).to_numpy(), array[1:3])
        assert same(f.read("w", (slice(2, 20, 3), slice(5, 50))).to_numpy(), ARRAYS["w"][2:20:3, 5:50])
        assert same(f.read("mask", (slice(1, 6, 2), slice(3, 10))).to_numpy(), ARRAYS["mask"][1:6:2, 3:10])
        f.prefetch()
        f.verify()
        assert "<table" in f._repr_html_()
    assert {n: same(t.to_numpy(), ARRAYS[n]) for n, t in hurray.load(path, mode=mode).items()} == dict.fromkeys(ARRAYS, True)
    assert hurray.load_kv(path) == {"format": "np", "note": "héllo"}


def test_writes_stay_in_the_process(path):
    before = path.read_bytes()
    t = hurray.load(path)
    for tensor in t.values():
        if tensor.shape and tensor.dtype not in (hurray.bool,):
            np.asarray(tensor.to_numpy(copy=False)).reshape(-1).view(np.uint8)[:] = 1
    assert path.read_bytes() == before


@pytest.mark.parametrize("kind", ["descriptor", "object", "bytes"])
def test_over_every_source(path, kind):
    with open(path, "rb") as file:
        source = {"descriptor": file.fileno(), "object": file, "bytes": io.BytesIO(path.read_bytes())}[kind]
        with hurray.open(source) as f:
            assert f.format == "safetensors" and same(f["w"].to_numpy(), ARRAYS["w"])
            assert same(f["mask"].to_numpy(), ARRAYS["mask"])
        assert hurray.load_kv(source)["format"] == "np"


def test_they_pickle(path):
    f = pickle.loads(pickle.dumps(hurray.open(path)))
    assert f.format == "safetensors" and same(f["w"].to_numpy(), ARRAYS["w"])


def test_saving_what_was_opened_is_what_convert_makes(path, tmp_path):
    with hurray.open(path) as f:
        hurray.save(tmp_path / "a.hrry", {name: f[name] for name in f}, kv=f.kv)
    processes.command("convert", path, tmp_path / "b.hrry")
    assert (tmp_path / "a.hrry").read_bytes() == (tmp_path / "b.hrry").read_bytes()
    for name, t in hurray.load(tmp_path / "b.hrry", verify=True).items():
        assert same(t.to_numpy(), ARRAYS[name])


def test_the_index_of_a_model_hub(tmp_path):
    names = list(ARRAYS)
    for k, part in enumerate((names[:3], names[3:])):
        safetensors.save_file({n: ARRAYS[n] for n in part}, tmp_path / f"model-0000{k + 1}-of-00002.safetensors", {"format": "np"})
    index = {"metadata": {"total_size": 5}, "weight_map": {n: f"model-0000{1 + (n in names[3:])}-of-00002.safetensors" for n in names}}
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps(index))
    (tmp_path / "config.json").write_text('{"a": 1}')
    for source in (tmp_path, tmp_path / "model.safetensors.index.json", tmp_path / "model.safetensors"):
        with hurray.open(source) as f:
            assert f.format == "safetensors" and set(f.names) == set(names) and f.kv == {"format": "np"}
            for name, array in ARRAYS.items():
                assert same(f[name].to_numpy(), array)
    (tmp_path / "model-00002-of-00002.safetensors").unlink()
    with pytest.raises(hurray.FileError, match="1 of 2 shards missing: model-00002-of-00002.safetensors"):
        hurray.open(tmp_path)


def test_a_folder_with_one_model(path, tmp_path):
    (tmp_path / "any.safetensors").write_bytes(path.read_bytes())
    assert hurray.open(tmp_path).format == "safetensors"
    hurray.save(tmp_path / "b.hrry", {"b": np.arange(2)})
    with pytest.raises(hurray.FileError, match="2 candidates, open one of them: any.safetensors, b.hrry"):
        hurray.open(tmp_path)


def test_every_cut_and_flip_is_an_error_or_other_values(path, tmp_path):
    data = path.read_bytes()
    header = 8 + int.from_bytes(data[:8], "little")
    target = tmp_path / "m"
    for size in [*range(0, header + 20, 7), len(data) - 1]:
        target.write_bytes(data[:size])
        with pytest.raises(hurray.FileError):
            hurray.open(target)
    for at in range(0, header, 3):
        spoiled = bytearray(data)
        spoiled[at] ^= 1 << at % 8
        target.write_bytes(spoiled)
        try:
            for t in hurray.load(target).values():
                t.to_numpy()
        except (hurray.FileError, hurray.UnsupportedError):
            pass


def test_limits(path):
    for limit in ("max_index_bytes", "max_tensors", "max_kv_bytes"):
        with pytest.raises(hurray.FileError, match=limit):
            hurray.open(path, **{limit: 3})
    with pytest.raises(hurray.FileError, match="max_tensor_bytes"):
        hurray.open(path, max_tensor_bytes=10)["w"]


NUMPY = [np.float16, np.float32, np.float64, np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64,
         np.complex64, np.complex128, np.bool_]  # fmt: skip


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("dtype", NUMPY, ids=lambda d: d.__name__)
def test_npy(tmp_path, dtype, mode):
    values = (np.arange(60) % 7).reshape(3, 4, 5).astype(dtype)
    for k, array in enumerate((values, np.asfortranarray(values), values.astype(values.dtype.newbyteorder(">")), values[0, 0, 0],
                               np.zeros((0, 3), dtype), values[:, :1, :0])):  # fmt: skip
        np.save(tmp_path / f"a{k}.npy", array)
        with hurray.open(tmp_path / f"a{k}.npy", mode=mode) as f:
            assert f.format == "npy" and f.names == (f"a{k}",) and f.kv == {}
            t = f[f"a{k}"]
            assert t.shape == array.shape and np.array_equal(t.to_numpy(), array)
            assert t.to_numpy().dtype == values.dtype
            if array.ndim == 3 and array.size:
                assert np.array_equal(f.read(f"a{k}", (1, slice(1, 4, 2))).to_numpy(), array[1, 1:4:2])


@pytest.mark.parametrize("array, words", [
    (np.array(["text"]), "cannot be converted"),
    (np.array([(1, 2.0)], dtype=[("a", "i4"), ("b", "f4")]), "structured types"),
    (np.array([1], "M8[s]"), "cannot be converted"),
    (np.array([1], ml_dtypes.bfloat16), "cannot be converted"),
])  # fmt: skip
def test_npy_without_a_counterpart(tmp_path, array, words):
    np.save(tmp_path / "a.npy", array)
    with pytest.raises(hurray.UnsupportedError, match=words):
        hurray.open(tmp_path / "a.npy")
