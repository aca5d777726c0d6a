"""PyTorch in and out."""

import builtins

import pytest

import hurray
from hurray import CopyRequiredError, UnsupportedError

np = pytest.importorskip("numpy")
torch = pytest.importorskip("torch")
pytestmark = pytest.mark.frameworks


def aligned(shape, dtype=np.float32):
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    memory = np.zeros(size + 8192, np.uint8)
    start = -memory.ctypes.data % 4096
    return memory[start : start + size].view(dtype).reshape(shape)


DTYPES = (
    "float16 bfloat16 float32 float64 int8 uint8 int16 int32 int64 complex64 complex128".split()
)


@pytest.mark.parametrize("name", DTYPES)
def test_both_ways(name):
    t = (
        hurray.full((3, 4), 3, dtype=hurray.Dtype.from_name(name))
        if not name.startswith("c")
        else hurray.full((3, 4), 3 - 1j, dtype=hurray.Dtype.from_name(name))
    )
    x = t.to_torch()
    assert x.shape == (3, 4) and x.dtype is getattr(torch, name)
    assert (x == (3 - 1j if name.startswith("c") else 3)).all()
    x[1, 2] = 0
    back = hurray.from_torch(x)
    assert back.dtype is t.dtype
    assert bytes(memoryview(back.buffer(0))) == bytes(memoryview(t.buffer(0)))
    assert (
        np.asarray(t.buffer(0)).ctypes.data
        == x.data_ptr()
        == np.asarray(back.buffer(0)).ctypes.data
    )


def test_layouts():
    a = aligned((4, 6))
    a[...] = np.arange(24).reshape(4, 6)
    for source in (a, a.T, a[:, ::2], a[1:3]):
        for t in (hurray.from_numpy(source), hurray.from_numpy(source, copy=True)):
            assert (t.to_torch().numpy() == source).all()
    t = hurray.from_numpy(a[:, ::2], copy=False)
    assert t.to_torch().stride() == (6, 2) and t.to_torch().data_ptr() == a.ctypes.data
    flipped = hurray.from_numpy(a[::-1], copy=False)
    x = flipped.to_torch()
    assert (x.numpy() == a[::-1]).all() and x.data_ptr() != a.ctypes.data
    with pytest.raises(CopyRequiredError, match="negative"):
        flipped.to_torch(copy=False)


def test_read_only_tensors_are_copied():
    a = aligned((8,))
    a.flags.writeable = False
    t = hurray.from_numpy(a)
    x = t.to_torch()
    x[0] = 5
    assert a[0] == 0
    with pytest.raises(builtins.BufferError) as info:
        t.to_torch(copy=False)
    assert isinstance(info.value, CopyRequiredError)


def test_bool():
    values = np.arange(35).reshape(5, 7) % 3 == 0
    for source in (values, np.asfortranarray(values)):
        t = hurray.from_numpy(source)
        for copy in (None, False):
            with pytest.raises(builtins.BufferError, match="bool"):
                t.to_torch(copy=copy)
        x = t.to_torch(copy=True)
        assert x.dtype is torch.bool and (x.numpy() == values).all()
        back = hurray.from_torch(x)
        assert back.dtype is hurray.bool and (back.to_numpy() == values).all()
    with pytest.raises(CopyRequiredError):
        hurray.from_torch(torch.tensor([True]), copy=False)
    strided = hurray.Tensor(b"\x2d", hurray.bool, (4,), layout=hurray.StridedLayout((2,)))
    assert strided.to_torch(copy=True).tolist() == [True, True, False, False]


def test_elements_at_odd_addresses_are_copied():
    t = hurray.Tensor(bytes(range(64)), hurray.int32, (3,), byte_offset=2)
    x = t.to_torch()
    assert x.tolist() == t.to_numpy().tolist() and x.data_ptr() % 64 == 0
    assert t.to_torch(copy=True).tolist() == x.tolist()
    with pytest.raises(CopyRequiredError, match="multiples of their size"):
        t.to_torch(copy=False)


