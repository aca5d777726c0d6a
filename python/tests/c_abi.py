"""The C interface as another library sees it: capsules and handles through ctypes.

Handles are read by their prefix and table alone (07-c-abi.md section 11.1), and `Library` is a producer of its own:
handles in memory that ctypes has, functions in Python.
"""

import ctypes
import os

MAGIC = b"HRRYABI1"
FRESH, USED = b"hurray_tensor", b"used_hurray_tensor"
BUFFER, LIST, CONTEXT = 1, 2, 3
OK, INDEX, PANIC = 0, -11, -7

_api = ctypes.pythonapi
_api.PyCapsule_New.restype = ctypes.py_object
_api.PyCapsule_New.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
for _name, _result, _rest in (
    ("GetPointer", ctypes.c_void_p, [ctypes.c_char_p]),
    ("GetContext", ctypes.c_void_p, []),
    ("GetName", ctypes.c_char_p, []),
    ("SetName", ctypes.c_int, [ctypes.c_char_p]),
    ("SetContext", ctypes.c_int, [ctypes.c_void_p]),
):
    _function = getattr(_api, f"PyCapsule_{_name}")
    _function.restype, _function.argtypes = _result, [ctypes.py_object, *_rest]

_kept = []  # names of capsules live as long as the capsules


def name_of(capsule):
    return _api.PyCapsule_GetName(capsule)


def rename(capsule, name=USED):
    _kept.append(ctypes.c_char_p(name))
    _api.PyCapsule_SetName(capsule, _kept[-1])


def pair_of(capsule):
    """Addresses of list and context."""
    return _api.PyCapsule_GetPointer(capsule, name_of(capsule)), _api.PyCapsule_GetContext(capsule)


def capsule(pointer, context, name=FRESH):
    _kept.append(ctypes.c_char_p(name) if name is not None else None)
    made = _api.PyCapsule_New(pointer, _kept[-1], None)
    if context is not None:
        _api.PyCapsule_SetContext(made, context)
    return made


class Holder:
    """Hands out what it was given."""

    def __init__(self, value):
        self.value = value

    def __hurray__(self, stream=None, **_):
        return self.value


# ---- handles of whichever library ---

Status = ctypes.c_int32
P = ctypes.c_void_p
_functions = [
    ("buffer_destroy", ctypes.CFUNCTYPE(Status, P)),
    ("buffer_byte_size", ctypes.CFUNCTYPE(Status, P, ctypes.POINTER(ctypes.c_uint64))),
    ("buffer_alignment", ctypes.CFUNCTYPE(Status, P, ctypes.POINTER(ctypes.c_uint32))),
    ("buffer_device_tag", ctypes.CFUNCTYPE(Status, P, ctypes.POINTER(ctypes.c_uint8))),
    ("buffer_sync_mode", ctypes.CFUNCTYPE(Status, P, ctypes.POINTER(ctypes.c_uint8))),
    ("buffer_memory_class", ctypes.CFUNCTYPE(Status, P, ctypes.POINTER(ctypes.c_uint8))),
    ("buffer_data_ptr", ctypes.CFUNCTYPE(Status, P, ctypes.POINTER(P))),
    ("list_len", ctypes.CFUNCTYPE(Status, P, ctypes.POINTER(ctypes.c_uint64))),
    ("list_get", ctypes.CFUNCTYPE(Status, P, ctypes.c_uint64, ctypes.POINTER(P))),
    ("list_push", ctypes.CFUNCTYPE(Status, P, P)),
    ("list_destroy", ctypes.CFUNCTYPE(Status, ctypes.POINTER(P))),
    ("context_abi_version", ctypes.CFUNCTYPE(Status, P, ctypes.POINTER(ctypes.c_uint32))),
    ("context_descriptor", ctypes.CFUNCTYPE(Status, P, ctypes.POINTER(P), ctypes.POINTER(ctypes.c_uint64))),
    ("context_destroy", ctypes.CFUNCTYPE(Status, ctypes.POINTER(P))),
    ("last_error", ctypes.CFUNCTYPE(P)),
]  # fmt: skip


class Table(ctypes.Structure):
    _fields_ = [
        ("table_size", ctypes.c_uint32), ("extension_version", ctypes.c_uint32), ("producer", ctypes.c_char_p),
        *_functions,
    ]  # fmt: skip


class Prefix(ctypes.Structure):
    _fields_ = [
        ("magic", ctypes.c_uint8 * 8), ("abi_version", ctypes.c_uint32), ("kind", ctypes.c_uint32),
        ("fn", ctypes.POINTER(Table)),
    ]  # fmt: skip


def prefix(handle):
    found = Prefix.from_address(handle)
    assert bytes(found.magic) == MAGIC
    return found


