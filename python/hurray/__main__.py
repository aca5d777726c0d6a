"""`python -m hurray` is the command `hurray` that was installed with this package."""

import importlib.metadata
import os
import subprocess
import sys


def _command():
    try:
        files = importlib.metadata.files("hurray-cpp") or ()
    except importlib.metadata.PackageNotFoundError:
        files = ()
    for file in files:
        if file.stem == "hurray" and file.parent.name in ("bin", "Scripts"):
            return os.fspath(file.locate())
    sys.exit("hurray: this package was installed without the command; reinstall hurray-cpp")


if __name__ == "__main__":
    arguments = [_command(), *sys.argv[1:]]
    if os.name == "posix":
        os.execv(arguments[0], arguments)
    sys.exit(subprocess.call(arguments))
