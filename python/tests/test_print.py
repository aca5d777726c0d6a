"""Printed forms of tensors, and print options."""

import asyncio
import contextvars
import gc
import struct
import subprocess
import sys
import threading

import pytest

import hurray
import processes
from hurray import Tensor

F32 = hurray.float32


# ---- printing ---------------------------------------------------------------------------------------


def test_printing_without_numpy():
    code = (
        "import sys; sys.modules['numpy'] = None\n"
        "import hurray\n"
        "t = hurray.zeros((2, 3), dtype=hurray.float32)\n"
        "print(repr(t)); print(t)\n"
        "try: t.to_numpy()\n"
        "except ImportError as e: print(e)\n"
    )
    run = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        cwd=processes.HERE,
    )
    form = (
        "hurray.Tensor(shape=(2, 3), dtype=float32, "
        "device=hurray.Device(kind='cpu', device_id=0, memory_class='standard'))"
    )
    assert run.stdout.splitlines() == [
        form,
        form,
        "numpy is not installed; install it with: pip install numpy",
    ]


def test_printing_values():
    np = pytest.importorskip("numpy")
    values = np.arange(6, dtype=np.float32).reshape(2, 3)
    for t in (hurray.from_numpy(values), hurray.from_numpy(np.asfortranarray(values))):
        assert repr(t) == f"hurray.Tensor({np.array2string(values)}, dtype=float32)"
        assert str(t) == np.array2string(values)
    flipped = np.arange(8, dtype=np.int64)[::-1]
    assert str(hurray.asarray(flipped)) == np.array2string(flipped)
    scalar = hurray.full((), 2.5)
    assert repr(scalar) == "hurray.Tensor(2.5, dtype=float64)"
    assert repr(hurray.full((2,), 1j)) == "hurray.Tensor([0.+1.j 0.+1.j], dtype=complex128)"
    with np.printoptions(threshold=5, edgeitems=1):
        assert "..." in repr(hurray.zeros((100,)))


def test_printing_bool_in_logical_order():
    np = pytest.importorskip("numpy")
    values = np.arange(35).reshape(5, 7) % 3 == 0
    for source in (values, values.T, np.asfortranarray(values)):
        assert str(hurray.from_numpy(source)) == np.array2string(source)
    large = np.arange(300 * 1000).reshape(300, 1000) % 7 == 0
    for source in (large, large.T, large[:2], large[:, :1]):
        assert str(hurray.from_numpy(source)) == np.array2string(source)


def test_printing_what_has_no_values():
    form = "hurray.Tensor(shape=(None, 512), dtype=float32, device=hurray.Device(kind='cpu', device_id=0, memory_class='standard'))"
    t = Tensor(b"", F32, (None, 512))
    assert repr(t) == str(t) == form
    assert repr(Tensor(b"1", hurray.dtype.int4, (2,))).startswith(
        "hurray.Tensor(shape=(2,), dtype=int4, device="
    )
    assert repr(hurray.zeros((2,), device=hurray.device.rocm)).startswith(
        "hurray.Tensor(shape=(2,), dtype=float64, device="
    )


# ---- sparse and paged tensors -----------------------------------------------------------------------


def u64(*numbers):
    return struct.pack(f"<{len(numbers)}Q", *numbers)


def f32(*numbers):
    return struct.pack(f"<{len(numbers)}f", *numbers)


def coo(**keywords):
    return Tensor(
        f32(7, 9), F32, (3, 3), layout=hurray.CooLayout(2), aux_buffers=[u64(0, 2, 2, 1)], **keywords
    )


def csr(values=(1, 2, 3, 4), dtype=F32, **keywords):
    return Tensor(
        f32(*values),
        dtype,
        (3, 3),
        layout=hurray.CsrLayout(4),
        aux_buffers=[u64(0, 2, 1, 2), u64(0, 2, 3, 4), *keywords.pop("more", [])],
        **keywords,
    )


