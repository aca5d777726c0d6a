#pragma once

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "hurray/dtype.hpp"
#include "hurray/index_buffers.hpp"
#include "hurray/layout/fields.hpp"
#include "hurray/layout/tags.hpp"
#include "hurray/result.hpp"

namespace hurray {

/// What a paged cache holds (02-layouts.md section 13).
enum class KvRole : std::uint8_t { key = 0, value = 1, fused = 2 };

struct KvRoleInfo {
  KvRole tag;
  std::string_view name;
};

inline constexpr auto kv_roles = std::to_array<KvRoleInfo>({
    {KvRole::key, "key"},
    {KvRole::value, "value"},
    {KvRole::fused, "fused"},
});
static_assert(strictly_sorted(kv_roles));

/// Type of the entries of block table and `seq_ptr`.
enum class IndexType : std::uint8_t { uint32 = 0, uint64 = 1 };

struct IndexTypeInfo {
  IndexType tag;
  std::string_view name;
  std::uint8_t bytes;
};

inline constexpr auto index_types = std::to_array<IndexTypeInfo>({
    {IndexType::uint32, "uint32", 4},
    {IndexType::uint64, "uint64", 8},
});
static_assert(strictly_sorted(index_types));

constexpr std::string_view name(KvRole role) noexcept {
  const KvRoleInfo* row = find_row(kv_roles, role);
  return row != nullptr ? row->name : "";
}
constexpr std::string_view name(IndexType type) noexcept {
  const IndexTypeInfo* row = find_row(index_types, type);
  return row != nullptr ? row->name : "";
}

/// The cache of a whole batch: a pool of pages and, per sequence, the list of its pages. Shape
/// `[total_tokens, heads, head_size]` (02-layouts.md section 13).
struct BlockPaged {
  static constexpr LayoutTag tag = LayoutTag::block_paged;
  static constexpr std::uint32_t no_layer = std::numeric_limits<std::uint32_t>::max();
  static constexpr std::string_view pages = "block_table[]";
  static constexpr std::string_view pointers = "seq_ptr[]";
  static constexpr std::string_view role(std::size_t i) noexcept {
    return i == 0 ? "page_pool" : i == 1 ? role_of(pages) : i == 2 ? role_of(pointers) : "";
  }

  std::uint64_t num_pages = 0;
  std::uint32_t page_size = 1;  ///< Token slots of one page.
  std::uint32_t paged_axis = 0;
  std::uint32_t num_seqs = 0;
  std::uint32_t layer_index = no_layer;
  KvRole kv_role = KvRole::key;
  IndexType index_type = IndexType::uint32;

  static void fields(auto& self, auto& io, const FieldContext& in) {
    io("layout.page_size", self.page_size);
    io.check(self.page_size != 0, [&] {
      return Error{.code = Errc::invalid_value,
                   .expect = Expect::at_least,
                   .field = "layout.page_size",
                   .what = "token slot",
                   .expected = 1,
                   .found = 0};
    });
    io("layout.num_pages", self.num_pages);
    const std::uint64_t at_num_pages = io.last();
    io("layout.paged_axis", self.paged_axis);
    io.check(self.paged_axis == 0, [&] {
      return Error{.code = Errc::invalid_value,
                   .expect = Expect::exactly,
                   .field = "layout.paged_axis",
                   .expected = 0,
                   .found = self.paged_axis};
    });
    io("layout.num_seqs", self.num_seqs);
    const std::uint64_t tokens = in.shape[0];
    io.check(self.num_seqs != 0 || tokens == 0 || tokens == dynamic, [&] {
      return Error{.code = Errc::inconsistent,
                   .expect = Expect::at_least,
                   .field = "layout.num_seqs",
                   .what = "sequence, since there are tokens",
                   .expected = 1,
                   .found = 0};
    });
    tag_field<kv_roles>("layout.kv_role", self.kv_role, io, "0 (key), 1 (value) or 2 (fused)");
    io("layout.layer_index", self.layer_index);
    tag_field<index_types>("layout.block_table_index_type", self.index_type, io,
                           "0 (uint32) or 1 (uint64)");
    constexpr std::uint64_t most = std::numeric_limits<std::uint32_t>::max();
    io.check(self.index_type != IndexType::uint32 || self.num_pages <= most, [&] {
      return Error{.code = Errc::inconsistent,
                   .expect = Expect::at_most,
                   .field = "layout.num_pages",
                   .what = "pages with uint32 indices",
                   .offset = at_num_pages,
                   .expected = most,
                   .found = self.num_pages};
    });
    io.reserved("layout.reserved", 6);
  }

