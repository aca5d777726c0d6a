// From stored bits to numbers: elements of any layout by their index, the checks that need the
// data, dense copies, and quantized weights as float32.
#include <array>
#include <cstring>
#include <iostream>

#include "hurray/builder.hpp"
#include "hurray/data_checks.hpp"
#include "hurray/dense_view.hpp"
#include "hurray/dequantize.hpp"
#include "hurray/statistics_of.hpp"
#include "hurray/to_dense.hpp"

using namespace hurray;

namespace {

template <class T, std::size_t N>
Buffer filled(const std::array<T, N>& values) {
  auto buffer = Buffer::allocate(sizeof values);
  if (!buffer) std::exit(1);
  std::memcpy(buffer->data(), values.data(), sizeof values);  // little-endian machines
  return *buffer;
}

}  // namespace

int main() {
  // 4 x 6, five stored values: the columns of row 1 are 0, 3 and 5.
  const auto descriptor = DescriptorBuilder::csr(DType::int16, {4, 6}, 5).build();
  if (!descriptor) return std::cerr << to_string(descriptor.error()) << '\n', 1;
  const auto matrix = bind(*descriptor, {filled(std::array<std::int16_t, 5>{7, -2, 9, 4, 1}),
                                         filled(std::array<std::uint64_t, 5>{4, 0, 3, 5, 3}),
                                         filled(std::array<std::uint64_t, 5>{0, 1, 4, 4, 5})});
  if (!matrix) return std::cerr << to_string(matrix.error()) << '\n', 1;

  if (const auto sound = check_data(*matrix); !sound)  // pointers, columns, order
    return std::cerr << to_string(sound.error()) << '\n', 1;
  const auto elements = Elements::over(*matrix);
  if (!elements) return std::cerr << to_string(elements.error()) << '\n', 1;
  const auto slot = elements->slot(std::array<std::uint64_t, 2>{1, 5});
  if (!slot || *slot != 3) return 1;  // the fourth stored value
  const auto nothing = elements->slot(std::array<std::uint64_t, 2>{2, 5});
  if (!nothing || *nothing) return 1;  // not stored: zero

  const auto dense = to_dense(*matrix);
  if (!dense) return std::cerr << to_string(dense.error()) << '\n', 1;
  const auto view = DenseView<const std::int16_t, 2>::over(*dense);
  if (!view || (*view)(1, 5) != 4 || (*view)(2, 5) != 0) return 1;

  // A pointer array that says more than there is does not get past the checks.
  const auto broken = bind(*descriptor, {matrix->buffer(0), matrix->buffer(1),
                                         filled(std::array<std::uint64_t, 5>{0, 1, 4, 4, 9})});
  if (!broken) return 1;
  std::cout << to_string(check_data(*broken).error()) << '\n';
  if (Elements::over(*broken)) return 1;

  // Eight int4 codes in two blocks of four, with a float32 scale each.
  const auto quantized =
      DescriptorBuilder::row_major(DType::int4, {8}).per_block_affine(0, 4, DType::float32).build();
  if (!quantized) return std::cerr << to_string(quantized.error()) << '\n', 1;
  const auto weights =
      bind(*quantized, {filled(std::array<std::uint8_t, 4>{0x7D, 0x18, 0xF2, 0x10}),
                        filled(std::array<float, 2>{0.5f, 0.25f})});
  if (!weights) return std::cerr << to_string(weights.error()) << '\n', 1;
  const auto values = dequantize(*weights);
  if (!values) return std::cerr << to_string(values.error()) << '\n', 1;
  const auto floats = DenseView<const float, 1>::over(*values);
  if (!floats || (*floats)(0) != -1.5f || (*floats)(4) != 0.5f) return 1;

  const auto statistics = statistics_of(*weights);
  if (!statistics) return std::cerr << to_string(statistics.error()) << '\n', 1;
  std::cout << statistics->value_min << " to " << statistics->value_max << '\n';
  return 0;
}
