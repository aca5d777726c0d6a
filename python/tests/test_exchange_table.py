"""The C exchange table of DLPack, offered and used (08-python-api.md section 14.7)."""

import builtins
import ctypes
import gc
import sys
import threading
import weakref

import processes
import pytest

np = pytest.importorskip("numpy")

from dlpack_structures import (  # noqa: E402
    Allocate,
    DLTensor,
    ExchangeTable,
    Exporter,
    FromObject,
    SetError,
    aligned,
    capsule_name,
    delete,
    managed_from,
    new_capsule,
    object_from,
    table_of,
    taken,
)

import hurray  # noqa: E402
from hurray import CopyRequiredError, Device, Tensor, UnsupportedError  # noqa: E402

ATTRIBUTE = "__dlpack_c_exchange_api__"
OURS = table_of(Tensor)


def strided():
    return hurray.from_numpy(aligned(256).view(np.int16).reshape(8, 16)[:, ::2], copy=False)


def read_only():
    a = aligned(64)
    a.flags.writeable = False
    return hurray.from_numpy(a, copy=False)


def exported():
    return {
        "row_major": hurray.zeros((2, 3), dtype=hurray.float32),
        "col_major": hurray.from_numpy(aligned(24).reshape(4, 6).T, copy=False),
        "strided": strided(),
        "backwards": hurray.from_numpy(aligned(64).view(np.float32)[::-1], copy=False),
        "scalar": hurray.zeros((), dtype=hurray.dtype.complex128),
        "empty": hurray.zeros((0, 3)),
        "deep": Tensor(bytes(64), hurray.uint8, (1,) * 63 + (64,)),
        "read_only": read_only(),
        "pinned": Tensor(bytes(4), hurray.float32, (1,), Device("cpu", 3, "host_pinned")),
        "float8": Tensor(bytes(4), hurray.dtype.float8_e5m2, (4,)),
        "float4": Tensor(bytes(2), hurray.dtype.float4_e2m1, (4,)),
        "bfloat16": Tensor(bytes(4), hurray.bfloat16, (2,)),
    }


def refused():
    return {
        "bool": hurray.zeros((2,), dtype=hurray.bool),
        "int4": Tensor(bytes(2), hurray.dtype.int4, (4,)),
        "float128": Tensor(bytes(16), hurray.dtype.float128, (1,)),
        "csr": Tensor(bytes(8), hurray.float32, (2, 2), layout=hurray.CsrLayout(0),
                      aux_buffers=[b"", bytes(24)]),
        "tiled": Tensor(bytes(64), hurray.float32, (4, 4), layout=hurray.TiledLayout((2, 2))),
        "morton": Tensor(bytes(64), hurray.float32, (4, 4), layout=hurray.MortonLayout((2, 2))),
        "dynamic": Tensor(bytes(8), hurray.float32, (None, 2)),
        "cuda": hurray.zeros((2,), device=hurray.device.cuda),
        "odd": Tensor(bytes(16), hurray.float32, (2,), byte_offset=1),
        "uncountable": Tensor(b"", hurray.float32, (0, 2**62)),
    }  # fmt: skip


def refusal(call):
    with pytest.raises(builtins.BufferError) as info:
        call()
    assert not isinstance(info.value, hurray.BufferError)
    return type(info.value), str(info.value)


def fields(x):
    return (
        x.data, x.device_type, x.device_id, x.ndim, x.code, x.bits, x.lanes, x.byte_offset,
        x.shape[: x.ndim], x.strides[: x.ndim],
    )  # fmt: skip


# ---- offered ----------------------------------------------------------------------------------------


def test_the_table_belongs_to_the_type():
    capsule = vars(Tensor)[ATTRIBUTE]
    assert capsule_name(capsule) == b"dlpack_exchange_api"
    assert getattr(hurray.zeros((1,)), ATTRIBUTE) is capsule
    header = OURS.header
    assert (header.major, header.minor) == (1, 3) and not header.prev_api
    for function in ("allocate", "from_object", "to_object", "borrow", "work_stream"):
        assert getattr(OURS, function)
    assert not hasattr(hurray.Composite, ATTRIBUTE)


