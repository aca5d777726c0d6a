#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <type_traits>
#include <utility>

#include "hurray/export.hpp"
#include "hurray/index_buffers.hpp"
#include "hurray/result.hpp"
#include "hurray/tensor.hpp"
#include "hurray/values.hpp"

namespace hurray {

/// Where an element starts: `byte` from the start of buffer 0, `shift` bits above the lowest bit of
/// that byte (0 to 7; 0 for elements of whole bytes).
struct Place {
  std::uint64_t byte = 0;
  unsigned shift = 0;
  friend bool operator==(const Place&, const Place&) = default;
};

/// Place of the element `slot` elements after the one at `byte_offset` bytes, or before it when
/// `slot` is negative (02-layouts.md section 3). `width` in bits: 1, 2, 4, 6 or a multiple of 8.
/// None outside `[0, 2^63)` bytes.
HURRAY_EXPORT std::optional<Place> place(unsigned width, std::uint64_t byte_offset,
                                         std::int64_t slot) noexcept;

/// Bytes that an element of `width` bits touches from `Place::byte` on.
constexpr std::uint64_t touched_bytes(unsigned width, unsigned shift) noexcept {
  return (std::uint64_t{width} + shift + 7) / 8;
}

struct ElementOptions {
  /// Tokens of each sequence of a block-paged tensor: needed for what visits all elements, where
  /// the format leaves them open (02-layouts.md L15). Ignored for other layouts.
  std::span<const std::uint64_t> sequence_tokens = {};
  /// Elements will be stored to.
  bool write = false;
  /// Conversions of a whole tensor (`to_dense`) check the canonical form of class D first.
  bool canonical = true;
  /// Bytes that `to_dense` and `dequantize` may take for a result, which follow from the shape
  /// alone, however little is stored; `limit_exceeded` before they are taken. No limit by default.
  std::uint64_t max_bytes = std::numeric_limits<std::uint64_t>::max();
  /// Elements that `statistics_of` may look at, which zero strides and shared pages make many more
  /// than there are bytes; `limit_exceeded` before the first. No limit by default.
  std::uint64_t max_elements = std::numeric_limits<std::uint64_t>::max();
};

/// The elements of one tensor: every layout that this library understands and every element width,
/// addressed the same way.
///
/// An element is found by its logical index; of a block-paged tensor by four numbers (sequence,
/// token of the sequence, head, element of the head; 02-layouts.md L15). It lies in a *slot* of
/// buffer 0, counted in elements from the one at `byte_offset`, which may be negative; of a sparse
/// tensor the slot is the number of the stored entry.
///
/// A handle: copying shares the tensor's memory and keeps it alive. Everything but `store` may be
/// called from any thread; elements narrower than a byte share it with their neighbours, so that
/// those must not be stored to at the same time.
class Elements {
 public:
  /// Fails as `unsupported` for opaque tensors, composite heads, dynamic sizes and bytes that this
  /// program may not read (`readable`) or that are not in host memory; with origin `buffer` and the
  /// position where index buffers break a bounds check of class D, which run here. With
  /// `options.write` also as `unsupported` for read-only buffers and where two elements share a
  /// slot; the pages are made writable.
  HURRAY_EXPORT static Result<Elements> over(const Tensor& tensor,
                                             const ElementOptions& options = {});

  HURRAY_EXPORT const Tensor& tensor() const noexcept;
  /// Stored bits of one element.
  HURRAY_EXPORT unsigned width() const noexcept;
  /// Numbers in an index: the rank, 4 for block-paged.
  HURRAY_EXPORT std::size_t index_size() const noexcept;

  /// The slot of the element at `index`; none where a sparse tensor stores nothing, hence zero.
  /// Fails for another number of indices (`inconsistent`) and for one outside the shape
  /// (`out_of_bounds`); of a block-paged tensor also beyond the sequence's tokens, or, where these
  /// are not known, beyond its pages.
  HURRAY_EXPORT Result<std::optional<std::int64_t>> slot(
      std::span<const std::uint64_t> index) const;

  /// The index, of `index_size()` numbers, of the element in `slot`. False where none lies, and
  /// everywhere for strides that do not nest and for block-paged tensors, whose pages may be
  /// shared; then `index` holds nothing of use.
  HURRAY_EXPORT bool index_of(std::int64_t slot, std::span<std::uint64_t> index) const noexcept;

