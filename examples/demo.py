"""The main job, on a real checkpoint: convert, inspect, map in a second process, stream to a third.

    python examples/demo.py --model model.safetensors [--hurray PATH_OF_THE_COMMAND] [--keep FOLDER]

Every byte that arrives is compared with the bytes of the safetensors file, which are read here with
the standard library alone. PyTorch takes part where it is installed.
"""

import argparse
import importlib
import json
import os
import pathlib
import struct
import subprocess
import sys
import tempfile
import time
from typing import Any

import numpy as np
from numpy.typing import NDArray

import hurray

# Type, shape, start and end in the file.
Entry = tuple[str, list[int], int, int]

# What safetensors calls the types that NumPy has as well.
NUMPY_TYPES = {"F64": "float64", "F32": "float32", "F16": "float16", "I64": "int64", "I32": "int32",
               "I16": "int16", "I8": "int8", "U64": "uint64", "U32": "uint32", "U16": "uint16",
               "U8": "uint8", "BOOL": "bool"}


def say(text: str = "") -> None:
    print(text, flush=True)


def mib(n: int) -> str:
    return f"{n / 2**20:.1f} MiB"


class Progress:
    """One line on a terminal, for what takes over a second."""

    def __init__(self, what: str, total: int) -> None:
        self.what, self.total, self.began, self.shown = what, total, time.monotonic(), 0.0

    def __call__(self, done: int) -> None:
        now = time.monotonic()
        if sys.stderr.isatty() and now - self.began > 1 and now - self.shown > 0.2:
            self.shown = now
            print(f"\r  {self.what}: {done * 100 // max(self.total, 1)} %", end="", file=sys.stderr)

    def end(self) -> None:
        if self.shown:
            print("\r" + " " * 60 + "\r", end="", file=sys.stderr)


def read_safetensors(path: str | os.PathLike[str]) -> dict[str, Entry]:
    """The tensors by name; offsets count from the start of the file."""
    with open(path, "rb") as file:
        (length,) = struct.unpack("<Q", file.read(8))
        header = json.loads(file.read(length))
    header.pop("__metadata__", None)
    entries: dict[str, Entry] = {}
    for name, entry in header.items():
        start, end = entry["data_offsets"]
        entries[name] = entry["dtype"], entry["shape"], 8 + length + start, 8 + length + end
    return entries


def same_bytes(source: str, entry: Entry, array: NDArray[Any]) -> bool:
    """Whether the array's elements, in C order, are the bytes of the safetensors file."""
    dtype, shape, start, end = entry
    if list(array.shape) != shape:
        return False
    raw: NDArray[np.uint8] = np.empty(0, np.uint8)
    if end > start:
        raw = np.memmap(source, np.uint8, "r", start, (end - start,))
    if dtype == "BOOL":
        return np.array_equal(array.reshape(-1), raw != 0)
    return np.array_equal(np.ascontiguousarray(array).reshape(-1).view(np.uint8), raw)


def to_numpy(tensor: hurray.Tensor) -> NDArray[Any]:
    """The values where NumPy has the type, else the bytes in the tensor's shape's order."""
    try:
        return tensor.to_numpy()
    except hurray.UnsupportedError:
        flat: NDArray[np.uint8] = tensor.buffer(0).to_numpy()
        shape = [size for size in tensor.shape if size is not None]
        return flat.reshape(*shape, -1) if tensor.size else flat.reshape(shape)


def torch_or_none() -> Any:
    try:
        return importlib.import_module("torch")
    except ImportError:
        return None


def check_mapped(source: str, path: str) -> None:
    """The second process: open the file without copying it, hand every tensor to NumPy and PyTorch."""
    expected = read_safetensors(source)
    torch = torch_or_none()
    began = time.perf_counter()
    with hurray.open(path, mode="copy_on_write") as f:
        opened = time.perf_counter() - began
        compared = shared = handed = 0
        alignments: dict[int, int] = {}
        progress = Progress("comparing", len(f))
        for i, (name, tensor) in enumerate(f.items()):
            assert isinstance(tensor, hurray.Tensor)  # a checkpoint holds no composites
            array = to_numpy(tensor)
            if not same_bytes(source, expected.pop(name), array):
                sys.exit(f"{name}: the mapped bytes differ from those of {source}")
            compared += array.nbytes
            (handle,) = tensor.buffer_handles
            alignments[handle.alignment] = alignments.get(handle.alignment, 0) + 1
            if tensor.size and tensor.dtype is not hurray.bool:
                address = tensor.buffer(0).to_numpy().__array_interface__["data"][0]
                shared += array.__array_interface__["data"][0] == address
                if address % handle.alignment:
                    sys.exit(f"{name}: declares alignment {handle.alignment} at {address:#x}")
                if torch is not None:
                    if torch.from_dlpack(tensor).data_ptr() != address:
                        sys.exit(f"{name}: PyTorch got a copy")
                    handed += 1
            progress(i)
        progress.end()
    if expected:
        sys.exit(f"missing in the file: {', '.join(expected)}")
    print(json.dumps({"opened_ms": opened * 1e3, "compared": compared, "shared": shared,
                      "torch": torch.__version__ if torch else None, "handed": handed,
                      "alignments": alignments}))


