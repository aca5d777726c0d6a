#include "hurray/data_checks.hpp"

#include "hurray/elements.hpp"
#include "hurray/quantization_checks.hpp"

namespace hurray {
namespace {

/// `check(layout, buffers, shape)` for a layout with index buffers.
template <class Check>
std::optional<Error> check_indices(const Tensor& tensor, Check check) {
  return std::visit(
      [&]<class T>(const T& layout) -> std::optional<Error> {
        if constexpr (SparseLayout<T> || std::is_same_v<T, BlockPaged>)
          return check(layout, index_buffers(tensor), tensor.descriptor().shape);
        return std::nullopt;
      },
      tensor.descriptor().layout);
}

}  // namespace

std::optional<Error> check_bounds(const Tensor& tensor) noexcept {
  return check_indices(tensor,
                       [](const auto& layout, const IndexBuffers& buffers, const Shape& shape) {
                         return layout.check_bounds(buffers, shape);
                       });
}

std::optional<Error> check_canonical(const Tensor& tensor) {
  return check_indices(tensor,
                       [](const auto& layout, const IndexBuffers& buffers, const Shape& shape) {
                         return layout.check_canonical(buffers, shape);
                       });
}

Result<void> check_data(const Tensor& tensor, const DataChecks& checks) {
  return contain(Origin::buffer, [&]() -> Result<void> {
    if (auto why = opaque(tensor.descriptor())) return *why;
    if (auto ready = host_readable(tensor); !ready) return ready.error();
    if (checks.bounds || checks.canonical)
      if (auto error = check_bounds(tensor)) return *error;
    if (checks.canonical)
      if (auto error = check_canonical(tensor)) return *error;
    if (checks.parameters && tensor.descriptor().quantization() != nullptr)
      return check_parameters(tensor, checks.sequence_tokens);
    return {};
  });
}

}  // namespace hurray
