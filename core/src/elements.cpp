#include "hurray/elements.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <variant>
#include <vector>

#include "hurray/checked.hpp"
#include "hurray/data_checks.hpp"
#include "packed_bits.hpp"
#include "stored_entries.hpp"

namespace hurray {
namespace {

constexpr auto max_bytes = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());

/// Addresses of a dense layout with what layout and shape say worked out once.
using Codec = std::variant<std::monostate, DigitCodec, MortonCodec, HilbertCodec>;

Error refused(std::string_view field, std::string_view what) noexcept {
  return {.code = Errc::unsupported, .field = field, .what = what};
}

/// A page that is named twice among the first `used` entries of the block table.
Result<bool> shares_pages(const IndexArray& table, std::uint64_t used) {
  auto memory = Buffer::allocate(checked_mul<std::uint64_t>(used, 8).value_or(dynamic));
  if (!memory) return memory.error();
  const std::span<std::uint64_t> pages(reinterpret_cast<std::uint64_t*>(memory->data()),
                                       *to_size(used));
  for (std::size_t i = 0; i < pages.size(); ++i) pages[i] = table[i];
  std::ranges::sort(pages);
  return std::ranges::adjacent_find(pages) != pages.end();
}

/// Two elements lie on the same slot. Precondition: not empty, the extent is inside the buffer, so
/// that the work is bounded by it.
template <class Dense>
Result<bool> coincides(const Dense& codec, ElementRange range, std::uint64_t count) {
  const std::uint64_t slots =
      static_cast<std::uint64_t>(range.hi) - static_cast<std::uint64_t>(range.lo) + 1;
  if (count > slots) return true;
  auto seen = Buffer::allocate(slots / 8 + 1, true);
  if (!seen) return seen.error();
  return !codec.for_each([&](std::span<const std::uint64_t>, std::int64_t offset) {
    const std::uint64_t bit =
        static_cast<std::uint64_t>(offset) - static_cast<std::uint64_t>(range.lo);
    std::byte& byte = seen->data()[*to_size(bit / 8)];
    const auto mask = static_cast<std::byte>(1u << bit % 8);
    const bool fresh = (byte & mask) == std::byte{0};
    byte |= mask;
    return fresh;
  });
}

}  // namespace

std::optional<Place> place(unsigned width, std::uint64_t byte_offset, std::int64_t slot) noexcept {
  std::optional<std::int64_t> bytes;
  unsigned shift = 0;
  if (width >= 8) {
    bytes = checked_mul(slot, static_cast<std::int64_t>(width / 8));
  } else {
    // Whole bytes and the bits in the last of them apart: 8 elements fill `width` bytes.
    const std::int64_t eighth = slot >> 3;
    const auto bits = static_cast<unsigned>(slot & 7) * width;
    bytes = eighth * static_cast<std::int64_t>(width) + static_cast<std::int64_t>(bits / 8);
    shift = bits % 8;
  }
  if (!bytes || byte_offset > max_bytes) return std::nullopt;
  const auto byte = checked_add(static_cast<std::int64_t>(byte_offset), *bytes);
  if (!byte || *byte < 0) return std::nullopt;
  return Place{static_cast<std::uint64_t>(*byte), shift};
}

Result<void> host_readable(const Tensor& tensor) {
  if (auto ready = readable(tensor); !ready) return ready;
  if (tensor.memory_device() == Device::cpu) return {};
  Error error = refused("buffers[].device_tag", "the memory is not the host's");
  error.origin = Origin::buffer;
  error.index = 0;
  return error;
}

IndexBuffers index_buffers(const Tensor& tensor) noexcept {
  const auto* paged = std::get_if<BlockPaged>(&tensor.descriptor().layout);
  return IndexBuffers(tensor.buffers(), paged != nullptr ? paged->index_bytes() : 8);
}

bool ambiguous_bool(const Tensor& tensor) noexcept {
  return tensor.provenance() == Provenance::outside && ambiguous_bool(tensor.descriptor());
}

