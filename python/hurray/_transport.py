"""Which bytes a Python object stands for, and how they are reached.

`StreamReader` and `StreamWriter` use a descriptor only where it is the object's content: plain
sockets, pipes and files, and buffered wrappers of them. A TLS connection goes through its own methods;
everything else is a TypeError.
"""

import contextlib
import io
import os
import select
import socket
import threading
import weakref

try:
    import ssl
except ImportError:  # a Python built without TLS
    ssl = None


class TimeLimit(Exception):
    """A wait took too long; the text says for what."""


_NOTHING_CAME = "no byte came within the time limit (read_timeout, or the socket's own)"
_NOTHING_TAKEN = "no byte was taken within the time limit (the socket's own)"


@contextlib.contextmanager
def _limited(words):
    """The time limit of a socket's own, which its file says so; a lost connection has a number."""
    try:
        yield
    except TimeoutError as error:
        if error.errno is not None:
            raise
        raise TimeLimit(words) from error


class Endpoint:
    """A descriptor that is the object's content. Nothing to do before or after it is used."""

    #: None: `readinto` and `write` are used instead.
    descriptor = None
    #: None: the descriptor tells.
    cross_machine = None
    #: Seconds; None: no limit.
    timeout = None

    def flush(self):
        """Called before each use."""

    def settle(self, consumed=None):
        """Called at the end, `consumed` bytes after the start; None: where the descriptor stands."""


class _Descriptor(Endpoint):
    def __init__(self, owner, timeout=None):
        self.owner = owner
        self.descriptor = owner.fileno()
        if self.descriptor < 0:
            raise ValueError(f"this {type(owner).__name__} is closed")
        self.timeout = timeout


class _File(_Descriptor):
    """A file object that stands behind the last byte that was used when all is done."""

    def __init__(self, owner):
        super().__init__(owner)
        self.flush()
        self.start = owner.tell()
        self._move(self.start)

    def flush(self):
        if not self.owner.closed:
            self.owner.flush()

    def settle(self, consumed=None):
        if self.owner.closed:
            return
        if consumed is None:
            self._move(os.lseek(self.descriptor, 0, os.SEEK_CUR))
        else:
            self._move(self.start + consumed)

    def _move(self, position):
        # Seeking from the end drops what the object has buffered, so that it looks again.
        self.owner.seek(0, os.SEEK_END)
        self.owner.seek(position)


class _Flushed(_Descriptor):
    """A buffered writer over something that cannot seek, or that is only written."""

    def __init__(self, owner, base, timeout):
        super().__init__(base, timeout)
        self.buffered = owner
        self.flush()

    def flush(self):
        if not self.buffered.closed:
            with _limited(_NOTHING_TAKEN):
                self.buffered.flush()


class _Methods(Endpoint):
    """Bytes that go through methods: those of a TLS connection, and of a buffered reader that may hold
    bytes which its descriptor has already given up."""

    def __init__(self, base, buffered=None, timeout=None):
        self.base = base
        self.buffered = buffered
        self.drained = buffered is None or not buffered.readable()
        self.timeout = timeout
        self.ahead = memoryview(b"")
        family = base.family if isinstance(base, socket.socket) else None
        self.cross_machine = family in (socket.AF_INET, socket.AF_INET6)

    def flush(self):
        if self.buffered is not None and not self.buffered.closed and self.buffered.writable():
            with _limited(_NOTHING_TAKEN):
                self.buffered.flush()

    def readinto(self, view):
        if not self.drained:
            self.drained = True
            # As much as the object has buffered; where that is nothing, one read.
            with _limited(_NOTHING_CAME):
                self.ahead = memoryview(self.buffered.read1() or b"")
            if not self.ahead:
                return self._read(view)
        if self.ahead:
            count = min(len(view), len(self.ahead))
            view[:count] = self.ahead[:count]
            self.ahead = self.ahead[count:]
            return count
        return self._read(view)

    def _read(self, view):
        if isinstance(self.base, io.FileIO):
            count = None
            while count is None:
                self._wait(select.POLLIN)
                count = self.base.readinto(view)
            return count
        if ssl is not None and isinstance(self.base, ssl.SSLSocket):
            if self.timeout is not None and not self.base.pending():
                self._wait(select.POLLIN)
        else:
            self._wait(select.POLLIN)
        return self._patiently(self.base.recv_into, view, select.POLLIN)

    def write(self, view):
        while view:
            view = view[self._patiently(self.base.send, view, select.POLLOUT) :]

    def _patiently(self, transfer, view, event):
        """`transfer(view)`, again after each time limit of the socket's own."""
        while True:
            try:
                return transfer(view)
            except BlockingIOError:
                self._wait(event)
            except OSError as error:
                if isinstance(error, TimeoutError) and error.errno is None:
                    self._wait(event)  # the socket's own limit; a lost connection has a number
                elif ssl is not None and isinstance(error, ssl.SSLWantReadError):
                    self._wait(select.POLLIN)
                elif ssl is not None and isinstance(error, ssl.SSLWantWriteError):
                    self._wait(select.POLLOUT)
                else:
                    raise

    def _wait(self, event):
        poll = select.poll()
        poll.register(self.base.fileno(), event)
        if not poll.poll(None if self.timeout is None else min(self.timeout * 1000, 2**31 - 1)):
            raise TimeLimit(_NOTHING_CAME if event == select.POLLIN else _NOTHING_TAKEN)


