"""Values pickle in every protocol and copy as themselves (reference, sections 2.1 and 19.9)."""

import copy
import pickle
import subprocess
import sys

import hurray
import pytest
import test_conformance
import test_layouts
import test_quantization
from hurray import Descriptor, Device, Dtype, ExtensionType, Shard, Statistics, Tensor
from hurray import _errors

PROTOCOLS = range(pickle.HIGHEST_PROTOCOL + 1)

VALUES = [
    *test_layouts.LAYOUTS,
    test_layouts.nested(8),
    hurray.TiledLayout((2, 3), "strided", "strided", (-4, 1), (1, -2)),
    hurray.PrivateExtensionLayout(0xFE, 2**64 - 1, bytes(range(256))),
    hurray.UnknownLayout(0xEF, b"\0raw"),
    hurray.BlockPagedLayout(1, 2**64 - 1, 1, 2, "fused", 0, "uint64"),
    *(example[0] for example in test_quantization.EXAMPLES),
    hurray.PerTensorAffine(0.02, -5),
    hurray.PerBlockAffine.asymmetric(0, 2, 3, 3, hurray.float16),
    Statistics(),
    Statistics(nnz=3, nm_n=2, nm_m=4),
    Statistics(value_min=float("nan"), value_max=float("inf"), value_abs_max=-0.0, has_nan=True, has_inf=False),
    Shard((), ()),
    Shard((1024, 2**63), (512, 0)),
    ExtensionType(24, is_signed=True),
    ExtensionType(16, is_float=True, sign_bits=1, exponent_bits=5, mantissa_bits=10, exponent_bias=15, has_nan=True),
    Device("cuda", 3, "unified"),
    Device(0xF2, 1, 0xF3),
    Device("cpu", 0, 0xF1),
    Tensor(bytes(48), hurray.float32, (3, 4), Device("cuda", 1)).descriptor,
    Tensor(b"", hurray.float32, (None, 4)).descriptor,
    Tensor(bytes(4), hurray.float32, (1,), Device(0xF3, 2, 0xF5), statistics=Statistics(nnz=0)).descriptor,
    *Tensor(bytes(48), hurray.float32, (3, 4), Device("cuda", 1)).buffer_handles,
    *Tensor(b"", hurray.float32, (0,)).buffer_handles,
]
SINGLETONS = [
    *(getattr(hurray.dtype, name) for name in hurray.dtype.__all__),
    *(Dtype.from_tag(tag) for tag in range(0xF0, 0xFF)),
    *(getattr(hurray.device, name) for name in hurray.device.__all__),
]


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_values_come_back_equal(protocol):
    for value in VALUES:
        again = pickle.loads(pickle.dumps(value, protocol))
        assert again == value and type(again) is type(value) and again is not value, value
        assert repr(again) == repr(value)
        if type(value).__hash__ is not None:
            assert hash(again) == hash(value)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_singletons_come_back_as_the_same_objects(protocol):
    for value in SINGLETONS:
        assert pickle.loads(pickle.dumps(value, protocol)) is value
    assert pickle.loads(pickle.dumps(Device("cuda"), protocol)) is hurray.device.cuda


def test_copies_are_the_values_themselves():
    for value in [*VALUES, *SINGLETONS]:
        assert copy.copy(value) is value and copy.deepcopy(value) is value
    nested = copy.deepcopy({"layouts": [hurray.CooLayout(2)], "dtype": hurray.float32})
    assert nested["dtype"] is hurray.float32 and nested["layouts"] == [hurray.CooLayout(2)]


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_handles_share_their_device_when_pickled_together(protocol):
    descriptor = Descriptor.decode(
        test_conformance.read(
            next(e for e in test_conformance.entries("descriptor", "valid") if e["expect"]["layout"] == "csr")
        )[0]
    )
    handles = pickle.loads(pickle.dumps(descriptor.buffer_handles, protocol))
    assert handles == descriptor.buffer_handles
    assert all(handle.device is handles[0].device for handle in handles)
    again = pickle.loads(pickle.dumps(descriptor, protocol))
    assert all(handle.device is again.device for handle in again.buffer_handles)


def test_descriptors_of_every_vector_pickle():
    seen = set()
    for entry in test_conformance.entries("descriptor", "valid", "opaque"):
        raw, _ = test_conformance.read(entry)
        if entry.get("rows") == ["30"]:
            continue  # a private composition rule
        descriptor = Descriptor.decode(raw, permissive=True)
        seen.add(type(descriptor.layout))
        for protocol in (0, 5):
            parts = (descriptor, descriptor.layout, descriptor.quantization, descriptor.dtype, descriptor.statistics)
            again, layout, quantization, dtype, statistics = pickle.loads(pickle.dumps(parts, protocol))
            assert again == descriptor and again.differences(descriptor, ignore=()) == (), entry["name"]
            assert layout == descriptor.layout and type(layout) is type(descriptor.layout)
            assert hash(layout) == hash(descriptor.layout)
            assert quantization == descriptor.quantization and statistics == descriptor.statistics
            assert dtype is descriptor.dtype
            if entry["expect"].get("reencodes", True):
                assert again.encode() == raw
    assert len(seen) == 14


def test_a_strict_descriptor_stays_strict():
    raw = bytearray(Tensor(bytes(48), hurray.float32, (3, 4)).descriptor.encode())
    raw[15] = 0x0C
    unknown = pickle.loads(pickle.dumps(Descriptor.decode(raw, permissive=True)))
    assert unknown.encode() == raw


