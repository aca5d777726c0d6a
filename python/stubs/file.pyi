class File(Mapping[str, hurray.Tensor | hurray.Composite]):

    def __contains__(self, name: object, /) -> bool:
        ...

    def __enter__(self) -> File:
        ...

    def __exit__(self, exc_type: object | None, exc_value: object | None, traceback: object | None) -> None:
        ...

    def __getitem__(self, name: str, /) -> hurray.Tensor | hurray.Composite:
        ...

    def __iter__(self) -> Iterator[str]:
        ...

    def __len__(self) -> int:
        ...

    def __reduce__(self) -> tuple[Any, ...]:
        ...

    def close(self, *, strict: bool=False) -> tuple[str, ...]:
        ...

    @property
    def closed(self) -> bool:
        ...

    def descriptor(self, name: str) -> hurray.Descriptor:
        ...

    def descriptors(self) -> dict[str, hurray.Descriptor]:
        ...

    @property
    def format(self) -> str:
        ...

    def get(self, name: str, default: Any=None) -> Any:
        ...

    @property
    def has_checksums(self) -> bool:
        ...

    @property
    def io(self) -> ReadCounts:
        ...

    def items(self) -> ItemsView[str, hurray.Tensor | hurray.Composite]:
        ...

    def keys(self) -> KeysView[str]:
        ...

    @property
    def kv(self) -> dict[str, Any]:
        ...

    @property
    def member_names(self) -> tuple[str, ...]:
        ...

    @property
    def mode(self) -> Literal['map', 'copy_on_write', 'memory']:
        ...

    @property
    def names(self) -> tuple[str, ...]:
        ...

    @property
    def path(self) -> str:
        ...

    def prefetch(self, plan: Iterable[str] | Mapping[str, Any] | None=None, *, max_bytes: int=268435456) -> None:
        ...

    def read(self, name: str, index: Any=..., *, out: Any=None, copy: bool | None=None, verify: bool | None=None) -> Any:
        ...

    def values(self) -> ValuesView[hurray.Tensor | hurray.Composite]:
        ...

    def verify(self, names: Iterable[str] | None=None) -> None:
        ...

class ReadCounts:

    def __repr__(self) -> str:
        ...

    @property
    def bytes_read(self) -> int:
        ...

    @property
    def bytes_wanted(self) -> int:
        ...

    @property
    def requests(self) -> int:
        ...
__all__: list = ['File', 'ReadCounts']
