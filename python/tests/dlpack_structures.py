"""The C structures of DLPack, and objects that hand out hand-made ones."""

import ctypes

import numpy as np


class DLTensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16), ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)), ("byte_offset", ctypes.c_uint64),
    ]  # fmt: skip


class Managed(ctypes.Structure):
    pass


class ManagedVersioned(ctypes.Structure):
    pass


Deleter = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
Managed._fields_ = [("tensor", DLTensor), ("manager", ctypes.c_void_p), ("deleter", Deleter)]
ManagedVersioned._fields_ = [
    ("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("manager", ctypes.c_void_p),
    ("deleter", Deleter), ("flags", ctypes.c_uint64), ("tensor", DLTensor),
]  # fmt: skip

new_capsule = ctypes.pythonapi.PyCapsule_New
new_capsule.restype = ctypes.py_object
new_capsule.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
capsule_pointer = ctypes.pythonapi.PyCapsule_GetPointer
capsule_pointer.restype = ctypes.c_void_p
capsule_pointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
capsule_name = ctypes.pythonapi.PyCapsule_GetName
capsule_name.restype, capsule_name.argtypes = ctypes.c_char_p, [ctypes.py_object]
rename_capsule = ctypes.pythonapi.PyCapsule_SetName
rename_capsule.argtypes = [ctypes.py_object, ctypes.c_char_p]

PLAIN, VERSIONED = b"dltensor", b"dltensor_versioned"


class Exporter:
    """Hands out one capsule over `memory` and counts how often it is given back."""

    def __init__(self, memory, shape, code, bits, *, strides=None, lanes=1, device=(1, 0), offset=0, flags=0,
                 version=(1, 1), null=False, deleter=True, name=None):  # fmt: skip
        self.memory, self.deleted, self.calls = memory, 0, []
        self._shape = (ctypes.c_int64 * max(len(shape), 1))(*shape)
        self._strides = (
            (ctypes.c_int64 * max(len(shape), 1))(*strides) if strides is not None else None
        )
        self._deleter = Deleter(self._delete) if deleter else Deleter()
        self.managed = Managed() if version is None else ManagedVersioned()
        t = self.managed.tensor
        t.data = None if null else memory.ctypes.data
        t.device_type, t.device_id = device
        t.ndim, t.code, t.bits, t.lanes, t.byte_offset = len(shape), code, bits, lanes, offset
        t.shape = self._shape
        if self._strides is not None:
            t.strides = self._strides
        self.managed.deleter = self._deleter
        if version is not None:
            self.managed.major, self.managed.minor = version
            self.managed.flags = flags
        self.name = name or (PLAIN if version is None else VERSIONED)

    alive = set()  # whoever has given a capsule away lives until it comes back

    def _delete(self, _):
        self.deleted += 1
        self.alive.discard(self)

    def __dlpack__(self, **keywords):
        self.calls.append(keywords)
        self.alive.add(self)
        self.capsule = new_capsule(ctypes.addressof(self.managed), self.name, None)
        return self.capsule


class Header(ctypes.Structure):
    pass


Header._fields_ = [
    ("major", ctypes.c_uint32),
    ("minor", ctypes.c_uint32),
    ("prev_api", ctypes.POINTER(Header)),
]

#: kind and message of what an allocator refuses
SetError = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_char_p)
Allocate = ctypes.CFUNCTYPE(
    ctypes.c_int, ctypes.POINTER(DLTensor), ctypes.POINTER(ctypes.c_void_p), ctypes.c_void_p, SetError
)  # fmt: skip
FromObject = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.POINTER(ctypes.c_void_p))
ToObject = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.POINTER(ctypes.c_void_p))
Borrow = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.POINTER(DLTensor))
WorkStream = ctypes.PYFUNCTYPE(
    ctypes.c_int, ctypes.c_int32, ctypes.c_int32, ctypes.POINTER(ctypes.c_void_p)
)


class ExchangeTable(ctypes.Structure):
    _fields_ = [
        ("header", Header), ("allocate", Allocate), ("from_object", FromObject), ("to_object", ToObject),
        ("borrow", Borrow), ("work_stream", WorkStream),
    ]  # fmt: skip


def table_of(type):
    """What the type offers."""
    capsule = type.__dlpack_c_exchange_api__
    return ExchangeTable.from_address(capsule_pointer(capsule, b"dlpack_exchange_api"))


def managed_from(table, x):
    """The managed tensor of `x`, whose ownership is the caller's; raises what the table raises."""
    out = ctypes.c_void_p()
    if table.from_object(x, ctypes.byref(out)) != 0:
        raise AssertionError("-1 without an exception")
    return ManagedVersioned.from_address(out.value)


def object_from(table, managed):
    """The Python object of a managed tensor, which is taken."""
    out = ctypes.c_void_p()
    if table.to_object(ctypes.addressof(managed), ctypes.byref(out)) != 0:
        raise AssertionError("-1 without an exception")
    object = ctypes.cast(out, ctypes.py_object).value
    ctypes.pythonapi.Py_DecRef(ctypes.py_object(object))  # the reference that came with it
    return object


def delete(managed):
    managed.deleter(ctypes.addressof(managed))


def aligned(size, offset=0):
    """Bytes that start `offset` behind a multiple of 4096."""
    memory = np.zeros(size + 8192, np.uint8)
    start = -memory.ctypes.data % 4096 + offset
    out = memory[start : start + size]
    out[:] = np.arange(size) % 251
    return out


def taken(t, **keywords):
    """The structure that `t` exports, and the capsule that holds it."""
    capsule = t.__dlpack__(**keywords)
    name = capsule_name(capsule)
    kind = Managed if name == PLAIN else ManagedVersioned
    return kind.from_address(capsule_pointer(capsule, name)), capsule
