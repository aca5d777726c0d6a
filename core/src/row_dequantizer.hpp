#pragma once

#include <array>
#include <span>

#include "dequantize_paths.hpp"
#include "hurray/buffer.hpp"
#include "hurray/result.hpp"
#include "quantized.hpp"

namespace hurray {

/// Elements follow each other in buffer 0 row by row: row-major, or strides that say the same.
/// Precondition: nothing dynamic.
bool is_row_major(const Descriptor& descriptor);

/// Dequantizes any stretch of a quantized tensor whose elements are stored row by row. Holds its
/// parameters as float32 and int32, in the order in which rows need them. A view of the codes: the
/// tensor outlives it.
class RowDequantizer {
 public:
  /// Precondition: as for `Quantized`; `is_row_major`, checked parameters, not empty.
  static Result<RowDequantizer> over(const Tensor& tensor,
                                     const DequantizePath& path = dequantize_paths().front());

  /// Row-major elements from `first` on. Precondition: they exist.
  void fill(std::uint64_t first, std::span<float> out) const;

  const DequantizePath& path() const noexcept { return *path_; }

 private:
  /// The place of an element: `[outer, a, inner]` around the quantized axis.
  struct Place {
    std::uint64_t outer;
    std::uint64_t a;
    std::uint64_t inner;
  };

  /// Elements that follow each other and share an entry, or have entries that follow each other.
  struct Stretch {
    std::uint64_t length;
    bool shared;
  };

  explicit RowDequantizer(const DequantizePath& path) noexcept : path_(&path) {}
  Result<void> load_parameters(const Quantized& quantized);
  template <class T>
  void order_by_block(const T* from, T* to) const noexcept;
  Place place_of(std::uint64_t element) const noexcept;
  void advance(Place& place, std::uint64_t elements) const noexcept;
  /// Entry of the arrays below.
  std::uint64_t entry(const Place& place) const noexcept;
  Stretch stretch(const Place& place) const noexcept;
  void one_by_one(std::uint64_t first, Place place, std::span<float> out) const;
  void emit(const Runs& runs, float* out) const;

  const DequantizePath* path_;
  const std::byte* packed_ = nullptr;
  DType storage_ = DType::int8;
  SchemeTag scheme_ = SchemeTag::per_tensor_affine;
  bool tabled_ = false;  // codes are looked up in `values_`
  bool narrow_ = false;
  std::array<float, 256> values_{};
  Buffer scales_;
  Buffer zero_points_;
  std::uint64_t outer_ = 1;
  std::uint64_t size_ = 1;
  std::uint64_t inner_ = 1;
  std::uint64_t block_ = 1;   // elements along the axis that share an entry
  std::uint64_t blocks_ = 1;  // of one line
  bool by_channel_ = false;   // all lines share their entries
};

}  // namespace hurray
