"""Writes values.txt: what ml_dtypes and numpy make of the codes of the narrow float types.

    python values_vectors.py > values.txt

`decode TYPE` is followed by float32 bits of codes 0, 1, 2 …; `encode TYPE` by pairs of float32 bits
and the code that they become. Left out are conversions for which the format has a rule of its own:
what is beyond the largest value of float8_e4m3 (clamped here, NaN there), NaN for types without,
and zeros, negative and overflowing values of float8_e8m0. Between 2^-127 and 2^-126, where float32
is subnormal, ml_dtypes does not round to the nearest power of two.
"""

import sys

import ml_dtypes
import numpy as np

TYPES = {
    "float16": np.float16,
    "bfloat16": ml_dtypes.bfloat16,
    "float8_e4m3": ml_dtypes.float8_e4m3fn,
    "float8_e5m2": ml_dtypes.float8_e5m2,
    "float8_e8m0": ml_dtypes.float8_e8m0fnu,
    "float4_e2m1": ml_dtypes.float4_e2m1fn,
    "float6_e2m3": ml_dtypes.float6_e2m3fn,
    "float6_e3m2": ml_dtypes.float6_e3m2fn,
}
BITS = {"float4_e2m1": 4, "float6_e2m3": 6, "float6_e3m2": 6, "float16": 16, "bfloat16": 16}


def samples(name, values, rng):
    """Every value, every midpoint between neighbours, their neighbours in float32, and noise."""
    finite = np.unique(values[np.isfinite(values)].astype(np.float64))
    at = np.arange(finite.size - 1)
    if at.size > 256:
        middle = at.size // 2  # around zero, at both ends, and anywhere
        near = np.concatenate([at[:3], at[-3:], np.arange(middle - 4, middle + 4)])
        at = np.unique(np.concatenate([near, rng.choice(at, 64)]))
    middles = ((finite[at] + finite[at + 1]) / 2).astype(np.float32)
    picked = np.concatenate([finite[at], finite[at + 1], middles])
    up = np.nextafter(middles, np.float32(np.inf))
    down = np.nextafter(middles, np.float32(-np.inf))
    least = max(-24.0 if name != "bfloat16" else -133.0, -140.0)
    noise = np.exp2(rng.uniform(least, 18, 64)) * rng.choice([-1.0, 1.0], 64)
    special = [0.0, -0.0, np.inf, -np.inf, 3.4e38, -3.4e38, 1e-45, -1e-45, 1e-40]
    if name not in ("float4_e2m1", "float6_e2m3", "float6_e3m2"):
        special += [np.nan, -np.nan]
    every = np.concatenate([picked, up, down, noise, special]).astype(np.float32)
    if name == "float8_e4m3":
        every = every[~(np.abs(every) > 448)]
    if name == "float8_e8m0":
        every = every[np.isnan(every) | ((every > 0) & (every < np.float32(1.5 * 2.0**127)))]
        every = every[~((every > np.float32(2.0**-127)) & (every < np.float32(2.0**-126)))]
    return every


def main(out):
    np.seterr(all="ignore")
    rng = np.random.default_rng(3)
    for name, dtype in TYPES.items():
        bits = BITS.get(name, 8)
        words = np.arange(2**bits, dtype=np.uint16 if bits == 16 else np.uint8)
        values = words.view(dtype).astype(np.float32)
        if bits < 16:
            out.write(f"decode {name}")
            out.writelines(f" {int(b):08x}" for b in values.view(np.uint32))
            out.write("\n")
        asked = samples(name, values, rng)
        codes = asked.astype(dtype).view(words.dtype)
        out.write(f"encode {name}")
        for x, code in zip(asked.view(np.uint32), codes, strict=True):
            out.write(f" {int(x):08x} {int(code):x}")
        out.write("\n")


if __name__ == "__main__":
    main(sys.stdout)
