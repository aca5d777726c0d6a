#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "hurray/descriptor.hpp"
#include "hurray/dtype.hpp"
#include "hurray/elements.hpp"
#include "hurray/io/error.hpp"
#include "hurray/io/file_set.hpp"
#include "hurray/selection.hpp"
#include "hurray/shape.hpp"
#include "hurray/values.hpp"
#include "output.hpp"

/// Elements of tensors in files, one after the other, and how they are written.
namespace hurray::cli {

/// "0:3, :, -1, ..., ::2" for a tensor of this shape, as in NumPy: negative numbers count from the
/// end, slices are cut to the dimension. Steps are positive.
io::Result<Selection> read_selection(std::string_view text, const Shape& shape);

/// How a shape is divided into blocks: dimensions before `divided` are indexed, `length` indices of
/// that one are taken, and those behind it whole.
struct Blocks {
  std::size_t divided = 0;
  std::uint64_t length = 1;

  /// Of at most `elements` (1 at least) each.
  static Blocks of(const Shape& shape, std::uint64_t elements);
};

/// The stored bits at a logical index of a tensor, of a quantized one the float32 that they stand
/// for; none where a sparse tensor stores nothing.
Result<std::optional<Code>> code_at(const Elements& elements, std::span<const std::uint64_t> index);
/// What such codes are of.
DType value_type(const Descriptor& descriptor);
/// Blocks of the file become tensors of their own: dense, with one scale for all at the most.
bool is_read_in_blocks(const Descriptor& descriptor);

/// Elements of a selection by their index in it. Of a dense tensor blocks of the file are read as
/// they are needed, of others the whole tensor. One thread at a time.
class SelectedElements {
 public:
  /// `block_elements`: how many are read at once. Fails as `Elements::over` and `File::slice` do,
  /// and as `unsupported` for block-paged tensors.
  static io::Result<SelectedElements> over(const io::FileSet& set, std::size_t entry,
                                           const Selection& selection,
                                           std::uint64_t block_elements);

  /// What codes are of.
  DType dtype() const noexcept;
  /// Of the selection, without the dimensions that were indexed.
  const Shape& shape() const noexcept;
  /// The stored bits; none where a sparse tensor stores nothing, hence zero. Precondition: `index`
  /// is inside `shape()`.
  io::Result<std::optional<Code>> at(std::span<const std::uint64_t> index) const;

 private:
  struct State;
  explicit SelectedElements(std::shared_ptr<State> state) noexcept : state_(std::move(state)) {}
  std::shared_ptr<State> state_;
};

/// The shortest text that reads back to the same code; of private types the code in hexadecimal.
/// None is zero.
std::string element_text(DType dtype, const std::optional<Code>& code);
/// The same as a JSON value: of complex types an array of two numbers.
void element_value(Json& json, DType dtype, const std::optional<Code>& code);

}  // namespace hurray::cli
