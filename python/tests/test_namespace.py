"""The names of the module and the sets that are closed (existing tools enumerate them)."""

import builtins
import importlib
import inspect
import pickle
import pydoc
import re
import shutil
import subprocess
import sys

import pytest

import hurray
import hurray.device
import hurray.dtype
import processes

TIER_1 = "float16 bfloat16 float32 float64 int8 uint8 int16 uint16 int32 uint32 int64 uint64 bool".split()
TIER_2 = (
    "float8_e4m3 float8_e5m2 float8_e8m0 float4_e2m1 float6_e2m3 float6_e3m2 float128 int4 uint4 int2 "
    "uint2 complex64 complex128"
).split()
ERRORS = (
    "InvalidDescriptorError BufferError CopyRequiredError UnsupportedError InternalError FileError StreamError"
).split()
LAYOUTS = (
    "RowMajorLayout ColMajorLayout StridedLayout TiledLayout MortonLayout HilbertLayout CooLayout CsrLayout CscLayout "
    "CsfLayout BlockPagedLayout CompositeLayout PrivateExtensionLayout UnknownLayout"
).split()
SCHEMES = "PerTensorAffine PerChannelAffine PerBlockAffine NF4 MXFP".split()
SECTIONS = "Statistics Shard ExtensionType".split()
OTHER_CLASSES = "FileWriter StreamDecoder StreamReader StreamWriter AlignedAllocatorCtx PrintOptionsCtx".split()
FUNCTIONS = (
    "zeros ones empty full zeros_like ones_like empty_like full_like arange eye linspace from_numpy from_torch "
    "from_scipy sparse_coo share from_dlpack asarray from_hurray aligned_allocator load save save_async load_kv convert set_print_options "
    "get_print_options print_options buffer_size_bytes decode_quantization layout_tag_kind validate_colocation"
).split()
CONSTANTS = "MIN_BUFFER_ALIGNMENT PAGE_ALIGNMENT".split()
DEVICES = "cpu cuda rocm metal vulkan webgpu hexagon level_zero opencl".split()


def public(module):
    return {name for name in vars(module) if not name.startswith("_")}


def test_dtype_and_device_hold_exactly_their_objects():
    assert public(hurray.dtype) == set(TIER_1 + TIER_2) == set(hurray.dtype.__all__)
    assert public(hurray.device) == set(DEVICES) == set(hurray.device.__all__)


def test_every_dtype_of_the_table_is_in_the_module():
    named = [hurray.Dtype.from_name(name) for name in hurray.dtype.__all__]
    tags = {dtype.tag for dtype in named}
    for tag in range(1, 0xF0):
        try:
            assert hurray.Dtype.from_tag(tag).tag in tags
        except hurray.InvalidDescriptorError:
            assert tag not in tags


def test_tier_1_names_are_the_same_objects_at_top_level():
    for name in TIER_1:
        assert getattr(hurray, name) is getattr(hurray.dtype, name)
    for name in TIER_2:
        assert not hasattr(hurray, name)


def test_submodules_are_importable():
    assert sys.modules["hurray.dtype"] is hurray.dtype
    assert sys.modules["hurray.device"] is hurray.device
    from hurray.device import cuda
    from hurray.dtype import int4

    assert int4 is hurray.dtype.int4 and cuda is hurray.device.cuda


def test_the_public_names_are_these():
    """08-python-api.md section 2: a name more or less is a decision, not an accident."""
    wanted = {
        "Dtype", "Device", "Tensor", "Composite", "BufferHandle", "Descriptor", "Layout",
        *LAYOUTS, *SCHEMES, *SECTIONS, *OTHER_CLASSES, *ERRORS, *FUNCTIONS, *CONSTANTS, *TIER_1,
        "dtype", "device", "file",
    }  # fmt: skip
    assert set(hurray.__all__) == wanted and len(hurray.__all__) == len(wanted)
    # Modules for a framework are there once they have been imported.
    assert public(hurray) - {"numpy", "torch", "jax"} == wanted | {"open"}
    assert hurray.file.__all__ == ["File", "ReadCounts"] and public(hurray.file) == {"File", "ReadCounts"}
    assert hurray.__all__ == sorted(hurray.__all__)


def test_all_is_true_and_leaves_open_out():
    for name in hurray.__all__:
        assert hasattr(hurray, name), name
    assert "open" not in hurray.__all__ and callable(hurray.open)
    scope = {}
    exec("from hurray import *", scope)
    assert scope["zeros"] is hurray.zeros and "open" not in scope


def test_the_overview_names_everything_once():
    """help(hurray) begins with what is here, by task."""
    _, _, overview = hurray.__doc__.partition("Tensors: ")
    overview, _, rest = overview.partition("\n\n")
    named = [word for line in re.sub(r"; back with[^:]*(?=\n\w)", "", "Tensors: " + overview).split("\n")
             for word in re.findall(r"\w+", line.partition(": ")[2] or line)]
    assert sorted(named) == sorted([*hurray.__all__, "open"])
    assert max(map(len, hurray.__doc__.splitlines())) <= 110 and rest


