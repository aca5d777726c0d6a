#!/usr/bin/env python3
"""Writes every vector of this folder, manifest.json and the tables of docs/errors.md: the same bytes on every run.
README.md says what they are.

The line "error: ..." at the end of an invalid vector is the sentence that the C++ library gives for it; this script
leaves that line as it finds it, and the tests fill it in when HURRAY_UPDATE_VECTORS is set, for review in the diff.
"""

import json
import pathlib

from generator import page, rows, vectors, wire, worked

HERE = pathlib.Path(__file__).resolve().parent
PAGE = HERE.parent / "docs" / "errors.md"
FOLDERS = ("valid", "invalid", "newer", "permissive")


def sentence(path):
    old = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    return next((line for line in old if line.startswith("error:")), "error: ?")


def comments(vector):
    refused = {number: text for _, _, number, text in rows.ROWS}
    return [f"{row}: {refused[row]}" for row in vector.entry.get("rows", [])] + vector.comments


def manifest(entries):
    """One line per row and per vector."""
    lines = ['{"format": 1,', ' "rows": [']
    lines += [",\n".join("  " + json.dumps({"part": part, "section": section, "row": number, "refused": refused},
                                           ensure_ascii=False) for part, section, number, refused in rows.ROWS)]
    lines += [" ],", ' "vectors": [']
    lines += [",\n".join("  " + json.dumps(entry, ensure_ascii=True) for entry in entries)]
    return "\n".join(lines + [" ]}"]) + "\n"


def main():
    worked.check()
    entries, sentences, written = {}, {}, set()
    for vector in vectors.everything():
        assert vector.name not in entries, vector.name
        path = HERE / f"{vector.name}.txt"
        path.parent.mkdir(parents=True, exist_ok=True)
        refused = vector.entry["outcome"] in ("invalid", "data_invalid")
        if refused:
            sentences[vector.name] = sentence(path)
        text = wire.text(vector.parts, comments(vector), sentences.get(vector.name))
        assert wire.parse(text) == vector.parts.raw(), vector.name
        path.write_text(text, encoding="utf-8")
        written.add(path)
        entries[vector.name] = vector.entry
    for folder in FOLDERS:
        for path in (HERE / folder).rglob("*.txt"):
            if path not in written:
                path.unlink()
    (HERE / "manifest.json").write_text(manifest(entries[name] for name in sorted(entries)), encoding="utf-8")
    proved = {row for entry in entries.values() if entry["outcome"] in ("invalid", "data_invalid")
              for row in entry["rows"]}
    missing = [number for _, _, number, _ in rows.ROWS if number not in proved]
    assert not missing, f"rows without a vector: {missing}"
    PAGE.write_text(page.update(PAGE.read_text(encoding="utf-8"), entries.values(), sentences), encoding="utf-8")


if __name__ == "__main__":
    main()
