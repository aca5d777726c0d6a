"""Values of packed, quantized and sparse tensors, against the best that NumPy and SciPy do with the same bytes.

    python bench/bench_values.py [--pairs 15] [--only to_numpy,dequantize,bool,to_dense]

Each figure is made of alternating pairs in one process; median and quartiles are given, and "not measurable
here" where the quartiles are wider than 15 % of the median. Results are compared bit for bit first. Where
NumPy has several ways, the fastest is taken.
"""

import argparse
import struct

import numpy as np

import hurray
import measure
from hurray.dtype import __all__ as all_dtypes
from measure import timed_processor

ROWS, COLUMNS = 4096, 4096
random = np.random.default_rng(7)


# ---- tensors, through a stream ----------------------------------------------------------------------


def scheme(tag, *fields):
    """Payload of a quantization section (03-quantization.md section 6)."""
    packed = {1: "<fi4x", 3: "<IIIIB3x", 5: "<III"}[tag]
    flags = 1 if tag == 3 and fields[3] == 0xFFFFFFFF else 0
    return struct.pack("<BBH", tag, 1, flags) + struct.pack(packed, *fields)


def tensor(dtype, shape, buffers, *, layout=1, fields=b"", quantization=None):
    body = struct.pack("<IBBI", int(quantization is not None), dtype.tag, layout, len(shape))
    body += struct.pack(f"<{len(shape)}QQ", *shape, 0) + fields + struct.pack("<B", len(buffers))
    body += b"".join(struct.pack("<QI4x", b.nbytes, 64) for b in buffers)
    if quantization is not None:
        body += struct.pack("<I", len(quantization)) + quantization
    frame = b"HRRY\1\0" + struct.pack("<I", len(body) + 10) + body
    return next(hurray.StreamReader(frame + b"".join(b.tobytes() for b in buffers)))


def dtype_of(name):
    assert name in all_dtypes
    return getattr(hurray.dtype, name)


# ---- measuring --------------------------------------------------------------------------------------


def report(what, pairs, ours, theirs, target):
    measure.report(what, *measure.alternate(pairs, ours, theirs, clock=timed_processor), target)


def same(a, b):
    a, b = np.ascontiguousarray(a), np.ascontiguousarray(b)
    assert a.nbytes == b.nbytes and (a.reshape(-1).view(np.uint8) == b.reshape(-1).view(np.uint8)).all()


def fastest(ways, expected):
    """The way with the least time of five, each checked."""
    for way in ways.values():
        same(way(), expected)
    times = {name: min(timed_processor(way) for _ in range(5)) for name, way in ways.items()}
    name = min(times, key=times.get)
    return name, ways[name]


# ---- values of codes by NumPy -----------------------------------------------------------------------


def code_values(name):
    """What each code stands for, as float32."""
    width = dtype_of(name).bit_width
    codes = np.arange(1 << width)
    if name.startswith("int"):
        return np.where(codes >> (width - 1) != 0, codes - (1 << width), codes).astype(np.float32)
    if name.startswith("uint"):
        return codes.astype(np.float32)
    import ml_dtypes

    return codes.astype(np.uint8).view(getattr(ml_dtypes, name + "fn")).astype(np.float32)


def stored_codes(name):
    """What ml_dtypes stores for each code: one byte, the code in its low bits."""
    return np.arange(1 << dtype_of(name).bit_width, dtype=np.uint8)


def by_byte(per_code, width):
    """Table of 256 rows: what the elements of one byte are."""
    byte = np.arange(256)
    return np.stack([per_code[byte >> shift & ((1 << width) - 1)] for shift in range(0, 8, width)], axis=1)


def looked_up(data, per_code, width):
    """Ways to look up the elements of packed bytes."""
    if width == 6:
        return looked_up_6(data, per_code)
    table = by_byte(per_code, width)
    row = np.dtype(f"u{table[0].nbytes}") if table[0].nbytes <= 8 else np.dtype("V16")
    whole = np.ascontiguousarray(table).view(row).reshape(-1)
    return {
        "take of rows": lambda: np.take(table, data, axis=0),
        "take of whole rows": lambda: np.take(whole, data),
        "take, clipped": lambda: np.take(whole, data, mode="clip"),
        "indexing": lambda: whole[data],
    }


def looked_up_6(data, per_code):
    groups = data.reshape(-1, 3)
    pairs = np.stack([per_code[np.arange(4096) & 63], per_code[np.arange(4096) >> 6]], axis=1)
    pairs = np.ascontiguousarray(pairs).view(f"u{2 * per_code.itemsize}").reshape(-1)

    def shifted():
        out = np.empty((len(groups), 4), np.uint8)
        first, second, third = groups.T
        np.bitwise_and(first, 63, out=out[:, 0])
        out[:, 1] = first >> 6 | (second & 15) << 2
        out[:, 2] = second >> 4 | (third & 3) << 4
        np.right_shift(third, 2, out=out[:, 3])
        return per_code[out]

    def in_pairs():
        first, second, third = groups.T
        low = first | (second & 15).astype(np.uint16) << 8
        high = second >> 4 | third.astype(np.uint16) << 4
        out = np.empty((len(groups), 2), pairs.dtype)
        np.take(pairs, low, out=out[:, 0], mode="clip")
        np.take(pairs, high, out=out[:, 1], mode="clip")
        return out

    def in_words():
        words = np.zeros((len(groups), 4), np.uint8)
        words[:, :3] = groups
        words = words.view("<u4").reshape(-1)
        out = np.empty((len(groups), 2), pairs.dtype)
        out[:, 0] = pairs[words & 4095]
        out[:, 1] = pairs[words >> 12]
        return out

    return {"shifts": shifted, "pairs": in_pairs, "words": in_words}


