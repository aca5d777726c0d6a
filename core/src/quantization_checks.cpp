#include "hurray/quantization_checks.hpp"

#include <algorithm>
#include <array>
#include <vector>

#include "hurray/data_checks.hpp"
#include "hurray/elements.hpp"
#include "quantized.hpp"

namespace hurray {
namespace {

/// Page slots that hold a token (Q13).
Result<void> check_page_slots(const Tensor& tensor, const BlockPaged& layout,
                              std::span<const std::uint64_t> supplied) {
  const Shape& shape = tensor.descriptor().shape;
  if (shape.is_dynamic() || shape.is_empty()) return {};
  if (auto error = check_bounds(tensor)) return *error;
  const IndexBuffers buffers = index_buffers(tensor);
  const auto tokens = layout.sequence_tokens(buffers, shape, supplied);
  if (!tokens) {
    if (tokens.error().code == Errc::unsupported) return {};
    return tokens.error();
  }
  // Sequences share pages: of each, the longest use is judged once.
  std::vector<std::uint64_t> used(*to_size(layout.num_pages));
  const std::uint64_t token_elements = shape[1] * shape[2];
  std::array<std::uint64_t, 4> index{};
  for (index[0] = 0; index[0] < tokens->size(); ++index[0]) {
    const std::uint64_t count = (*tokens)[static_cast<std::size_t>(index[0])];
    for (index[1] = 0; index[1] < count; index[1] += layout.page_size) {
      const auto slot = layout.find(index, shape, buffers);
      if (!slot) break;
      const std::uint64_t page = *slot / token_elements / layout.page_size;
      if (page >= used.size()) break;  // the table changed while it was read
      std::uint64_t& most = used[static_cast<std::size_t>(page)];
      most = std::max(most, std::min<std::uint64_t>(layout.page_size, count - index[1]));
    }
  }
  const Quantized quantized(tensor);
  for (std::uint64_t page = 0; page < used.size(); ++page) {
    const std::uint64_t first = page * layout.page_size;
    const std::uint64_t last = first + used[static_cast<std::size_t>(page)];
    if (auto error = quantized.check(first, last)) return *error;
  }
  return {};
}

/// The number of entries waits for a size that is not known.
bool waits(const SchemeParameters& parameters, const Shape& shape) noexcept {
  return parameters.block_size != 0 && shape.is_dynamic();
}

}  // namespace

Result<void> check_parameters(const Tensor& tensor,
                              std::span<const std::uint64_t> sequence_tokens) {
  return contain(Origin::buffer, [&]() -> Result<void> {
    const Descriptor& d = tensor.descriptor();
    if (d.quantization() == nullptr) return {};
    if (auto why = opaque(d)) return *why;
    if (auto ready = host_readable(tensor); !ready) return ready.error();
    const SchemeParameters shared = parameters(d.quantization()->scheme);
    const auto* paged = std::get_if<BlockPaged>(&d.layout);
    if (paged != nullptr && shared.block_size != 0)
      return check_page_slots(tensor, *paged, sequence_tokens);
    if (waits(shared, d.shape)) return {};
    const Quantized quantized(tensor);
    if (auto error = quantized.check(0, quantized.entries())) return *error;
    return {};
  });
}

}  // namespace hurray
