"""Makes docs/api.md from the docstrings of the installed package.

    python tools/api_page.py            prints the difference; exits with 1 where there is one
    python tools/api_page.py --update   writes the page anew

Its sections are the overview by task in the module's own docstring; signatures come from the type
stubs.
"""

import argparse
import ast
import difflib
import importlib.util
import inspect
import pathlib
import re
import sys

PAGE = pathlib.Path(__file__).resolve().parents[1] / "docs" / "api.md"


class Stubs:
    """What the stubs define, by public name."""

    def __init__(self):
        self.folder = pathlib.Path(importlib.util.find_spec("hurray").origin).parent
        self.defined = {}
        for module in ("_hurray", "file", "_converting", "_sharing", "__init__"):
            for node in self.tree(module).body:
                if isinstance(node, (ast.ClassDef, ast.FunctionDef)):
                    self.defined.setdefault(node.name, []).append(node)
        self.doc = ast.get_docstring(self.tree("__init__"))
        self.public = set(re.findall(r"\w+", self.doc)) | {"File"}

    def tree(self, module):
        stub = self.folder / f"{module}.pyi"  # a module in Python alone is its own
        return ast.parse((stub if stub.exists() else stub.with_suffix(".py")).read_text(encoding="utf-8"))

    def constants(self, module):
        return [node.target.id for node in self.tree(module).body
                if isinstance(node, ast.AnnAssign) and not node.target.id.startswith("_")]


def overview(doc):
    """(task, names) of each entry of the module's docstring, and the prose before the first."""
    prose, _, rest = doc.partition("\n\nTensors:")
    entries = re.findall(r"^(\S[^:\n]*): ((?:.*\n?)(?:^ +.*\n?)*)", "Tensors:" + rest, flags=re.M)
    return prose, [(task, re.findall(r"\w+", text.split("; back with")[0])) for task, text in entries]


def doc_of(node):
    return inspect.cleandoc(ast.get_docstring(node, clean=False) or "")


def signature(node):
    bare = ast.FunctionDef(**{field: getattr(node, field, None) for field in node._fields})
    bare.body, bare.decorator_list = [ast.Expr(ast.Constant(...))], []
    text = ast.unparse(ast.fix_missing_locations(bare)).partition(":\n")[0].removeprefix("def ")
    text = re.sub(r"\((self|cls)(, /)?(, )?", "(", text, count=1)
    return re.sub(r"(?<=[\w\])'])=", " = ", text)


def wrapped(text, width=112):
    """A signature broken behind the commas between its parameters."""
    lines, line, depth = [], "", 0
    for part in re.split(r"(?<=,) ", text):
        if line and depth == 1 and len(line) + len(part) >= width:
            lines.append(line)
            line = "   "
        line = f"{line} {part}" if line else part
        depth += sum(map(part.count, "([")) - sum(map(part.count, ")]"))
    return "\n".join([*lines, line])


def functions(nodes):
    yield "```text\n" + "\n".join(wrapped(signature(node)) for node in nodes) + "\n```\n"
    for node in nodes:
        if doc_of(node):
            yield doc_of(node) + "\n"


def decorators(node):
    return {ast.unparse(decorator) for decorator in node.decorator_list}


def class_section(node, defined):
    bases = [ast.unparse(base) for base in node.bases]
    # What a private base has is shown with the class.
    shared = [member for base in bases if base.startswith("_") for member in defined[base][0].body]
    bases = [base for base in bases if not base.startswith("_")]
    yield f"### {node.name}\n"
    if bases:
        yield f"A `{'`, `'.join(bases)}`.\n"
    if doc_of(node):
        yield doc_of(node) + "\n"
    methods, properties = {}, []
    for member in [*node.body, *shared]:
        if not isinstance(member, ast.FunctionDef) or not doc_of(member) and member.name != "__init__":
            continue
        if member.name.startswith("_") and member.name in ("__enter__", "__exit__", "__repr__"):
            continue
        if "property" in decorators(member):
            properties.append(member)
        else:
            methods.setdefault(member.name, []).append(member)
    constructors = methods.pop("__init__", [])
    for one in constructors:
        text = re.sub(r"^__init__", node.name, signature(one)).removesuffix(" -> None")
        yield f"```text\n{wrapped(text)}\n```\n"
        if doc_of(one):
            yield doc_of(one) + "\n"
    if properties:
        yield "| Property | Type | |\n|---|---|---|"
        for one in properties:
            doc = re.sub(r"\s+", " ", doc_of(one))
            cells = (f"`{one.name}`", f"`{ast.unparse(one.returns)}`", doc)
            yield "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
        yield ""
    for nodes in methods.values():
        yield from functions(nodes)


def page():
    stubs = Stubs()
    prose, tasks = overview(stubs.doc)
    yield "# API\n"
    yield "Made from the docstrings by `tools/api_page.py`. What each name has to do, in every detail:\n" \
          "[format/08-python-api.md](format/08-python-api.md). How they are used: [python.md](python.md) and the\n" \
          "[cookbook](cookbook/README.md).\n"
    yield prose + "\n"
    for task, names in tasks:
        yield f"## {task}\n"
        plain = [name for name in names if name not in stubs.defined]
        for name in plain:
            if name in ("dtype", "device"):
                yield f"`hurray.{name}`: " + ", ".join(f"`{one}`" for one in stubs.constants(name)) + ".\n"
        constants = [name for name in plain if name not in ("dtype", "device", "file")]
        if constants:
            yield ", ".join(f"`{name}`" for name in constants) + ".\n"
        if "file" in names:
            yield "`file`: the module of the class behind `open`, `File`.\n"
            names = [*names, "File"]
        for name in names:
            for node in stubs.defined.get(name, [])[:1]:
                if isinstance(node, ast.ClassDef):
                    yield from class_section(node, stubs.defined)
                else:
                    yield f"### {name}\n"
                    yield from functions(stubs.defined[name])
                    made = ast.unparse(node.returns) if node.returns else ""
                    if made in stubs.defined and made not in stubs.public:  # told of here alone
                        yield from class_section(stubs.defined[made][0], stubs.defined)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--update", action="store_true", help="write docs/api.md anew")
    update = parser.parse_args().update
    now = "\n".join(page()).rstrip("\n") + "\n"
    if update:
        PAGE.write_text(now, encoding="utf-8")
        return 0
    before = PAGE.read_text(encoding="utf-8") if PAGE.exists() else ""
    sys.stdout.writelines(difflib.unified_diff(
        before.splitlines(True), now.splitlines(True), "docs/api.md", "made from the docstrings"))
    if before != now:
        print("The docstrings changed. Write the page anew: python tools/api_page.py --update")
    return int(before != now)


if __name__ == "__main__":
    sys.exit(main())
