#!/usr/bin/env python3
"""to_bytes.py FOLDER: the bytes of every vector, FOLDER/valid/descriptor/NAME.bin and so on."""

import pathlib
import sys

from generator.wire import parse

HERE = pathlib.Path(__file__).resolve().parent


def main():
    target = pathlib.Path(sys.argv[1])
    for source in HERE.glob("*/*/*.txt"):
        path = (target / source.relative_to(HERE)).with_suffix(".bin")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(parse(source.read_text(encoding="utf-8")))


if __name__ == "__main__":
    main()
