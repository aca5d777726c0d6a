"""`hurray.numpy`, `hurray.torch` and `hurray.jax` beside the library whose calls they have."""

import os

import numpy as np
import pytest

import hurray
import hurray.numpy
import processes

st = pytest.importorskip("safetensors")
safetensors_numpy = pytest.importorskip("safetensors.numpy")

ARRAYS = {
    "w": np.arange(600, dtype=np.float32).reshape(20, 30),
    "d": np.linspace(0, 1, 7),
    "h": np.arange(6, dtype=np.float16).reshape(2, 3),
    "mask": np.arange(20) % 3 == 0,
    "i": np.array(5, np.int64),
    "b": np.arange(3, dtype=np.uint8),
    "none": np.zeros((0, 4), np.int16),
}
NAMES = ["m.hrry", "m.safetensors"]


def same(a, b):
    return a.dtype == b.dtype and a.shape == b.shape and np.array_equal(a, b)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("backend", ["auto", "mmap", "pread"])
def test_numpy_files(tmp_path, name, backend):
    hurray.numpy.save_file(ARRAYS, tmp_path / name, {"format": "np"})
    assert hurray.open(tmp_path / name).format == name.split(".")[1]
    loaded = hurray.numpy.load_file(tmp_path / name, backend=backend)
    assert loaded.keys() == ARRAYS.keys() and all(same(loaded[n], ARRAYS[n]) for n in ARRAYS)
    before = (tmp_path / name).read_bytes()
    for array in loaded.values():
        assert array.flags.writeable
        array[...] = 1
    assert (tmp_path / name).read_bytes() == before


def test_numpy_writes_what_the_reference_library_writes(tmp_path):
    hurray.numpy.save_file(ARRAYS, tmp_path / "a.safetensors", {"format": "np"})
    safetensors_numpy.save_file(ARRAYS, tmp_path / "b.safetensors", {"format": "np"})
    assert (tmp_path / "a.safetensors").read_bytes() == (tmp_path / "b.safetensors").read_bytes()
    hurray.numpy.save_file({}, tmp_path / "a.safetensors")
    safetensors_numpy.save_file({}, tmp_path / "b.safetensors")
    assert (tmp_path / "a.safetensors").read_bytes() == (tmp_path / "b.safetensors").read_bytes()
    names = {'q"\\\n\x01é\u2028😀': np.zeros(2, np.float32), " ": np.zeros(1, np.int8), "\x7f": np.zeros((1, 0, 3))}
    hurray.numpy.save_file(names, tmp_path / "a.safetensors", {'k"\n': "é\x02"})
    safetensors_numpy.save_file(names, tmp_path / "b.safetensors", {'k"\n': "é\x02"})
    assert (tmp_path / "a.safetensors").read_bytes() == (tmp_path / "b.safetensors").read_bytes()


def test_numpy_bytes_and_wrong_arguments(tmp_path):
    data = hurray.numpy.save(ARRAYS, {"a": "b"})
    assert isinstance(data, bytes)
    assert all(same(array, ARRAYS[name]) for name, array in hurray.numpy.load(data).items())
    safetensors = safetensors_numpy.save(ARRAYS)
    assert all(same(array, ARRAYS[name]) for name, array in hurray.numpy.load(safetensors).items())
    hurray.numpy.save_file(ARRAYS, tmp_path / "m.hrry")
    with pytest.raises(ValueError, match="backend"):
        hurray.numpy.load_file(tmp_path / "m.hrry", backend="x")
    with pytest.raises(ValueError, match="framework"):
        hurray.numpy.safe_open(tmp_path / "m.hrry", framework="pt")
    with pytest.raises(ValueError, match="device"):
        hurray.numpy.safe_open(tmp_path / "m.hrry", device="cuda")
    with pytest.raises(FileNotFoundError):
        hurray.numpy.load_file(tmp_path / "n.hrry")


@pytest.mark.parametrize("name", NAMES)
def test_safe_open_beside_the_reference(tmp_path, name):
    hurray.numpy.save_file(ARRAYS, tmp_path / name, {"format": "np", "x": "y"})
    safetensors_numpy.save_file(ARRAYS, tmp_path / "ref", {"format": "np", "x": "y"})
    with hurray.numpy.safe_open(tmp_path / name, framework="np") as ours, st.safe_open(tmp_path / "ref", framework="np") as theirs:
        assert ours.keys() == sorted(theirs.keys()) and ours.metadata() == theirs.metadata()
        for key in theirs.keys():
            assert same(ours.get_tensor(key), theirs.get_tensor(key))
            a, b = ours.get_slice(key), theirs.get_slice(key)
            assert a.get_shape() == b.get_shape() and a.get_dtype() == b.get_dtype()
            if len(b.get_shape()) == 2 and b.get_shape()[0]:
                for index in (slice(1, 2), (slice(None), slice(1, 3)), (slice(0, 2), 1), ...):
                    assert same(a[index], b[index])
        if name == "m.safetensors":
            assert ours.offset_keys() == theirs.offset_keys()
        assert ours.get_tensors().keys() == ARRAYS.keys()
        with pytest.raises(KeyError):
            ours.get_tensor("zz")
    with pytest.raises(ValueError, match="closed"):
        ours.get_tensor("w")


