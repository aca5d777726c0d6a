"""Tensors that processes share without a copy (09-models-and-frameworks.md section 6)."""

import os
import threading
import types
import typing
from collections.abc import Mapping

from . import _hurray


class Shared:
    """Tensors in sealed memory, made by `hurray.share`: nobody can change or cut them.

    `hurray.open(shared.fileno())` gives read-only, page-aligned tensors without a copy, here and in every
    process that gets the descriptor: through `multiprocessing`, which the object can be passed to, or
    `socket.send_fds`. The memory goes with the last object, `File`, tensor and process that holds it,
    however they end.
    """

    def __init__(self, descriptor: int, name: str) -> None:
        self._descriptor: int | None = descriptor
        self._name = name
        self._lock = threading.Lock()

    def fileno(self) -> int:
        """The descriptor, which stays this object's. Raises ValueError once closed."""
        descriptor = self._descriptor
        if descriptor is None:
            raise ValueError(f"{self._name}: closed")
        return descriptor

    @property
    def name(self) -> str:
        """What the system shows for it (`/proc/PID/maps`); it cannot be opened by this."""
        return self._name

    def close(self) -> None:
        """Close the descriptor; idempotent. Files and tensors over it stay valid."""
        with self._lock:
            descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            os.close(descriptor)

    def __enter__(self) -> "Shared":
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None,
                 traceback: types.TracebackType | None) -> None:
        self.close()

    def __del__(self) -> None:
        if hasattr(self, "_lock"):
            self.close()

    def __repr__(self) -> str:
        return f"<hurray.Shared {self._name!r}{' closed' if self._descriptor is None else ''}>"

    def __reduce__(self) -> typing.NoReturn:
        raise TypeError("shared memory is passed to processes by multiprocessing or socket.send_fds, not by pickle")


def share(tensors: Mapping[str, typing.Any], *, kv: Mapping[str, typing.Any] | None = None) -> Shared:
    """Put tensors into one sealed piece of shared memory, for other processes to open without a copy.

    Names, values and `kv` are as in `save`. Raises as `save` does; UnsupportedError where the system has no
    memory that can be sealed.
    """
    name = f"hurray-{os.getpid()}-{os.urandom(4).hex()}"
    return _movable(Shared(_hurray._share(tensors, kv, name), name))


def _rebuild(descriptor: typing.Any, name: str) -> Shared:
    return _movable(Shared(descriptor.detach(), name))


def _reduce(shared: Shared) -> tuple[typing.Any, ...]:
    from multiprocessing import reduction
    return _rebuild, (reduction.DupFd(shared.fileno()), shared.name)


def _movable(shared: Shared) -> Shared:
    """The same; the pickler that moves descriptors between processes, and no other, knows it from now on."""
    from multiprocessing import reduction
    reduction.ForkingPickler.register(Shared, _reduce)
    return shared
