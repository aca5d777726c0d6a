"""What pickles call. Names and parameters stay as they are: pickles of other releases hold them."""

import typing

import hurray

from . import _hurray


def construct(callee: str, arguments: dict[str, typing.Any]) -> typing.Any:
    """`hurray.<callee>(**arguments)`: a class, or a static method of one."""
    made: typing.Any = hurray
    for name in callee.split("."):
        made = getattr(made, name)
    return made(**arguments)


def dtype(tag: int) -> hurray.Dtype:
    """The object of the tag."""
    return _hurray._dtype(tag)


def device(kind: int, device_id: int, memory_class: int) -> hurray.Device:
    """The constant, or a new object, for the wire bytes."""
    return _hurray._device(kind, device_id, memory_class)


def buffer_handle(byte_size: int, alignment: int, sync_mode: str, device: hurray.Device) -> hurray.BufferHandle:
    """One row of a buffer table."""
    return _hurray._buffer_handle(byte_size, alignment, sync_mode, device)


def descriptor(data: bytes, device: hurray.Device | None, permissive: bool, minor: int) -> hurray.Descriptor:
    """A descriptor of its bytes, of the device as it was known in the program, and of its minor version."""
    return _hurray._descriptor(data, device, permissive, minor)


def descriptor_of(*parts: typing.Any) -> hurray.Descriptor:
    """A descriptor that has no bytes because it breaks a rule of the encoding."""
    return _hurray._descriptor_of(*parts)


def tensor(
    descriptor: bytes,
    buffers: tuple[typing.Any, ...],
    readonly: tuple[bool, ...],
    device_id: int,
    outside: bool,
) -> "hurray.Tensor":
    """A tensor over the given memory, or copies of it."""
    return _hurray._rebuild_tensor(descriptor, buffers, readonly, device_id, outside)


def file(
    path: str,
    mode: typing.Literal["map", "copy_on_write", "memory"],
    size: int,
    index_crc32c: int,
    limits: dict[str, typing.Any],
) -> hurray.file.File:
    """The file at the path, opened on first use if it still has that size and index checksum."""
    return _hurray._reopen(path, mode, size, index_crc32c, **limits)


def composite(descriptor: bytes, members: tuple[typing.Any, ...]) -> "hurray.Composite":
    """The members under the head of the descriptor."""
    return _hurray._rebuild_composite(descriptor, members)
