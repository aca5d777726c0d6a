"""The pages tell the truth: their Python runs, their C++ is that of examples/ (which CTest compiles and
runs), their tables agree with the code, their links lead somewhere."""

import fnmatch
import importlib.util
import json
import os
import pathlib
import re
import subprocess
import sys
import textwrap

import hurray
import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGES = sorted([ROOT / "README.md", ROOT / "CHANGELOG.md", *(ROOT / "docs").rglob("*.md")])
FORMAT = ROOT / "docs" / "format"
# What a block may be: Python is run, where the library named is installed; C++ and C are parts of programs.
INFO = {"python", *(f"python {name}" for name in ("torch", "jax", "scipy", "ml_dtypes")), "cpp", "c", "text"}
PROGRAMS = sorted((ROOT / "examples").glob("*.py"))


def name(path):
    return path.relative_to(ROOT).as_posix()


def read(path):
    return path.read_text(encoding="utf-8")


def blocks(page):
    """(info string, number of the first line, text) of each fenced block."""
    info, start, lines = None, 0, []
    for number, line in enumerate(read(page).splitlines(), 1):
        if not line.startswith("```"):
            lines.append(line)
        elif info is None:
            info, start, lines = line[3:].strip(), number + 1, []
        else:
            yield info, start, "\n".join(lines) + "\n"
            info = None
    assert info is None, f"{name(page)}:{start}: the block has no end"


def python_blocks(page):
    return [block for block in blocks(page) if block[0].split(" ")[0] == "python"]


def table(page, heading):
    """Rows of the first table after `heading`, as lists of cells."""
    lines = iter(read(page).split(heading, 1)[1].splitlines())
    rows = []
    for line in lines:
        if line.startswith("|"):
            rows.append([cell.strip() for cell in line.strip("|").split("|")])
        elif rows:
            break
    return rows[2:]


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_every_block_is_run_or_plain_text(page):
    for info, line, _ in blocks(page):
        assert info in INFO, f"{name(page)}:{line}: {info!r}"


def installed(info):
    """Whether the library that a block needs is here: `python torch` needs PyTorch."""
    return all(importlib.util.find_spec(module) for module in info.split(" ")[1:])


class Console:
    """`print`, which compares a line with the comment that stands behind the call."""

    def __init__(self, page):
        self.page, self.lines = page, read(page).splitlines()

    def __call__(self, *values, **options):
        print(*values, **options)
        number = sys._getframe(1).f_lineno
        call, comment, said = self.lines[number - 1].partition("  # ")
        if comment and call.strip().startswith("print("):
            printed = " ".join(str(value) for value in values)
            assert printed == said, f"{name(self.page)}:{number}: it prints {printed!r}"


