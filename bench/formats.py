"""One class for each format of the report: the same work by the library that knows the format best.

Every method works on NumPy arrays. `None` in place of a method: the library has no such thing. Nothing is
synced, and every read gives arrays whose bytes can all be touched.
"""

import io
import os
import pathlib

import numpy as np

import hurray


class Format:
    name = suffix = ""
    save = open = first = load = rows = columns = verify = send = receive = None

    def files(self, path):
        """What `save` has made under `path`."""
        return [path]


class Hurray(Format):
    name, suffix = "hurray", ".hrry"

    def save(self, path, tensors):
        hurray.save(path, tensors, sync=False)

    def open(self, path):
        with hurray.open(path) as f:
            return len(f.names)

    def first(self, path, name):
        with hurray.open(path) as f:
            return np.asarray(f[name])

    def load(self, path):
        return {name: np.asarray(t) for name, t in hurray.load(path, mode="map").items()}

    def rows(self, path, name, start, stop):
        with hurray.open(path) as f:
            return np.asarray(f.read(name, slice(start, stop), copy=True))

    def columns(self, path, name, start, stop):
        with hurray.open(path) as f:
            return np.asarray(f.read(name, (slice(None), slice(start, stop)), copy=True))

    def verify(self, path):
        with hurray.open(path) as f:
            f.verify()

    def send(self, fd, tensors):
        with hurray.StreamWriter(io.FileIO(fd, "w", closefd=False)) as writer:
            for array in tensors.values():
                writer.write(array)

    def receive(self, fd, names):
        with hurray.StreamReader(io.FileIO(fd, "r", closefd=False)) as reader:
            return dict(zip(names, map(np.asarray, reader)))


class Reading:
    """`read` and nothing else: NumPy asks a file for its position, which a pipe does not have."""

    def __init__(self, source):
        self.read = source.read


class Writing:
    def __init__(self, out):
        self.write = out.write


class Npy(Format):
    """A folder of .npy files, one for each tensor."""

    name, suffix = "NumPy .npy", ".npy.d"

    def files(self, path):
        return sorted(path.iterdir())

    def save(self, path, tensors):
        path.mkdir()
        for name, array in tensors.items():
            np.save(path / f"{name}.npy", array)

    def open(self, path):
        return len(os.listdir(path))

    def first(self, path, name):
        return np.load(path / f"{name}.npy", mmap_mode="r")

    def load(self, path):
        return {f.stem: np.load(f, mmap_mode="r") for f in path.iterdir()}

    def rows(self, path, name, start, stop):
        return np.array(np.load(path / f"{name}.npy", mmap_mode="r")[start:stop])

    def columns(self, path, name, start, stop):
        return np.array(np.load(path / f"{name}.npy", mmap_mode="r")[:, start:stop])

    def send(self, fd, tensors):
        with open(fd, "wb", closefd=False) as out:
            for array in tensors.values():
                np.lib.format.write_array(Writing(out), array)

    def receive(self, fd, names):
        with open(fd, "rb", closefd=False) as source:
            return {name: np.lib.format.read_array(Reading(source)) for name in names}


def drain(fd):
    """Everything that comes, in one piece: for libraries that cannot read a stream."""
    with open(fd, "rb", closefd=False) as source:
        return source.read()


class Safetensors(Format):
    name, suffix = "safetensors", ".safetensors"

    def __init__(self):
        import safetensors.numpy
        self.library, self.numpy = safetensors, safetensors.numpy

    def save(self, path, tensors):
        self.numpy.save_file(tensors, path)

    def open(self, path):
        with self.library.safe_open(path, "np") as f:
            return len(f.keys())

    def first(self, path, name):
        with self.library.safe_open(path, "np") as f:
            return f.get_tensor(name)

    def load(self, path):
        return self.numpy.load_file(path)

    def rows(self, path, name, start, stop):
        with self.library.safe_open(path, "np") as f:
            return f.get_slice(name)[start:stop]

    def columns(self, path, name, start, stop):
        with self.library.safe_open(path, "np") as f:
            return f.get_slice(name)[:, start:stop]

    def send(self, fd, tensors):
        with open(fd, "wb", closefd=False) as out:
            out.write(self.numpy.save(tensors))

    def receive(self, fd, names):
        return self.numpy.load(drain(fd))


