"""The devices of the format: each with id 0 and standard memory."""

from ._hurray import _devices

cpu, cuda, rocm, metal, vulkan, webgpu, hexagon, level_zero, opencl = _devices

__all__ = [
    "cpu",
    "cuda",
    "hexagon",
    "level_zero",
    "metal",
    "opencl",
    "rocm",
    "vulkan",
    "webgpu",
]
