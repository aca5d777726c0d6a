"""Files of tensors as JAX arrays, with the calls of `safetensors.flax`.

A name that ends in ".safetensors" is written as a safetensors file, any other as a `.hrry` file; what is
read is told by its bytes. JAX arrays are immutable and own their memory.
"""

import os
import typing

import jax
import numpy

import hurray

from . import _frameworks, file
from . import numpy as _of_numpy

__all__ = ["iterate", "load", "load_file", "safe_open", "save", "save_file"]


class _Jax:
    def device(self, device: typing.Any) -> typing.Any:
        if device is None or device == "cpu":
            return jax.devices("cpu")[0]
        if isinstance(device, str):
            kind, _, number = device.partition(":")
            return jax.devices(kind)[int(number or 0)]
        return device

    def _put(self, array: typing.Any, device: typing.Any) -> jax.Array:
        if array.dtype.itemsize == 8 and not jax.config.jax_enable_x64:
            raise hurray.UnsupportedError(
                f"JAX makes 32-bit numbers of {array.dtype} unless jax_enable_x64 is set; "
                'jax.config.update("jax_enable_x64", True) keeps them'
            )
        return jax.device_put(numpy.array(array), device)

    def whole(self, f: file.File, name: str, device: typing.Any) -> jax.Array:
        return self._put(_of_numpy._numpy.whole(f, name, None), device)

    def part(self, tensor: hurray.Tensor, device: typing.Any) -> jax.Array:
        return self._put(tensor.to_numpy(), device)

    def whole_file(self, f: file.File, device: typing.Any) -> dict[str, jax.Array]:
        return {name: self.whole(f, name, device) for name in f.names}


_jax = _Jax()


def save_file(
    tensors: typing.Mapping[str, typing.Any],
    filename: "str | os.PathLike[str]",
    metadata: "typing.Mapping[str, str] | None" = None,
) -> None:
    """Write arrays by name into one file, whole or not at all.

    Raises as `hurray.save`; UnsupportedError for what a safetensors file cannot hold."""
    _frameworks.save_file({name: numpy.asarray(tensor) for name, tensor in tensors.items()}, filename, metadata)


def load_file(filename: typing.Any, device: typing.Any = "cpu", *, backend: str = "auto") -> dict[str, jax.Array]:
    """All arrays of a file, an index of shards or a folder. Raises as `hurray.load`."""
    return _frameworks.load_file(_jax, filename, device, backend)


def save(tensors: typing.Mapping[str, typing.Any], metadata: "typing.Mapping[str, str] | None" = None) -> bytes:
    """The bytes of a `.hrry` file of these arrays."""
    return _frameworks.save({name: numpy.asarray(tensor) for name, tensor in tensors.items()}, metadata)


def load(data: typing.Any) -> dict[str, jax.Array]:
    """The arrays in the bytes of a file."""
    return _frameworks.load(_jax, data)


def safe_open(
    filename: typing.Any, framework: str = "jax", device: typing.Any = "cpu", *, backend: str = "auto"
) -> _frameworks.SafeOpen:
    """An open file, whose arrays and parts of arrays are taken one by one."""
    if framework not in ("jax", "flax"):
        raise ValueError(f'framework: expected "jax" or "flax", found {framework!r}')
    return _frameworks.SafeOpen(_jax, filename, device, backend)


def iterate(
    path: typing.Any,
    *,
    names: "typing.Iterable[str] | None" = None,
    device: typing.Any = "cpu",
    plan: "typing.Mapping[str, typing.Any] | None" = None,
) -> typing.Iterator[tuple[str, jax.Array]]:
    """Names and arrays in the order of the file, while what follows is read ahead. `names`: these alone; or
    `plan`: parts, by names, with indexes as `File.read` takes them."""
    return _frameworks.iterate(_jax, path, names, device, plan)
