from hurray._hurray import AlignedAllocatorCtx as AlignedAllocatorCtx
from hurray._hurray import BlockPagedLayout as BlockPagedLayout

class BufferError(ValueError):
    ...
from hurray._hurray import BufferHandle as BufferHandle
from hurray._hurray import ColMajorLayout as ColMajorLayout
from hurray._hurray import Composite as Composite
from hurray._hurray import CompositeLayout as CompositeLayout
from hurray._hurray import CooLayout as CooLayout

class CopyRequiredError(ValueError):
    ...
from hurray._hurray import CscLayout as CscLayout
from hurray._hurray import CsfLayout as CsfLayout
from hurray._hurray import CsrLayout as CsrLayout
from hurray._hurray import Descriptor as Descriptor
from hurray._hurray import Device as Device
from hurray._hurray import Dtype as Dtype
from hurray._hurray import ExtensionType as ExtensionType

class FileError(OSError):
    ...
from hurray._hurray import FileWriter as FileWriter
from hurray._hurray import HilbertLayout as HilbertLayout

class InternalError(RuntimeError):
    ...

class InvalidDescriptorError(ValueError):
    ...
from hurray._hurray import Layout as Layout
MIN_BUFFER_ALIGNMENT: int = 64
from hurray._hurray import MXFP as MXFP
from hurray._hurray import MortonLayout as MortonLayout
from hurray._hurray import NF4 as NF4
PAGE_ALIGNMENT: int = 4096
from hurray._hurray import PerBlockAffine as PerBlockAffine
from hurray._hurray import PerChannelAffine as PerChannelAffine
from hurray._hurray import PerTensorAffine as PerTensorAffine
from hurray._hurray import PrintOptionsCtx as PrintOptionsCtx
from hurray._hurray import PrivateExtensionLayout as PrivateExtensionLayout
from hurray._hurray import RowMajorLayout as RowMajorLayout
from hurray._hurray import Shard as Shard
from hurray._hurray import Statistics as Statistics
from hurray._hurray import StreamDecoder as StreamDecoder

class StreamError(OSError):
    ...
from hurray._hurray import StreamReader as StreamReader
from hurray._hurray import StreamWriter as StreamWriter
from hurray._hurray import StridedLayout as StridedLayout
from hurray._hurray import Tensor as Tensor
from hurray._hurray import TiledLayout as TiledLayout
from hurray._hurray import UnknownLayout as UnknownLayout

class UnsupportedError(NotImplementedError):
    ...
__all__: list = ['AlignedAllocatorCtx', 'BlockPagedLayout', 'BufferError', 'BufferHandle', 'ColMajorLayout', 'Composite', 'CompositeLayout', 'CooLayout', 'CopyRequiredError', 'CscLayout', 'CsfLayout', 'CsrLayout', 'Descriptor', 'Device', 'Dtype', 'ExtensionType', 'FileError', 'FileWriter', 'HilbertLayout', 'InternalError', 'InvalidDescriptorError', 'Layout', 'MIN_BUFFER_ALIGNMENT', 'MXFP', 'MortonLayout', 'NF4', 'PAGE_ALIGNMENT', 'PerBlockAffine', 'PerChannelAffine', 'PerTensorAffine', 'PrintOptionsCtx', 'PrivateExtensionLayout', 'RowMajorLayout', 'Shard', 'Statistics', 'StreamDecoder', 'StreamError', 'StreamReader', 'StreamWriter', 'StridedLayout', 'Tensor', 'TiledLayout', 'UnknownLayout', 'UnsupportedError', 'aligned_allocator', 'arange', 'asarray', 'bfloat16', 'bool', 'buffer_size_bytes', 'convert', 'decode_quantization', 'device', 'dtype', 'empty', 'empty_like', 'eye', 'file', 'float16', 'float32', 'float64', 'from_dlpack', 'from_hurray', 'from_numpy', 'from_scipy', 'from_torch', 'full', 'full_like', 'get_print_options', 'int16', 'int32', 'int64', 'int8', 'layout_tag_kind', 'linspace', 'load', 'load_kv', 'ones', 'ones_like', 'print_options', 'save', 'save_async', 'set_print_options', 'share', 'sparse_coo', 'uint16', 'uint32', 'uint64', 'uint8', 'validate_colocation', 'zeros', 'zeros_like']
__version__: str
from hurray._hurray import aligned_allocator as aligned_allocator
from hurray._hurray import arange as arange
from hurray._hurray import asarray as asarray
bfloat16: Dtype
bool: Dtype
from hurray._hurray import buffer_size_bytes as buffer_size_bytes
from hurray._converting import convert as convert
from hurray._hurray import decode_quantization as decode_quantization
from hurray import device as device
from hurray import dtype as dtype
from hurray._hurray import empty as empty
from hurray._hurray import empty_like as empty_like
from hurray._hurray import eye as eye
from hurray import file as file
float16: Dtype
float32: Dtype
float64: Dtype
from hurray._hurray import from_dlpack as from_dlpack
from hurray._hurray import from_hurray as from_hurray
from hurray._hurray import from_numpy as from_numpy
from hurray._hurray import from_scipy as from_scipy
from hurray._hurray import from_torch as from_torch
from hurray._hurray import full as full
from hurray._hurray import full_like as full_like
from hurray._hurray import get_print_options as get_print_options
int16: Dtype
int32: Dtype
int64: Dtype
int8: Dtype
from hurray._hurray import layout_tag_kind as layout_tag_kind
from hurray._hurray import linspace as linspace
from hurray._hurray import load as load
from hurray._hurray import load_kv as load_kv
from hurray._hurray import ones as ones
from hurray._hurray import ones_like as ones_like
from hurray._hurray import open as open
from hurray._hurray import print_options as print_options
from hurray._hurray import save as save
from hurray._hurray import save_async as save_async
from hurray._hurray import set_print_options as set_print_options
from hurray._sharing import share as share
from hurray._hurray import sparse_coo as sparse_coo
uint16: Dtype
uint32: Dtype
uint64: Dtype
uint8: Dtype
from hurray._hurray import validate_colocation as validate_colocation
from hurray._hurray import zeros as zeros
from hurray._hurray import zeros_like as zeros_like
