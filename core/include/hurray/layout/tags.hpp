#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "hurray/table.hpp"

namespace hurray {

/// Layout tags (01-descriptor.md section 3.4, 02-layouts.md section 1). The value is the wire byte.
enum class LayoutTag : std::uint8_t {
  row_major = 0x01,
  col_major = 0x02,
  strided = 0x03,
  tiled = 0x04,
  morton = 0x05,
  coo = 0x06,
  csr = 0x07,
  csc = 0x08,
  csf = 0x09,
  block_paged = 0x0A,
  composite = 0x0B,
  hilbert = 0x40,
};

/// How an index finds its element (02-layouts.md section 1); `opaque`: nobody here knows.
enum class LayoutClass : std::uint8_t { dense, sparse, indirect, virtual_, opaque };

/// One layout. Its own buffers number `buffers + buffers_per_dimension * rank`.
struct LayoutInfo {
  LayoutTag tag;
  std::string_view name;
  LayoutClass layout_class;
  std::uint8_t min_rank;
  std::uint8_t max_rank;
  std::uint8_t buffers;
  std::uint8_t buffers_per_dimension;
};

inline constexpr auto layouts = std::to_array<LayoutInfo>({
    {LayoutTag::row_major, "row_major", LayoutClass::dense, 0, 64, 1, 0},
    {LayoutTag::col_major, "col_major", LayoutClass::dense, 1, 64, 1, 0},
    {LayoutTag::strided, "strided", LayoutClass::dense, 1, 64, 1, 0},
    {LayoutTag::tiled, "tiled", LayoutClass::dense, 1, 64, 1, 0},
    {LayoutTag::morton, "morton", LayoutClass::dense, 1, 63, 1, 0},
    {LayoutTag::coo, "coo", LayoutClass::sparse, 1, 64, 2, 0},
    {LayoutTag::csr, "csr", LayoutClass::sparse, 2, 2, 3, 0},
    {LayoutTag::csc, "csc", LayoutClass::sparse, 2, 2, 3, 0},
    {LayoutTag::csf, "csf", LayoutClass::sparse, 3, 64, 1, 2},
    {LayoutTag::block_paged, "block_paged", LayoutClass::indirect, 3, 3, 3, 0},
    {LayoutTag::composite, "composite", LayoutClass::virtual_, 0, 64, 0, 0},
    {LayoutTag::hilbert, "hilbert", LayoutClass::dense, 2, 63, 1, 0},
});
static_assert(strictly_sorted(layouts));

/// What private and unknown tags share in place of a row.
inline constexpr LayoutInfo opaque_layout{
    LayoutTag{}, "extension", LayoutClass::opaque, 0, 64, 1, 0};

constexpr const LayoutInfo* info(LayoutTag tag) noexcept { return row_of<layouts>(tag); }

/// "csr"; "extension" for a private tag and for one that is not assigned.
constexpr std::string_view name(LayoutTag tag) noexcept {
  const LayoutInfo* row = info(tag);
  return row != nullptr ? row->name : opaque_layout.name;
}

/// What a tag is to a reader: assigned, not yet assigned, agreed between two parties, never valid.
constexpr std::string_view layout_tag_kind(std::uint8_t tag) noexcept {
  if (tag == 0x00 || tag == 0xFF) return "invalid";
  if (is_private(tag)) return "private";
  return info(static_cast<LayoutTag>(tag)) != nullptr ? "named" : "reserved";
}

/// A layout's own buffers at this rank (quantization parameters come after them); of opaque layouts
/// only the first is known to be theirs.
constexpr std::size_t own_buffers(const LayoutInfo& row, std::size_t rank) noexcept {
  return row.buffers + row.buffers_per_dimension * rank;
}

}  // namespace hurray