# ---- figures ----------------------------------------------------------------------------------------

PACKED = ["int4", "uint4", "float4_e2m1", "int2", "uint2", "float6_e2m3", "float6_e3m2"]


def packed_bytes(name, rows=ROWS, columns=COLUMNS):
    return random.integers(0, 256, rows * columns * dtype_of(name).bit_width // 8, np.uint8)


def bench_to_numpy(pairs):
    for name in PACKED:
        data = packed_bytes(name)
        t = tensor(dtype_of(name), (ROWS, COLUMNS), [data])
        way, theirs = fastest(looked_up(data, stored_codes(name), dtype_of(name).bit_width), t.to_numpy())
        report(f"to_numpy of {name}, against NumPy ({way})", pairs, t.to_numpy, theirs, "3x")


def bench_dequantize(pairs):
    per_tensor = np.float32(0.037)
    for name in ("int4", "uint4", "int2", "uint2"):
        data = packed_bytes(name)
        t = tensor(dtype_of(name), (ROWS, COLUMNS), [data], quantization=scheme(1, per_tensor, 0))
        ways = {
            k: lambda w=w: np.multiply(v := w().view(np.float32).reshape(ROWS, COLUMNS), per_tensor, out=v)
            for k, w in looked_up(data, code_values(name), dtype_of(name).bit_width).items()
        }
        way, theirs = fastest(ways, t.dequantize())
        report(f"dequantize of {name}, one scale, against NumPy ({way})", pairs, t.dequantize, theirs, "3x")
    report(f"dequantize of {name}, against filling as much fresh memory", pairs, t.dequantize,
           lambda: np.full((ROWS, COLUMNS), per_tensor), "reported only: nothing that makes a new array is faster")
    for name in ("int4", "float4_e2m1", "float6_e2m3", "float6_e3m2"):
        data = packed_bytes(name)
        blocks = ROWS * COLUMNS // 32
        if name == "int4":
            scales = random.uniform(0.001, 0.1, blocks).astype(np.float16)
            factors = scales.astype(np.float32)
            payload = scheme(3, 1, 32, 1, 0xFFFFFFFF, 1)
        else:
            scales = random.integers(110, 140, blocks, np.uint8)
            factors = np.exp2(scales.astype(np.float32) - 127)
            payload = scheme(5, 1, 32, 1)
        t = tensor(dtype_of(name), (ROWS, COLUMNS), [data, scales], quantization=payload)
        factors = factors.reshape(-1, 1)
        ways = {
            k: lambda w=w: np.multiply(v := w().view(np.float32).reshape(-1, 32), factors, out=v)
            for k, w in looked_up(data, code_values(name), dtype_of(name).bit_width).items()
        }
        way, theirs = fastest(ways, t.dequantize())
        report(f"dequantize of {name}, a scale per 32, against NumPy ({way})", pairs, t.dequantize, theirs, "3x")


def bench_bool(pairs):
    for count in (ROWS * COLUMNS, 1 << 16):
        data = random.integers(0, 256, count // 8, np.uint8)
        t = tensor(hurray.bool, (count,), [data])

        def theirs():
            return np.unpackbits(data, bitorder="little").view(np.bool_)

        same(t.to_numpy(), theirs())
        report(f"to_numpy of {count} bool, against np.unpackbits", pairs, t.to_numpy, theirs, "0.9x")


def bench_to_dense(pairs):
    import scipy.sparse

    for density in (0.001, 0.01, 0.1):
        matrix = scipy.sparse.random(ROWS, COLUMNS, density, "csr", np.float32, random)
        matrix.sort_indices()
        arrays = [matrix.data, matrix.indices.astype(np.uint64), matrix.indptr.astype(np.uint64)]
        fields = struct.pack("<QQ", matrix.nnz, 0)
        t = tensor(hurray.float32, (ROWS, COLUMNS), arrays, layout=7, fields=fields)
        same(t.to_dense().to_numpy(), matrix.toarray())
        report(f"to_dense of CSR with density {density}, against SciPy's toarray", pairs, t.to_dense,
               matrix.toarray, "1x")


BENCHES = {
    "to_numpy": bench_to_numpy,
    "dequantize": bench_dequantize,
    "bool": bench_bool,
    "to_dense": bench_to_dense,
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pairs", type=int, default=15)
    parser.add_argument("--only", default=",".join(BENCHES))
    options = parser.parse_args()
    for name in options.only.split(","):
        BENCHES[name](options.pairs)


if __name__ == "__main__":
    main()
