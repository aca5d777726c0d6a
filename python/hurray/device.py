"""The devices of the format: each with id 0 and standard memory."""

from . import _hurray

cpu, cuda, rocm, metal, vulkan, webgpu, hexagon, level_zero, opencl = getattr(_hurray, "_devices")

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
