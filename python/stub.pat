# What nanobind's stub generator cannot know of the package: slots have no
# signature, values no name for their class. First come the exceptions to a rule, then the rule.

# These only raise the error that says what to do instead; a checker should say so too.
_hurray\.Tensor\.(T|__(getattr|getitem)__)$:

# The buffer protocol shows in Python's own slots from 3.12 on only.
_hurray\.Tensor\.__hash__$:
    \from typing import ClassVar
    __hash__: ClassVar[None]  # type: ignore[assignment]
    def __buffer__(self, flags: int, /) -> memoryview: ...

_hurray\.(Composite|Descriptor|PerTensorAffine|Statistics)\.__hash__$:
    \from typing import ClassVar
    __hash__: ClassVar[None]  # type: ignore[assignment]

\.__hash__$:
    def __hash__(self) -> int: ...

\.__eq__$:
    def __eq__(self, other: object, /) -> bool: ...

\.__(ne|lt|le|gt|ge)__$:

\.__getstate__$:

\.__(bool|buffer|release_buffer)__$:

# What the schemes share.
_hurray\._Quantization$:
    class _Quantization:
        \doc
        def __eq__(self, other: object, /) -> bool: ...
        def encode(self) -> bytes:
            """The payload of a quantization section, from the scheme's tag on."""

# Methods that Python calls without nanobind in between.
_hurray\.Tensor\.__dlpack__$:
    \from typing import Any
    def __dlpack__(self, *, stream: int | None = None, max_version: tuple[int, int] | None = None, dl_device: tuple[int, int] | None = None, copy: bool | None = None) -> Any:
        \doc

_hurray\.Tensor\.__dlpack_device__$:
    def __dlpack_device__(self) -> tuple[int, int]:
        \doc

\.__dlpack_c_exchange_api__$:
    \from typing import ClassVar
    __dlpack_c_exchange_api__: ClassVar[object]

# Constants, by the class's public name.
^hurray\.__suffix__$:
    __version__: str

^hurray\.(bool|b?float\d+|u?int\d+)$:
    \1: Dtype

^hurray\.dtype\.([a-z]\w*)$:
    \from hurray._hurray import Dtype as _Dtype
    \1: _Dtype

^hurray\.device\.([a-z]\w*)$:
    \from hurray._hurray import Device as _Device
    \1: _Device