def ask(handle, function, *arguments, out):
    """What the producer's own function puts into its last argument."""
    result = out()
    status = getattr(prefix(handle).fn.contents, function)(
        handle, *arguments, ctypes.byref(result)
    )
    assert status == OK
    return result.value


def buffers_of(handle):
    """What a consumer finds in a list, one dict per buffer."""
    found = []
    for i in range(ask(handle, "list_len", out=ctypes.c_uint64)):
        buffer = ask(handle, "list_get", i, out=P)
        found.append({
            "byte_size": ask(buffer, "buffer_byte_size", out=ctypes.c_uint64),
            "alignment": ask(buffer, "buffer_alignment", out=ctypes.c_uint32),
            "device_tag": ask(buffer, "buffer_device_tag", out=ctypes.c_uint8),
            "sync_mode": ask(buffer, "buffer_sync_mode", out=ctypes.c_uint8),
            "memory_class": ask(buffer, "buffer_memory_class", out=ctypes.c_uint8),
            "data": ask(buffer, "buffer_data_ptr", out=P),
        })  # fmt: skip
    return found


def descriptor_of(handle):
    data, size = P(), ctypes.c_uint64()
    assert prefix(handle).fn.contents.context_descriptor(handle, ctypes.byref(data), ctypes.byref(size)) == OK
    return ctypes.string_at(data.value, size.value)


def end_pair(pair):
    """As a consumer does: each handle once, by its producer."""
    for handle, function in zip(pair, ("list_destroy", "context_destroy"), strict=True):
        variable = P(handle)
        assert getattr(prefix(handle).fn.contents, function)(ctypes.byref(variable)) == OK
        assert variable.value is None


# ---- a library of its own ---


class Library:
    """One tensor's pair over `buffers`, dicts as `buffers_of` makes them, with what is wrong about it.

    `calls` has the functions in the order in which they were called.
    """

    def __init__(
        self,
        buffers,
        descriptor,
        *,
        abi_version=4,
        context_version=4,
        kinds=(LIST, CONTEXT),
        entries=None,
        producer=b"a test 1.0",
        fails=(),
        during=None,
    ):
        self.buffers, self.calls, self.fails, self.during = buffers, [], fails, during
        self._words = ctypes.create_string_buffer(b"words of the other library")
        self._descriptor = ctypes.create_string_buffer(descriptor, len(descriptor) or 1)
        self._size, self._version = len(descriptor), context_version
        self._table = Table(producer=producer, extension_version=1, table_size=ctypes.sizeof(Table))
        for name, kind in _functions:
            made = kind(self._function(name))
            setattr(self._table, name, made)
        if entries is not None:  # the table is filled up to here
            self._table.table_size = getattr(Table, entries).offset + getattr(Table, entries).size
        self._handles = []
        self.list, self.context = (self._handle(kind, abi_version) for kind in kinds)
        self._of = {self._handle(BUFFER, abi_version): b for b in buffers}

    def _handle(self, kind, abi_version):
        made = Prefix((ctypes.c_uint8 * 8)(*MAGIC), abi_version, kind, ctypes.pointer(self._table))
        self._handles.append(made)
        return ctypes.addressof(made)

    def _function(self, name):
        def call(*arguments):
            self.calls.append(name)
            if self.during is not None:
                self.during(name)
            if name in self.fails:
                return self.fails[name]
            return getattr(self, "_" + name, self._get)(name, *arguments)

        return call

    def _get(self, name, handle, out):
        out[0] = self._of[handle][name.removeprefix("buffer_").replace("data_ptr", "data")]
        return OK

    def _list_len(self, _, handle, out):
        out[0] = len(self.buffers)
        return OK

    def _list_get(self, _, handle, i, out):
        if i >= len(self.buffers):
            return INDEX
        out[0] = list(self._of)[i]
        return OK

    def _list_destroy(self, _, handle):
        handle[0] = None
        return OK

    def _context_destroy(self, _, handle):
        handle[0] = None
        return OK

    def _context_abi_version(self, _, handle, out):
        out[0] = self._version
        return OK

    def _context_descriptor(self, _, handle, out, size):
        out[0], size[0] = ctypes.addressof(self._descriptor), self._size
        return OK

    def _last_error(self, _):
        return ctypes.addressof(self._words)

    def capsule(self, **options):
        return capsule(self.list, self.context, **options)

    def __hurray__(self, stream=None):
        return self.capsule()


# ---- the second build of the real one ---

TWIN = os.environ.get("HURRAY_TEST_C_TWIN")


def twin():
    library = ctypes.CDLL(TWIN)
    library.hurray_last_error.restype = ctypes.c_char_p
    return library