def csc():
    return Tensor(
        f32(1, 2), F32, (2, 3), layout=hurray.CscLayout(2), aux_buffers=[u64(0, 1), u64(0, 1, 1, 2)]
    )


def csf():
    return Tensor(
        f32(5),
        F32,
        (2, 3, 4),
        layout=hurray.CsfLayout(1, (0, 1, 2)),
        aux_buffers=[u64(0, 1), u64(0)] * 3,
    )


def paged(**keywords):
    return Tensor(
        bytes(48),
        hurray.int8,
        (4, 3, 4),
        layout=hurray.BlockPagedLayout(4, 1, 0, 1),
        aux_buffers=[bytes(4), bytes(8)],
        **keywords,
    )


METADATA = {
    "hurray.Tensor(layout='coo', shape=(3, 3), nnz=2, dtype=float32)": coo,
    "hurray.Tensor(layout='csr', shape=(3, 3), nnz=4, dtype=float32)": csr,
    "hurray.Tensor(layout='csc', shape=(2, 3), nnz=2, dtype=float32)": csc,
    "hurray.Tensor(layout='csf', shape=(2, 3, 4), nnz=1, dtype=float32)": csf,
    "hurray.Tensor(layout='block_paged', shape=(4, 3, 4), dtype=int8)": paged,
}


@pytest.mark.parametrize("text", METADATA)
def test_tensors_that_store_some_elements(text):
    t = METADATA[text]()
    assert repr(t) == str(t) == text


CONTENT = {
    "hurray.Tensor(layout='coo', shape=(3, 3), nnz=2, dtype=float32, indices=[[0 2]\n [2 1]], values=[7. 9.])": coo,
    "hurray.Tensor(layout='csr', shape=(3, 3), nnz=4, dtype=float32, values=[1. 2. 3. 4.], "
    "col_indices=[0 2 1 2], row_ptr=[0 2 3 4])": csr,
    "hurray.Tensor(layout='csc', shape=(2, 3), nnz=2, dtype=float32, values=[1. 2.], row_indices=[0 1], "
    "col_ptr=[0 1 1 2])": csc,
    "hurray.Tensor(layout='csf', shape=(2, 3, 4), nnz=1, dtype=float32)": csf,
    "hurray.Tensor(layout='block_paged', shape=(4, 3, 4), dtype=int8)": paged,
}


@pytest.mark.parametrize("text", CONTENT)
def test_content(text):
    pytest.importorskip("numpy")
    t = CONTENT[text]()
    with hurray.print_options(sparse_display="content"):
        assert repr(t) == str(t) == text


def test_content_follows_numpys_options_and_unpacks():
    np = pytest.importorskip("numpy")
    bits = Tensor(
        b"\x05",
        hurray.bool,
        (3, 3),
        layout=hurray.CooLayout(3),
        aux_buffers=[u64(0, 0, 1, 1, 2, 2)],
    )
    with hurray.print_options(sparse_display="content"):
        assert "values=[ True False  True]" in repr(bits)
        with np.printoptions(threshold=2, edgeitems=1):
            assert "values=[1. ... 4.]" in repr(csr())


LAST_ROW = {
    "declared on a device": lambda: csr(device=hurray.device.cuda),
    "a type that NumPy has not": lambda: csr(dtype=hurray.dtype.float8_e4m3),
    "one byte per bool, or packed": lambda: Tensor(
        bytes(3), hurray.bool, (3, 3), layout=hurray.CooLayout(3), aux_buffers=[bytes(48)]
    ),
}


@pytest.mark.parametrize("case", LAST_ROW)
def test_content_that_cannot_be_shown_takes_the_last_row(case):
    pytest.importorskip("numpy")
    t = LAST_ROW[case]()
    assert repr(t).startswith("hurray.Tensor(layout='")
    with hurray.print_options(sparse_display="content"):
        assert repr(t) == str(t) == (
            f"hurray.Tensor(shape=(3, 3), dtype={t.dtype}, device={t.device!r})"
        )