@pytest.mark.parametrize("name", exported())
def test_managed_tensors_are_those_of_the_python_protocol(name):
    t = exported()[name]
    other, capsule = taken(t, max_version=(1, 3))
    managed = managed_from(OURS, t)
    assert (managed.major, managed.minor) == (other.major, other.minor) == (1, 1)
    assert managed.flags == other.flags == (1 if t.readonly else 0)
    assert fields(managed.tensor) == fields(other.tensor)
    delete(managed)


@pytest.mark.parametrize("name", exported())
def test_borrowed_tensors_point_into_the_tensor(name):
    t = exported()[name]
    other, capsule = taken(t, max_version=(1, 3))
    first, second = DLTensor(), DLTensor()
    count = sys.getrefcount(t)
    if t.readonly:
        kind, message = refusal(lambda: OURS.borrow(t, first))
        assert issubclass(kind, UnsupportedError) and "read-only" in message
        return
    assert OURS.borrow(t, first) == OURS.borrow(t, second) == 0
    assert sys.getrefcount(t) == count
    assert fields(first) == fields(second) == fields(other.tensor)
    address = ctypes.addressof
    for part in ("shape", "strides"):
        a, b = getattr(first, part), getattr(second, part)
        assert t.ndim == 0 or address(a.contents) == address(b.contents)


@pytest.mark.parametrize("name", refused())
def test_refusals_are_those_of_the_python_protocol(name):
    t = refused()[name]
    expected = refusal(lambda: t.__dlpack__(max_version=(1, 3)))
    assert refusal(lambda: managed_from(OURS, t)) == expected
    assert refusal(lambda: OURS.borrow(t, DLTensor())) == expected


@pytest.mark.parametrize("x", [3, None, Tensor, np.zeros(2)], ids=lambda x: type(x).__name__)
def test_other_objects_are_refused(x):
    for call in (lambda: managed_from(OURS, x), lambda: OURS.borrow(x, DLTensor())):
        assert "hurray.Tensor" in refusal(call)[1]


def test_managed_tensors_keep_the_tensor():
    t = hurray.zeros((4,))
    watch, count = weakref.ref(t), sys.getrefcount(t)
    managed = managed_from(OURS, t)
    assert sys.getrefcount(t) == count + 1
    del t
    gc.collect()
    assert watch() is not None
    # A foreign thread, which has no Python of its own when it calls.
    plain = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(
        ctypes.cast(managed.deleter, ctypes.c_void_p).value
    )
    thread = threading.Thread(target=plain, args=(ctypes.addressof(managed),))
    thread.start()
    thread.join()
    assert watch() is None


def test_managed_tensors_come_in():
    t = hurray.asarray(np.arange(6, dtype=np.int32).reshape(2, 3))
    back = object_from(OURS, managed_from(OURS, t))
    assert type(back) is Tensor and np.shares_memory(np.asarray(back), np.asarray(t))
    assert back.shape == (2, 3) and back.dtype is hurray.int32
    watch = weakref.ref(t)
    del t
    assert watch() is not None
    del back
    gc.collect()
    assert watch() is None
    assert object_from(OURS, managed_from(OURS, read_only())).readonly


def hand_made(**options):
    """A managed tensor as its owner hands it over."""
    x = Exporter(aligned(64), (4,), options.pop("code", 2), options.pop("bits", 32), **options)
    x.alive.add(x)
    return x


