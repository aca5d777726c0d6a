"""The type stubs: what is stored, what is complete, and what type checkers make of it."""

import ast
import importlib
import inspect
import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest

import hurray

ROOT = pathlib.Path(__file__).resolve().parents[2]
PACKAGE = pathlib.Path(hurray.__file__).parent
MODULES = {"__init__": "hurray", "_hurray": "hurray._hurray", "device": "hurray.device", "dtype": "hurray.dtype",
           "file": "hurray.file"}
CHECKED = sorted([*(ROOT / "examples").glob("*.py"), *(ROOT / "python" / "tests" / "typed").glob("*.py")])

# The stubs are made by the plain build.
pytestmark = pytest.mark.skipif("HURRAY_TEST_ASAN" in os.environ, reason="a build for sanitizers makes no stubs")


def tree(module):
    return ast.parse((PACKAGE / f"{module}.pyi").read_text(encoding="utf-8"))


def test_the_interface_is_the_stored_one():
    done = subprocess.run([sys.executable, ROOT / "tools" / "stubs.py"], capture_output=True, text=True,
                          cwd=PACKAGE.parent, env={**os.environ, "PYTHONPATH": os.fspath(PACKAGE.parent)})
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_package_says_that_it_is_typed():
    assert (PACKAGE / "py.typed").is_file()


@pytest.mark.parametrize("module", MODULES)
def test_every_signature_is_complete(module):
    for node in ast.walk(tree(module)):
        if isinstance(node, ast.FunctionDef):
            parameters = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
            bare = [p.arg for p in parameters if p.annotation is None and p.arg not in ("self", "cls")]
            assert not bare and node.returns is not None, f"{node.lineno}: {node.name}"


@pytest.mark.parametrize("module", [module for module in MODULES if module != "_hurray"])
def test_public_names_are_those_of_the_module(module):
    named = set()
    for node in tree(module).body:
        if isinstance(node, ast.ImportFrom):
            named |= {alias.name for alias in node.names if alias.asname == alias.name}
        elif isinstance(node, (ast.ClassDef, ast.FunctionDef)):
            named.add(node.name)
        elif isinstance(node, ast.AnnAssign):
            named.add(node.target.id)
    public = {name for name in named if not name.startswith("_")}
    runtime = importlib.import_module(MODULES[module])
    assert public - {"open"} == set(runtime.__all__)
    assert ("open" in public) == (module == "__init__")


def test_only_what_hashes_has_a_hash():
    for node in tree("_hurray").body:
        if isinstance(node, ast.ClassDef):
            hashes = {type(member) for member in node.body
                      if getattr(member, "name", None) == "__hash__"
                      or isinstance(member, ast.AnnAssign) and member.target.id == "__hash__"}
            cls = getattr(hurray._hurray, node.name)
            if cls.__hash__ is None:
                assert hashes == {ast.AnnAssign}, node.name
            else:
                assert hashes <= {ast.FunctionDef}, node.name


def members(cls):
    """Public ones; `Tensor.T` is there to say what to do instead and is in no stub."""
    return {name for name in vars(cls) if not name.startswith("_")} - {"T"}


def test_the_sample_uses_every_name():
    text = (ROOT / "python" / "tests" / "typed" / "everything.py").read_text(encoding="utf-8")
    words = set(re.findall(r"\w+", text))
    wanted = set(hurray.__all__) | set(hurray.dtype.__all__) | set(hurray.device.__all__) | set(hurray.file.__all__)
    for name in hurray.__all__:
        value = getattr(hurray, name)
        if inspect.isclass(value) and not issubclass(value, BaseException):
            wanted |= members(value)
    assert sorted(wanted - words) == []


def program(name):
    found = shutil.which(name)
    if found is None:
        # The stage that tests the wheel has them.
        assert "HURRAY_WHEEL" not in os.environ, f"{name} is among python/requirements-tools.txt"
        pytest.skip(f"{name} is not installed")
    return found


def outside_a_package(monkeypatch):
    """Where the checkers find the package: beside this Python, or on its path."""
    monkeypatch.setenv("MYPYPATH", "" if "site-packages" in PACKAGE.parts else os.fspath(PACKAGE.parent))


def mypy(tmp_path, monkeypatch, *files):
    outside_a_package(monkeypatch)
    done = subprocess.run(
        [program("mypy"), "--config-file", ROOT / "pyproject.toml", "--python-executable", sys.executable,
         "--cache-dir", tmp_path / "cache", "--no-error-summary", "--hide-error-context", *files],
        capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode < 2, done.stderr
    return done.stdout


def pyright(tmp_path, monkeypatch, *files):
    config = tmp_path / "pyrightconfig.json"
    extra = "" if "site-packages" in PACKAGE.parts else PACKAGE.parent.as_posix()
    # basedpyright's "strict" is Pyright's.
    config.write_text('{"typeCheckingMode": "strict", "extraPaths": ["%s"]}' % extra)
    done = subprocess.run(
        [program("basedpyright"), "--project", config, "--pythonpath", sys.executable, *files],
        capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode < 2, done.stdout + done.stderr
    return done.stdout


def test_mypy_is_content(tmp_path, monkeypatch):
    assert mypy(tmp_path, monkeypatch, *CHECKED) == ""


def test_pyright_is_content(tmp_path, monkeypatch):
    assert "0 errors, 0 warnings" in (said := pyright(tmp_path, monkeypatch, *CHECKED)), said


MISTAKES = """\
import hurray
t = hurray.zeros([2])
t.numpy()  # no such method
t[0]  # a tensor is not indexed
hurray.load("f", mode="mmap")  # no such mode
hurray.zeros([2], dtype="float32")  # a Dtype, not its name
hurray.zeros([None])  # no dynamic sizes
hurray.Tensor(b"", hurray.float32, [2], alignment=64)  # nobody states an alignment
t.layout = hurray.RowMajorLayout()  # read-only
{t: 1}  # not hashable, which mypy does not look at
hurray.float32 < hurray.float64  # no order
hurray.int4  # lives in hurray.dtype
hurray.BufferHandle(1)  # made by tensors only
"""
WRONG = {number for number, line in enumerate(MISTAKES.splitlines(), 1) if "#" in line}


@pytest.mark.parametrize("checker", [mypy, pyright])
def test_checkers_find_mistakes(checker, tmp_path, monkeypatch):
    (tmp_path / "mistakes.py").write_text(MISTAKES)
    said = checker(tmp_path, monkeypatch, tmp_path / "mistakes.py")
    found = {int(number) for number in re.findall(r"mistakes\.py:(\d+):.*error", said)}
    unseen = {number for number, line in enumerate(MISTAKES.splitlines(), 1) if checker is mypy and "mypy" in line}
    assert found == WRONG - unseen, said
