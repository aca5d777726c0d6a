#pragma once

#include <array>
#include <concepts>
#include <optional>
#include <string_view>
#include <variant>

#include "hurray/layout/block_paged.hpp"
#include "hurray/layout/composite_head.hpp"
#include "hurray/layout/compressed.hpp"
#include "hurray/layout/coo.hpp"
#include "hurray/layout/csf.hpp"
#include "hurray/layout/dense.hpp"
#include "hurray/layout/hilbert.hpp"
#include "hurray/layout/morton.hpp"
#include "hurray/layout/opaque.hpp"
#include "hurray/layout/tiled.hpp"

namespace hurray {

/// How logical indices find their place in the buffers. Each alternative says its wire fields once,
/// in `fields`, names its buffers in `role`, and answers `range` (dense) or `required_bytes` (the
/// others). A new layout is one header, one name here, and its vectors. Values, freely shared
/// between threads.
using Layout = std::variant<RowMajor, ColumnMajor, Strided, Tiled, Morton, Coo, Csr, Csc, Csf,
                            BlockPaged, CompositeHead, Hilbert, PrivateLayout, UnknownLayout>;

/// Every element is stored, at an offset that follows from its index alone.
template <class T>
concept DenseLayout = requires(const T& layout, const Shape& shape) {
  { layout.range(shape) } -> std::same_as<std::optional<ElementRange>>;
};

/// A dense layout whose offsets are sums of index times stride.
template <class T>
concept StridedLayout = DenseLayout<T> && requires(const T& layout, const Shape& shape) {
  { layout.strides_for(shape) } -> std::same_as<Strides>;
};

/// Only some elements are stored, `nnz` of them.
template <class T>
concept SparseLayout = requires(const T& layout) {
  { layout.nnz } -> std::convertible_to<std::uint64_t>;
};

namespace detail {
/// The tag that all values of `T` have; 0 where each has its own.
template <class T>
constexpr LayoutTag tag_of() noexcept {
  if constexpr (std::is_member_object_pointer_v<decltype(&T::tag)>)
    return LayoutTag{};
  else
    return T::tag;
}
template <class... Alternatives>
constexpr auto tags_of(const std::variant<Alternatives...>*) noexcept {
  return std::array{tag_of<Alternatives>()...};
}
inline constexpr auto alternative_tags = tags_of(static_cast<const Layout*>(nullptr));
}  // namespace detail

inline LayoutTag tag(const Layout& layout) noexcept {
  const LayoutTag own = detail::alternative_tags[layout.index()];
  if (own != LayoutTag{}) return own;
  const auto* agreed = std::get_if<PrivateLayout>(&layout);
  return agreed != nullptr ? agreed->tag : std::get_if<UnknownLayout>(&layout)->tag;
}
inline const LayoutInfo& info(const Layout& layout) noexcept {
  const LayoutInfo* row = info(tag(layout));
  return row != nullptr ? *row : opaque_layout;
}
inline std::string_view name(const Layout& layout) noexcept { return info(layout).name; }
inline bool is_dense(const Layout& layout) noexcept {
  return info(layout).layout_class == LayoutClass::dense;
}

/// Stored elements of a sparse layout; none for the others.
inline std::optional<std::uint64_t> nnz_of(const Layout& layout) noexcept {
  return std::visit(
      []<class T>(const T& alternative) -> std::optional<std::uint64_t> {
        if constexpr (SparseLayout<T>) return alternative.nnz;
        return std::nullopt;
      },
      layout);
}

/// Strides in elements where offsets are sums of index times stride (row-major, column-major,
/// strided); none for other layouts. Precondition: a valid layout for the shape, not dynamic.
inline std::optional<Strides> strides_of(const Layout& layout, const Shape& shape) {
  return std::visit(
      [&]<class T>(const T& alternative) -> std::optional<Strides> {
        if constexpr (StridedLayout<T>) return alternative.strides_for(shape);
        return std::nullopt;
      },
      layout);
}

}  // namespace hurray
