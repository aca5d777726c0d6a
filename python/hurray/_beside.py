"""Looks for other distributions that fill the folder of this package."""

import os
import re


def check(folder: str) -> None:
    """Raises `ImportError` when a `pyhurray` or `hurray` distribution lies beside `folder`.

    Both fill the folder `hurray`, so files of one hide files of the other, and removing one breaks
    the other.
    """
    try:
        entries = os.listdir(os.path.dirname(folder))
    except OSError:  # the package is not in a plain folder
        return
    for entry in sorted(entries):
        match = re.fullmatch(r"(pyhurray|hurray)-[^-]+\.dist-info", entry, re.IGNORECASE)
        if match:
            raise ImportError(
                f"another package fills the folder of hurray-cpp: {entry} lies beside {folder}; "
                "repair it with: pip uninstall -y pyhurray hurray-cpp && pip install hurray-cpp"
            )
