#pragma once

#include <string>

#include "hurray/composite.hpp"
#include "hurray/export.hpp"
#include "hurray/result.hpp"
#include "hurray/tensor.hpp"

namespace hurray {

/// The view that a partition or an overlay describes, as an own row-major tensor in host memory
/// with the head's shape, element type, shard and statistics (02-layouts.md section 14.5). Nested
/// composites count with their values.
///
/// Members are taken as `to_dense` and `dequantize` give them, and fail as these do; quantized ones
/// are rounded to the head's type, ties to even. In an overlay, a sparse correction covers what it
/// stores and a dense one its whole box (L22). `add` rounds to the head's type at each step and
/// wraps integers; where both are NaN or infinities cancel, the sum is the positive quiet NaN.
///
/// All rules of composites are judged first, also those that permissive mode let through. Fails as
/// `unsupported` for plain tensors, groups and private rules, and for `add` on bool, float8_e8m0,
/// float128 and private types. The result's memory follows from the head's shape alone: a shape
/// that cannot be had fails as `overflow` or `out_of_memory` before anything is written. `where`:
/// the tensor that an error is about, "members[1].members[0]"; empty for the whole.
HURRAY_EXPORT Result<Tensor> materialize(const Item& item, std::string* where = nullptr);

}  // namespace hurray
