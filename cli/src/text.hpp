#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hurray::cli {

/// `text` as it may be shown on a terminal, in double quotes and with quotes inside escaped; cut
/// after `longest` bytes.
std::string quote(std::string_view text, std::size_t longest = 200);

/// "48 52 52 59", cut after `longest` bytes.
std::string hex(std::span<const std::byte> bytes, std::size_t longest);

/// "86.7 MiB"; plain bytes below 1 KiB.
std::string human(std::uint64_t bytes);

/// "1 tensor", "3 tensors".
std::string plural(std::uint64_t n, std::string_view thing);

/// Columns of a terminal that `text` takes.
std::size_t width_of(std::string_view text);

/// Printable `text` with its middle left out where it takes more than `width` columns.
std::string shortened(const std::string& text, std::size_t width);

/// How a table is laid out.
struct TableForm {
  std::string_view indent = {};
  std::optional<std::size_t> width = {};  ///< What lines may take: the widest cells are cut.
};

/// Columns as wide as what stands in them, for a terminal.
class Table {
 public:
  struct Column {
    std::string_view title;
    bool right = false;  ///< Numbers stand to the right.
  };
  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}

  /// As many printable cells as columns.
  void add(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }
  /// The whole table; columns without any content are left out.
  std::string text(const TableForm& form = {}) const;

 private:
  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace hurray::cli