def test_what_comes_in_is_taken_whatever_comes_of_it():
    copied = Exporter(aligned(64, 4), (4,), 2, 32)
    t = object_from(OURS, copied.managed)
    assert t.buffer_handles[0].alignment == 64 and copied.deleted == 1
    for options, message in (
        ({"code": 99}, "code 99"),
        ({"lanes": 2}, "2 lanes"),
        ({"version": (2, 0)}, "2.0"),
        ({"null": True}, "address"),
        ({"device": (2, 0)}, "cuda"),
        ({"device": (77, 0)}, "77"),
    ):
        x = hand_made(**options)
        kind, said = refusal(lambda x=x: object_from(OURS, x.managed))
        assert message in said and x.deleted == 1


def test_current_work_stream():
    for device in ((1, 0), (8, 2)):
        stream = ctypes.c_void_p(7)
        assert OURS.work_stream(*device, ctypes.byref(stream)) == 0
        assert not stream.value


def prototype(shape, code, bits, *, lanes=1, device=(1, 0)):
    x = DLTensor()
    x.ndim, x.code, x.bits, x.lanes = len(shape), code, bits, lanes
    x.device_type, x.device_id = device
    x.shape = (ctypes.c_int64 * max(len(shape), 1))(*shape)
    return x


def allocated(x):
    """The managed tensor, or kind and message of the refusal."""
    out, said = ctypes.c_void_p(), []
    report = SetError(lambda context, kind, message: said.append((context, kind, message)))
    status = OURS.allocate(ctypes.byref(x), ctypes.byref(out), 1234, report)
    assert (status == 0) == (not said) and (status == 0) == bool(out.value)
    if said:
        ((context, kind, message),) = said
        assert status == -1 and context == 1234
        return kind.decode(), message.decode()
    return type(Exporter(aligned(8), (1,), 1, 8).managed).from_address(out.value)


@pytest.mark.parametrize(
    "code, bits, name", [(2, 32, "float32"), (0, 8, "int8"), (6, 8, "bool"), (5, 128, "complex128"),
                         (10, 8, "float8_e4m3"), (17, 4, "float4_e2m1"), (15, 6, "float6_e2m3")],
)  # fmt: skip
def test_allocated_tensors(code, bits, name):
    for shape in ((3, 5), (), (0, 4), (7,)):
        managed = allocated(prototype(shape, code, bits))
        x = managed.tensor
        assert (managed.major, managed.minor, managed.flags) == (1, 1, 0)
        assert (x.code, x.bits, x.lanes, x.byte_offset) == (code, bits, 1, 0)
        assert (x.device_type, x.device_id) == (1, 0)
        assert tuple(x.shape[: x.ndim]) == shape
        count = int(np.prod(shape))
        assert (x.data is None) == (count == 0) and (x.data or 0) % 64 == 0
        if shape == (3, 5):
            assert x.strides[:2] == [5, 1]
        if count:
            size = count if name == "bool" else hurray.buffer_size_bytes(getattr(hurray.dtype, name), count)
            ctypes.memset(x.data, 0, size)
        t = object_from(OURS, managed)
        assert t.dtype.name == name and t.shape == shape and not t.readonly


def test_allocation_by_a_thread_without_python():
    x, out = prototype((4,), 2, 32), ctypes.c_void_p()
    # ctypes lets Python go for the time of such a call.
    assert isinstance(OURS.allocate, Allocate)
    thread = threading.Thread(
        target=OURS.allocate, args=(ctypes.byref(x), ctypes.byref(out), None, SetError())
    )
    thread.start()
    thread.join()
    managed = type(Exporter(aligned(8), (1,), 1, 8).managed).from_address(out.value)
    assert managed.tensor.data % 64 == 0
    delete(managed)


@pytest.mark.parametrize(
    "x, kind, message",
    [(prototype((2,), 99, 8), "BufferError", "type"), (prototype((2,), 2, 32, lanes=4), "BufferError", "type"),
     (prototype((2,), 2, 32, device=(2, 0)), "BufferError", "CPU"), (prototype((-1,), 2, 32), "BufferError", "negative"),
     (prototype((1,) * 65, 2, 32), "BufferError", "64"), (prototype((2**62, 0), 2, 32), "BufferError", "2**63"),
     (prototype((2**50, 2**20), 1, 8), "BufferError", "2**63"), (prototype((2**52,), 2, 64), "MemoryError", "memory")],
    ids=lambda x: x if isinstance(x, str) else "x",
)  # fmt: skip
def test_refused_allocations(x, kind, message):
    found = allocated(x)
    assert found[0] == kind and message in found[1]


