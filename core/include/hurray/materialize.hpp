#pragma once

#include <cstdint>
#include <limits>
#include <string>

#include "hurray/composite.hpp"
#include "hurray/export.hpp"
#include "hurray/result.hpp"
#include "hurray/tensor.hpp"

namespace hurray {

struct MaterializeOptions {
  /// Bytes of the result; `limit_exceeded` before they are taken. No limit by default.
  std::uint64_t max_bytes = std::numeric_limits<std::uint64_t>::max();
};

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
/// that cannot be had fails as `overflow`, `limit_exceeded` or `out_of_memory` before anything is
/// written. One member at a time is converted on the side, in the memory that `to_dense` or
/// `dequantize` takes for its box; work grows with the boxes of all members. `where`: the tensor
/// that an error is about, "members[1].members[0]"; empty for the whole.
HURRAY_EXPORT Result<Tensor> materialize(const Item& item, std::string* where = nullptr,
                                         const MaterializeOptions& options = {});

}  // namespace hurray
