"""Tensor interchange with buffer metadata that tells the truth.

A `Tensor` is a description (element type, shape, layout, placement) and the memory it speaks of. It comes
from arrays (`from_numpy`, `from_dlpack`, `from_torch`, `asarray`), from files (`load`, `open`) and streams
(`StreamReader`), and goes to NumPy, PyTorch, anything that takes DLPack, files (`save`) and streams
(`StreamWriter`). Nothing here computes, and nothing copies unless `copy=` allows it.
"""

from . import _beside

_beside.check(__path__[0])
del _beside

from . import _hurray
from ._errors import (
    BufferError,
    CopyRequiredError,
    FileError,
    InternalError,
    InvalidDescriptorError,
    StreamError,
    UnsupportedError,
)
from ._hurray import (
    MIN_BUFFER_ALIGNMENT,
    PAGE_ALIGNMENT,
    AlignedAllocatorCtx,
    BufferHandle,
    ColMajorLayout,
    Descriptor,
    Device,
    Dtype,
    Layout,
    RowMajorLayout,
    Shard,
    Statistics,
    StreamReader,
    StreamWriter,
    StridedLayout,
    Tensor,
    aligned_allocator,
    asarray,
    buffer_size_bytes,
    empty,
    from_dlpack,
    from_numpy,
    from_torch,
    full,
    layout_tag_kind,
    load,
    load_kv,
    ones,
    open as open,
    save,
    validate_colocation,
    zeros,
)
from . import device, dtype, file
from .dtype import (
    bfloat16,
    bool,
    float16,
    float32,
    float64,
    int8,
    int16,
    int32,
    int64,
    uint8,
    uint16,
    uint32,
    uint64,
)

#: The release, as in the distribution's metadata.
__version__: str = getattr(_hurray, "__version__")

# Without `open`, which a star import would hide.
__all__ = [
    "AlignedAllocatorCtx",
    "BufferError",
    "BufferHandle",
    "ColMajorLayout",
    "CopyRequiredError",
    "Descriptor",
    "Device",
    "Dtype",
    "FileError",
    "InternalError",
    "InvalidDescriptorError",
    "Layout",
    "MIN_BUFFER_ALIGNMENT",
    "PAGE_ALIGNMENT",
    "RowMajorLayout",
    "Shard",
    "Statistics",
    "StreamError",
    "StreamReader",
    "StreamWriter",
    "StridedLayout",
    "Tensor",
    "UnsupportedError",
    "aligned_allocator",
    "asarray",
    "bfloat16",
    "bool",
    "buffer_size_bytes",
    "device",
    "dtype",
    "empty",
    "file",
    "float16",
    "float32",
    "float64",
    "from_dlpack",
    "from_numpy",
    "from_torch",
    "full",
    "int16",
    "int32",
    "int64",
    "int8",
    "layout_tag_kind",
    "load",
    "load_kv",
    "ones",
    "save",
    "uint16",
    "uint32",
    "uint64",
    "uint8",
    "validate_colocation",
    "zeros",
]
