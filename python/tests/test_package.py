"""The wheel: what is in it, which systems it fits, and that it works where there is nothing else.

`tools/test.sh` names the wheel in HURRAY_WHEEL; without it these tests are left out.
"""

import email
import os
import pathlib
import re
import shutil
import subprocess
import sys
import zipfile

import pytest

import hurray

ROOT = pathlib.Path(__file__).resolve().parents[2]
WHEEL = os.environ.get("HURRAY_WHEEL")
pytestmark = pytest.mark.skipif(not WHEEL, reason="HURRAY_WHEEL names no wheel")


@pytest.fixture(scope="module")
def wheel():
    with zipfile.ZipFile(WHEEL) as archive:
        yield archive


@pytest.fixture(scope="module")
def metadata(wheel):
    (name,) = (name for name in wheel.namelist() if name.endswith(".dist-info/METADATA"))
    return email.message_from_bytes(wheel.read(name))


def test_contents(wheel):
    """The package, the command, licenses and metadata; no sources, headers, tests or libraries."""
    source = {path.name for path in (ROOT / "python" / "hurray").iterdir() if path.is_file()}
    stubs = {path.name for path in (ROOT / "python" / "stubs").glob("*.pyi")}
    other = set()
    package = set()
    for name in wheel.namelist():
        folder, _, file = name.partition("/")
        if folder == "hurray":
            package.add(re.sub(r"^(_hurray)\..*\.(so|pyd)$", r"\1", file))
        elif folder.endswith(".data"):
            assert file in ("scripts/hurray", "scripts/hurray.exe"), name
        else:
            assert folder.endswith(".dist-info"), name
            other.add(file)
    assert package == source | stubs | {"_hurray"}
    assert {"METADATA", "RECORD", "WHEEL"} <= other
    assert {name for name in other if "LICENSE" in name} == {"licenses/LICENSE-MIT", "licenses/LICENSE-APACHE"}


def test_metadata(metadata):
    assert metadata["Name"] == "hurray-cpp" and metadata["Version"] == hurray.__version__
    assert metadata["Requires-Python"] == ">=3.10"
    assert set(metadata.get_all("Provides-Extra")) == {"numpy", "torch", "scipy", "all"}
    # Nothing is needed: every requirement belongs to an extra.
    assert all("extra ==" in requirement for requirement in metadata.get_all("Requires-Dist"))
    assert metadata.get_payload().startswith("# Hurray")


@pytest.mark.skipif(sys.platform != "linux", reason="wheels of Linux are judged")
def test_auditwheel_accepts_it():
    program = shutil.which("auditwheel")
    assert program, "auditwheel is among python/requirements-tools.txt"
    shown = " ".join(subprocess.run([program, "show", WHEEL], check=True, capture_output=True, text=True).stdout.split())
    assert re.search(r'consistent with the following platform tag: "manylinux_2_\d+_\w+"', shown), shown
    # What it needs of the system is libc and the C++ runtime.
    libraries = set(re.findall(r"\b(lib[\w+-]+)\.so", shown))
    assert libraries <= {"libc", "libm", "libstdc++", "libgcc_s", "libpthread", "libdl"}, shown


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    """An empty environment and the variables of its programs, which find no compiler."""
    folder = tmp_path_factory.mktemp("alone")
    subprocess.run([sys.executable, "-m", "venv", folder / "venv"], check=True)
    programs = folder / "venv" / ("Scripts" if os.name == "nt" else "bin")
    kept = {name: value for name, value in os.environ.items()
            if name.startswith(("PIP_", "HTTP", "http", "SSL", "REQUESTS_")) or name in ("HOME", "SYSTEMROOT", "TMPDIR")}
    environment = kept | {"PATH": os.fspath(programs)}
    for compiler in ("cc", "c++", "gcc", "g++", "clang", "clang++", "cmake", "ninja"):
        assert shutil.which(compiler, path=environment["PATH"]) is None

    def run(*command, code=0):
        done = subprocess.run([programs / command[0], *command[1:]], cwd=folder, env=environment,
                              capture_output=True, text=True, timeout=300)
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout

    run("pip", "install", "--quiet", "--disable-pip-version-check", "--no-index", WHEEL)
    return run


def test_alone(alone):
    """Without NumPy: the module imports, makes, saves, maps and streams, and says what it misses."""
    alone("python", "-c", """
import sys, hurray
assert not {"numpy", "torch", "scipy", "ml_dtypes", "jax"} & set(sys.modules)
t = hurray.full([2, 3], 7, dtype=hurray.int32)
hurray.save("t.hrry", {"t": t}, kv={"n": 1})
assert bytes(memoryview(hurray.load("t.hrry")["t"])) == bytes([7, 0, 0, 0] * 6)
out = hurray.StreamWriter()
out.write(t)
assert memoryview(next(hurray.StreamReader(out.getvalue()))).tolist() == [[7] * 3] * 2
assert repr(t).startswith("hurray.Tensor(shape=(2, 3)")
for call, name in ((t.to_numpy, "numpy"), (t.to_torch, "torch"), (lambda: hurray.from_numpy([]), "numpy"),
                   (lambda: hurray.from_torch([]), "torch"), (lambda: hurray.aligned_allocator().__enter__(), "numpy")):
    try:
        call()
    except ImportError as error:
        assert str(error) == f"{name} is not installed; install it with: pip install {name}", error
    else:
        raise AssertionError(name)
""")
    assert alone("hurray", "--version").strip() == alone("python", "-m", "hurray", "--version").strip()
    assert hurray.__version__ in alone("hurray", "--version")


def test_the_readme_runs(alone):
    alone("pip", "install", "--quiet", "--disable-pip-version-check", "--only-binary", ":all:",
          f"hurray-cpp[numpy] @ {pathlib.Path(WHEEL).resolve().as_uri()}")
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```python\n(.*?)^```", readme, flags=re.S | re.M)
    assert blocks
    alone("python", "-c", "\n".join(blocks))
