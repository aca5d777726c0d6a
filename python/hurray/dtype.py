"""The element types of the format, one `Dtype` object each."""

from ._hurray import Dtype as _Dtype

float16 = _Dtype.from_name("float16")
bfloat16 = _Dtype.from_name("bfloat16")
float32 = _Dtype.from_name("float32")
float64 = _Dtype.from_name("float64")
int8 = _Dtype.from_name("int8")
uint8 = _Dtype.from_name("uint8")
int16 = _Dtype.from_name("int16")
uint16 = _Dtype.from_name("uint16")
int32 = _Dtype.from_name("int32")
uint32 = _Dtype.from_name("uint32")
int64 = _Dtype.from_name("int64")
uint64 = _Dtype.from_name("uint64")
bool = _Dtype.from_name("bool")
float8_e4m3 = _Dtype.from_name("float8_e4m3")
float8_e5m2 = _Dtype.from_name("float8_e5m2")
float8_e8m0 = _Dtype.from_name("float8_e8m0")
float4_e2m1 = _Dtype.from_name("float4_e2m1")
float6_e2m3 = _Dtype.from_name("float6_e2m3")
float6_e3m2 = _Dtype.from_name("float6_e3m2")
float128 = _Dtype.from_name("float128")
int4 = _Dtype.from_name("int4")
uint4 = _Dtype.from_name("uint4")
int2 = _Dtype.from_name("int2")
uint2 = _Dtype.from_name("uint2")
complex64 = _Dtype.from_name("complex64")
complex128 = _Dtype.from_name("complex128")

__all__ = [
    "bfloat16",
    "bool",
    "complex128",
    "complex64",
    "float128",
    "float16",
    "float32",
    "float4_e2m1",
    "float64",
    "float6_e2m3",
    "float6_e3m2",
    "float8_e4m3",
    "float8_e5m2",
    "float8_e8m0",
    "int16",
    "int2",
    "int32",
    "int4",
    "int64",
    "int8",
    "uint16",
    "uint2",
    "uint32",
    "uint4",
    "uint64",
    "uint8",
]
