#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "hurray/checked.hpp"
#include "hurray/cursor.hpp"
#include "hurray/dtype.hpp"
#include "hurray/layout/sparse.hpp"
#include "hurray/layout/tags.hpp"
#include "hurray/shape.hpp"

namespace hurray {

/// Compressed sparse row; rank 2 only (02-layouts.md section 10).
struct Csr {
  static constexpr LayoutTag tag = LayoutTag::csr;
  static constexpr auto roles =
      std::to_array<std::string_view>({"values", "col_indices", "row_ptr"});

  std::uint64_t nnz = 0;  ///< Stored elements. May be 0.

  static void fields(auto& self, auto& io, const Shape& shape) {
    nnz_field(self.nnz, io, shape);
    io.reserved("layout.reserved", 8);
  }

  /// Bytes that buffer `i` must hold at least; 0 while a dimension it depends on is dynamic, none
  /// when the size overflows.
  std::optional<std::uint64_t> required_bytes(std::size_t i, DType dtype,
                                              const Shape& shape) const noexcept {
    if (i == 0) return packed_bytes(bits(dtype), nnz);
    if (i == 1) return checked_mul<std::uint64_t>(nnz, 8);
    if (shape[0] == dynamic) return 0;
    const auto entries = checked_add<std::uint64_t>(shape[0], 1);
    return entries ? checked_mul<std::uint64_t>(*entries, 8) : std::nullopt;
  }
  friend bool operator==(const Csr&, const Csr&) = default;
};

}  // namespace hurray
