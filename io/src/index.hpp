#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "container.hpp"
#include "hurray/buffer.hpp"
#include "source.hpp"

namespace hurray::io {

/// The index of an open file: its bytes, and where in them each entry starts. Names are views of
/// the bytes.
class Index {
 public:
  /// Reads and judges it (rows 10 and 12 to 19 of 04-file.md section 12).
  static Result<Index> read(const Source& source, const Ends& ends, const OpenOptions& options);

  std::size_t size() const noexcept { return starts_.size(); }
  std::string_view name(std::size_t i) const noexcept;
  Entry entry(std::size_t i) const noexcept;
  std::optional<std::size_t> find(std::string_view name) const noexcept;
  /// The entry that is number `k` by `descriptor_offset`, and the reverse.
  std::size_t by_offset(std::size_t k) const noexcept {
    return by_offset_.empty() ? k : by_offset_[k];
  }
  std::size_t place(std::size_t i) const noexcept;
  /// Some entry has no data, as a composite head has none.
  bool may_have_heads() const noexcept { return may_have_heads_; }
  /// The CRC-32C of its bytes.
  std::uint32_t crc() const noexcept { return crc_; }

 private:
  class Parser;

  hurray::Result<void> order_names();

  FileHeader header_;
  Buffer bytes_;
  std::uint32_t crc_ = 0;
  bool may_have_heads_ = false;
  std::vector<std::size_t> starts_;
  /// The names ascend in index order, and `by_name_` is empty.
  bool ascending_ = true;
  /// The low half of a name's hash, then its entry; sorted by hash, then name.
  std::vector<std::uint64_t> by_name_;
  /// Empty where the entries lie in the file as they do in the index.
  std::vector<std::uint32_t> by_offset_;
};

}  // namespace hurray::io