def check_streamed(source: str) -> None:
    """The third process: receive every tensor from the pipe that is its standard input."""
    expected = read_safetensors(source)
    names = sorted(expected, key=lambda name: expected[name][2:])
    received = 0
    alignments: dict[int, int] = {}
    with hurray.StreamReader(sys.stdin.buffer) as reader:
        for name, tensor in zip(names, reader, strict=True):
            assert isinstance(tensor, hurray.Tensor)  # nobody sent a composite
            if not same_bytes(source, expected[name], to_numpy(tensor)):
                sys.exit(f"{name}: the streamed bytes differ from those of {source}")
            received += tensor.nbytes
            (handle,) = tensor.buffer_handles
            alignments[handle.alignment] = alignments.get(handle.alignment, 0) + 1
    print(json.dumps({"received": received, "tensors": len(names), "alignments": alignments}))


def child(role: str, *arguments: str) -> list[str]:
    return [sys.executable, os.fspath(pathlib.Path(__file__).resolve()), "--role", role, *arguments]


def result_of(process: subprocess.CompletedProcess[Any] | subprocess.Popen[Any], output: str | bytes) -> Any:
    if process.returncode != 0:
        sys.exit(f"the other process failed with exit code {process.returncode}")
    return json.loads(output)


def demo(model: pathlib.Path, command: str, folder: pathlib.Path) -> None:
    target = folder / (model.stem + ".hrry")
    size = model.stat().st_size
    say(f"The checkpoint is {model.name}, {mib(size)}, {len(read_safetensors(model))} tensors.")

    say("\n1. Convert it, tensor after tensor")
    began = time.perf_counter()
    subprocess.run([command, "convert", os.fspath(model), os.fspath(target)], check=True)
    took = time.perf_counter() - began
    say(f"   {target.name}: {mib(target.stat().st_size)} in {took:.2f} s, synced to disk")

    say("\n2. Look inside")
    listing = subprocess.run([command, "inspect", os.fspath(target)], check=True, text=True,
                             capture_output=True).stdout.splitlines()
    for line in listing[:14]:
        say("   " + line)
    if len(listing) > 14:
        say(f"   ... {len(listing) - 14} more lines")
    with hurray.open(target) as f:
        name = max(f.names, key=lambda n: f.descriptor(n).buffer_handles[0].byte_size)
        largest = f[name]
        assert isinstance(largest, hurray.Tensor)
        say(f"\n   The largest is {name!r}. What its one buffer is, measured at its address:")
        say(f"   {largest.buffer_handles[0]}")

    say("\n3. Open it in a second process, mapped, and compare every byte")
    second = subprocess.run(child("mapped", os.fspath(model), os.fspath(target)),
                            stdout=subprocess.PIPE, text=True)
    mapped = result_of(second, second.stdout)
    say(f"   opened in {mapped['opened_ms']:.2f} ms; {mib(mapped['compared'])} compared, all equal")
    say(f"   {mapped['shared']} arrays lie where the file is mapped; alignments found: "
        + ", ".join(f"{n} tensors on {a}" for a, n in mapped["alignments"].items()))
    if mapped["torch"]:
        say(f"   {mapped['handed']} tensors went to PyTorch {mapped['torch']} at the same addresses")
    else:
        say("   PyTorch is not installed here, so NumPy alone was asked")

    say("\n4. Stream it through a pipe to a third process, and compare every byte again")
    began = time.perf_counter()
    with subprocess.Popen(child("streamed", os.fspath(model)), stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE) as third:
        assert third.stdin is not None and third.stdout is not None
        tensors = hurray.load(target)
        with hurray.StreamWriter(third.stdin) as writer:
            progress = Progress("streaming", len(tensors))
            for i, tensor in enumerate(tensors.values()):
                writer.write(tensor)
                progress(i)
            progress.end()
        third.stdin.close()
        output = third.stdout.read()
    streamed = result_of(third, output)
    took = time.perf_counter() - began
    say(f"   {streamed['tensors']} tensors, {mib(streamed['received'])} in {took:.2f} s, all equal; "
        "received on alignments " + ", ".join(str(a) for a in sorted(map(int, streamed["alignments"]))))

    say(f"""
What this showed: a real checkpoint became a .hrry file in one pass; another process used its tensors
from where the file is mapped, without reading or copying it first; a third one got them through a
pipe. Every byte was compared with the original, {mib(2 * mapped['compared'])} in all, and each buffer's
alignment is a property of its address, measured, and not a promise.""")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--model", type=pathlib.Path, help="a safetensors file")
    parser.add_argument("--hurray", default="hurray", help="the command (default: from PATH)")
    parser.add_argument("--keep", type=pathlib.Path, help="write the .hrry file here and keep it")
    parser.add_argument("--role", choices=["mapped", "streamed"], help=argparse.SUPPRESS)
    parser.add_argument("arguments", nargs="*", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.role == "mapped":
        check_mapped(*options.arguments)
    elif options.role == "streamed":
        check_streamed(*options.arguments)
    elif options.model is None:
        parser.error("--model is required")
    elif options.keep is not None:
        demo(options.model, options.hurray, options.keep)
    else:
        with tempfile.TemporaryDirectory() as folder:
            demo(options.model, options.hurray, pathlib.Path(folder))


if __name__ == "__main__":
    main()