  /// Where the element in `slot` starts; none unless all of it lies in buffer 0.
  HURRAY_EXPORT std::optional<Place> place(std::int64_t slot) const noexcept;

  /// The stored bits in `slot`, unused high ones 0: as a code (`unsupported` above 128 bits) or as
  /// `touched_bytes(width(), 0)` little-endian bytes. `out_of_bounds` outside the buffer,
  /// `inconsistent` for a span of another size.
  HURRAY_EXPORT Result<Code> load(std::int64_t slot) const;
  HURRAY_EXPORT Result<void> load(std::int64_t slot, std::span<std::byte> out) const;

  /// The reverse; bits above the width are ignored, neighbours are kept. `invalid_state` without
  /// `ElementOptions::write`.
  HURRAY_EXPORT Result<void> store(std::int64_t slot, Code code) const;
  HURRAY_EXPORT Result<void> store(std::int64_t slot, std::span<const std::byte> in) const;

  /// Calls `each(std::span<const std::uint64_t> index, std::int64_t slot) -> bool` for every
  /// stored element in storage order (02-layouts.md: dense by their layout, sparse as stored, paged
  /// by sequence, token, head and element), until it is false; says whether it was true to the end.
  /// Fails as `unsupported` where the tokens of the sequences are not known, and as `out_of_bounds`
  /// before an index outside the shape is passed, or where elements are missing at the end: the
  /// index buffers changed since they were checked.
  template <class Each>
  Result<bool> for_each(Each&& each) const {
    using Callable = std::remove_reference_t<Each>;
    return visit({const_cast<std::remove_const_t<Callable>*>(std::addressof(each)),
                  [](void* self, std::span<const std::uint64_t> index, std::int64_t slot) -> bool {
                    return (*static_cast<Callable*>(self))(index, slot);
                  }});
  }

  /// Tokens of each sequence of a block-paged tensor; fails where they are not known.
  HURRAY_EXPORT Result<std::span<const std::uint64_t>> sequence_tokens() const;

 private:
  struct State;
  struct Visitor {
    void* self;
    bool (*call)(void*, std::span<const std::uint64_t>, std::int64_t);
    bool operator()(std::span<const std::uint64_t> index, std::int64_t slot) const {
      return call(self, index, slot);
    }
    bool operator()(std::span<const std::uint64_t> index, std::uint64_t slot) const {
      return call(self, index, static_cast<std::int64_t>(slot));
    }
  };

  explicit Elements(std::shared_ptr<const State> state) noexcept : state_(std::move(state)) {}
  static Result<Elements> open(const Tensor& tensor, const ElementOptions& options, bool judged);
  /// Like `over` without the bounds checks, which whoever moves the elements makes on the way.
  static Result<Elements> unjudged(const Tensor& tensor, const ElementOptions& options);
  friend HURRAY_EXPORT Result<Tensor> to_dense(const Tensor& tensor, const ElementOptions& options);
  HURRAY_EXPORT Result<bool> visit(Visitor visitor) const;
  Result<Place> held(std::int64_t slot) const;
  Result<void> is_one_element(std::size_t bytes) const;

  std::shared_ptr<const State> state_;
};

/// `readable`, and in host memory: this program may follow the buffers' addresses.
HURRAY_EXPORT Result<void> host_readable(const Tensor& tensor);

/// The tensor's buffers as the index arrays of its layout. Precondition: their bytes may be read.
HURRAY_EXPORT IndexBuffers index_buffers(const Tensor& tensor) noexcept;

/// A bool tensor from outside whose element buffer has exactly one byte per stored element (of a
/// dense or block-paged layout also: per place for one, padding included), where packed bits need
/// fewer: nobody can tell which of the two it holds (D22).
HURRAY_EXPORT bool ambiguous_bool(const Tensor& tensor) noexcept;
/// The same of a tensor from outside that has this descriptor.
HURRAY_EXPORT bool ambiguous_bool(const Descriptor& descriptor) noexcept;

namespace detail {

/// Copies `count` elements of `width` bits, one after the other, between places that do not
/// overlap. Bits around the target are kept. Precondition: both runs lie in their memory.
HURRAY_EXPORT void copy_run(unsigned width, std::byte* to, Place to_place, const std::byte* from,
                            Place from_place, std::uint64_t count) noexcept;

}  // namespace detail
}  // namespace hurray