def test_values_go_to_other_processes():
    """A pickle of everything, read by an interpreter that has not seen any of it."""
    program = (
        "import pickle, sys\n"
        "values = pickle.load(sys.stdin.buffer)\n"
        "import hurray\n"
        "assert values[0] is hurray.float32 and values[1] is hurray.device.cuda\n"
        "pickle.dump([repr(v) for v in values], sys.stdout.buffer)\n"
    )
    values = [hurray.float32, hurray.device.cuda, *VALUES]
    found = subprocess.run(
        [sys.executable, "-c", program], input=pickle.dumps(values), capture_output=True, check=False, timeout=300
    )
    assert found.returncode == 0, found.stderr.decode()
    assert pickle.loads(found.stdout) == [repr(v) for v in values]


def test_pickles_that_were_tampered_with_are_errors():
    from hurray import _rebuild

    with pytest.raises(hurray.InvalidDescriptorError):
        _rebuild.dtype(0)
    with pytest.raises(hurray.InvalidDescriptorError):
        _rebuild.device(0x20, 0, 0)
    with pytest.raises(TypeError):
        _rebuild.buffer_handle(1, 64, "producer_synced", "cpu")
    with pytest.raises(ValueError, match="sync_mode"):
        _rebuild.buffer_handle(1, 64, "sometime", hurray.device.cpu)
    raw = Tensor(bytes(48), hurray.float32, (3, 4)).descriptor.encode()
    with pytest.raises(hurray.InvalidDescriptorError, match="cannot decode"):
        _rebuild.descriptor(raw[:-1], hurray.device.cpu, False, 0)
    for device in (hurray.device.cuda, Device("cpu", 0, "unified")):
        with pytest.raises(hurray.InvalidDescriptorError, match="device"):
            _rebuild.descriptor(raw, device, False, 0)
    with pytest.raises(TypeError):
        _rebuild.descriptor(raw, None, False, 0)
    with pytest.raises(TypeError):
        _rebuild.descriptor_of((1, 0), "float32", (), 0, None, (), None, None, None, None, None, None)
    with pytest.raises(AttributeError):
        _rebuild.construct("Nothing.here", {})


def test_a_descriptor_that_has_no_bytes_is_rebuilt_of_its_parts():
    """What only `encode` refuses still pickles (Y7)."""
    from hurray import _rebuild

    scheme = hurray.NF4(0, 64, 1)
    handles = Descriptor.decode(
        test_conformance.read(
            next(e for e in test_conformance.entries("descriptor", "valid") if e["expect"]["layout"] == "csr")
        )[0]
    ).buffer_handles[:2]
    made = _rebuild.descriptor_of(
        (1, 0), hurray.float64, (5, None), 0, hurray.RowMajorLayout(), handles, scheme, Shard((9, 9), (0, 0)),
        Statistics(nnz=1), None, "base", handles[0].device,
    )
    with pytest.raises(hurray.InvalidDescriptorError, match="cannot encode"):
        made.encode()
    assert made.quantization == scheme and made.shape == (5, None)
    for protocol in PROTOCOLS:
        again = pickle.loads(pickle.dumps(made, protocol))
        assert again == made and again.differences(made, ignore=()) == ()
        assert again.buffer_handles == handles and again.shard == Shard((9, 9), (0, 0))


# ---- exceptions ------------------------------------------------------------------------------------------------

PLAIN = [
    hurray.InvalidDescriptorError,
    hurray.BufferError,
    hurray.CopyRequiredError,
    hurray.UnsupportedError,
    hurray.InternalError,
    _errors._UnsupportedAttributeError,
    _errors._UnsupportedBufferError,
    _errors._CopyRequiredBufferError,
]
OF_THE_SYSTEM = [
    hurray.FileError,
    hurray.StreamError,
    _errors._StreamTimeoutError,
    *_errors.FileError.__subclasses__(),
]


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("cls", [*PLAIN, *OF_THE_SYSTEM], ids=lambda cls: cls.__name__)
def test_exceptions_pickle(cls, protocol):
    error = cls("what was expected, found, where")
    for again in (pickle.loads(pickle.dumps(error, protocol)), copy.copy(error), copy.deepcopy(error)):
        assert type(again) is cls and again.args == error.args and str(again) == str(error)


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("cls", OF_THE_SYSTEM, ids=lambda cls: cls.__name__)
def test_errors_of_the_system_keep_what_is_behind_them(cls, protocol):
    error = cls(2, "No such file or directory", "/no/such.hrry")
    again = pickle.loads(pickle.dumps(error, protocol))
    assert type(again) is cls
    assert (again.errno, again.strerror, again.filename) == (2, "No such file or directory", "/no/such.hrry")


def test_exceptions_that_were_raised_pickle(tmp_path):
    with pytest.raises(hurray.FileError) as missing:
        hurray.load(tmp_path / "missing.hrry")
    with pytest.raises(hurray.FileError) as folder:
        hurray.load(tmp_path)
    with pytest.raises(hurray.InvalidDescriptorError) as invalid:
        Descriptor.decode(b"")
    with pytest.raises(hurray.StreamError) as stream:
        list(hurray.StreamReader(b"HRRY"))
    for caught in (missing, folder, invalid, stream):
        again = pickle.loads(pickle.dumps(caught.value))
        assert type(again) is type(caught.value) and str(again) == str(caught.value)
        for name in ("errno", "strerror", "filename"):
            assert getattr(again, name, None) == getattr(caught.value, name, None)
    assert isinstance(pickle.loads(pickle.dumps(missing.value)), FileNotFoundError)
    assert isinstance(pickle.loads(pickle.dumps(folder.value)), IsADirectoryError)