def test_device_argument_and_refusals():
    t = hurray.zeros((2,), dtype=hurray.float32)
    assert t.to_torch(device="cpu").device.type == "cpu"
    assert t.to_torch(device=torch.device("meta")).is_meta
    with pytest.raises(UnsupportedError, match="cuda"):
        hurray.zeros((2,), device=hurray.device.cuda).to_torch()
    with pytest.raises(builtins.BufferError):
        hurray.Tensor(bytes(2), hurray.dtype.int4, (4,)).to_torch()
    with pytest.raises(UnsupportedError):
        hurray.Tensor(bytes(3), hurray.dtype.float6_e2m3, (4,)).to_torch()


def test_from_torch_details():
    x = torch.arange(6, dtype=torch.float32).reshape(2, 3).requires_grad_()
    assert hurray.from_torch(x).to_numpy().tolist() == [[0, 1, 2], [3, 4, 5]]
    assert hurray.from_torch(torch.nn.Parameter(torch.ones(2))).size == 2
    conj = torch.tensor([1 + 2j, 3 - 1j]).conj()
    assert hurray.from_torch(conj).to_numpy().tolist() == [1 - 2j, 3 + 1j]
    with pytest.raises(CopyRequiredError, match="conjugation"):
        hurray.from_torch(conj, copy=False)
    neg = conj.imag
    assert neg.is_neg() and hurray.from_torch(neg).to_numpy().tolist() == [-2, 1]
    assert hurray.from_torch(torch.zeros(0, 3)).shape == (0, 3)
    assert hurray.from_torch(torch.tensor(2.5)).shape == ()
    t = hurray.from_torch(torch.zeros(5, 4).T)
    assert t.layout == hurray.ColMajorLayout()
    with pytest.raises(TypeError):
        hurray.from_torch(np.zeros(2))
    assert hurray.asarray(x).shape == (2, 3)


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_tensors_without_plain_memory():
    class Wrapper(torch.Tensor):
        @staticmethod
        def __new__(cls, inner):
            out = torch.Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype)
            out.inner = inner
            return out

        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            raise RuntimeError("not reached")

    class Tagged(torch.Tensor):
        pass

    refused = [
        torch.zeros(2, device="meta"),
        torch.zeros(2, 2).to_sparse(),
        torch.quantize_per_tensor(torch.ones(2), 0.1, 0, torch.qint8),
        torch.nested.nested_tensor([torch.ones(2), torch.ones(3)]),
        Wrapper(torch.ones(2)),
    ]
    for x in refused:
        for call in (hurray.from_torch, hurray.asarray):
            with pytest.raises(UnsupportedError):
                call(x)
    assert hurray.from_torch(torch.ones(2).as_subclass(Tagged)).size == 2
    seen = []

    def look(x):
        with pytest.raises(UnsupportedError):
            hurray.from_torch(x)
        seen.append(True)
        return x

    torch.func.vmap(look)(torch.ones(2, 2))
    assert seen


def test_from_dlpack_takes_tensors_as_from_torch_does():
    z = torch.tensor([1 + 2j, 3 - 1j]).conj()
    assert z.imag.is_neg()
    assert hurray.from_dlpack(z.imag).to_numpy().tolist() == [-2, 1]
    assert hurray.from_dlpack(z).to_numpy().tolist() == [1 - 2j, 3 + 1j]
    with pytest.raises(CopyRequiredError, match="negation"):
        hurray.from_dlpack(z.imag, copy=False)
    parameter = torch.nn.Parameter(torch.ones(2))
    assert hurray.from_dlpack(parameter).to_numpy().tolist() == [1, 1]
    with pytest.raises(UnsupportedError, match="cuda"):
        hurray.from_dlpack(torch.ones(2), device=hurray.device.cuda)


FLOATS = {
    "float8_e4m3": "float8_e4m3fn",
    "float8_e5m2": "float8_e5m2",
    "float8_e8m0": "float8_e8m0fnu",
}