def _refuse(item, what):
    raise TypeError(f"a {type(item).__module__}.{type(item).__qualname__} {what}")


def _base(item, advice):
    """The file or socket whose bytes `item` reads and writes, and `item` without a wrapper around it."""
    if type(item).__module__ == "tempfile" and isinstance(getattr(item, "file", None), io.IOBase):
        item = item.file
    if isinstance(item, io.TextIOBase):
        _refuse(item, "is a text file, whose descriptor is not its content; open it in binary mode")
    if isinstance(item, (socket.socket, io.FileIO)):
        return item, item
    if isinstance(item, (io.BufferedReader, io.BufferedWriter, io.BufferedRandom)):
        raw = item.raw
        if isinstance(raw, socket.SocketIO):
            raw = getattr(raw, "_sock", None)
        if isinstance(raw, (socket.socket, io.FileIO)):
            return item, raw
    _refuse(item, f"is no socket, pipe or file, nor a buffered wrapper of one; {advice}")


def _limit(base):
    """The socket's own time limit. One that does not block at all is waited for."""
    return (base.gettimeout() or None) if isinstance(base, socket.socket) else None


def source(item, timeout):
    """The endpoint that a reader reads from; `timeout` is in seconds or None."""
    item, base = _base(item, "pass its bytes (of an io.BytesIO: .getvalue())")
    timeout = _limit(base) if timeout is None else timeout
    if ssl is not None and isinstance(base, ssl.SSLSocket):
        return _Methods(base, None if item is base else item, timeout)
    if isinstance(item, io.IOBase) and item.seekable():
        return _File(item)
    if item is not base:
        return _Methods(base, item, timeout)
    return _Descriptor(item, timeout)


def destination(item):
    """The endpoint that a writer writes to."""
    item, base = _base(item, "write in memory, StreamWriter(), and pass on its .getvalue()")
    buffered = None if item is base else item
    if ssl is not None and isinstance(base, ssl.SSLSocket):
        return _Methods(base, buffered, _limit(base))
    if isinstance(item, io.BufferedRandom):
        return _File(item)
    return _Descriptor(item, _limit(base)) if buffered is None else _Flushed(buffered, base, _limit(base))


class _Turns:
    """Calls that move one object come one after the other, whichever readers they come from."""

    def __init__(self):
        self._lock = threading.Lock()
        self._thread = None

    def __enter__(self):
        if self._thread == threading.get_ident():
            raise RuntimeError("an object cannot be read from within its own methods")
        self._lock.acquire()
        self._thread = threading.get_ident()

    def __exit__(self, *_):
        self._thread = None
        self._lock.release()


#: Of the objects that are being read, by their id; what reads one keeps both.
_turns = weakref.WeakValueDictionary()


class Positioned:
    """A seekable binary object whose bytes are read by position: a file of fsspec, an io.BytesIO. It is
    moved about, and used by one thread at a time."""

    def __init__(self, item):
        if isinstance(item, io.TextIOBase):
            _refuse(item, "is a text file, whose characters are not its content; open it in binary mode")
        self.turns = _turns.setdefault(id(item), _Turns())
        with self.turns:
            end = item.seek(0, os.SEEK_END)
            if end is None:  # not every object tells
                end = item.tell()
        name = getattr(item, "name", None)
        self.item = item
        self.size = end
        self.name = name if isinstance(name, str) else f"{type(item).__module__}.{type(item).__qualname__}"

    def read_at(self, view, offset):
        with self.turns:
            self.item.seek(offset)
            readinto = getattr(self.item, "readinto", None)
            if readinto is not None:
                return readinto(view) or 0
            data = self.item.read(len(view))
        if isinstance(data, str):
            _refuse(self.item, "reads text; open it in binary mode")
        if not isinstance(data, (bytes, bytearray, memoryview)):
            _refuse(self.item, f"reads a {type(data).__name__} where bytes are expected")
        count = len(data)
        if count <= len(view):
            view[:count] = data
        return count
