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
