"""`hurray.convert`, and the line that shows how far it is."""

import os
import sys
import time
import typing

from . import _hurray

Progress = typing.Callable[[int, int], typing.Any]


class _Line:
    """One line of a terminal, from the first second on: percent, rate and the time that is left."""

    def __init__(self, stream: typing.TextIO) -> None:
        self.stream = stream
        self.start = time.monotonic()
        self.drawn = False

    def __call__(self, done: int, total: int) -> None:
        seconds = time.monotonic() - self.start
        if seconds < 1:
            return
        rate = done / seconds
        left = f"{(total - done) / rate:.0f} s left" if rate else ""
        self.stream.write(f"\r\x1b[K{100 * done // max(total, 1):3}%  {done / 1e6:.0f} of {total / 1e6:.0f} MB, {rate / 1e6:.0f} MB/s, {left}")
        self.stream.flush()
        self.drawn = True

    def close(self) -> None:
        if self.drawn:
            self.stream.write("\r\x1b[K")
            self.stream.flush()


def convert(
    src: typing.Any,
    dst: "str | os.PathLike[str]",
    *,
    progress: "Progress | bool | None" = None,
    checksums: bool = True,
    sync: bool = True,
) -> None:
    """Make one file of `src`: anything that `hurray.open` takes.

    A target whose name ends in ".safetensors" becomes a safetensors file, any other a `.hrry` file; it appears
    whole, or not at all. Tensors pass through bounded memory; of sources with checksums each is read at once,
    which compares them. Element types, shapes, order and metadata stay.

    `progress`: called a few times a second with the bytes done and all bytes; None shows a line where standard
    error is a terminal, False shows nothing. `checksums=False` leaves out the sums of a `.hrry` file,
    `sync=False` does not wait for the disk.

    Raises as `open` and `save`; UnsupportedError lists what a safetensors file cannot hold."""
    line = None
    if progress is None and sys.stderr is not None and sys.stderr.isatty():
        progress = line = _Line(sys.stderr)
    elif progress is True or (progress not in (None, False) and not callable(progress)):
        raise TypeError("progress must be None, False or a function of the bytes done and all bytes")
    try:
        with _hurray.open(src, mode="memory") as file:
            file._convert(dst, checksums=checksums, sync=sync, progress=progress or None)
    finally:
        if line is not None:
            line.close()