def test_exports_outlive_the_interpreter():
    processes.run(
        """
        import ctypes, sys
        sys.path.insert(0, ".")
        from dlpack_structures import managed_from, table_of

        t = hurray.zeros((4,))
        managed = managed_from(table_of(hurray.Tensor), t)
        capsules = [t.__dlpack__(), t.__dlpack__(max_version=(1, 1))]
        sys.held = (managed, capsules)  # gone last, or never
        """
    )


# ---- used: a table of our own making ----------------------------------------------------------------


def offering(export, *, major=1, minor=3, prev_api=None, base=object):
    """A class whose table's export is `export(object, out) -> int`."""
    table = ExchangeTable()
    table.header.major, table.header.minor = major, minor
    if prev_api is not None:
        table.header.prev_api = ctypes.pointer(prev_api)
    table.from_object = FromObject(export)

    class Offering(base):
        pass

    setattr(Offering, ATTRIBUTE, new_capsule(ctypes.addressof(table), b"dlpack_exchange_api", None))
    Offering.table = table  # lives as long as the class
    return Offering


class Both(Exporter):
    """By the table, where the class has one, and by `__dlpack__`, and tells how often."""

    by_table = 0


def give(x, out):
    x.by_table += 1
    x.alive.add(x)
    out[0] = ctypes.addressof(x.managed)
    return 0


@pytest.mark.parametrize("copy", [None, False, True])
def test_the_table_is_used(copy):
    kind = offering(give, base=Both)
    x = kind(aligned(64), (4, 4), 2, 32, strides=(1, 4), flags=1)
    t = hurray.from_dlpack(x, copy=copy)
    assert (x.by_table, x.calls) == (1, [])
    assert t.readonly == (copy is not True) and t.layout == hurray.ColMajorLayout()
    assert (t.to_numpy() == x.memory.view(np.float32).reshape(4, 4).T).all()
    del t
    gc.collect()
    assert x.deleted == 1
    y = kind(aligned(64, 4), (4,), 2, 32)
    with pytest.raises(CopyRequiredError, match="4-byte aligned.*64"):
        hurray.asarray(y, copy=False)
    assert (y.by_table, y.calls, y.deleted) == (1, [], 1)


def test_other_memory_goes_by_the_python_protocol():
    x = offering(give, base=Both)(aligned(64), (4,), 2, 32, device=(8, 1))
    t = hurray.from_dlpack(x)
    assert t.device == Device("metal", 1) and len(x.calls) == 1
    assert x.deleted == 1  # what the table gave
    del t
    gc.collect()
    assert x.deleted == 2


def test_what_the_table_refuses_goes_by_the_python_protocol():
    # A function in Python cannot leave an exception behind, so a real table refuses.
    with pytest.raises(UnsupportedError, match="bool"):
        hurray.from_dlpack(refused()["bool"])

    def nothing(x, out):
        return 0

    y = offering(nothing, base=Both)(aligned(64), (4,), 2, 32)
    assert hurray.from_dlpack(y).size == 4 and len(y.calls) == 1


def test_versions_of_tables():
    old = offering(give, base=Both)
    newer = offering(give, major=2, prev_api=old.table.header, base=Both)
    x = newer(aligned(64), (4,), 2, 32)
    assert hurray.from_dlpack(x).size == 4 and (x.by_table, x.calls) == (1, [])
    alone = offering(give, major=2, base=Both)
    y = alone(aligned(64), (4,), 2, 32)
    assert hurray.from_dlpack(y).size == 4 and y.by_table == 0 and len(y.calls) == 1
    later = offering(give, minor=9, base=Both)
    z = later(aligned(64), (4,), 2, 32)
    assert hurray.from_dlpack(z).size == 4 and z.by_table == 1


