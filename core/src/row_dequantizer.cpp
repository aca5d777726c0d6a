#include "row_dequantizer.hpp"

#include <algorithm>
#include <limits>

namespace hurray {
namespace {

/// From here up the product of a scale and any element that is not 0 is a normal float32, or too
/// large for one: a plain multiplication gives what exponent arithmetic would.
constexpr float plain_scale = 0x1p-110f;

/// Shorter stretches are not worth a call of their own: their elements get their own parameters, a
/// piece at a time.
constexpr std::size_t short_stretch = 8;
constexpr std::size_t piece = 256;

float* floats(const Buffer& buffer) noexcept { return reinterpret_cast<float*>(buffer.data()); }
std::int32_t* integers(const Buffer& buffer) noexcept {
  return reinterpret_cast<std::int32_t*>(buffer.data());
}

constexpr std::uint64_t product(std::span<const std::uint64_t> sizes) noexcept {
  std::uint64_t all = 1;
  for (const std::uint64_t n : sizes) all *= n;
  return all;
}

}  // namespace

bool is_row_major(const Descriptor& descriptor) {
  if (std::holds_alternative<RowMajor>(descriptor.layout)) return true;
  const auto strides = strides_of(descriptor.layout, descriptor.shape);
  if (!strides) return false;
  const Strides rows = RowMajor{}.strides_for(descriptor.shape);
  for (std::size_t k = 0; k < descriptor.shape.rank(); ++k)
    if (descriptor.shape[k] > 1 && (*strides)[k] != rows[k]) return false;
  return true;
}

Result<RowDequantizer> RowDequantizer::over(const Tensor& tensor, const DequantizePath& path) {
  const Descriptor& d = tensor.descriptor();
  const Quantized quantized(tensor);
  RowDequantizer rows(path);
  rows.packed_ = tensor.buffer(0).data() + *to_size(d.byte_offset);
  rows.storage_ = d.dtype;
  rows.scheme_ = quantized.scheme();
  const bool is_integer = info(d.dtype)->format.exponent_bits == 0;
  rows.tabled_ = rows.scheme_ == SchemeTag::nf4 || !is_integer;
  if (rows.scheme_ == SchemeTag::nf4)
    std::ranges::copy(nf4_values, rows.values_.begin());
  else if (!is_integer)
    for (std::uint32_t code = 0; code < 1u << bits(d.dtype); ++code)
      rows.values_[code] = decode_float(d.dtype, code);

  const std::span<const std::uint64_t> shape(d.shape.data(), d.shape.rank());
  const SchemeParameters& of = quantized.parameters();
  if (!of.axis) {
    rows.size_ = rows.block_ = product(shape);
  } else {
    const std::uint32_t axis = *of.axis;
    rows.outer_ = product(shape.first(axis));
    rows.size_ = shape[axis];
    rows.inner_ = product(shape.subspan(axis + 1));
    rows.by_channel_ = of.block_size == 0;
    rows.block_ = rows.by_channel_ ? 1 : of.block_size;
    rows.blocks_ = rows.size_ / rows.block_ + (rows.size_ % rows.block_ != 0);
  }
  if (auto loaded = rows.load_parameters(quantized); !loaded) return loaded.error();
  if (!rows.by_channel_ && rows.inner_ == 1 && rows.size_ % rows.block_ == 0) {
    rows.size_ *= rows.outer_;  // lines of whole blocks are one line
    rows.blocks_ *= rows.outer_;
    rows.outer_ = 1;
  }
  return rows;
}

/// Entries stand by line and block, and are needed by block and line.
template <class T>
void RowDequantizer::order_by_block(const T* from, T* to) const noexcept {
  constexpr std::uint64_t square = 16;  // keeps both sides in the cache
  for (std::uint64_t outer = 0; outer < outer_; ++outer)
    for (std::uint64_t line = 0; line < inner_; line += square)
      for (std::uint64_t block = 0; block < blocks_; ++block)
        for (std::uint64_t i = line; i < std::min(line + square, inner_); ++i)
          to[(outer * blocks_ + block) * inner_ + i] = from[(outer * inner_ + i) * blocks_ + block];
}

Result<void> RowDequantizer::load_parameters(const Quantized& quantized) {
  const std::uint64_t entries = quantized.entries();
  const auto room = [&](Buffer& buffer) -> Result<void> {
    auto memory = Buffer::allocate(entries * 4);
    if (!memory) return memory.error();
    buffer = std::move(*memory);
    return {};
  };
  if (auto done = room(scales_); !done) return done;
  if (quantized.has_zero_points())
    if (auto done = room(zero_points_); !done) return done;
  quantized.load_all(floats(scales_), integers(zero_points_));
  constexpr std::int32_t large = 1 << 30;
  bool small = true;
  for (std::uint64_t i = 0; i < zero_points_.size() / 4; ++i) {
    const std::int32_t zero = integers(zero_points_)[i];
    small &= zero > -large && zero < large;
  }
  if (!by_channel_ && inner_ > 1) {
    Buffer in_order;
    if (auto done = room(in_order); !done) return done;
    order_by_block(floats(scales_), floats(in_order));
    std::swap(scales_, in_order);
    if (zero_points_.size() != 0) {
      order_by_block(integers(zero_points_), integers(in_order));
      std::swap(zero_points_, in_order);
    }
  }
  narrow_ = small && bits(storage_) <= 16;
  return {};
}

RowDequantizer::Place RowDequantizer::place_of(std::uint64_t element) const noexcept {
  return {element / inner_ / size_, element / inner_ % size_, element % inner_};
}

void RowDequantizer::advance(Place& place, std::uint64_t elements) const noexcept {
  place.inner += elements;
  if (place.inner < inner_) return;
  place.a += place.inner / inner_;
  place.inner %= inner_;
  if (place.a < size_) return;
  place.outer += place.a / size_;
  place.a %= size_;
}

std::uint64_t RowDequantizer::entry(const Place& place) const noexcept {
  if (by_channel_) return place.a;
  return (place.outer * blocks_ + place.a / block_) * inner_ + place.inner;
}

RowDequantizer::Stretch RowDequantizer::stretch(const Place& place) const noexcept {
  if (inner_ > 1) return {inner_ - place.inner, by_channel_};
  if (by_channel_) return {size_ - place.a, false};
  return {std::min(block_ - place.a % block_, size_ - place.a), true};
}

void RowDequantizer::fill(std::uint64_t first, std::span<float> out) const {
  Place place = place_of(first);
  while (!out.empty()) {
    const Stretch next = stretch(place);
    std::size_t done = static_cast<std::size_t>(std::min<std::uint64_t>(next.length, out.size()));
    if (done < short_stretch) {
      done = std::min(out.size(), piece);
      one_by_one(first, place, out.first(done));
    } else {
      const auto at = static_cast<std::size_t>(entry(place));
      const std::int32_t* zeros = integers(zero_points_);
      Runs runs{first, 1, done, floats(scales_) + at, zeros != nullptr ? zeros + at : nullptr};
      if (next.shared) {
        std::swap(runs.length, runs.count);
        if (inner_ == 1 && done == block_)  // whole blocks follow
          runs.count = static_cast<std::size_t>(
              std::min<std::uint64_t>(out.size(), size_ - place.a) / block_);
        done = runs.length * runs.count;
      }
      emit(runs, out.data());
    }
    first += done;
    advance(place, done);
    out = out.subspan(done);
  }
}

void RowDequantizer::one_by_one(std::uint64_t first, Place place, std::span<float> out) const {
  const bool subtracts = zero_points_.size() != 0;
  std::array<float, piece> scales;
  std::array<std::int32_t, piece> zeros;
  for (std::size_t i = 0; i < out.size();) {
    const Stretch next = stretch(place);
    const auto length =
        static_cast<std::size_t>(std::min<std::uint64_t>(next.length, out.size() - i));
    std::size_t at = static_cast<std::size_t>(entry(place));
    advance(place, length);
    for (const std::size_t end = i + length; i < end; ++i) {
      scales[i] = floats(scales_)[at];
      if (subtracts) zeros[i] = integers(zero_points_)[at];
      if (!next.shared) ++at;
    }
  }
  emit({first, 1, out.size(), scales.data(), subtracts ? zeros.data() : nullptr}, out.data());
}

void RowDequantizer::emit(const Runs& runs, float* out) const {
  const Codes codes{packed_, storage_, tabled_ ? values_.data() : nullptr, narrow_};
  if (scheme_ != SchemeTag::mxfp) return path_->dequantize(codes, runs, out);
  const unsigned width = bits(storage_);
  for (std::size_t run = 0; run < runs.count;) {
    std::size_t plain = run;
    while (plain < runs.count && runs.scales[plain] >= plain_scale) ++plain;
    const std::uint64_t first = runs.first + run * runs.length;
    float* const to = out + run * runs.length;
    if (plain != run) {
      path_->dequantize(codes, {first, runs.length, plain - run, runs.scales + run, nullptr}, to);
      run = plain;
      continue;
    }
    for (std::size_t i = 0; i < runs.length; ++i) {
      const Code code = detail::load_code(packed_, width, static_cast<std::int64_t>(first + i));
      to[i] = mxfp_product(runs.scales[run], to_double(storage_, code));
    }
    ++run;
  }
}

}  // namespace hurray
