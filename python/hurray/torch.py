"""Files of tensors as PyTorch tensors, with the calls of `safetensors.torch`.

A name that ends in ".safetensors" is written as a safetensors file, any other as a `.hrry` file; what is
read is told by its bytes. Tensors are writable, over memory that is private to the process.
"""

import collections
import functools
import math
import os
import typing

import torch

import hurray

from . import _frameworks, file

__all__ = ["iterate", "load", "load_file", "load_model", "safe_open", "save", "save_file", "save_model"]

#: Of what is read before it goes to a device; two of them, so that reading and copying overlap.
STAGING_BYTES = 64 << 20
_FLOAT4 = getattr(torch, "float4_e2m1fn_x2", None)


@functools.lru_cache(maxsize=None)
def _dtype(dtype: hurray.Dtype) -> "torch.dtype | None":
    """torch's own type of whole bytes; None where there is none."""
    if dtype.is_sub_byte:
        return None
    return typing.cast(torch.dtype, _frameworks.none_of(dtype).to_torch().dtype)


class _Torch:
    def device(self, device: typing.Any) -> torch.device:
        return torch.device("cpu" if device is None else device)

    def _here(self, f: file.File, name: str) -> torch.Tensor:
        """A tensor of a file on the CPU."""
        found = f._mapped_elements(name)
        if found is not None:
            memory, start, stored, shape = found
            dtype = _dtype(stored)
            if dtype is not None and start % dtype.itemsize == 0:
                return memory.to_torch()[start:].view(dtype).view(shape)
        return self._of(f[name])

    def _of(self, tensor: hurray.Tensor) -> torch.Tensor:
        if tensor.dtype.name == "float4_e2m1" and _FLOAT4 is not None and tensor.shape and tensor.shape[-1] % 2 == 0:
            codes = torch.frombuffer(bytearray(tensor.buffer(0)), dtype=torch.uint8)[: tensor.size // 2]
            return codes.view(_FLOAT4).view(*tensor.shape[:-1], tensor.shape[-1] // 2)
        return typing.cast(torch.Tensor, tensor.to_torch(copy=True if tensor.dtype.is_sub_byte or tensor.readonly else None))

    def whole(self, f: file.File, name: str, device: torch.device) -> torch.Tensor:
        if device.type == "cpu":
            return self._here(f, name)
        return _Pipeline(device).run(f, [name])[name]

    def part(self, tensor: hurray.Tensor, device: torch.device) -> torch.Tensor:
        return self._of(tensor).to(device)

    def whole_file(self, f: file.File, device: torch.device) -> dict[str, torch.Tensor]:
        if device.type == "cpu":
            return {name: self._here(f, name) for name in f.names}
        return _Pipeline(device).run(f, f.names)


class _Pipeline:
    """Reads tensors into a few buffers and copies them to a device from there, both at the same time. Nothing
    is copied from a mapping, and each tensor is allocated once."""

    def __init__(self, device: torch.device, staging_bytes: int = STAGING_BYTES) -> None:
        self.device = device
        self.module = torch.get_device_module(device) if device.type != "meta" else None
        pinned = device.type not in ("cpu", "meta")
        self.buffers = [torch.empty(staging_bytes, dtype=torch.uint8, pin_memory=pinned) for _ in range(2)]
        self.busy: list[typing.Any] = [None, None]
        self.stream = self.module.Stream(device) if pinned and hasattr(self.module, "Stream") else None
        self.next = 0

    def _buffer(self) -> torch.Tensor:
        self.next = 1 - self.next
        if self.busy[self.next] is not None:
            self.busy[self.next].synchronize()
            self.busy[self.next] = None
        return self.buffers[self.next]

    def _copy(self, target: torch.Tensor, source: torch.Tensor) -> None:
        if self.stream is None:
            target.copy_(source)
            return
        with self.module.stream(self.stream):  # type: ignore[union-attr]
            target.copy_(source, non_blocking=True)
        self.busy[self.next] = self.stream.record_event()

    def run(self, f: file.File, names: typing.Iterable[str]) -> dict[str, torch.Tensor]:
        if self.stream is not None:
            # The memory that tensors get may still be in use on the stream of the caller.
            self.stream.wait_stream(self.module.current_stream(self.device))  # type: ignore[union-attr]
        loaded = {name: self._one(f, name) for name in names}
        if self.stream is not None:
            self.stream.synchronize()
        return loaded

    def _one(self, f: file.File, name: str) -> torch.Tensor:
        descriptor = f.descriptor(name)
        dtype = _dtype(descriptor.dtype)
        rows = descriptor.shape[0] if descriptor.shape else 0
        row_bytes = math.prod(descriptor.shape[1:]) * (dtype.itemsize if dtype else 0)
        if dtype is None or descriptor.quantization is not None or rows == 0 or not 0 < row_bytes <= self.buffers[0].numel():
            return _torch._of(f.read(name, copy=True) if _is_dense(descriptor) else f[name]).to(self.device)
        target = torch.empty(descriptor.shape, dtype=dtype, device=self.device)
        step = self.buffers[0].numel() // row_bytes
        for start in range(0, rows, step):
            count = min(step, rows - start)
            part = self._buffer()[: count * row_bytes].view(dtype).view(count, *descriptor.shape[1:])
            f.read(name, slice(start, start + count), out=part)
            self._copy(target[start : start + count], part)
        return target


def _is_dense(descriptor: hurray.Descriptor) -> bool:
    return descriptor.quantization is None and type(descriptor.layout).__name__ in (
        "RowMajorLayout",
        "ColMajorLayout",
        "StridedLayout",
        "TiledLayout",
        "MortonLayout",
        "HilbertLayout",
    )


_torch = _Torch()


def _shared(tensors: typing.Mapping[str, typing.Any]) -> list[list[str]]:
    """Groups of names whose tensors have bytes in common, in order."""
    ranges: dict[tuple[str, int], list[tuple[int, int, str]]] = collections.defaultdict(list)
    for name, tensor in tensors.items():
        if not isinstance(tensor, torch.Tensor) or tensor.numel() == 0 or tensor.device.type == "meta":
            continue
        extent = 1 + sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride()))
        start = tensor.data_ptr()
        key = (str(tensor.device), tensor.untyped_storage().data_ptr())
        ranges[key].append((start, start + extent * tensor.element_size(), name))
    groups = []
    for together in ranges.values():
        end = 0
        for start, stop, name in sorted(together):
            if start < end:
                groups[-1].append(name)
            else:
                groups.append([name])
            end = max(end, stop)
    order = {name: k for k, name in enumerate(tensors)}
    return [sorted(group, key=order.__getitem__) for group in groups if len(group) > 1]


