#pragma once

#include "hurray/elements.hpp"
#include "hurray/export.hpp"
#include "hurray/result.hpp"
#include "hurray/statistics.hpp"
#include "hurray/tensor.hpp"

namespace hurray {

/// The statistics section that describes the tensor (01-descriptor.md section 3.7): float64 of the
/// decoded, where quantized dequantized, elements; what a sparse tensor does not store counts as
/// zero. What cannot be claimed has a clear bit and zeros in its fields:
///
/// - `nm_sparsity` always;
/// - `sparsity`, `value_range` and `value_stats` of an empty tensor;
/// - `value_range` and `value_stats` of a complex tensor, of one that holds a NaN, or a float128
///   beyond the range of float64;
/// - `value_stats` where an infinity is among the elements.
///
/// `nnz` of a sparse layout is its own, explicit zeros included (D17); elsewhere it counts elements
/// other than ±0, NaN among them. Minimum and maximum are exact; mean and deviation are computed in
/// three passes over scaled values, so that they neither overflow nor lose digits to cancellation.
///
/// Work grows with the elements of the shape, or those that a sparse tensor stores. Dimensions with
/// stride 0 are looked at once and counted in full, which is exact for counts, minimum and maximum;
/// mean and deviation do not depend on it. Where quantized blocks or a channel's parameters make
/// the values differ, and of strides that overlap otherwise, nested tiles and shared pages, the
/// elements can still be many more than there are bytes: `ElementOptions::max_elements` limits
/// them.
///
/// Fails as `Elements::over` and `check_parameters` do, and as `unsupported` for private types and
/// where the tokens of a block-paged tensor's sequences are not known.
HURRAY_EXPORT Result<Statistics> statistics_of(const Tensor& tensor,
                                               const ElementOptions& options = {});

}  // namespace hurray
