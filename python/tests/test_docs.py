"""The pages tell the truth: their Python runs, their C++ is that of examples/ (which CTest compiles and
runs), their tables agree with the code, their links lead somewhere."""

import fnmatch
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
        assert info in ("python", "python torch", "cpp", "text"), f"{name(page)}:{line}: {info!r}"


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
    try:
        import torch  # noqa: F401
    except ImportError:
        torch = None
    # Pages without an import of their own show parts of a program that has them.
    names = {"print": Console(page), "__name__": "page"}
    if page.name == "buffer-protocol.md":
        exec("import gc, weakref\nimport hurray\nimport numpy as np\n", names)
    for info, line, text in python_blocks(page):
        if info == "python torch" and torch is None:
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
VECTORS = ROOT / "conformance" / "invalid" / "descriptor"


def vectors():
    """Each invalid descriptor's name and the code of its error."""
    codes = sorted({code for code, _, _ in error_codes()}, key=len, reverse=True)
    kinds = "|".join(code.replace("_", " ") for code in codes)
    for file in sorted(VECTORS.glob("*.txt")):
        (line,) = [text for text in read(file).splitlines() if text.startswith("error: ")]
        found = re.search(rf"\(({kinds}) at byte|^error: [^:]+: ({kinds}) \(at byte", line)
        yield file.stem, (found[1] or found[2]).replace(" ", "_")


def error_codes():
    """(code, what Python raises, exit code) of the library's own table."""
    header = re.sub(r"\s+", " ", read(ROOT / "core" / "include" / "hurray" / "error.hpp"))
    rows = re.findall(r'\{Errc::(\w+), "[^"]*", "[^"]*", -?\d+, (\d), Raise::(\w+)\}', header)
    return [(code, raised, exit_code) for code, exit_code, raised in rows]


def test_error_codes():
    raised = {"by_origin": "*by origin*", "unsupported": "`UnsupportedError`",
              "copy_required": "`CopyRequiredError`", "memory": "`MemoryError`"}
    rows = table(ROOT / "docs" / "errors.md", "## Codes")
    assert [row[:3] for row in rows] == [
        [f"`{code}`", raised[kind], exit_code] for code, kind, exit_code in error_codes()]


def test_the_message_shown_is_one_of_those():
    (shown,) = [text for info, _, text in blocks(ROOT / "docs" / "errors.md") if info == "text"]
    assert any(f"error: {shown}" in read(file) for file in VECTORS.glob("*.txt"))


def test_each_rejection_row_has_its_vectors():
    known = dict(vectors())
    categories = {}
    for line in read(FORMAT / "01-descriptor.md").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split(" | ")]
        if line.startswith("|") and cells[0].isdigit() and len(cells) == 5:
            categories[int(cells[0])] = set(cells[3].split(" / "))
    rows = table(ROOT / "docs" / "errors.md", "## Descriptors")
    listed = set()
    for number, _, codes, patterns in rows:
        named = set()
        for pattern in re.findall(r"`([^`]+)`", patterns):
            found = set(fnmatch.filter(known, pattern))
            assert found, f"row {number}: there is no vector {pattern}"
            named |= found
        assert named == set(fnmatch.filter(known, f"{int(number):02}_*")), f"row {number}"
        assert {known[vector] for vector in named} == set(CODE.findall(codes)), f"row {number}"
        listed |= named
        if int(number) != 1:  # which tests the magic and the version as far as the bytes reach
            assert set(CODE.findall(codes)) <= categories[int(number)], f"row {number}"
    for _, _, patterns in table(ROOT / "docs" / "errors.md", "`unsupported` is never"):
        for pattern in re.findall(r"`([^`]+)`", patterns):
            found = fnmatch.filter(known, pattern)
            assert found and {known[vector] for vector in found} == {"unsupported"}, pattern
            listed |= set(found)
    assert listed == set(known)
    absent = re.search(r"The rows that are missing \(([^)]*)\)", read(ROOT / "docs" / "errors.md"))[1]
    numbers = {int(row[0]) for row in rows}
    for part in absent.split(", "):
        first, _, last = part.partition("–")
        numbers |= set(range(int(first), int(last or first) + 1))
    assert numbers == set(range(1, 76)) == set(categories)


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