def test_a_managed_tensor_of_another_version_goes_back():
    x = offering(give, base=Both)(aligned(64), (4,), 2, 32, version=(2, 0))
    with pytest.raises(builtins.BufferError, match="2.0"):
        hurray.from_dlpack(x)
    assert x.deleted >= 1


OTHER_NAME = b"other"  # a capsule does not keep its name


@pytest.mark.parametrize(
    "wrong", [None, 3, "capsule", new_capsule(1, OTHER_NAME, None)], ids=["None", "int", "str", "capsule"]
)
def test_attributes_that_are_no_table_mean_nothing(wrong):
    class Odd(Both):
        pass

    setattr(Odd, ATTRIBUTE, wrong)
    x = Odd(aligned(64), (4,), 2, 32)
    assert hurray.from_dlpack(x).size == 4 and len(x.calls) == 1


def test_the_attribute_is_that_of_the_type_and_looked_up_once():
    asked = []

    class Meta(type):
        def __getattribute__(cls, name):
            if name == ATTRIBUTE:
                asked.append(cls)
            return super().__getattribute__(name)

    class Counted(offering(give, base=Both), metaclass=Meta):
        pass

    for _ in range(5):
        hurray.from_dlpack(Counted(aligned(64), (4,), 2, 32))
    assert asked == [Counted]
    x = Both(aligned(64), (4,), 2, 32)
    setattr(x, ATTRIBUTE, vars(Tensor)[ATTRIBUTE])  # of the object: no table
    assert hurray.from_dlpack(x).size == 4 and len(x.calls) == 1


def test_classes_come_and_go():
    watches = []
    for i in range(60):  # more than are remembered, and with addresses used again
        kind = offering(give, base=Both) if i % 2 else type("Plain", (Both,), {})
        x = kind(aligned(64), (4,), 2, 32)
        t = hurray.from_dlpack(x)
        assert x.by_table == i % 2 and len(x.calls) == 1 - i % 2
        watches.append(weakref.ref(kind))
        del kind, x, t
        gc.collect()
    # Where a thread has been started, a free-threaded Python 3.13 makes every class immortal.
    left = [kind for kind in (watch() for watch in watches[:-1]) if kind is not None]
    assert all(sys.getrefcount(kind) > 1 << 30 for kind in left)


def test_many_threads_and_classes():
    kinds = [offering(give, base=Both) for _ in range(24)]
    failures = []

    def work(seed):
        try:
            for i in range(100):
                x = kinds[(seed * 7 + i) % len(kinds)](aligned(64), (16,), 2, 32)
                t = hurray.from_dlpack(x)
                assert bytes(memoryview(t)) == x.memory.tobytes() and x.by_table == 1
                del t
                assert x.deleted == 1
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_tensors_of_hurray_take_each_other():
    for name, t in exported().items():
        other = hurray.from_dlpack(t)
        assert other is not t and other.shape == t.shape and other.dtype is t.dtype, name
        assert other.readonly == t.readonly and other.device.kind == t.device.kind
        assert other.device.device_id == t.device.device_id
        if t.layout.name != "strided":
            assert other.layout == t.layout
        assert other.to_numpy().tobytes() == t.to_numpy().tobytes()
    for t in refused().values():
        with pytest.raises((UnsupportedError, builtins.BufferError)):
            hurray.from_dlpack(t)
    same = strided()
    shared = hurray.from_dlpack(same, copy=False)
    assert shared.layout == same.layout and np.shares_memory(np.asarray(shared), np.asarray(same))
    with pytest.raises(CopyRequiredError, match="4-byte aligned"):
        hurray.from_dlpack(Tensor(bytes(64), hurray.int32, (4,), byte_offset=4), copy=False)