bool ambiguous_bool(const Descriptor& d) noexcept {
  if (d.dtype != DType::bool_ || d.buffers.empty()) return false;
  const std::uint64_t size = d.buffers[0].byte_size;
  // `n` bytes, where packed bits would be fewer.
  const auto matches = [size](std::optional<std::uint64_t> n) { return n == size && size > 1; };
  return std::visit(
      [&]<class T>(const T& layout) -> bool {
        if constexpr (SparseLayout<T>) {
          return matches(layout.nnz);
        } else if constexpr (std::is_same_v<T, BlockPaged>) {
          std::optional<std::uint64_t> slots = std::uint64_t{layout.num_pages};
          for (const std::uint64_t n : {std::uint64_t{layout.page_size}, d.shape[1], d.shape[2]})
            slots = slots ? checked_mul(*slots, n) : std::nullopt;
          return matches(slots);
        } else if constexpr (DenseLayout<T>) {
          if (d.shape.is_dynamic() || d.shape.is_empty()) return false;
          if (matches(d.shape.count())) return true;
          // Those that no element has count too: padding of tiles and curves, gaps of strides.
          const auto range = layout.range(d.shape);
          if (!range || range->hi == range->lo) return false;
          const auto upto = static_cast<std::uint64_t>(range->hi) + 1;
          const auto before = std::uint64_t{0} - static_cast<std::uint64_t>(range->lo);
          return matches(upto) || matches(upto + before) ||
                 (d.byte_offset >= before && matches(checked_add(upto, d.byte_offset)));
        } else {
          return false;
        }
      },
      d.layout);
}

struct Elements::State {
  Tensor tensor;
  Codec codec;
  std::optional<std::vector<std::uint64_t>> tokens;
  unsigned width = 0;
  bool write = false;

  explicit State(const Tensor& from) : tensor(from), width(element_bits(from.descriptor())) {}

  const Descriptor& descriptor() const noexcept { return tensor.descriptor(); }
  const Shape& shape() const noexcept { return descriptor().shape; }
  const BlockPaged* paged() const noexcept { return std::get_if<BlockPaged>(&descriptor().layout); }

  Result<void> open(std::span<const std::uint64_t> supplied) {
    return std::visit(
        [&]<class T>(const T& layout) -> Result<void> {
          if constexpr (DenseLayout<T>) {
            codec.emplace<std::decay_t<decltype(layout.codec(shape()))>>(layout.codec(shape()));
          } else if constexpr (std::is_same_v<T, BlockPaged>) {
            auto known = layout.sequence_tokens(index_buffers(tensor), shape(), supplied);
            if (known)
              tokens = std::move(*known);
            else if (known.error().code != Errc::unsupported)
              return known.error();
          }
          return {};
        },
        descriptor().layout);
  }

  Result<bool> shares_slots() const {
    if (shape().is_empty()) return false;
    if (const BlockPaged* layout = paged()) {
      const IndexBuffers buffers = index_buffers(tensor);
      const std::uint64_t used = buffers[2][layout->num_seqs];
      if (used > buffers[1].size()) return index_buffers_changed();
      return shares_pages(buffers[1], used);
    }
    const auto* digits = std::get_if<DigitCodec>(&codec);
    if (digits == nullptr || digits->has_inverse()) return false;
    const auto range = std::visit(
        [&]<class T>(const T& layout) -> std::optional<ElementRange> {
          if constexpr (DenseLayout<T>) return layout.range(shape());
          return std::nullopt;
        },
        descriptor().layout);
    return coincides(*digits, range.value_or(ElementRange{}), shape().count());
  }

  Result<void> open_for_writing() {
    if (tensor.buffer(0).readonly())
      return Error{.code = Errc::unsupported,
                   .origin = Origin::buffer,
                   .index = 0,
                   .field = "buffers[]",
                   .what = "read-only memory is not written to; copy the tensor"};
    const auto shares = shares_slots();
    if (!shares) return shares.error();
    if (*shares)
      return refused("layout",
                     "elements that share their place are not written to; copy the "
                     "tensor");
    write = true;
    return tensor.buffer(0).make_writable();
  }
};

Result<Elements> Elements::over(const Tensor& tensor, const ElementOptions& options) {
  return open(tensor, options, true);
}

Result<Elements> Elements::unjudged(const Tensor& tensor, const ElementOptions& options) {
  return open(tensor, options, false);
}

Result<Elements> Elements::open(const Tensor& tensor, const ElementOptions& options, bool judged) {
  return contain(Origin::buffer, [&]() -> Result<Elements> {
    const Descriptor& d = tensor.descriptor();
    if (auto why = opaque(d)) return *why;
    if (std::holds_alternative<CompositeHead>(d.layout))
      return refused("layout_tag",
                     "a composite head stores no elements: materialize it, or take its members");
    for (std::size_t k = 0; k < d.shape.rank(); ++k)
      if (d.shape[k] == dynamic) {
        Error error = refused("shape[]", "elements have no address while a size is dynamic");
        error.index = k;
        return error;
      }
    if (auto ready = host_readable(tensor); !ready) return ready.error();
    if (judged)
      if (auto error = check_bounds(tensor)) return *error;
    auto state = std::make_shared<State>(tensor);
    if (auto opened = state->open(options.sequence_tokens); !opened) return opened.error();
    if (options.write)
      if (auto opened = state->open_for_writing(); !opened) return opened.error();
    return Elements(std::move(state));
  });
}