@pytest.mark.parametrize("copy", [None, False, True])
@pytest.mark.parametrize("name", FLOATS)
def test_to_torch_gives_8_bit_floats(name, copy):
    bits = aligned((6,), np.uint8)
    bits[:] = [0x38, 0x40, 0x30, 0x3C, 0x44, 0x7E]
    t = hurray.Tensor(bits, hurray.Dtype.from_name(name), (2, 3))
    x = t.to_torch(copy=copy)
    assert x.dtype is getattr(torch, FLOATS[name]) and x.shape == (2, 3)
    assert x.view(torch.uint8).flatten().tolist() == bits.tolist()
    assert (x.data_ptr() == np.asarray(t.buffer(0)).ctypes.data) is (copy is not True)
    assert hurray.from_torch(x).dtype is t.dtype


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_dtypes_without_values_are_never_taken_for_int8(tmp_path):
    names = [f"{sign}int{n}" for sign in ("", "u") for n in range(1, 8)]
    names += ["bits8", "bits16", "bits1x8", "bits2x4", "bits4x2", "bit"]
    for name in names:
        x = torch.empty(4, dtype=getattr(torch, name))
        named = str(x.dtype).replace(".", r"\.") + r" .*view\(torch\.uint8\)"
        for call in (hurray.from_torch, hurray.from_dlpack, hurray.asarray):
            with pytest.raises(UnsupportedError, match=named):
                call(x)
        with pytest.raises(UnsupportedError, match=named):
            hurray.save(tmp_path / "x.hrry", {"x": x})
        with pytest.raises(UnsupportedError, match=named):
            hurray.StreamWriter().write(x)
        assert hurray.from_torch(x.view(torch.uint8)).dtype is hurray.uint8


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_refusals_say_only_cures_that_apply(tmp_path):
    from torch._subclasses.fake_tensor import FakeTensorMode

    class Wrapper(torch.Tensor):
        @staticmethod
        def __new__(cls, inner):
            return torch.Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype)

        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            raise RuntimeError("not reached")

    class Distributed(Wrapper):
        def full_tensor(self):
            raise RuntimeError("not reached")

    with FakeTensorMode():
        fake = torch.ones(2)
    jagged = torch.nested.nested_tensor([torch.ones(2), torch.ones(3)], layout=torch.jagged)
    cases = [
        (torch.zeros(2, device="meta"), "meta device has no memory", "to_dense|dequantize|full_"),
        (torch.nn.UninitializedParameter(), "has no shape and no values before", "meta device"),
        (fake, "FakeTensor has no memory", "to_dense|dequantize|full_"),
        (torch.zeros(2, 2).to_sparse(), r"torch\.sparse_coo .*to_dense\(\)", "dequantize|full_"),
        (torch.zeros(2, 2).to_sparse_csr(), r"torch\.sparse_csr .*to_dense\(\)", "dequantize"),
        (
            torch.quantize_per_tensor(torch.ones(2), 0.1, 0, torch.qint8),
            r"quantized .*dequantize\(\)",
            "to_dense|full_",
        ),
        (
            torch.nested.nested_tensor([torch.ones(2), torch.ones(3)]),
            r"nested .*unbind\(\)",
            "to_dense|full_",
        ),
        (jagged, r"NestedTensor that is nested", "to_dense|full_"),
        (Wrapper(torch.ones(2)), r"Wrapper .*dequantize\(\)", "to_dense|full_"),
        (Distributed(torch.ones(2)), r"Distributed .*full_tensor\(\)", "to_dense|dequantize"),
    ]
    for x, said, unsaid in cases:
        for call in (
            hurray.from_torch,
            hurray.from_dlpack,
            hurray.asarray,
            hurray.StreamWriter().write,
            lambda x: hurray.save(tmp_path / "x.hrry", {"x": x}),
        ):
            with pytest.raises(UnsupportedError, match=said) as info:
                call(x)
            assert not any(word in str(info.value) for word in unsaid.split("|"))

    seen = []

    def look(x, said):
        for call in (hurray.from_torch, hurray.from_dlpack, hurray.asarray):
            with pytest.raises(UnsupportedError, match=said):
                call(x)
        seen.append(said)
        return x.sum()

    torch.func.vmap(lambda x: look(x, "outside of vmap"))(torch.ones(2, 2))
    torch.func.grad(lambda x: look(x, "transformation .*outside of it"))(torch.ones(2))
    assert len(seen) == 2


def test_what_the_guide_names_instead_of_torch_asarray():
    t = hurray.asarray([1.0, 2.5])
    for take in (torch.from_dlpack, torch.as_tensor, torch.tensor, lambda t: t.to_torch()):
        assert take(t).dtype == torch.float64 and take(t).tolist() == [1.0, 2.5]