def test_help_reads_well():
    text = pydoc.plain(pydoc.render_doc(hurray))
    assert "hurray - Tensor interchange" in text and "Making them: zeros, ones" in text
    for name in hurray.__all__:
        assert name in text
    one = pydoc.plain(pydoc.render_doc(hurray.zeros))
    assert "zeros(shape" in one and "row-major" in one


def test_top_level_classes_with_their_own_repr():
    own = {
        name
        for name, value in vars(hurray).items()
        if inspect.isclass(value)
        and not issubclass(value, BaseException)
        and value.__repr__ is not object.__repr__
    }
    assert own == {
        "Tensor", "Descriptor", "BufferHandle", "Composite", "Dtype", "Device", "Layout",
        *SECTIONS, *SCHEMES, *LAYOUTS,
    }  # fmt: skip


@pytest.mark.parametrize(
    "name",
    "int4 complex64 SparseTensor from_hurray_buffer __hurray_buffer__ __hurray_sparse_buffer__ set_strict "
    "CompositeMember __array_namespace__ __array_api_version__".split(),
)
def test_absent_on_purpose(name):
    assert not hasattr(hurray, name)


def test_constants():
    assert (hurray.MIN_BUFFER_ALIGNMENT, hurray.PAGE_ALIGNMENT) == (64, 4096)
    assert re.fullmatch(r"\d+\.\d+\.\d+\S*", hurray.__version__)


def test_everything_public_has_a_docstring():
    def check(owner, name, value):
        if inspect.isclass(value) or callable(value) or isinstance(value, property):
            assert value.__doc__, f"{owner}.{name}"

    for name in hurray.__all__:
        value = getattr(hurray, name)
        check("hurray", name, value)
        if inspect.isclass(value) and not issubclass(value, BaseException):
            for member, object_ in vars(value).items():
                if not member.startswith("_"):
                    check(name, member, object_)


EXCEPTIONS = {
    "InvalidDescriptorError": ValueError,
    "BufferError": ValueError,
    "CopyRequiredError": ValueError,
    "UnsupportedError": NotImplementedError,
    "InternalError": RuntimeError,
    "FileError": OSError,
    "StreamError": OSError,
}


@pytest.mark.parametrize("name, base", EXCEPTIONS.items())
def test_exceptions(name, base):
    cls = getattr(hurray, name)
    assert issubclass(cls, base) and cls.__module__ == "hurray"
    copy = pickle.loads(pickle.dumps(cls("message")))
    assert type(copy) is cls and str(copy) == "message"


def test_own_buffer_error_is_not_the_builtin():
    assert hurray.BufferError is not builtins.BufferError
    assert not issubclass(hurray.BufferError, builtins.BufferError)


@pytest.mark.parametrize(
    "name, bases",
    [
        ("_UnsupportedAttributeError", (hurray.UnsupportedError, AttributeError)),
        ("_UnsupportedBufferError", (hurray.UnsupportedError, builtins.BufferError)),
        ("_CopyRequiredBufferError", (hurray.CopyRequiredError, builtins.BufferError)),
        ("_StreamTimeoutError", (hurray.StreamError, TimeoutError)),
        *(
            (f"_{builtin.__name__}", (hurray.FileError, builtin))
            for builtin in (FileNotFoundError, FileExistsError, PermissionError, IsADirectoryError, NotADirectoryError,
                            BrokenPipeError, ConnectionResetError, ConnectionAbortedError, ConnectionRefusedError,
                            TimeoutError)
        ),
    ],
)  # fmt: skip
def test_private_exceptions_serve_two_contracts_and_pickle(name, bases):
    cls = getattr(importlib.import_module("hurray._errors"), name)
    for base in bases:
        assert issubclass(cls, base)
    arguments = (2, "No such file", "a.hrry") if issubclass(cls, OSError) else ("message",)
    error = cls(*arguments)
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is cls and str(copy) == str(error)
    assert getattr(copy, "filename", None) == getattr(error, "filename", None)


@pytest.mark.parametrize("other", ["pyhurray-0.3.0.dist-info", "hurray-1.0.dist-info"])
def test_another_package_in_the_same_folder_is_refused(tmp_path, other):
    package = tmp_path / "hurray"
    package.mkdir()
    (tmp_path / other).mkdir()
    source = importlib.import_module("hurray").__path__[0]
    for file in ("__init__.py", "_beside.py"):
        shutil.copy(f"{source}/{file}", package)
    run = subprocess.run(
        [sys.executable, "-c", "import hurray"],
        env={"PYTHONPATH": str(tmp_path), "PATH": ""},
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert run.returncode != 0
    assert "ImportError" in run.stderr and other in run.stderr
    assert "pip uninstall -y pyhurray hurray-cpp && pip install hurray-cpp" in run.stderr


def test_own_dist_info_beside_the_package_is_fine(tmp_path):
    from hurray import _beside

    (tmp_path / "hurray_cpp-0.1.0.dist-info").mkdir()
    _beside.check(str(tmp_path / "hurray"))
    _beside.check(str(tmp_path / "nowhere" / "hurray"))


def test_import_does_not_import_partners():
    partners = ("numpy", "torch", "scipy", "ml_dtypes", "jax")
    code = f"import hurray, sys; print([m for m in {partners} if m in sys.modules])"
    run = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        cwd=processes.HERE,
    )
    assert run.stdout.strip() == "[]"