@pytest.mark.parametrize("name", NAMES)
def test_iterate(tmp_path, name):
    hurray.numpy.save_file(ARRAYS, tmp_path / name)
    order = list(hurray.open(tmp_path / name).names)
    assert [n for n, a in hurray.numpy.iterate(tmp_path / name) if same(a, ARRAYS[n])] == order
    assert [n for n, _ in hurray.numpy.iterate(tmp_path / name, names=["b", "w"])] == [n for n in order if n in "bw"]
    got = dict(hurray.numpy.iterate(tmp_path / name, plan={"w": slice(3, 5), "mask": slice(0, 3)}))
    assert same(got["w"], ARRAYS["w"][3:5]) and same(got["mask"], ARRAYS["mask"][:3]) and len(got) == 2
    for wrong in ({"names": ["zz"]}, {"plan": {"zz": 0}}):
        with pytest.raises(KeyError):
            list(hurray.numpy.iterate(tmp_path / name, **wrong))
    with pytest.raises(TypeError):
        list(hurray.numpy.iterate(tmp_path / name, names=["w"], plan={"w": 0}))


def test_what_a_safetensors_file_cannot_hold(tmp_path):
    target = tmp_path / "m.safetensors"
    target.write_bytes(b"old")
    coo = hurray.sparse_coo(np.ones(2), np.array([[0, 1], [1, 2]]), shape=[3, 4])
    quantized = hurray.Tensor(bytes(4), hurray.int8, [4], quantization=hurray.PerTensorAffine(0.5, 0))
    for tensors, words in (
        ({"a": coo, "b": quantized, "c": np.zeros(3)}, '"a".*cannot keep its layout.*"b" .its quantization'),
        ({"a": hurray.Tensor(bytes(8), hurray.dtype.int4, [16])}, "its element type"),
        ({"a": np.asfortranarray(np.zeros((2, 3)))}, "its layout"),
        ({"__metadata__": np.zeros(2)}, "__metadata__"),
    ):  # fmt: skip
        with pytest.raises((hurray.UnsupportedError, hurray.FileError), match=words):
            hurray.numpy.save_file(tensors, target)
    with pytest.raises(hurray.UnsupportedError, match='keeps text alone.*"k"'):
        hurray.numpy.save_file(ARRAYS, target, {"k": 5})
    assert target.read_bytes() == b"old" and os.listdir(tmp_path) == ["m.safetensors"]


def test_convert(tmp_path):
    safetensors_numpy.save_file(ARRAYS, tmp_path / "a.safetensors", {"format": "np"})
    told = []
    hurray.convert(tmp_path / "a.safetensors", tmp_path / "b.hrry", progress=lambda done, total: told.append((done, total)))
    assert told[0][0] == 0 and told[-1][0] == told[-1][1] > 0
    hurray.open(tmp_path / "b.hrry").verify()
    assert hurray.open(tmp_path / "b.hrry").has_checksums and hurray.load_kv(tmp_path / "b.hrry") == {"format": "np"}
    hurray.convert(tmp_path / "b.hrry", tmp_path / "c.safetensors", progress=False, sync=False)
    assert (tmp_path / "a.safetensors").read_bytes() == (tmp_path / "c.safetensors").read_bytes()
    processes.command("convert", tmp_path / "a.safetensors", tmp_path / "d.hrry")
    assert (tmp_path / "b.hrry").read_bytes() == (tmp_path / "d.hrry").read_bytes()
    processes.command("convert", tmp_path / "d.hrry", tmp_path / "e.safetensors")
    assert (tmp_path / "a.safetensors").read_bytes() == (tmp_path / "e.safetensors").read_bytes()
    hurray.save(tmp_path / "s.hrry", ARRAYS, max_shard_size=600, kv={"format": "np"})
    hurray.convert(tmp_path / "s.hrry", tmp_path / "whole.hrry", checksums=False)
    whole = hurray.open(tmp_path / "whole.hrry")
    assert not whole.has_checksums and whole.names == tuple(ARRAYS) and whole.kv == {"format": "np"}
    with pytest.raises(ZeroDivisionError):
        hurray.convert(tmp_path / "a.safetensors", tmp_path / "x.hrry", progress=lambda done, total: 1 / 0)
    with pytest.raises(TypeError, match="progress"):
        hurray.convert(tmp_path / "a.safetensors", tmp_path / "x.hrry", progress=5)
    damaged = bytearray((tmp_path / "b.hrry").read_bytes())
    damaged[4100] ^= 1
    (tmp_path / "b.hrry").write_bytes(damaged)
    for target in ("x.hrry", "x.safetensors"):
        with pytest.raises(hurray.FileError, match="checksum"):
            hurray.convert(tmp_path / "b.hrry", tmp_path / target)
        assert not (tmp_path / target).exists()


