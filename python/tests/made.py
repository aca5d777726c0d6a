"""Tensors of every layout, element type and scheme: made by the generators of the conformance vectors, which
share nothing with the library, and read from a stream."""

import pathlib
import sys

import hurray

FOLDER = pathlib.Path(__file__).resolve().parents[2] / "conformance"
sys.path.insert(0, str(FOLDER))
try:
    from generator import containers, data, formulas, wire
finally:
    sys.path.remove(str(FOLDER))

__all__ = ["containers", "data", "formulas", "made", "tensor", "u64s", "wire"]

u64s = data.u64s


def made(tensor):
    """The `hurray.Tensor` of a generator's tensor, which has data."""
    (item,) = hurray.StreamReader(tensor.parts().raw() + b"".join(tensor.buffers))
    return item


def tensor(dtype, shape, buffers, layout=None, **more):
    """The same of parts: a name or private tag, sizes (`None`: dynamic), bytes-like buffers."""
    sizes = [formulas.DYNAMIC if n is None else n for n in shape]
    return made(wire.Tensor(dtype, sizes, layout, buffers=[bytes(b) for b in buffers], **more))
