#include "hurray/layout/dense.hpp"

#include <limits>

namespace hurray {
namespace {

constexpr auto max_elements = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());

std::optional<ElementRange> contiguous(const Shape& shape) noexcept {
  const std::uint64_t count = shape.count();
  if (count > max_elements) return std::nullopt;
  return ElementRange{0, count == 0 ? 0 : static_cast<std::int64_t>(count - 1)};
}

/// The stride of a dimension is the product of the sizes before it, in the order that `index`
/// gives.
template <class Index>
Strides running_product(const Shape& shape, Index index) {
  Strides strides;
  strides.resize(shape.rank());
  std::uint64_t product = 1;
  for (std::size_t k = 0; k < shape.rank(); ++k) {
    const std::size_t d = index(k);
    strides[d] = static_cast<std::int64_t>(product);
    product = checked_mul(product, shape[d]).value_or(0);
    if (product > max_elements) product = 0;  // an empty tensor's strides are never used
  }
  return strides;
}

}  // namespace

std::optional<ElementRange> RowMajor::range(const Shape& shape) const noexcept {
  return contiguous(shape);
}
std::optional<ElementRange> ColumnMajor::range(const Shape& shape) const noexcept {
  return contiguous(shape);
}

Strides RowMajor::strides_for(const Shape& shape) const {
  return running_product(shape, [&](std::size_t k) { return shape.rank() - 1 - k; });
}
Strides ColumnMajor::strides_for(const Shape& shape) const {
  return running_product(shape, [](std::size_t k) { return k; });
}

std::optional<ElementRange> strided_range(std::span<const std::int64_t> strides,
                                          std::span<const std::uint64_t> shape) noexcept {
  if (strides.size() != shape.size()) return std::nullopt;
  ElementRange range;
  for (std::size_t k = 0; k < shape.size(); ++k) {
    const std::uint64_t steps = shape[k] - 1;
    if (strides[k] == 0 || steps == 0) continue;
    if (steps > max_elements) return std::nullopt;
    const auto span = checked_mul(strides[k], static_cast<std::int64_t>(steps));
    if (!span) return std::nullopt;
    auto& end = *span < 0 ? range.lo : range.hi;
    const auto sum = checked_add(end, *span);
    if (!sum) return std::nullopt;
    end = *sum;
  }
  return range;
}

std::optional<ElementRange> Strided::range(const Shape& shape) const noexcept {
  return strided_range({strides.data(), strides.size()}, {shape.data(), shape.size()});
}

DigitCodec RowMajor::codec(const Shape& shape) const noexcept {
  DigitCodec codec(shape);
  codec.add(tag, shape);
  return codec;
}
DigitCodec ColumnMajor::codec(const Shape& shape) const noexcept {
  DigitCodec codec(shape);
  codec.add(tag, shape);
  return codec;
}
DigitCodec Strided::codec(const Shape& shape) const noexcept {
  DigitCodec codec(shape);
  codec.add(tag, shape, strides);
  return codec;
}

}  // namespace hurray