# ---- PyTorch


@pytest.fixture
def torch():
    pytest.importorskip("torch")
    import hurray.torch
    import torch

    return torch


def model_of(torch):
    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.embed = torch.nn.Embedding(50, 8)
            self.out = torch.nn.Linear(8, 50, bias=False)
            self.out.weight = self.embed.weight
            self.turned = torch.nn.Parameter(torch.randn(3, 5).t())
            self.register_buffer("mask", torch.tensor([True, False, True]))
            self.register_buffer("count", torch.tensor(7))

        def forward(self, x):
            return self.out(self.embed(x)).sum() + self.turned.sum() * self.mask.sum()

    return Model()


@pytest.mark.parametrize("name", NAMES)
def test_the_same_training_with_both_libraries(torch, tmp_path, name):
    """Only the import line changes."""
    import safetensors.torch

    ends = []
    for library, target in ((safetensors.torch, "ref.safetensors"), (hurray.torch, name)):
        torch.manual_seed(0)
        model = model_of(torch)
        step = torch.optim.SGD(model.parameters(), 0.01)
        for _ in range(3):
            step.zero_grad()
            model(torch.tensor([1, 2, 3])).backward()
            step.step()
        library.save_model(model, tmp_path / target)
        other = model_of(torch)
        missing, unexpected = library.load_model(other, tmp_path / target)
        assert not missing and not unexpected
        assert other.out.weight is other.embed.weight
        for a, b in zip(model.state_dict().values(), other.state_dict().values()):
            assert a.dtype == b.dtype and torch.equal(a, b)
        with library.safe_open(tmp_path / target, framework="pt") as f:
            assert f.metadata() == {"out.weight": "embed.weight"}
            assert f.get_slice("embed.weight")[2:4].shape == (2, 8)
        ends.append(other(torch.tensor([4, 5])).item())
    assert ends[0] == ends[1]


def test_from_pretrained(torch, tmp_path):
    """A model on the meta device takes the memory of the file."""
    torch.manual_seed(0)
    trained = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.ReLU(), torch.nn.Linear(32, 4))
    hurray.torch.save_file(trained.state_dict(), tmp_path / "m.hrry", {"format": "pt"})
    with torch.device("meta"):
        model = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.ReLU(), torch.nn.Linear(32, 4))
    state = hurray.torch.load_file(tmp_path / "m.hrry")
    model.load_state_dict(state, assign=True)
    x = torch.randn(3, 16)
    assert torch.equal(model(x), trained(x))
    assert model[0].weight.data_ptr() == state["0.weight"].data_ptr()


DTYPES = "float64 float32 float16 bfloat16 int64 int32 int16 int8 uint8 bool complex64 float8_e4m3fn float8_e5m2".split()


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("backend", ["auto", "mmap", "pread"])
def test_torch_types(torch, tmp_path, name, backend):
    import safetensors.torch

    tensors = {d: (torch.arange(24) % 5).reshape(2, 3, 4).to(getattr(torch, d)) for d in DTYPES}
    tensors |= {"scalar": torch.tensor(2.5), "none": torch.zeros(0, 3), "odd": torch.arange(5, dtype=torch.uint8)}
    hurray.torch.save_file(tensors, tmp_path / name)
    loaded = hurray.torch.load_file(tmp_path / name, backend=backend)
    assert loaded.keys() == tensors.keys()
    for key, t in tensors.items():
        assert loaded[key].dtype == t.dtype and loaded[key].shape == t.shape
        assert torch.equal(loaded[key].view(torch.uint8) if t.dim() else loaded[key], t.view(torch.uint8) if t.dim() else t)
    if name == "m.safetensors":
        safetensors.torch.save_file(tensors, tmp_path / "ref")
        assert (tmp_path / "ref").read_bytes() == (tmp_path / name).read_bytes()
    for t in loaded.values():
        t.zero_()
    assert all(torch.equal(a, b) for a, b in zip(hurray.torch.load_file(tmp_path / name)["int64"], tensors["int64"]))


