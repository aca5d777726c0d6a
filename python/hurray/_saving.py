"""The threads of `hurray.save_async`: one for each target that is being written."""

import collections
import concurrent.futures
import os
import threading
import typing

_Job = tuple[typing.Any, "concurrent.futures.Future[None]"]

_lock = threading.Lock()
#: By what a path leads to: the jobs that wait behind the one being written.
_queues: dict[str, collections.deque[_Job]] = {}


def _forget() -> None:
    """A fork has none of its parent's threads, and their saves are the parent's."""
    global _lock
    _lock = threading.Lock()
    _queues.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)


def target(path: "str | os.PathLike[str]") -> str:
    """The path from the root on: the working folder may be another one when the thread gets there."""
    text = os.fspath(path)
    if not isinstance(text, str):
        raise TypeError(f"a path is a str, not {type(text).__name__}")
    return os.path.abspath(text)


def submit(path: str, job: typing.Any) -> "concurrent.futures.Future[None]":
    """Runs `job.run()` when all that was submitted before for the same target is done."""
    future: concurrent.futures.Future[None] = concurrent.futures.Future()
    key = os.path.realpath(path)
    with _lock:
        queue = _queues.get(key)
        if queue is not None:
            queue.append((job, future))
            return future
        _queues[key] = collections.deque()
    future.set_running_or_notify_cancel()
    thread = threading.Thread(target=_work, args=(key, job, future), name=f"hurray.save_async {path}")
    thread.daemon = False  # whatever the calling thread is: the interpreter's end waits
    try:
        thread.start()
    except BaseException:
        with _lock:
            rest = _queues.pop(key)
        for _, waiting in rest:
            waiting.cancel()
        raise
    return future


def _work(key: str, job: typing.Any, future: "concurrent.futures.Future[None]") -> None:
    while True:
        try:
            job.run()
        except BaseException as error:
            future.set_exception(error)
        else:
            future.set_result(None)
        del job, future
        while True:
            with _lock:
                if not _queues[key]:
                    del _queues[key]
                    return
                job, future = _queues[key].popleft()
            if future.set_running_or_notify_cancel():
                break
            del job, future
