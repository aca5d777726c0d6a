"""Several files as one: folders, and indexes that say which file holds a tensor."""

import contextlib
import errno
import fractions
import json
import os
import re

SUFFIX = ".hrry"
#: Of files that may be the model of a folder.
MODELS = (SUFFIX, ".safetensors")


def find(path, max_index_bytes):
    """What a folder, an index, or the path that was saved in shards stands for: the path of one file and
    None; or the path of an index and, for each of its files, path, names and the CRC-32C that its own
    index and its KV section must have, or None for each. None: `path` is nothing of that. FileError says
    what is wrong."""
    if os.path.isdir(path):
        return _in_folder(path, max_index_bytes)
    if not os.path.lexists(path):
        for index in (index_path(path), path + ".index.json"):
            if os.path.isfile(index):
                return find(index, max_index_bytes)
        return None
    with open(path, "rb") as file:
        if not file.read(64).lstrip(b" \t\r\n\xef\xbb\xbf").startswith(b"{"):
            return None
    return path, _members(path, _read(path, max_index_bytes))


def _error(path, text):
    from . import FileError

    return FileError(f"{path}: {text}")


def _in_folder(path, max_index_bytes):
    names = sorted(os.listdir(path))
    indexes = [name for name in names if name.endswith(tuple(suffix + ".index.json" for suffix in MODELS))]
    files = [name for name in names if name.endswith(MODELS)]
    if len(indexes) == 1:
        found = find(os.path.join(path, indexes[0]), max_index_bytes)
        whole = indexes[0].removesuffix(".index.json")
        if found is not None and whole in files and os.path.join(path, whole) not in (at for at, *_ in found[1]):
            raise _error(path, f"the folder holds {indexes[0]} and a {whole} that it does not name, one saved "
                         "after the other; open one of them, or remove the old one")  # fmt: skip
        return found
    if not indexes and len(files) == 1:
        return os.path.join(path, files[0]), None
    if not indexes and not files:
        return None
    candidates = indexes or files
    shown = ", ".join(candidates[:10]) + (f" and {len(candidates) - 10} more" if len(candidates) > 10 else "")
    raise _error(path, f"the folder holds {len(candidates)} candidates, open one of them: {shown}")


def _is_utf8(text):
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _unique(pairs):
    result = dict(pairs)
    if len(result) != len(pairs):
        seen = set()
        twice = next(key for key, _ in pairs if key in seen or seen.add(key))
        raise ValueError(f"the key {twice!r} is there twice")
    return result


def _read(path, max_index_bytes):
    with open(path, "rb") as file:
        data = file.read(min(max_index_bytes, os.fstat(file.fileno()).st_size) + 1)
    if len(data) > max_index_bytes:
        raise _error(path, f"the index has more than max_index_bytes={max_index_bytes} bytes")
    try:
        return json.loads(data.decode("utf-8-sig"), object_pairs_hook=_unique)
    except (ValueError, RecursionError) as error:
        raise _error(path, f"expected an index in JSON: {error}") from error


_SUMS = ("index_crc32c", "kv_crc32c")


def _members(path, index):
    files = index.get("weight_map")
    metadata = index.get("metadata")
    sums, kv_sums = ((metadata.get(field) if isinstance(metadata, dict) else None) for field in _SUMS)
    sums = sums if isinstance(sums, dict) else {}
    kv_sums = kv_sums if isinstance(kv_sums, dict) else {}
    if not isinstance(files, dict) or not (files or sums):
        raise _error(path, 'expected an index of tensors, {"weight_map": {name: file}}; found other JSON')
    names = {file: [] for file in sums}
    for name, file in [*files.items(), *((None, file) for file in sums)]:
        if not isinstance(file, str) or file in ("", ".", "..") or any(c in file for c in "/\\\0:") or not _is_utf8(file):
            raise _error(path, f"weight_map[{name!r}]: expected the bare name of a file beside the index, found {file!r}")
        if name is not None:
            names.setdefault(file, []).append(name)
    folder = os.path.dirname(path)
    members = []
    for file in sorted(names):
        crcs = [sums.get(file), kv_sums.get(file)]
        for field, crc in zip(_SUMS, crcs):
            if crc is not None and not (type(crc) is int and 0 <= crc < 1 << 32):
                raise _error(path, f"metadata.{field}[{file!r}]: expected a 32-bit number, found {crc!r}")
        members.append((os.path.join(folder, file), names[file], *crcs))
    return members


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
        index = _read(index_path(path), 1 << 28)
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