def test_tensors_that_share_memory(torch, tmp_path):
    a = torch.arange(12.0).reshape(3, 4)
    for tensors in ({"x": a, "y": a}, {"x": a, "y": a[1:], "z": torch.ones(2)}, {"x": a, "y": a.t()}):
        for save in (lambda t: hurray.torch.save_file(t, tmp_path / "m.hrry"), hurray.torch.save):
            with pytest.raises(RuntimeError, match="share memory: x, y"):
                save(tensors)
        hurray.save(tmp_path / "m.hrry", tensors)  # every name in full
    hurray.torch.save_file({"x": a[:1], "y": a[1:]}, tmp_path / "m.hrry")  # parts that do not overlap
    hurray.torch.save_file({"x": a.t()}, tmp_path / "m.safetensors")
    assert torch.equal(hurray.torch.load_file(tmp_path / "m.safetensors")["x"], a.t())


def test_load_model_tells_what_does_not_fit(torch, tmp_path):
    hurray.torch.save_file({"weight": torch.zeros(2, 3), "more": torch.zeros(1)}, tmp_path / "m.hrry")
    model = torch.nn.Linear(3, 2)
    with pytest.raises(RuntimeError, match=r"missing \['bias'\], unexpected \['more'\]"):
        hurray.torch.load_model(model, tmp_path / "m.hrry")
    assert hurray.torch.load_model(model, tmp_path / "m.hrry", strict=False) == (["bias"], ["more"])


@pytest.mark.parametrize("name", NAMES)
def test_the_device_pipeline_with_the_cpu_as_its_target(torch, tmp_path, name):
    tensors = {d: (torch.arange(600) % 5).reshape(20, 30).to(getattr(torch, d)) for d in DTYPES}
    tensors |= {"wide": torch.randn(2, 5000), "scalar": torch.tensor(3.0), "none": torch.zeros(0, 3)}
    hurray.torch.save_file(tensors, tmp_path / name)
    for staging in (64, 1000, 1 << 20):
        pipeline = hurray.torch._Pipeline(torch.device("cpu"), staging)
        with hurray.open(tmp_path / name, mode="memory") as f:
            loaded = pipeline.run(f, f.names)
        for key, t in tensors.items():
            assert loaded[key].dtype == t.dtype and loaded[key].shape == t.shape
            assert torch.equal(loaded[key].reshape(-1).view(torch.uint8), t.reshape(-1).view(torch.uint8))
    assert hurray.torch.load_file(tmp_path / name, device="meta")["wide"].device.type == "meta"


def test_torch_float4(torch, tmp_path):
    if not hasattr(torch, "float4_e2m1fn_x2"):
        pytest.skip("this PyTorch has no float4")
    codes = np.arange(32, dtype=np.uint8)
    hurray.save(tmp_path / "m.hrry", {"x": hurray.Tensor(codes.tobytes(), hurray.dtype.float4_e2m1, [4, 16])})
    for source in (tmp_path / "m.hrry",):
        t = hurray.torch.load_file(source)["x"]
        assert t.dtype == torch.float4_e2m1fn_x2 and t.shape == (4, 8)
        assert t.view(torch.uint8).flatten().tolist() == codes.tolist()


def test_gradients_and_other_devices_of_torch(torch, tmp_path):
    leaf = torch.ones(3, requires_grad=True)
    hurray.torch.save_file({"x": leaf * 2}, tmp_path / "m.hrry")
    assert hurray.torch.load_file(tmp_path / "m.hrry")["x"].tolist() == [2, 2, 2]
    with pytest.raises((RuntimeError, AssertionError)):
        hurray.torch.load_file(tmp_path / "m.hrry", device="cuda")


# ---- JAX


@pytest.mark.parametrize("name", NAMES)
def test_jax(tmp_path, name):
    jax = pytest.importorskip("jax")
    import hurray.jax

    tensors = {"w": jax.numpy.arange(6.0).reshape(2, 3), "b": jax.numpy.arange(3) > 1, "h": jax.numpy.ones(4, jax.numpy.bfloat16)}
    hurray.jax.save_file(tensors, tmp_path / name, {"a": "b"})
    for loaded in (hurray.jax.load_file(tmp_path / name), hurray.jax.load(hurray.jax.save(tensors)), dict(hurray.jax.iterate(tmp_path / name))):
        assert loaded.keys() == tensors.keys()
        for key, value in tensors.items():
            assert isinstance(loaded[key], jax.Array) and loaded[key].dtype == value.dtype and (loaded[key] == value).all()
    with hurray.jax.safe_open(tmp_path / name, framework="flax") as f:
        assert (f.get_slice("w")[1:] == tensors["w"][1:]).all() and f.metadata() == {"a": "b"}
    hurray.numpy.save_file({"i": np.arange(3)}, tmp_path / "i.hrry")
    if not jax.config.jax_enable_x64:
        with pytest.raises(hurray.UnsupportedError, match="jax_enable_x64"):
            hurray.jax.load_file(tmp_path / "i.hrry")
