"""The tables of docs/errors.md: every condition that the format refuses, its field and code, and the vectors that
prove it."""

import fnmatch
import re

from . import rows

CODES = ["invalid magic", "unsupported version", "truncated", "length mismatch", "reserved bits", "invalid tag",
         "invalid value", "out of bounds", "overflow", "inconsistent", "unsupported", "limit exceeded",
         "checksum mismatch", "duplicate"]
IN_SENTENCE = re.compile(rf"\(({'|'.join(CODES)})(?: at byte [0-9]+ of the \w+)?\)")
OWN_FIELD = "*the field itself*"

# Heading of the page, parts whose rows stand under it, folders of conformance/invalid/ that prove them.
TABLES = [
    ("descriptors", lambda part, row: part == "01"),
    ("data", lambda part, row: part in ("02", "03") and row[0] not in "MC"),
    ("composites", lambda part, row: part == "02" and row[0] in "MC"),
    ("files", lambda part, row: part == "04"),
    ("streams", lambda part, row: part == "05"),
]


def code_of(entry, sentence):
    """The manifest's; of data, where the format names no category, the library's."""
    found = entry["error"].get("code") or (IN_SENTENCE.search(sentence) or "??")[1]
    return found.replace(" ", "_")


def patterns(names, known):
    """As few shell patterns as name exactly `names` of all that are `known`."""
    left, found = sorted(names), []
    while left:
        name = left[0]
        starts = [i + 1 for i, c in enumerate(name) if c == "_" and i > name.index("/") + 1]
        best = name
        for start in starts:
            pattern = name[:start] + "*"
            if set(fnmatch.filter(known, pattern)) <= set(names):
                best = pattern
                break
        covered = fnmatch.filter(left, best)
        found.append(best if len(covered) > 1 else name)
        left = [n for n in left if n not in covered]
    return found


def tables(entries, sentences):
    """`sentences`: the last lines of the invalid vectors by name."""
    invalid = {e["name"].removeprefix("invalid/"): e for e in entries if e["outcome"] in ("invalid", "data_invalid")}
    for heading, belongs in TABLES:
        lines = ["| row | refused | field | code | vectors |", "|---|---|---|---|---|"]
        for part, section, row, refused in rows.ROWS:
            if not belongs(part, row):
                continue
            proving = [name for name, e in invalid.items() if row in e["rows"]]
            fields = sorted({re.sub(r"\[\d+\]", "[]", e["error"]["field"]) for name, e in invalid.items()
                             if name in proving and "field" in e["error"]})
            codes = sorted({code_of(invalid[name], sentences["invalid/" + name]) for name in proving})
            field = OWN_FIELD if len(fields) > 6 else ", ".join(f"`{f}`" for f in fields) or "–"
            number = row.split(" ")[-1]
            where = f" ({part} § {section})" if part in ("02", "03") else ""
            lines.append(f"| {number}{where} | {refused} | {field} | {', '.join(f'`{c}`' for c in codes)} | "
                         f"{', '.join(f'`{p}`' for p in patterns(proving, list(invalid)))} |")
        yield heading, "\n".join(lines) + "\n"


def update(text, entries, sentences):
    """The page with its tables made new; they stand behind "<!-- rows: NAME -->"."""
    for heading, table in tables(entries, sentences):
        start = re.compile(rf"(<!-- rows: {heading} -->\n\n)(?:\|[^\n]*\n)*\n?")
        assert len(start.findall(text)) == 1, heading
        text = start.sub(lambda found: found[1] + table + "\n", text)
    return text.rstrip("\n") + "\n"
