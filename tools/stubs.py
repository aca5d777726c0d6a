"""Compares the type stubs of the installed package with those in python/stubs.

    python tools/stubs.py            prints the difference; exits with 1 where there is one
    python tools/stubs.py --update   writes python/stubs anew

The stored ones are the interface alone, in the order of names: no docstrings, no imports but
re-exports, and not the version.
"""

import argparse
import ast
import difflib
import importlib.util
import pathlib
import sys

STORED = pathlib.Path(__file__).resolve().parents[1] / "python" / "stubs"
MODULES = ("__init__", "_hurray", "device", "dtype", "file")


def name(node):
    """What a statement of a stub defines; None for what is no part of the interface."""
    match node:
        case ast.ClassDef() | ast.FunctionDef():
            return node.name
        case ast.AnnAssign(target=ast.Name(id=target)) | ast.Assign(targets=[ast.Name(id=target)]):
            return target
        case ast.ImportFrom():
            return node.names[0].name if node.names[0].asname == node.names[0].name else None
        case ast.Import() | ast.Expr() | ast.Pass():
            return None
    raise ValueError(f"line {node.lineno}: {ast.unparse(node)}")


def statements(body):
    """The statements of the interface in the order of names, overloads in their own."""
    single = []
    for node in body:
        if isinstance(node, ast.ImportFrom):
            single += [ast.ImportFrom(node.module, [alias], node.level) for alias in node.names]
        else:
            single.append(node)
    kept = sorted((node for node in single if name(node)), key=name)
    for node in kept:
        if isinstance(node, ast.ClassDef):
            node.body = statements(node.body)
        elif isinstance(node, ast.FunctionDef):
            node.body = [ast.Expr(ast.Constant(...))]
        elif name(node) == "__version__":
            node.value = None
    return kept or [ast.Expr(ast.Constant(...))]


def interface(stub):
    module = ast.Module(statements(ast.parse(stub).body), [])
    # One form for all Pythons: an empty body stands in its own line everywhere.
    return ast.unparse(ast.fix_missing_locations(module)).strip() + "\n"


def installed():
    package = pathlib.Path(importlib.util.find_spec("hurray").origin).parent
    return {module: interface((package / f"{module}.pyi").read_text(encoding="utf-8")) for module in MODULES}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--update", action="store_true", help="write python/stubs anew")
    update = parser.parse_args().update
    different = False
    for module, now in installed().items():
        file = STORED / f"{module}.pyi"
        before = file.read_text(encoding="utf-8") if file.exists() else ""
        if update:
            file.write_text(now, encoding="utf-8")
        elif before != now:
            different = True
            sys.stdout.writelines(
                difflib.unified_diff(before.splitlines(True), now.splitlines(True), f"stored {module}.pyi",
                                     f"{module}.pyi of the package"))
    if different:
        print("The interface changed. If that is meant: python tools/stubs.py --update")
    return different


if __name__ == "__main__":
    sys.exit(main())
