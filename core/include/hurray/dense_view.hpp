#pragma once

#include <array>
#include <bit>
#include <complex>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>
#if __has_include(<mdspan>)
#include <mdspan>
#endif

#include "hurray/tensor.hpp"

namespace hurray {

/// Integers by size and sign, whatever they are called; `bool` and character types hold no numbers.
template <class T>
concept StoredInteger =
    std::same_as<T, signed char> || std::same_as<T, unsigned char> || std::same_as<T, short> ||
    std::same_as<T, unsigned short> || std::same_as<T, int> || std::same_as<T, unsigned> ||
    std::same_as<T, long> || std::same_as<T, unsigned long> || std::same_as<T, long long> ||
    std::same_as<T, unsigned long long>;

/// The element type whose stored bytes are a `T` of this language.
template <class T>
struct DTypeOf;
template <DType Value>
struct DTypeIs {
  static constexpr DType value = Value;
};
template <>
struct DTypeOf<float> : DTypeIs<DType::float32> {};
template <>
struct DTypeOf<double> : DTypeIs<DType::float64> {};
template <StoredInteger T>
struct DTypeOf<T>
    : DTypeIs<sizeof(T) == 1   ? (std::is_signed_v<T> ? DType::int8 : DType::uint8)
              : sizeof(T) == 2 ? (std::is_signed_v<T> ? DType::int16 : DType::uint16)
              : sizeof(T) == 4 ? (std::is_signed_v<T> ? DType::int32 : DType::uint32)
                               : (std::is_signed_v<T> ? DType::int64 : DType::uint64)> {};
template <>
struct DTypeOf<std::complex<float>> : DTypeIs<DType::complex64> {};
template <>
struct DTypeOf<std::complex<double>> : DTypeIs<DType::complex128> {};

namespace detail {

template <class T>
T load_element(const std::byte* p) noexcept {
  if constexpr (std::endian::native == std::endian::little) {
    T value;
    std::memcpy(&value, p, sizeof value);
    return value;
  } else if constexpr (std::is_integral_v<T>) {
    return load<T>(p);
  } else if constexpr (std::is_floating_point_v<T>) {
    return std::bit_cast<T>(load<BitsOf<T>>(p));
  } else {
    using Half = typename T::value_type;
    return {load_element<Half>(p), load_element<Half>(p + sizeof(Half))};
  }
}

/// Whether a view may be made; the offsets of `shape` in elements.
HURRAY_EXPORT Result<Strides> view_strides(const Tensor& tensor, DType dtype, std::size_t rank,
                                           bool writes, bool codes);
HURRAY_EXPORT Result<void> view_alignment(const Tensor& tensor, std::size_t alignment);

}  // namespace detail

/// What a view of a quantized tensor shows.
enum class View : std::uint8_t {
  values,  ///< Refuses quantized tensors: their codes are not their values.
  codes,   ///< The stored codes.
};

/// A row-major, column-major or strided tensor as a multidimensional span: element type and rank
/// are checked once, `view(i, j)` is one multiplication and addition per dimension, and unchecked.
///
/// With `const T` elements are read by value, at any alignment and on machines of any byte order.
/// With plain `T` they are references: the memory must be writable and aligned for `T`. A view
/// keeps nothing alive: the tensor outlives it.
template <class T, std::size_t Rank>
class DenseView {
 public:
  using element_type = T;
  using value_type = std::remove_const_t<T>;
  using reference = std::conditional_t<std::is_const_v<T>, value_type, T&>;
  static constexpr std::size_t rank() noexcept { return Rank; }