ALWAYS_LAST = {
    "tiled": lambda: Tensor(bytes(64), F32, (3, 3), layout=hurray.TiledLayout((2, 2))),
    "morton": lambda: Tensor(bytes(64), F32, (3, 3), layout=hurray.MortonLayout((2, 2))),
    "hilbert": lambda: Tensor(bytes(16), F32, (2, 2), layout=hurray.HilbertLayout(1, 2)),
    "private": lambda: Tensor(
        b"", F32, (2, 2), layout=hurray.PrivateExtensionLayout(0xF0, 1)
    ),
    "unknown": lambda: Tensor(b"", F32, (2, 2), layout=hurray.UnknownLayout(0x0C)),
    "quantized": lambda: Tensor(
        bytes(4), hurray.uint8, (2, 2), quantization=hurray.PerTensorAffine(0.5, 0)
    ),
    "quantized csr": lambda: csr(
        dtype=hurray.uint8, quantization=hurray.PerTensorAffine(0.5, 0)
    ),
    "quantized pages": lambda: paged(quantization=hurray.PerTensorAffine(0.5, 0)),
    "dynamic": lambda: Tensor(bytes(48), F32, (None, 3)),
    "dynamic coo": lambda: Tensor(
        f32(7), F32, (None, 3), layout=hurray.CooLayout(1), aux_buffers=[u64(5, 2)]
    ),
    "packed": lambda: Tensor(bytes(1), hurray.dtype.uint2, (2, 2)),
    "private type": lambda: Tensor(
        bytes(12),
        hurray.Dtype.from_tag(0xF1),
        (2, 2),
        extension_type=hurray.ExtensionType(24),
    ),
    "one byte per bool, or packed": lambda: Tensor(bytes(9), hurray.bool, (9,)),
    "pinned": lambda: hurray.zeros((2,), device=hurray.Device("cuda", 1, "host_pinned")),
}


@pytest.mark.parametrize("display", ["metadata", "content"])
@pytest.mark.parametrize("case", ALWAYS_LAST)
def test_the_last_row(case, display):
    t = ALWAYS_LAST[case]()
    form = f"hurray.Tensor(shape={t.shape}, dtype={t.dtype}, device={t.device!r})"
    with hurray.print_options(sparse_display=display):
        assert repr(t) == str(t) == form
    assert "\n" not in form


def test_dense_tensors_do_not_ask_for_the_option():
    np = pytest.importorskip("numpy")
    t = hurray.from_numpy(np.arange(3, dtype=np.int32))
    with hurray.print_options(sparse_display="content"):
        assert repr(t) == "hurray.Tensor([0 1 2], dtype=int32)"
    with np.printoptions(precision=2):
        assert repr(hurray.full((1,), 1 / 3)) == "hurray.Tensor([0.33], dtype=float64)"


def test_later_lines_are_numpys_own():
    np = pytest.importorskip("numpy")
    values = np.arange(6.0).reshape(2, 3)
    assert repr(hurray.from_numpy(values)) == "hurray.Tensor([[0. 1. 2.]\n [3. 4. 5.]], dtype=float64)"


def test_printing_never_raises(monkeypatch):
    np = pytest.importorskip("numpy")

    def broken(*arguments, **keywords):
        raise RuntimeError("no")

    monkeypatch.setattr(np, "array2string", broken)
    assert repr(hurray.zeros((2,))).startswith("hurray.Tensor(shape=(2,), dtype=float64, device=")
    with hurray.print_options(sparse_display="content"):
        assert repr(csr()).startswith("hurray.Tensor(shape=(3, 3), dtype=float32, device=")


# ---- print options ----------------------------------------------------------------------------------


def display():
    return hurray.get_print_options()["sparse_display"]


def test_options():
    assert hurray.get_print_options() == {"sparse_display": "metadata"}
    try:
        hurray.set_print_options(sparse_display="content")
        assert hurray.get_print_options() == {"sparse_display": "content"}
        hurray.set_print_options()
        hurray.set_print_options(sparse_display=None)
        assert display() == "content"
        hurray.get_print_options()["sparse_display"] = "metadata"  # a copy
        assert display() == "content"
    finally:
        hurray.set_print_options(sparse_display="metadata")
    assert display() == "metadata"