@pytest.mark.parametrize("page", [page for page in PAGES if python_blocks(page)], ids=name)
def test_python_blocks_run(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("HURRAY_MODE", raising=False)
    # Pages without an import of their own show parts of a program that has them.
    names = {"print": Console(page), "__name__": "page"}
    if page.name == "buffer-protocol.md":
        exec("import gc, weakref\nimport hurray\nimport numpy as np\n", names)
    for info, line, text in python_blocks(page):
        if not installed(info):
            continue
        exec(compile("\n" * (line - 1) + text, str(page), "exec"), names)


def normal(text):
    return textwrap.dedent(text).strip("\n")


def occurs(block, program):
    """Whether the lines of `block` stand in `program`, one after the other, whatever the indent."""
    wanted = normal(block).split("\n")
    lines = program.split("\n")
    for start in range(len(lines) - len(wanted) + 1):
        part = normal("\n".join(lines[start : start + len(wanted)]))
        if part.split("\n") == wanted:
            return True
    return False


def missing(page, kind, programs):
    texts = [read(program) for program in programs]
    return [f"{name(page)}:{line}" for info, line, text in blocks(page)
            if info == kind and not any(occurs(text, program) for program in texts)]


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_cpp_blocks_are_parts_of_examples(page):
    assert missing(page, "cpp", sorted((ROOT / "examples").glob("*.cpp"))) == []
    programs = [*(ROOT / "examples" / "c").glob("*.c"), ROOT / "c" / "include" / "hurray.h"]
    assert missing(page, "c", sorted(programs)) == []


def test_the_api_page_is_made_from_the_docstrings():
    package = pathlib.Path(hurray.__file__).parent
    if "HURRAY_TEST_ASAN" in os.environ:
        pytest.skip("a build for sanitizers makes no stubs")
    done = subprocess.run([sys.executable, ROOT / "tools" / "api_page.py"], capture_output=True, text=True,
                          cwd=package.parent, env={**os.environ, "PYTHONPATH": os.fspath(package.parent)})
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_api_page_has_every_name():
    page = read(ROOT / "docs" / "api.md")
    for module in (hurray, hurray.dtype, hurray.device, hurray.file):
        for public in module.__all__:
            assert re.search(rf"^### {public}$|`{public}`", page, flags=re.M), public


def test_the_readme_shows_a_whole_program():
    (shown,) = [text for info, _, text in blocks(ROOT / "README.md") if info == "cpp"]
    assert shown == read(ROOT / "examples" / "readme.cpp")


def test_the_cookbook_shows_the_example():
    page = ROOT / "docs" / "buffer-protocol.md"
    assert missing(page, "python", [ROOT / "examples" / "buffer_protocol.py"]) == []


@pytest.mark.parametrize(
    "program", [program for program in PROGRAMS if program.name != "demo.py"], ids=name)
def test_python_examples_run(program, tmp_path):
    environment = {key: value for key, value in os.environ.items() if key != "HURRAY_MODE"}
    done = subprocess.run([sys.executable, program], cwd=tmp_path, env=environment,
                          capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr


def anchors(page):
    for line in read(page).splitlines():
        if line.startswith("#"):
            title = line.lstrip("#").strip().lower()
            yield re.sub(r"[^\w\- ]", "", title).replace(" ", "-")


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_links_lead_somewhere(page):
    prose = re.sub(r"```.*?```", "", read(page), flags=re.S)
    for link in re.findall(r"\]\(([^)\s]+)\)", prose):
        if link.startswith("https://"):
            continue
        target, _, anchor = link.partition("#")
        target = (page.parent / target).resolve() if target else page
        assert target.exists(), link
        assert not anchor or anchor in anchors(target), link


# ---- tables ---

CODE = re.compile(r"`(\w+)`")
ERRORS = ROOT / "docs" / "errors.md"
MANIFEST = json.loads(read(ROOT / "conformance" / "manifest.json"))


def refused():
    """The invalid vectors by name: entry of the manifest, code of the error in its sentence."""
    codes = "|".join(sorted((code.replace("_", " ") for code, _, _ in error_codes()), key=len, reverse=True))
    for entry in MANIFEST["vectors"]:
        if entry["outcome"] not in ("invalid", "data_invalid"):
            continue
        sentence = read(ROOT / "conformance" / f"{entry['name']}.txt").splitlines()[-1]
        found = re.search(rf"\(({codes})(?: at byte \d+ of the \w+)?\)|: ({codes})(?: \(at byte|;)", sentence)
        code = entry["error"].get("code") or found[1] or found[2]
        assert sentence.startswith("error: ") and code in sentence, entry["name"]
        yield entry["name"].removeprefix("invalid/"), entry, code.replace(" ", "_")


def error_codes():
    """(code, what Python raises, exit code) of the library's own table."""
    header = re.sub(r"\s+", " ", read(ROOT / "core" / "include" / "hurray" / "error.hpp"))
    rows = re.findall(r'\{Errc::(\w+), "[^"]*", "[^"]*", -?\d+, (\d), Raise::(\w+)\}', header)
    return [(code, raised, exit_code) for code, exit_code, raised in rows]


def test_error_codes():
    raised = {"by_origin": "*by origin*", "unsupported": "`UnsupportedError`",
              "copy_required": "`CopyRequiredError`", "memory": "`MemoryError`"}
    rows = table(ERRORS, "## Codes")
    assert [row[:3] for row in rows] == [
        [f"`{code}`", raised[kind], exit_code] for code, kind, exit_code in error_codes()]


def test_the_message_shown_is_one_of_those():
    (shown,) = [text for info, _, text in blocks(ERRORS) if info == "text"]
    folder = ROOT / "conformance" / "invalid" / "descriptor"
    assert any(f"error: {shown}" in read(file) for file in folder.glob("*.txt"))


def error_tables():
    """Cells of the tables of rows, with the id that the manifest gives a row."""
    for heading, prefix in (("## Descriptors", ""), ("## Data", ""), ("## Composites", ""), ("## Files", "file "),
                            ("## Streams", "stream ")):
        for number, *cells in table(ERRORS, heading):
            yield prefix + number.split(" ")[0], *cells


def test_every_refused_condition_has_its_vectors():
    known = {name: (entry, code) for name, entry, code in refused()}
    listed = set()
    for row, condition, fields, codes, patterns in error_tables():
        proving = {name for name, (entry, _) in known.items() if row in entry["rows"]}
        named = set()
        for pattern in re.findall(r"`([^`]+)`", patterns):
            found = set(fnmatch.filter(known, pattern))
            assert found, f"row {row}: there is no vector {pattern}"
            named |= found
        assert named == proving, f"row {row}"
        assert set(CODE.findall(codes)) == {known[name][1] for name in proving}, f"row {row}"
        told = {re.sub(r"\[\d+\]", "[]", known[name][0]["error"]["field"]) for name in proving
                if "field" in known[name][0]["error"]}
        if fields != "*the field itself*":
            assert set(re.findall(r"`([^`]+)`", fields)) == told, f"row {row}"
        (entry,) = [e for e in MANIFEST["rows"] if e["row"] == row]
        assert entry["refused"] == condition
        listed.add(row)
    assert listed == {entry["row"] for entry in MANIFEST["rows"]}


def test_codes_and_fields_are_those_of_the_format():
    """Of descriptors, for which the format names both."""
    wanted = {}
    for line in read(FORMAT / "01-descriptor.md").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split(" | ")]
        if line.startswith("|") and cells[0].isdigit() and len(cells) == 5:
            wanted[cells[0]] = (cells[2], set(cells[3].split(" / ")))
    rows = {row: (fields, codes) for row, _, fields, codes, _ in error_tables() if row.isdigit()}
    assert set(rows) == set(wanted) == {str(number) for number in range(1, 76)}
    for row, (fields, codes) in rows.items():
        field, categories = wanted[row]
        if row == "1":  # which tests the magic and the version as far as the bytes reach
            continue
        assert set(CODE.findall(codes)) <= categories, f"row {row}"
        spelled = [name.split("…")[0].replace("[i]", "[]") for name in re.findall(r"`([^`]+)`", field)]
        spelled += [spelled[0].rsplit(".", 1)[0] + name for name in spelled if name.startswith(".")]
        spelled += ["quantization" + name for name in spelled if name.startswith("_index")]
        for name in re.findall(r"`([^`]+)`", fields):
            assert not spelled or any(name.startswith(start) for start in spelled), f"row {row}: {name}"


def test_the_vectors_are_those_of_the_manifest():
    files = {path.relative_to(ROOT / "conformance").with_suffix("").as_posix()
             for path in (ROOT / "conformance").glob("*/*/*.txt")}
    assert files == {entry["name"] for entry in MANIFEST["vectors"]}


def test_the_compatibility_page_tells_the_versions():
    rows = {row[0]: row[1] for row in table(ROOT / "docs" / "compatibility.md", "# Compatibility")}
    header = read(ROOT / "c" / "include" / "hurray.h")
    abi, extension = (re.search(rf"define HURRAY_C_ABI_{name} (\d+)", header)[1]
                      for name in ("VERSION", "EXTENSION_VERSION"))
    assert rows["C interface"] == f"version {abi}, extension {extension}"
    assert rows["Native capsule `hurray_tensor`"].endswith(f"C interface {abi}")
    version = ".".join(map(str, hurray.zeros([1]).descriptor.version))
    assert rows["Format of descriptors, files and streams"].startswith(f"written: {version};")
    project = read(ROOT / "pyproject.toml")
    python = re.search(r'requires-python = ">=([\d.]+)"', project)[1]
    numpy = re.search(r'numpy = \["numpy>=([\d.]+)"\]', project)[1]
    assert rows["CPython"].startswith(f"{python} and newer") and rows["NumPy"].startswith(f"{numpy} and newer")
    pinned = "".join(read(file) for file in (ROOT / "python").glob("requirements-*.txt"))
    for row in table(ROOT / "docs" / "compatibility.md", "## What runs"):
        if not row[0].startswith(("CPython", "Compilers")):
            for one in re.findall(r"\d+\.\d+\.\d+", row[1]):
                assert f"=={one}" in pinned, f"{row[0]}: {one}"


def test_element_types():
    rows = table(FORMAT / "01-descriptor.md", "### 2.2 All types")
    named = {}
    for row in rows:
        dtype = hurray.Dtype.from_tag(int(row[0].strip("`"), 16))
        assert (dtype.name, dtype.tier, dtype.bit_width) == (row[1], int(row[2]), int(row[3]))
        assert dtype.element_alignment == int(row[8])
        named[dtype.name] = dtype
    assert set(named) == set(hurray.dtype.__all__)


def test_the_reference_names_everything():
    words = set(re.findall(r"\w+", read(FORMAT / "08-python-api.md")))
    for module in (hurray, hurray.dtype, hurray.device, hurray.file):
        assert set(module.__all__) <= words
    for kind in (hurray.Tensor, hurray.Descriptor, hurray.BufferHandle, hurray.Dtype, hurray.Device,
                 hurray.StreamReader, hurray.StreamWriter, hurray.file.File, hurray.Layout):
        assert {member for member in dir(kind) if not member.startswith("_")} <= words, kind


def test_decisions_name_their_records():
    rows = table(FORMAT / "decisions.md", "# Where")
    records = {file.name[:4]: read(file) for file in (ROOT / "docs" / "adr").glob("0*.md")}
    for row in rows:
        if row[-1] != "–":
            assert re.search(rf"\b{row[0]}\b", records[row[-1]].splitlines()[0]), row[0]
    index = read(ROOT / "docs" / "adr" / "README.md")
    assert all(f"[{number}](" in index for number in records)


def test_the_changelog_has_this_version():
    assert f"## {hurray.__version__}" in read(ROOT / "CHANGELOG.md")


def test_every_public_name_has_its_place_on_the_api_page():
    page = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
    for name in hurray.__all__:
        value = getattr(hurray, name)
        titled = callable(value) and not isinstance(value, hurray.Dtype)
        assert (f"### {name}\n" if titled else f"`{name}`") in page or name in ("device", "dtype", "file"), name
