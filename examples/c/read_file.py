"""read_file.py LIBRARY PATH   The float32 tensors of a .hrry file, through the C library and ctypes.

No compiler and no package: the functions are called as hurray.h declares them.
"""

import ctypes
import sys
from ctypes import POINTER, byref, c_char_p, c_int32, c_size_t, c_uint8, c_uint32, c_uint64, c_void_p

FLOAT32 = 0x03
ROW_MAJOR = 0x01


class Hurray:
    """The few functions that reading takes."""

    def __init__(self, path):
        self.library = ctypes.CDLL(path)
        self.library.hurray_last_error.restype = c_char_p
        for name, *arguments in [
            ("hurray_file_open", c_char_p, c_uint64, c_void_p, POINTER(c_void_p)),
            ("hurray_file_count", c_void_p, POINTER(c_uint64)),
            ("hurray_file_name", c_void_p, c_uint64, POINTER(c_void_p), POINTER(c_uint64)),
            ("hurray_file_descriptor", c_void_p, c_uint64, POINTER(c_void_p)),
            ("hurray_file_read", c_void_p, c_uint64, POINTER(c_void_p), POINTER(c_void_p)),
            ("hurray_file_destroy", POINTER(c_void_p)),
            ("hurray_descriptor_element_type_tag", c_void_p, POINTER(c_uint8)),
            ("hurray_descriptor_layout_tag", c_void_p, POINTER(c_uint8)),
            ("hurray_descriptor_rank", c_void_p, POINTER(c_uint32)),
            ("hurray_descriptor_shape", c_void_p, POINTER(c_uint64), POINTER(c_size_t)),
            ("hurray_descriptor_byte_offset", c_void_p, POINTER(c_uint64)),
            ("hurray_descriptor_element_count", c_void_p, POINTER(c_uint64)),
            ("hurray_descriptor_destroy", c_void_p),
            ("hurray_buffer_list_get", c_void_p, c_uint64, POINTER(c_void_p)),
            ("hurray_buffer_data_ptr", c_void_p, POINTER(c_void_p)),
            ("hurray_buffer_list_destroy", POINTER(c_void_p)),
            ("hurray_tensor_context_destroy", POINTER(c_void_p)),
        ]:
            function = getattr(self.library, name)
            function.argtypes = arguments
            function.restype = c_int32
            setattr(self, name.removeprefix("hurray_"), self.checked(function))

    def checked(self, function):
        def call(*arguments):
            status = function(*arguments)
            if status < 0:
                raise OSError(f"{self.library.hurray_last_error().decode()} ({status})")

        return call


def value(function, kind, *arguments):
    out = kind()
    function(*arguments, byref(out))
    return out.value


def tensors(hurray, path):
    """Name, shape and values of every row-major float32 tensor."""
    encoded = path.encode()
    file = c_void_p()
    hurray.file_open(encoded, len(encoded), None, byref(file))
    for i in range(value(hurray.file_count, c_uint64, file)):
        name, length = c_void_p(), c_uint64()
        hurray.file_name(file, i, byref(name), byref(length))
        descriptor = c_void_p(value(hurray.file_descriptor, c_void_p, file, i))
        shape = (c_uint64 * 64)()
        rank = c_size_t(64)
        hurray.descriptor_shape(descriptor, shape, byref(rank))
        kind = value(hurray.descriptor_element_type_tag, c_uint8, descriptor)
        layout = value(hurray.descriptor_layout_tag, c_uint8, descriptor)
        if (kind, layout) == (FLOAT32, ROW_MAJOR):
            count = value(hurray.descriptor_element_count, c_uint64, descriptor)
            offset = value(hurray.descriptor_byte_offset, c_uint64, descriptor)
            buffers, context, buffer = c_void_p(), c_void_p(), c_void_p()
            hurray.file_read(file, i, byref(buffers), byref(context))
            hurray.buffer_list_get(buffers, 0, byref(buffer))
            address = value(hurray.buffer_data_ptr, c_void_p, buffer)
            values = list((ctypes.c_float * count).from_address(address + offset)) if count else []
            hurray.buffer_list_destroy(byref(buffers))
            hurray.tensor_context_destroy(byref(context))
            yield ctypes.string_at(name.value, length.value).decode(), list(shape[: rank.value]), values
        hurray.descriptor_destroy(descriptor)
    hurray.file_destroy(byref(file))


if __name__ == "__main__":
    for name, shape, values in tensors(Hurray(sys.argv[1]), sys.argv[2]):
        print(name, shape, values)
