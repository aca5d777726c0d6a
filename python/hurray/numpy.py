"""Files of tensors as NumPy arrays, with the calls of `safetensors.numpy`.

A name that ends in ".safetensors" is written as a safetensors file, any other as a `.hrry` file; what is
read is told by its bytes. Arrays are writable, over memory that is private to the process.
"""

import functools
import os
import typing

import numpy

import hurray

from . import _frameworks, file

__all__ = ["iterate", "load", "load_file", "safe_open", "save", "save_file"]

Array = numpy.ndarray[typing.Any, typing.Any]


class _NumPy:
    def device(self, device: typing.Any) -> None:
        if device not in (None, "cpu"):
            raise ValueError(f'device: expected "cpu", the only one that NumPy has, found {device!r}')

    def whole(self, f: file.File, name: str, device: None) -> Array:
        found = f._mapped_elements(name)
        if found is not None:
            memory, start, stored, shape = found
            dtype = _dtype(stored)
            if start % dtype.alignment == 0:
                return memory.to_numpy()[start:].view(dtype).reshape(shape)
        return self.part(f[name], device)

    def part(self, tensor: hurray.Tensor, device: None) -> Array:
        array = tensor.to_numpy()
        return array if array.flags.writeable else array.copy()

    def whole_file(self, f: file.File, device: None) -> dict[str, Array]:
        return {name: self.whole(f, name, device) for name in f.names}


@functools.lru_cache(maxsize=None)
def _dtype(dtype: hurray.Dtype) -> "numpy.dtype[typing.Any]":
    return _frameworks.none_of(dtype).to_numpy().dtype


_numpy = _NumPy()


def save_file(
    tensors: typing.Mapping[str, typing.Any],
    filename: "str | os.PathLike[str]",
    metadata: "typing.Mapping[str, str] | None" = None,
) -> None:
    """Write arrays by name into one file, whole or not at all.

    Raises as `hurray.save`; UnsupportedError for what a safetensors file cannot hold."""
    _frameworks.save_file(tensors, filename, metadata)


def load_file(filename: typing.Any, *, backend: str = "auto") -> dict[str, Array]:
    """All arrays of a file, an index of shards or a folder.

    `backend`: "mmap" shares private pages of the file, "pread" reads into own memory, "auto" does what suits
    the file. Raises as `hurray.load`."""
    return _frameworks.load_file(_numpy, filename, "cpu", backend)


def save(tensors: typing.Mapping[str, typing.Any], metadata: "typing.Mapping[str, str] | None" = None) -> bytes:
    """The bytes of a `.hrry` file of these arrays."""
    return _frameworks.save(tensors, metadata)


def load(data: typing.Any) -> dict[str, Array]:
    """The arrays in the bytes of a file."""
    return _frameworks.load(_numpy, data)


def safe_open(
    filename: typing.Any, framework: str = "np", device: str = "cpu", *, backend: str = "auto"
) -> _frameworks.SafeOpen:
    """An open file, whose arrays and parts of arrays are taken one by one."""
    if framework not in ("np", "numpy"):
        raise ValueError(f'framework: expected "np", found {framework!r}; hurray.torch and hurray.jax have theirs')
    return _frameworks.SafeOpen(_numpy, filename, device, backend)


def iterate(
    path: typing.Any,
    *,
    names: "typing.Iterable[str] | None" = None,
    device: str = "cpu",
    plan: "typing.Mapping[str, typing.Any] | None" = None,
) -> typing.Iterator[tuple[str, Array]]:
    """Names and arrays in the order of the file, each of which owns its memory, while what follows is read
    ahead. `names`: these alone; or `plan`: parts, by names, with indexes as `File.read` takes them."""
    return _frameworks.iterate(_numpy, path, names, device, plan)