  std::uint64_t index_bytes() const noexcept {
    const IndexTypeInfo* row = find_row(index_types, index_type);
    return row != nullptr ? row->bytes : 8;
  }

  /// Bytes that buffer `i` must hold at least: the block table's follow from `seq_ptr`. 0 while a
  /// dimension is dynamic, none when the size overflows.
  std::optional<std::uint64_t> required_bytes(std::size_t i, unsigned width,
                                              const Shape& shape) const noexcept {
    if (i == 1) return 0;
    if (i == 2) return (std::uint64_t{num_seqs} + 1) * index_bytes();
    if (width == 0 || shape[1] == dynamic || shape[2] == dynamic) return 0;
    if (num_pages == 0 || shape[1] == 0 || shape[2] == 0) return 0;
    std::optional<std::uint64_t> slots = page_size;
    for (const std::uint64_t n : {num_pages, shape[1], shape[2]})
      if (slots) slots = checked_mul(*slots, n);
    return slots ? packed_bytes(width, *slots) : std::nullopt;
  }

  /// K5 to K7: the pointers delimit the block table, every used page exists, and the pages hold
  /// `total_tokens` at least. `buffers` has entries of `index_bytes()`.
  HURRAY_EXPORT std::optional<Error> check_bounds(const IndexBuffers& buffers,
                                                  const Shape& shape) const noexcept;
  /// The same of lists that were just made: they are exactly as long as the layout says and as the
  /// last pointer says.
  HURRAY_EXPORT std::optional<Error> check_exact(const IndexBuffers& buffers,
                                                 const Shape& shape) const noexcept;
  /// Nothing has a canonical form: a page may be named several times, or never.
  std::optional<Error> check_canonical(const IndexBuffers&, const Shape&) const noexcept {
    return std::nullopt;
  }

  /// Token slots of the pages of sequence `s`: at most 2^64 - 1.
  HURRAY_EXPORT std::uint64_t capacity(std::uint64_t s, const IndexBuffers& buffers) const noexcept;

  /// Tokens of each sequence (L15): `supplied`, if it is not empty and fits the pages and
  /// `total_tokens`; else what these force: no tokens at all, one sequence that owns all pages, or
  /// pages that are all full. `unsupported` where they force nothing. Precondition: `check_bounds`
  /// found nothing; nothing dynamic.
  HURRAY_EXPORT Result<std::vector<std::uint64_t>> sequence_tokens(
      const IndexBuffers& buffers, const Shape& shape,
      std::span<const std::uint64_t> supplied = {}) const;

  /// Place in the pool of `index`, which is (sequence, token of the sequence, head, element of the
  /// head); none where the sequence's pages end before that token. Whether the slot holds a token,
  /// only the number of tokens tells. Reads no byte outside the buffers, whatever is in them.
  HURRAY_EXPORT std::optional<std::uint64_t> find(std::span<const std::uint64_t> index,
                                                  const Shape& shape,
                                                  const IndexBuffers& buffers) const noexcept;

  /// `each(index, slot)` for every element of the first `tokens[s]` tokens of each sequence `s`,
  /// until it returns false; `index` as in `find`.
  template <class Each>
  bool for_each(const Shape& shape, const IndexBuffers& buffers,
                std::span<const std::uint64_t> tokens, Each&& each) const {
    if (shape[1] == 0 || shape[2] == 0) return true;
    std::array<std::uint64_t, 4> index{};
    for (index[0] = 0; index[0] < tokens.size(); ++index[0])
      for (index[1] = 0; index[1] < tokens[static_cast<std::size_t>(index[0])]; ++index[1]) {
        index[2] = index[3] = 0;
        auto slot = find(index, shape, buffers);
        if (!slot) break;
        for (index[2] = 0; index[2] < shape[1]; ++index[2])
          for (index[3] = 0; index[3] < shape[2]; ++index[3])
            if (!each(std::span<const std::uint64_t>(index), (*slot)++)) return false;
      }
    return true;
  }

  friend bool operator==(const BlockPaged&, const BlockPaged&) = default;
};

}  // namespace hurray