def save_file(
    tensors: typing.Mapping[str, torch.Tensor],
    filename: "str | os.PathLike[str]",
    metadata: "typing.Mapping[str, str] | None" = None,
) -> None:
    """Write tensors by name into one file, whole or not at all. Strided ones are accepted, and tensors of any
    device, which are brought to the host one after the other.

    Raises RuntimeError for tensors that share memory, whose groups it names (`save_model` stores one of each;
    `hurray.save` writes every name in full); else as `hurray.save`, and UnsupportedError for what a
    safetensors file cannot hold."""
    if groups := _shared(tensors):
        listed = "; ".join(", ".join(group) for group in groups)
        raise RuntimeError(
            f"some tensors share memory: {listed}. A file would hold their values twice and lose the tie: save the "
            "model with save_model, or copies (tensor.clone())"
        )
    _frameworks.save_file(_contiguous(tensors, filename), filename, metadata)


def _contiguous(tensors: typing.Mapping[str, torch.Tensor], filename: typing.Any) -> typing.Mapping[str, typing.Any]:
    """Safetensors files hold elements row by row."""
    if not os.fspath(filename).endswith(".safetensors"):
        return tensors
    return {name: t.detach().contiguous() if isinstance(t, torch.Tensor) else t for name, t in tensors.items()}


def load_file(
    filename: typing.Any, device: typing.Any = "cpu", *, backend: str = "auto"
) -> dict[str, torch.Tensor]:
    """All tensors of a file, an index of shards or a folder, on a device.

    `backend`: "mmap" shares private pages of the file, "pread" reads into own memory, "auto" does what suits
    the file. On other devices than the CPU tensors are read by position into pinned memory and copied from
    there. Raises as `hurray.load`."""
    where = _torch.device(device)
    if where.type != "cpu":
        _frameworks.mode_of(backend)
        backend = "pread"
    return _frameworks.load_file(_torch, filename, where, backend)