const Tensor& Elements::tensor() const noexcept { return state_->tensor; }
unsigned Elements::width() const noexcept { return state_->width; }
std::size_t Elements::index_size() const noexcept {
  return state_->paged() != nullptr ? 4 : state_->shape().rank();
}

Result<std::optional<std::int64_t>> Elements::slot(std::span<const std::uint64_t> index) const {
  if (index.size() != index_size())
    return Error{.code = Errc::inconsistent,
                 .expect = Expect::exactly,
                 .field = "index",
                 .what = "numbers",
                 .expected = index_size(),
                 .found = index.size()};
  const Shape& shape = state_->shape();
  const auto check = [&](std::size_t k, std::uint64_t size) -> std::optional<Error> {
    if (index[k] < size) return std::nullopt;
    Error error = beyond(index[k], size);
    error.field = "index[]";
    error.index = k;
    return error;
  };
  const BlockPaged* paged = state_->paged();
  if (paged != nullptr) {
    const IndexBuffers buffers = index_buffers(state_->tensor);
    if (auto error = check(0, paged->num_seqs)) return *error;
    const std::uint64_t tokens = state_->tokens
                                     ? (*state_->tokens)[static_cast<std::size_t>(index[0])]
                                     : paged->capacity(index[0], buffers);
    if (auto error = check(1, tokens)) return *error;
    if (auto error = check(2, shape[1])) return *error;
    if (auto error = check(3, shape[2])) return *error;
  } else {
    for (std::size_t k = 0; k < index.size(); ++k)
      if (auto error = check(k, shape[k])) return *error;
  }
  return std::visit(
      [&]<class T>(const T& layout) -> std::optional<std::int64_t> {
        if constexpr (DenseLayout<T>) {
          return std::get_if<std::decay_t<decltype(layout.codec(shape))>>(&state_->codec)
              ->offset(index);
        } else if constexpr (SparseLayout<T> || std::is_same_v<T, BlockPaged>) {
          const auto found = layout.find(index, shape, index_buffers(state_->tensor));
          if (!found) return std::nullopt;
          return static_cast<std::int64_t>(*found);
        } else {
          return std::nullopt;
        }
      },
      state_->descriptor().layout);
}

bool Elements::index_of(std::int64_t slot, std::span<std::uint64_t> index) const noexcept {
  if (index.size() != index_size() || state_->shape().is_empty()) return false;
  return std::visit(
      [&]<class T>(const T& layout) -> bool {
        if constexpr (DenseLayout<T>) {
          return std::get_if<std::decay_t<decltype(layout.codec(state_->shape()))>>(&state_->codec)
              ->index_of(slot, index);
        } else if constexpr (SparseLayout<T>) {
          return slot >= 0 && layout.index_of(static_cast<std::uint64_t>(slot), state_->shape(),
                                              index_buffers(state_->tensor), index);
        } else {
          return false;
        }
      },
      state_->descriptor().layout);
}

std::optional<Place> Elements::place(std::int64_t slot) const noexcept {
  const auto found = hurray::place(state_->width, state_->descriptor().byte_offset, slot);
  const std::uint64_t size = state_->tensor.buffer(0).size();
  if (!found || found->byte > size ||
      touched_bytes(state_->width, found->shift) > size - found->byte)
    return std::nullopt;
  return found;
}

Result<Place> Elements::held(std::int64_t slot) const {
  if (const auto found = place(slot)) return *found;
  return Error{.code = Errc::out_of_bounds,
               .origin = Origin::buffer,
               .expect = Expect::signed_as_said,
               .field = "slot",
               .what = "an element that lies in buffer 0",
               .found = static_cast<std::uint64_t>(slot)};
}

Result<void> Elements::is_one_element(std::size_t bytes) const {
  const std::uint64_t expected = touched_bytes(width(), 0);
  if (bytes == expected) return {};
  return Error{.code = Errc::inconsistent,
               .expect = Expect::exactly,
               .field = "element",
               .what = "bytes, those of one element",
               .expected = expected,
               .found = bytes};
}

Result<Code> Elements::load(std::int64_t slot) const {
  if (width() > 128) {
    Error error = refused("type_tag", "a code has at most 128 bits; load bytes");
    error.found = width();
    return error;
  }
  std::array<std::byte, 16> bytes{};
  if (auto done = load(slot, std::span(bytes).first(*to_size(touched_bytes(width(), 0)))); !done)
    return done.error();
  return Code{detail::load<std::uint64_t>(bytes.data()),
              detail::load<std::uint64_t>(bytes.data() + 8)};
}

