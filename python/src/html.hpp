#pragma once

// Tables and pictures for notebooks (08-python-api.md section 19.10), from metadata alone.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "bindings.hpp"
#include "hurray/composite.hpp"

namespace hurray::python::html {

/// `text` as the content of an element or attribute: markup is escaped, and characters that show
/// nothing or turn the text around are written as `\xNN` or `\uNNNN`.
std::string escaped(std::string_view text);

/// One line of a table: a name, empty where there is none, and what is to be said of the tensor.
struct Row {
  std::string name;
  const Descriptor* descriptor;  ///< null where it cannot be read
  PyDevice device;               ///< ignored for the head of a composite
};

/// At most this many rows are shown; a caller need not make more.
inline constexpr std::size_t max_rows = 100;

/// A titled table of `rows`, of which there are `total` in all.
std::string table(std::string_view title, std::span<const Row> rows, std::uint64_t total);

/// How the elements of one tensor follow each other, and its buffers by size: an inline SVG.
std::string picture(const Descriptor& descriptor);
/// The boxes of a composite's members, or the picture of a plain tensor.
std::string picture(const Item& item);

/// A bar for each row, as long as its buffers are large.
std::string bars(std::string_view what, std::span<const Row> rows);

/// The rows of an item and of all inside it, in emission order, names beginning with `name`:
/// "name.0", "name.1.0". Devices have no id. The item outlives them.
std::vector<Row> rows_of(const std::string& name, const Item& item);

/// What `body()` returns as a `str`; `None` where it fails, so that a notebook shows the plain
/// form.
template <class Body>
nb::object shown(Body&& body) {
  try {
    const std::string text = body();
    return nb::str(text.c_str(), text.size());
  } catch (nb::python_error& error) {
    if (!error.matches(PyExc_Exception)) throw;  // Ctrl-C
  } catch (const std::bad_alloc&) {
    // as above
  }
  return nb::none();
}

}  // namespace hurray::python::html