def save(tensors: typing.Mapping[str, torch.Tensor], metadata: "typing.Mapping[str, str] | None" = None) -> bytes:
    """The bytes of a `.hrry` file of these tensors. Raises as `save_file`."""
    if groups := _shared(tensors):
        raise RuntimeError(f"some tensors share memory: {'; '.join(', '.join(group) for group in groups)}")
    return _frameworks.save(tensors, metadata)


def load(data: typing.Any) -> dict[str, torch.Tensor]:
    """The tensors in the bytes of a file."""
    return _frameworks.load(_torch, data)


def _ties(state: typing.Mapping[str, torch.Tensor], kept: typing.Container[str] = ()) -> dict[str, str]:
    """For each tensor that is part of another one, or the same, the name of that one: the largest of a group,
    by preference one of `kept`, and of equal ones the first by name. RuntimeError where none covers all."""
    ties = {}
    for group in _shared(state):
        def extent(name: str) -> tuple[int, int]:
            t = state[name]
            span = 1 + sum((size - 1) * stride for size, stride in zip(t.shape, t.stride()))
            return t.data_ptr(), t.data_ptr() + span * t.element_size()

        start = min(extent(name)[0] for name in group)
        end = max(extent(name)[1] for name in group)
        whole = sorted(name for name in group if extent(name) == (start, end))
        if not whole:
            raise RuntimeError(f"tensors share memory and none of them covers it: {', '.join(group)}; clone them")
        keep = next((name for name in whole if name in kept), whole[0])
        ties.update({name: keep for name in group if name != keep})
    return ties


def save_model(
    model: torch.nn.Module,
    filename: "str | os.PathLike[str]",
    metadata: "typing.Mapping[str, str] | None" = None,
    force_contiguous: bool = True,
) -> None:
    """Write the state of a model; of tensors that share memory one, and `{dropped: kept}` into the metadata.

    `force_contiguous` is taken for the sake of other programs: strided tensors are always accepted."""
    state = model.state_dict()
    ties = _ties(state)
    _frameworks.save_file(
        _contiguous({name: t for name, t in state.items() if name not in ties}, filename),
        filename,
        {**(metadata or {}), **ties} if metadata or ties else None,
    )


def load_model(
    model: torch.nn.Module,
    filename: typing.Any,
    strict: bool = True,
    device: typing.Any = "cpu",
    *,
    backend: str = "auto",
) -> tuple[list[str], list[str]]:
    """Load the state of a model that `save_model` wrote into `model`; names that are missing and unexpected.

    Tensors that `model` ties to one that was loaded are not missing. With `strict`, RuntimeError where any is
    missing or unexpected."""
    state = load_file(filename, device, backend=backend)
    ties = _ties(model.state_dict(), state)
    missing, unexpected = model.load_state_dict(state, strict=False)
    missing = [name for name in missing if ties.get(name) not in state]
    unexpected = [name for name in unexpected if ties.get(name) not in state]
    if strict and (missing or unexpected):
        raise RuntimeError(
            f"{type(model).__name__} and {filename} do not fit: missing {missing}, unexpected {unexpected}"
        )
    return missing, unexpected


def safe_open(
    filename: typing.Any, framework: str = "pt", device: typing.Any = "cpu", *, backend: str = "auto"
) -> _frameworks.SafeOpen:
    """An open file, whose tensors and parts of tensors are taken one by one."""
    if framework not in ("pt", "torch", "pytorch"):
        raise ValueError(f'framework: expected "pt", found {framework!r}; hurray.numpy and hurray.jax have theirs')
    return _frameworks.SafeOpen(_torch, filename, device, backend)


def iterate(
    path: typing.Any,
    *,
    names: "typing.Iterable[str] | None" = None,
    device: typing.Any = "cpu",
    plan: "typing.Mapping[str, typing.Any] | None" = None,
) -> typing.Iterator[tuple[str, torch.Tensor]]:
    """Names and tensors in the order of the file, each of which owns its memory, while what follows is read
    ahead. `names`: these alone; or `plan`: parts, by names, with indexes as `File.read` takes them."""
    return _frameworks.iterate(_torch, path, names, device, plan)