Result<void> Elements::load(std::int64_t slot, std::span<std::byte> out) const {
  if (auto fits = is_one_element(out.size()); !fits) return fits;
  const auto at = held(slot);
  if (!at) return at.error();
  const std::byte* from = tensor().buffer(0).data() + *to_size(at->byte);
  if (width() < 8)
    out[0] = static_cast<std::byte>(take_bits(from, at->shift, width()));
  else
    std::memcpy(out.data(), from, width() / 8);
  return {};
}

Result<void> Elements::store(std::int64_t slot, Code code) const {
  if (width() > 128) {
    Error error = refused("type_tag", "a code has at most 128 bits; store bytes");
    error.found = width();
    return error;
  }
  std::array<std::byte, 16> bytes{};
  detail::store(bytes.data(), code.low);
  detail::store(bytes.data() + 8, code.high);
  return store(slot, std::span<const std::byte>(bytes).first(*to_size(touched_bytes(width(), 0))));
}

Result<void> Elements::store(std::int64_t slot, std::span<const std::byte> in) const {
  if (!state_->write)
    return Error{.code = Errc::invalid_state,
                 .origin = Origin::buffer,
                 .field = "write",
                 .what = "these elements were not opened for writing"};
  if (auto fits = is_one_element(in.size()); !fits) return fits;
  const auto at = held(slot);
  if (!at) return at.error();
  std::byte* to = tensor().buffer(0).data() + *to_size(at->byte);
  if (width() < 8)
    put_bits(to, at->shift, width(), static_cast<unsigned>(in[0]));
  else
    std::memcpy(to, in.data(), width() / 8);
  return {};
}

Result<std::span<const std::uint64_t>> Elements::sequence_tokens() const {
  if (state_->tokens) return std::span<const std::uint64_t>(*state_->tokens);
  return refused("sequence_tokens",
                 "the format does not say how many tokens each sequence has; pass them");
}

Result<bool> Elements::visit(Visitor visitor) const {
  const Shape& shape = state_->shape();
  if (shape.is_empty()) return true;
  if (state_->paged() != nullptr)
    if (auto tokens = sequence_tokens(); !tokens) return tokens.error();
  return std::visit(
      [&]<class T>(const T& layout) -> Result<bool> {
        if constexpr (DenseLayout<T>)
          return std::get_if<std::decay_t<decltype(layout.codec(shape))>>(&state_->codec)
              ->for_each(visitor);
        else if constexpr (SparseLayout<T>)
          return for_each_stored(layout, shape, index_buffers(state_->tensor), visitor);
        else if constexpr (std::is_same_v<T, BlockPaged>)
          return for_each_token(layout, shape, index_buffers(state_->tensor), *state_->tokens,
                                visitor);
        else
          return true;
      },
      state_->descriptor().layout);
}

namespace detail {

void copy_run(unsigned width, std::byte* to, Place to_place, const std::byte* from,
              Place from_place, std::uint64_t count) noexcept {
  to += *to_size(to_place.byte);
  from += *to_size(from_place.byte);
  if (width >= 8) {
    std::memcpy(to, from, *to_size(count) * (width / 8));
    return;
  }
  std::uint64_t bits = count * width;
  unsigned to_shift = to_place.shift;
  unsigned from_shift = from_place.shift;
  // The first bits, up to the next byte of the target.
  if (to_shift != 0 && bits != 0) {
    const auto n = static_cast<unsigned>(std::min<std::uint64_t>(bits, 8 - to_shift));
    put_bits(to, to_shift, n, take_bits(from, from_shift, n));
    bits -= n;
    to += (to_shift + n) / 8;
    from_shift += n;
    from += from_shift / 8;
    from_shift %= 8;
  }
  const std::size_t whole = *to_size(bits / 8);
  if (from_shift == 0) {
    if (whole != 0) std::memcpy(to, from, whole);
  } else {
    std::size_t i = 0;
    for (; i + 8 <= whole; i += 8)
      detail::store(to + i, detail::load<std::uint64_t>(from + i) >> from_shift |
                                static_cast<std::uint64_t>(from[i + 8]) << (64 - from_shift));
    for (; i < whole; ++i) to[i] = static_cast<std::byte>(take_bits(from + i, from_shift, 8));
  }
  if (const auto n = static_cast<unsigned>(bits % 8); n != 0)
    put_bits(to + whole, 0, n, take_bits(from + whole, from_shift, n));
}

}  // namespace detail
}  // namespace hurray