@pytest.mark.parametrize("wrong", ["contents", "", "METADATA", 3, b"content", True, "con\0tent", "\udc80"])
def test_another_value(wrong):
    for call in (hurray.set_print_options, hurray.print_options, hurray.PrintOptionsCtx):
        with pytest.raises(ValueError, match="'metadata' or 'content'"):
            call(sparse_display=wrong)
    for call in (hurray.set_print_options, hurray.print_options, hurray.PrintOptionsCtx):
        with pytest.raises(TypeError):
            call("content")
        with pytest.raises(TypeError):
            call(threshold=3)
    assert display() == "metadata"


@pytest.mark.parametrize("make", [hurray.print_options, hurray.PrintOptionsCtx])
def test_blocks_nest_and_restore(make):
    assert isinstance(make(), hurray.PrintOptionsCtx)
    with make(sparse_display="content") as entered:
        assert entered is None and display() == "content"
        with make(sparse_display="metadata"):
            assert display() == "metadata"
            with make():
                assert display() == "metadata"
                hurray.set_print_options(sparse_display="content")
                assert display() == "content"
            assert display() == "metadata"
        assert display() == "content"
    assert display() == "metadata"
    with pytest.raises(KeyError), make(sparse_display="content"):
        raise KeyError("is not swallowed")
    assert display() == "metadata"
    block = make(sparse_display="content")
    assert display() == "metadata"  # making one changes nothing
    with block:
        with make(sparse_display="metadata"), block:
            assert display() == "content"
        assert display() == "content"
    with block:
        assert display() == "content"
    assert display() == "metadata"
    with pytest.raises(RuntimeError, match="not active"):
        block.__exit__(None, None, None)
    for misuse in (hurray.PrintOptionsCtx.__enter__, hurray.PrintOptionsCtx.__exit__):
        with pytest.raises(TypeError):
            misuse(3)


def test_threads_start_with_the_default():
    seen = []

    def look():
        seen.append(display())
        with hurray.print_options(sparse_display="content"):
            seen.append(display())

    inherit = getattr(sys.flags, "thread_inherit_context", 0)
    with hurray.print_options(sparse_display="content"):
        thread = threading.Thread(target=look)
        thread.start()
        thread.join()
        assert display() == "content"
    assert seen == ["content" if inherit else "metadata", "content"]
    assert display() == "metadata"


def test_tasks_do_not_see_each_other():
    shared = hurray.print_options(sparse_display="content")

    async def first(turn, other):
        with shared:
            turn.set()
            await other.wait()
            assert display() == "content"
        assert display() == "metadata"

    async def second(turn, other):
        await turn.wait()
        assert display() == "metadata"
        with hurray.print_options(sparse_display="metadata"), shared:
            assert display() == "content"
            other.set()
            await asyncio.sleep(0)
        assert display() == "metadata"

    async def both():
        turn, other = asyncio.Event(), asyncio.Event()
        await asyncio.gather(first(turn, other), second(turn, other))

    asyncio.run(both())
    assert display() == "metadata"


def test_a_block_is_left_where_it_was_entered():
    block = hurray.print_options(sparse_display="content")
    context = contextvars.copy_context()
    context.run(block.__enter__)
    assert display() == "metadata" and context.run(display) == "content"
    with pytest.raises(RuntimeError):
        block.__exit__(None, None, None)
    context.run(block.__exit__, None, None, None)
    assert context.run(display) == "metadata"


def test_blocks_that_were_never_left_go_with_their_context():
    block = hurray.print_options(sparse_display="content")
    context = contextvars.copy_context()
    context.run(block.__enter__)
    count = sys.getrefcount(block)
    del context
    gc.collect()
    assert sys.getrefcount(block) < count
