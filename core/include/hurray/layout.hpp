#pragma once

#include <array>
#include <concepts>
#include <optional>
#include <string_view>
#include <variant>

#include "hurray/layout/csr.hpp"
#include "hurray/layout/dense.hpp"

namespace hurray {

/// How logical indices find their place in the buffers. Each alternative says its wire fields once,
/// in `fields`, and answers `range` and `strides_for` (dense) or `required_bytes` and `roles` (the
/// others). A new layout is one header, one name here, and its vectors. Values, freely shared
/// between threads.
using Layout = std::variant<RowMajor, ColumnMajor, Strided, Csr>;

/// Element `[i]` lies at an offset that follows from strides alone.
template <class T>
concept DenseLayout = requires(const T& layout, const Shape& shape) {
  { layout.range(shape) } -> std::same_as<std::optional<ElementRange>>;
};

/// Only some elements are stored, `nnz` of them.
template <class T>
concept SparseLayout = requires(const T& layout) {
  { layout.nnz } -> std::convertible_to<std::uint64_t>;
};

namespace detail {
template <class... Alternatives>
constexpr auto tags_of(const std::variant<Alternatives...>*) noexcept {
  return std::array{Alternatives::tag...};
}
inline constexpr auto alternative_tags = tags_of(static_cast<const Layout*>(nullptr));
}  // namespace detail

inline LayoutTag tag(const Layout& layout) noexcept {
  return detail::alternative_tags[layout.index()];
}
inline const LayoutInfo& info(const Layout& layout) noexcept { return *info(tag(layout)); }
inline std::string_view name(const Layout& layout) noexcept { return info(layout).name; }
inline bool is_dense(const Layout& layout) noexcept {
  return info(layout).layout_class == LayoutClass::dense;
}

}  // namespace hurray