class Torch(Format):
    name, suffix = "torch.save", ".pt"

    def __init__(self):
        import torch
        self.torch = torch

    def wrapped(self, tensors):
        return {name: self.torch.from_numpy(array) for name, array in tensors.items()}

    def opened(self, path):
        return self.torch.load(path, mmap=True, weights_only=True)

    def save(self, path, tensors):
        self.torch.save(self.wrapped(tensors), path)

    def open(self, path):
        return len(self.opened(path))

    def first(self, path, name):
        return self.opened(path)[name].numpy()

    def load(self, path):
        return {name: t.numpy() for name, t in self.opened(path).items()}

    def rows(self, path, name, start, stop):
        return np.array(self.opened(path)[name].numpy()[start:stop])

    def columns(self, path, name, start, stop):
        return np.array(self.opened(path)[name].numpy()[:, start:stop])

    def send(self, fd, tensors):
        with open(fd, "wb", closefd=False) as out:
            self.torch.save(self.wrapped(tensors), out)

    def receive(self, fd, names):
        loaded = self.torch.load(io.BytesIO(drain(fd)), weights_only=True)
        return {name: t.numpy() for name, t in loaded.items()}


class Arrow(Format):
    """Tensor messages of Arrow IPC one after the other; the reader knows the names."""

    name, suffix = "Arrow IPC", ".arrow"

    def __init__(self):
        import pyarrow
        import pyarrow.ipc
        self.arrow, self.ipc = pyarrow, pyarrow.ipc
        self.names = {}

    def write(self, out, tensors):
        for array in tensors.values():
            self.ipc.write_tensor(self.arrow.Tensor.from_numpy(array), out)

    def read(self, source, names):
        return {name: self.ipc.read_tensor(source).to_numpy() for name in names}

    def save(self, path, tensors):
        self.names[path.name] = list(tensors)
        with self.arrow.OSFile(str(path), "wb") as out:
            self.write(out, tensors)

    def load(self, path):
        return self.read(self.arrow.memory_map(str(path)), self.names[path.name])

    def open(self, path):
        return len(self.load(path))

    def first(self, path, name):
        source = self.arrow.memory_map(str(path))
        for other in self.names[path.name]:
            tensor = self.ipc.read_tensor(source)
            if other == name:
                return tensor.to_numpy()

    def rows(self, path, name, start, stop):
        return np.array(self.first(path, name)[start:stop])

    def columns(self, path, name, start, stop):
        return np.array(self.first(path, name)[:, start:stop])

    def send(self, fd, tensors):
        with open(fd, "wb", closefd=False) as out, self.arrow.PythonFile(out, "w") as sink:
            self.write(sink, tensors)

    def receive(self, fd, names):
        return self.read(self.arrow.BufferReader(drain(fd)), names)


class ZTensor(Format):
    name, suffix = "zTensor", ".zt"

    def __init__(self):
        import ztensor
        import ztensor.numpy
        self.library, self.numpy = ztensor, ztensor.numpy

    def save(self, path, tensors):
        self.numpy.save_file(tensors, path)

    def open(self, path):
        with self.library.open(str(path)) as f:
            return len(f.keys())

    def first(self, path, name):
        return np.from_dlpack(self.library.open(str(path))[name])

    def load(self, path):
        return {t.name: np.from_dlpack(t) for t in self.library.open(str(path)).values()}

    def rows(self, path, name, start, stop):
        return np.array(self.first(path, name)[start:stop])

    def columns(self, path, name, start, stop):
        return np.array(self.first(path, name)[:, start:stop])

    def verify(self, path):
        checked, undigested = self.library.verify(str(path))
        assert checked and not undigested


PEERS = (Npy, Safetensors, Torch, Arrow, ZTensor)


def every():
    """Ours, and those peers whose library is installed, with the names of the others."""
    found, missing = [], []
    for kind in PEERS:
        try:
            found.append(kind())
        except ImportError:
            missing.append(kind.name)
    return Hurray(), found, missing


def remove(path):
    path = pathlib.Path(path)
    if path.is_dir():
        for file in path.iterdir():
            file.unlink()
        path.rmdir()
    else:
        path.unlink(missing_ok=True)
