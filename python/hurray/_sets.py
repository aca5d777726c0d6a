"""The files that a save in shards makes, and the index that says which of them holds a tensor."""

import contextlib
import errno
import fractions
import json
import os
import re

SUFFIX = ".hrry"


def _error(path, text):
    from . import FileError

    return FileError(f"{path}: {text}")


def _is_utf8(text):
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


_UNITS = {"": 1} | {f"{letter}{binary}B": (1024 if binary else 1000) ** power
                    for power, letter in enumerate("KMGTP", 1) for binary in ("", "i")}  # fmt: skip


def size(limit):
    """`max_shard_size=` as a number of bytes: an int, or text such as "5GB" or "500MiB"."""
    if isinstance(limit, str):
        match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([KMGTP]i?B|B?)", limit.strip(), re.IGNORECASE | re.ASCII)
        units = {unit.upper(): factor for unit, factor in _UNITS.items()} | {"B": 1}
        if match is None:
            raise ValueError(f'max_shard_size: expected bytes such as 5000000000, "5GB" or "500MiB", found {limit!r}')
        limit = min(int(fractions.Fraction(match[1]) * units[match[2].upper()]), 2**64 - 1)
    elif isinstance(limit, bool) or not hasattr(type(limit), "__index__"):
        raise TypeError(f"max_shard_size must be an int or a str, got {type(limit).__name__}")
    limit = limit.__index__()
    if limit < 1:
        raise ValueError(f"max_shard_size: expected at least 1 byte, found {limit}")
    return limit


def _stem(path):
    return path[: -len(SUFFIX)] if path.endswith(SUFFIX) else path


def index_path(path):
    return f"{_stem(path)}{SUFFIX}.index.json"


def shard_paths(path, count):
    return [f"{_stem(path)}-{k:05}-of-{count:05}{SUFFIX}" for k in range(1, count + 1)]


def check_target(path):
    """Whether shards and their index can have `path`; FileError, or what the system says, where not."""
    from ._errors import file_class_of

    def refuse(number, target, words=None):
        raise file_class_of(number)(number, words or os.strerror(number), target)

    if not os.path.basename(path):
        refuse(errno.EISDIR if path else errno.ENOENT, path)
    if not _is_utf8(os.path.basename(path)):
        raise _error(path.encode(errors="backslashreplace").decode(),
                     "an index in JSON cannot hold a file name that is not UTF-8; save under another one")  # fmt: skip
    for target in (path, index_path(path)):
        if os.path.isdir(target):
            refuse(errno.EISDIR, target)
        if os.path.exists(target) and not os.path.isfile(target):
            refuse(errno.EINVAL, target, "shards cannot take the place of a pipe or device")


def replaced_by(path, count):
    """What `count` shards and their index make old: a file at `path` itself, and shards of `path` that
    only its present index names."""
    stem = re.escape(os.path.basename(_stem(path)))
    ours = re.compile(stem + r"-\d{5}-of-\d{5}" + re.escape(SUFFIX))
    shards = {os.path.basename(shard) for shard in shard_paths(path, count)}
    old = [path] if os.path.isfile(path) else []
    with contextlib.suppress(OSError, ValueError, RecursionError):
        with open(index_path(path), "rb") as file:
            index = json.loads(file.read(1 << 28).decode("utf-8-sig"))
        files = index.get("weight_map") if isinstance(index, dict) else None
        named = {file for file in files.values() if isinstance(file, str)} if isinstance(files, dict) else set()
        folder = os.path.dirname(path)
        old += [os.path.join(folder, file) for file in sorted(named - shards) if ours.fullmatch(file)]
    return old


def index_text(path, names, sums, kv_sums, total_size):
    """The index of the shards of `path`, whose names and checksums of index and KV section are given in
    their order."""
    shards = [os.path.basename(shard) for shard in shard_paths(path, len(names))]
    content = {
        "metadata": {
            "total_size": total_size,
            "index_crc32c": dict(zip(shards, sums)),
            "kv_crc32c": dict(zip(shards, kv_sums)),
        },
        "weight_map": {name: shard for shard, of in zip(shards, names) for name in of},
    }
    return (json.dumps(content, ensure_ascii=False, indent=2) + "\n").encode()


def remove(paths):
    for path in paths:
        with contextlib.suppress(OSError):
            os.unlink(path)
