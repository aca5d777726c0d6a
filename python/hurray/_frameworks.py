"""What `hurray.numpy`, `hurray.torch` and `hurray.jax` share: files whose tensors come as arrays of a
framework, through the calls that programs for safetensors make (09-models-and-frameworks.md section 4)."""

import functools
import io
import os
import types
import typing

import hurray

from . import _hurray, file

_MODES = {"auto": None, "mmap": "copy_on_write", "pread": "memory"}
_PREFETCHED = 1 << 28


def mode_of(backend: str) -> "str | None":
    if backend not in _MODES:
        raise ValueError(f"backend: expected one of {', '.join(map(repr, _MODES))}, found {backend!r}")
    return _MODES[backend]


class Framework(typing.Protocol):
    """How tensors become arrays of one framework, on a device of its own."""

    def device(self, device: typing.Any) -> typing.Any:
        """What `device=` means; ValueError or the framework's own error where it means nothing."""

    def whole(self, f: file.File, name: str, device: typing.Any) -> typing.Any:
        """A tensor of a file."""

    def part(self, tensor: "hurray.Tensor", device: typing.Any) -> typing.Any:
        """A tensor that is nobody else's."""

    def whole_file(self, f: file.File, device: typing.Any) -> "dict[str, typing.Any]":
        """All tensors of a file."""


@functools.lru_cache(maxsize=None)
def none_of(dtype: "hurray.Dtype") -> "hurray.Tensor":
    """A tensor without elements: what becomes of it tells the framework's own type."""
    return hurray.Tensor(b"", dtype, [0])


def open_writable(filename: typing.Any, backend: str) -> file.File:
    """A file whose tensors are writable, over pages of this process."""
    return _hurray._open_writable(filename, mode_of(backend))


def load_file(framework: Framework, filename: typing.Any, device: typing.Any, backend: str) -> "dict[str, typing.Any]":
    where = framework.device(device)
    with open_writable(filename, backend) as f:
        return framework.whole_file(f, where)


def load(framework: Framework, data: typing.Any) -> "dict[str, typing.Any]":
    with hurray.open(io.BytesIO(data)) as f:
        return framework.whole_file(f, framework.device("cpu"))


def save_file(tensors: typing.Any, filename: typing.Any, metadata: typing.Any) -> None:
    if isinstance(filename, (str, os.PathLike)) and os.fspath(filename).endswith(".safetensors"):
        _hurray._save_safetensors(filename, tensors, metadata)
    else:
        hurray.save(filename, tensors, kv=metadata)


def save(tensors: typing.Any, metadata: typing.Any) -> bytes:
    with hurray.share(tensors, kv=metadata) as shared:
        descriptor = shared.fileno()
        size = os.fstat(descriptor).st_size
        pieces, at = [], 0
        while at < size:
            pieces.append(os.pread(descriptor, size - at, at))
            at += len(pieces[-1])
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)


class Slice:
    """A tensor of an open file, parts of which are read when they are asked for."""

    def __init__(self, opened: "SafeOpen", name: str) -> None:
        self._opened = opened
        self._name = name
        self._descriptor = opened._file.descriptor(name)

    def __getitem__(self, index: typing.Any) -> typing.Any:
        opened = self._opened
        tensor = opened._use().read(self._name, index, copy=True)
        return opened._framework.part(tensor, opened._device)

    def get_shape(self) -> "list[int]":
        """The sizes."""
        return list(self._descriptor.shape)

    def get_dtype(self) -> str:
        """What safetensors calls the element type, such as "F32"; the format's own name where it has none."""
        name = self._descriptor.dtype.name
        return _hurray._safetensors_types().get(name, name)


class SafeOpen:
    """An open file: `with safe_open(filename, framework="pt") as f: f.get_tensor(name)`.

    Takes everything that `hurray.open` takes. Tensors are writable and private to the process."""

    def __init__(self, framework: Framework, filename: typing.Any, device: typing.Any, backend: str) -> None:
        self._framework = framework
        self._device = framework.device(device)
        self._file = open_writable(filename, backend)

    def _use(self) -> file.File:
        return self._file

    def __enter__(self) -> "SafeOpen":
        return self

    def __exit__(
        self,
        exc_type: "type[BaseException] | None",
        exc_value: "BaseException | None",
        traceback: "types.TracebackType | None",
    ) -> None:
        self._file.close()

    def keys(self) -> "list[str]":
        """The names, sorted."""
        return sorted(self._file.names)

    def offset_keys(self) -> "list[str]":
        """The names in the order of the file."""
        return list(self._file.names)

    def metadata(self) -> "dict[str, typing.Any] | None":
        """The metadata as they were saved; None for none."""
        return dict(self._file.kv) or None

    def get_tensor(self, name: str) -> typing.Any:
        """One tensor. Raises KeyError for a name that is not there."""
        return self._framework.whole(self._file, name, self._device)

    def get_tensors(self) -> "dict[str, typing.Any]":
        """All tensors by name."""
        return self._framework.whole_file(self._file, self._device)

    def get_slice(self, name: str) -> Slice:
        """A tensor to be read in parts: `f.get_slice(name)[2:5]`."""
        return Slice(self, name)


def iterate(
    framework: Framework,
    path: typing.Any,
    names: "typing.Iterable[str] | None",
    device: typing.Any,
    plan: "typing.Mapping[str, typing.Any] | None",
) -> "typing.Iterator[tuple[str, typing.Any]]":
    where = framework.device(device)
    if names is not None and plan is not None:
        raise TypeError("names and plan both say what is to be read; give one of them")
    wanted = None if names is None else set(names)
    with hurray.open(path, mode="memory") as f:
        if wanted is not None or plan is not None:
            for name in wanted if plan is None else plan:
                if name not in f:
                    raise KeyError(name)
        order = [n for n in f.names if (wanted is None or n in wanted) and (plan is None or n in plan)]
        indexes = {} if plan is None else plan

        def window(start: int) -> int:
            """Where the tensors that are read ahead together end."""
            end, size = start, 0
            while end < len(order) and (end == start or size < _PREFETCHED):
                size += sum(handle.byte_size for handle in f.descriptor(order[end]).buffer_handles)
                end += 1
            f.prefetch({name: indexes.get(name, ...) for name in order[start:end]} if plan else order[start:end])
            return end

        end = window(0)
        for k, name in enumerate(order):
            if k == end:
                end = window(end)
            if name in indexes:
                yield name, framework.part(f.read(name, indexes[name], copy=True), where)
            else:
                yield name, framework.whole(f, name, where)