  /// Fails as `inconsistent` for another element type or rank, as `unsupported` for other layouts
  /// (`to_dense` makes them row-major, `materialize` a composite head), for quantized tensors
  /// without `View::codes`, for opaque tensors and dynamic shapes, and for bytes that this program
  /// may not read; for writable views also where the memory is read-only or not aligned.
  static Result<DenseView> over(const Tensor& tensor, View shows = View::values) {
    constexpr bool writes = !std::is_const_v<T>;
    static_assert(!writes || std::endian::native == std::endian::little,
                  "elements are little-endian: write through Elements");
    const auto strides = detail::view_strides(tensor, DTypeOf<value_type>::value, Rank, writes,
                                              shows == View::codes);
    if (!strides) return strides.error();
    if constexpr (writes)
      if (auto aligned = detail::view_alignment(tensor, alignof(value_type)); !aligned)
        return aligned.error();
    DenseView view;
    view.data_ = tensor.buffer(0).data() + tensor.descriptor().byte_offset;
    for (std::size_t k = 0; k < Rank; ++k) {
      view.extents_[k] = static_cast<std::size_t>(tensor.descriptor().shape[k]);
      view.strides_[k] = static_cast<std::ptrdiff_t>((*strides)[k]);
    }
    return view;
  }

  /// Nothing would keep the elements alive.
  static Result<DenseView> over(const Tensor&&, View = View::values) = delete;

  /// Size of dimension `k`, its stride in elements, and the elements in all.
  std::size_t extent(std::size_t k) const noexcept { return extents_[k]; }
  std::ptrdiff_t stride(std::size_t k) const noexcept { return strides_[k]; }
  std::size_t size() const noexcept {
    std::size_t all = 1;
    for (const std::size_t n : extents_) all *= n;
    return all;
  }

  /// Precondition: every index is below its extent.
  template <std::integral... Index>
    requires(sizeof...(Index) == Rank)
  reference operator()(Index... index) const noexcept {
    return (*this)[{static_cast<std::size_t>(index)...}];
  }
  reference operator[](const std::array<std::size_t, Rank>& index) const noexcept {
    std::ptrdiff_t at = 0;
    for (std::size_t k = 0; k < Rank; ++k)
      at += static_cast<std::ptrdiff_t>(index[k]) * strides_[k];
    std::byte* const p = data_ + at * static_cast<std::ptrdiff_t>(sizeof(value_type));
    if constexpr (std::is_const_v<T>)
      return detail::load_element<value_type>(p);
    else
      return *reinterpret_cast<T*>(p);
  }
#if defined(__cpp_multidimensional_subscript)
  template <std::integral... Index>
    requires(sizeof...(Index) == Rank)
  reference operator[](Index... index) const noexcept {
    return (*this)[std::array<std::size_t, Rank>{static_cast<std::size_t>(index)...}];
  }
#endif

#if defined(__cpp_lib_mdspan)
  /// Reads and writes as the view does.
  struct Accessor {
    using offset_policy = Accessor;
    using element_type = T;
    using reference = DenseView::reference;
    using data_handle_type = std::byte*;
    constexpr reference access(data_handle_type p, std::size_t i) const noexcept {
      p += i * sizeof(value_type);
      if constexpr (std::is_const_v<T>)
        return detail::load_element<value_type>(p);
      else
        return *reinterpret_cast<T*>(p);
    }
    constexpr data_handle_type offset(data_handle_type p, std::size_t i) const noexcept {
      return p + i * sizeof(value_type);
    }
  };
  using Mdspan = std::mdspan<T, std::dextents<std::size_t, Rank>, std::layout_stride, Accessor>;

  /// The same elements as a `std::mdspan`, which knows no strides below 1: none for those.
  std::optional<Mdspan> mdspan() const {
    std::array<std::size_t, Rank> strides{};
    for (std::size_t k = 0; k < Rank; ++k) {
      if (strides_[k] < 1) return std::nullopt;
      strides[k] = static_cast<std::size_t>(strides_[k]);
    }
    return Mdspan(data_, {std::dextents<std::size_t, Rank>(extents_), strides}, Accessor{});
  }
#endif

 private:
  DenseView() = default;

  std::byte* data_ = nullptr;
  std::array<std::size_t, Rank> extents_{};
  std::array<std::ptrdiff_t, Rank> strides_{};
};

}  // namespace hurray