# ---- used: PyTorch ----------------------------------------------------------------------------------


@pytest.mark.frameworks
class TestTorch:
    @staticmethod
    def torch():
        torch = pytest.importorskip("torch")
        if not hasattr(torch.Tensor, ATTRIBUTE):
            pytest.skip("this PyTorch offers no table")
        return torch

    def cases(self):
        torch = self.torch()
        base = torch.arange(48, dtype=torch.float32).reshape(6, 8)
        z = torch.tensor([[1 + 2j, 3 - 1j], [0.5j, -2]])
        cases = {
            "plain": base, "transposed": base.T, "steps": base[:, ::2], "offset": base[2:, 1:],
            "scalar": torch.tensor(2.5), "empty": torch.zeros(0, 3), "expanded": torch.ones(3, 1).expand(3, 4),
            "grad": torch.ones(3, requires_grad=True), "parameter": torch.nn.Parameter(torch.ones(2)),
            "conj": z.conj(), "neg": z.conj().imag, "both": z.conj().imag.T, "resolved": z,
            "neg_view": torch._neg_view(torch.arange(3)), "bool": torch.tensor([True, False, True]),
            "alone": torch.ones(1, 1, 1).expand(1, 1, 1), "inference": torch.ones(2),
        }  # fmt: skip
        for name in ("float16 bfloat16 float64 int8 uint8 int16 uint16 int32 uint32 int64 uint64 complex64 complex128 "
                     "float8_e4m3fn float8_e5m2 float8_e8m0fnu").split():  # fmt: skip
            cases[name] = torch.zeros(16, dtype=torch.uint8).random_(0, 100).view(getattr(torch, name))
        return cases

    def refused(self):
        torch = self.torch()
        return {
            "meta": torch.zeros(2, device="meta"), "sparse": torch.zeros(2, 2).to_sparse(),
            "csr": torch.zeros(2, 2).to_sparse_csr(), "complex32": torch.zeros(2, dtype=torch.complex32),
            "quantized": torch.quantize_per_tensor(torch.ones(2), 0.1, 0, torch.qint8),
            "nested": torch.nested.nested_tensor([torch.ones(2), torch.ones(3)]),
            "int3": torch.empty(4, dtype=torch.int3), "uint7": torch.empty(4, dtype=torch.uint7),
            "bits": torch.empty(4, dtype=torch.bits8), "fnuz": torch.zeros(4, dtype=torch.float8_e4m3fnuz),
            "x2": torch.zeros(4, dtype=torch.uint8).view(torch.float4_e2m1fn_x2),
            "zero": torch._efficientzerotensor((3,)), "mkldnn": torch.ones(3).to_mkldnn(),
        }  # fmt: skip

    def without_table(self):
        torch = self.torch()

        class WithoutTable(torch.Tensor):
            __dlpack_c_exchange_api__ = None

        return WithoutTable

    @pytest.mark.filterwarnings("ignore::UserWarning")
    @pytest.mark.parametrize("copy", [None, False, True])
    def test_both_ways_give_the_same(self, copy):
        by_protocol = self.without_table()

        def result(call, x):
            try:
                t = call(x, copy=copy)
            except (UnsupportedError, CopyRequiredError) as error:
                return type(error), str(error)
            raw = np.asarray(t.buffer(0))
            shared = (raw.ctypes.data, t.buffer_handles) if copy is False else None
            return t.descriptor, t.readonly, raw.tobytes(), shared

        for name, x in self.cases().items():
            y = x.detach().as_subclass(by_protocol)
            for call in (hurray.from_torch, hurray.from_dlpack, hurray.asarray):
                mine, theirs = result(call, x), result(call, y)
                assert mine[1:] == theirs[1:], name
                if isinstance(mine[0], hurray.Descriptor):  # fresh memory lies anywhere
                    assert mine[0].differences(theirs[0]) == (), name

    @pytest.mark.filterwarnings("ignore::UserWarning")
    def test_both_ways_refuse_the_same(self):
        by_protocol = self.without_table()
        for name, x in self.refused().items():
            for call in (hurray.from_torch, hurray.from_dlpack, hurray.asarray):
                with pytest.raises(UnsupportedError) as by_table:
                    call(x)
                try:
                    y = x.as_subclass(by_protocol)
                except RuntimeError:  # not every kind has subclasses
                    continue
                with pytest.raises(UnsupportedError) as by_call:
                    call(y)
                same = str(by_call.value).replace("WithoutTable", "Tensor")
                assert str(by_table.value) == same, name

    def test_the_table_alone_is_enough(self, monkeypatch):
        torch = self.torch()
        x = torch.arange(6).reshape(2, 3)

        def refuse(*_, **__):
            raise AssertionError("the Python protocol was used")

        monkeypatch.setattr(torch.Tensor, "__dlpack__", refuse)
        for call in (hurray.from_torch, hurray.from_dlpack, hurray.asarray):
            assert call(x).to_numpy().tolist() == [[0, 1, 2], [3, 4, 5]]

    def test_wrappers_are_refused_though_their_class_inherits_the_table(self):
        torch = self.torch()

        class Local(torch.Tensor):
            @staticmethod
            def __new__(cls, inner, shape):
                out = torch.Tensor._make_subclass(cls, inner)
                out.whole = shape
                return out

            @classmethod
            def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
                raise RuntimeError("not reached")

            def full_tensor(self):
                raise RuntimeError("not reached")

        shard = Local(torch.ones(2), (8,))
        assert getattr(type(shard), ATTRIBUTE) is getattr(torch.Tensor, ATTRIBUTE)
        for call in (hurray.from_torch, hurray.from_dlpack, hurray.asarray):
            with pytest.raises(UnsupportedError, match=r"Local .*full_tensor\(\)"):
                call(shard)

    @pytest.mark.filterwarnings("ignore::DeprecationWarning")
    def test_transformations(self):
        torch = self.torch()
        seen = []

        def look(x):
            for call in (hurray.from_torch, hurray.from_dlpack, hurray.asarray):
                with pytest.raises(UnsupportedError):
                    call(x)
            seen.append(True)
            return x.sum()

        torch.func.vmap(look)(torch.ones(2, 2))
        torch.func.grad(look)(torch.ones(2))
        torch.func.jvp(look, (torch.ones(2),), (torch.ones(2),))
        torch.func.vjp(look, torch.ones(2))
        torch.func.functionalize(look)(torch.ones(2))
        assert len(seen) == 5

    def test_lifetimes(self):
        torch = self.torch()
        x = torch.ones(64)
        address = x.data_ptr()
        t = hurray.from_dlpack(x)
        watch = weakref.ref(x)
        del x
        gc.collect()
        view = np.asarray(t)
        del t
        assert view.sum() == 64 and (watch() is None or watch().data_ptr() == address)

    def test_torch_takes_what_the_table_gives(self):
        torch = self.torch()
        theirs = table_of(torch.Tensor)
        t = hurray.asarray(np.arange(6, dtype=np.int32).reshape(2, 3))
        x = object_from(theirs, managed_from(OURS, t))
        assert type(x) is torch.Tensor and x.tolist() == [[0, 1, 2], [3, 4, 5]]
        assert x.data_ptr() == np.asarray(t).ctypes.data
        back = object_from(OURS, managed_from(theirs, x))
        assert type(back) is Tensor and np.shares_memory(np.asarray(back), np.asarray(t))
        watch = weakref.ref(t)
        del t, back
        assert watch() is not None
        del x
        gc.collect()
        assert watch() is None
        made = object_from(theirs, allocated(prototype((2, 2), 2, 32)))
        made.fill_(3)
        assert made.tolist() == [[3, 3], [3, 3]]
