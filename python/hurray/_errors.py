"""The exceptions of `hurray` and the private classes that serve two contracts at once.

All of them pickle. `FileError` and `StreamError` carry `errno`, `strerror` and `filename` when an
operating-system error is behind them.
"""

import builtins as _builtins

__all__ = [
    "BufferError",
    "CopyRequiredError",
    "FileError",
    "InternalError",
    "InvalidDescriptorError",
    "StreamError",
    "UnsupportedError",
]


class InvalidDescriptorError(ValueError):
    """Metadata are malformed or contradict each other."""

    __module__ = "hurray"


class BufferError(ValueError):
    """A buffer is missing, too small or not bytes-like, or its placement is impossible; not the built-in class."""

    __module__ = "hurray"


class CopyRequiredError(ValueError):
    """`copy=False` was asked for, and only a copy could satisfy the call."""

    __module__ = "hurray"


class UnsupportedError(NotImplementedError):
    """Valid, but it cannot be represented or done here."""

    __module__ = "hurray"


class InternalError(RuntimeError):
    """A contained fault of the library."""

    __module__ = "hurray"


class FileError(OSError):
    """A file is missing, unreadable, not writable, corrupt or short; also a stream's transport."""

    __module__ = "hurray"


class StreamError(OSError):
    """Stream framing, stream limits, use of a finished writer."""

    __module__ = "hurray"


class _UnsupportedAttributeError(UnsupportedError, AttributeError):
    """So that `hasattr` tells the truth."""


class _UnsupportedBufferError(UnsupportedError, _builtins.BufferError):
    """What consumers of DLPack and of the buffer protocol catch."""


class _CopyRequiredBufferError(CopyRequiredError, _builtins.BufferError):
    """What consumers of DLPack catch."""


class _StreamTimeoutError(StreamError, TimeoutError):
    """No byte came, or was taken, in time."""


class _FileNotFoundError(FileError, FileNotFoundError):
    """A `FileError` that is also the built-in class of its errno, like those below."""


class _FileExistsError(FileError, FileExistsError):
    pass


class _PermissionError(FileError, PermissionError):
    pass


class _IsADirectoryError(FileError, IsADirectoryError):
    pass


class _NotADirectoryError(FileError, NotADirectoryError):
    pass


class _BrokenPipeError(FileError, BrokenPipeError):
    pass


class _ConnectionResetError(FileError, ConnectionResetError):
    pass


class _ConnectionAbortedError(FileError, ConnectionAbortedError):
    pass


class _ConnectionRefusedError(FileError, ConnectionRefusedError):
    pass


class _TimeoutError(FileError, TimeoutError):
    pass


_of_builtin: dict[type[OSError], type[FileError]] = {
    one.__bases__[1]: one for one in FileError.__subclasses__()
}


def file_class_of(number: int) -> type[FileError]:
    """The class of a `FileError` with this errno, which is also what `except` of the built-in one takes (Y52)."""
    return _of_builtin.get(type(OSError(number, "")), FileError)
