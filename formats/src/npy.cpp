#include <algorithm>
#include <array>
#include <charconv>
#include <string>
#include <utility>
#include <vector>

#include "format.hpp"
#include "hurray/checked.hpp"
#include "hurray/cursor.hpp"
#include "hurray/descriptor.hpp"
#include "npy_types.hpp"

namespace hurray::formats {
namespace {

using namespace std::string_view_literals;

constexpr auto npy_magic = "\x93NUMPY"sv;
/// NumPy itself refuses longer ones without being asked.
constexpr std::uint64_t max_header_bytes = std::uint64_t{1} << 20;

io::Error refuse(hurray::Error error, std::string detail = {}) {
  error.origin = Origin::file;
  return {error, {}, {}, std::move(detail)};
}

/// The header: a dictionary as Python writes it, of a text, a truth value and a tuple of numbers.
class Header {
 public:
  /// `base`: where the text starts in the file.
  Header(std::string_view text, std::uint64_t base) : text_(text), base_(base) {}

  std::string_view descr;
  std::uint64_t descr_at = 0;
  bool fortran_order = false;
  Shape shape;

  std::optional<io::Error> parse() {
    unsigned seen = 0;
    if (!take('{')) return wrong("expected '{'");
    while (!take('}')) {
      const std::size_t at = start();
      const auto key = string();
      if (!key) return wrong("expected a key in quotes");
      const auto field = std::ranges::find(keys, *key);
      if (field == keys.end()) return wrong("expected descr, fortran_order or shape", at);
      const unsigned mark = 1u << (field - keys.begin());
      if ((seen & mark) != 0) return wrong("a key that occurs twice", at);
      seen |= mark;
      if (!take(':')) return wrong("expected ':'");
      if (auto error = value(mark)) return error;
      if (!take(',') && peek() != '}') return wrong("expected ',' or '}'");
    }
    if (start() != text_.size()) return wrong("expected nothing but spaces behind the dictionary");
    if (seen != 7) return wrong("expected descr, fortran_order and shape");
    return std::nullopt;
  }

 private:
  static constexpr auto keys = std::to_array<std::string_view>({"descr", "fortran_order", "shape"});

  std::optional<io::Error> value(unsigned mark) {
    if (mark == 1) {
      descr_at = base_ + start();
      const auto code = string();
      if (!code)
        return refuse({.code = Errc::unsupported,
                       .field = "descr",
                       .what = "structured types have no counterpart",
                       .offset = descr_at},
                      "save each field as an array of its own");
      descr = *code;
      return std::nullopt;
    }
    if (mark == 2) {
      fortran_order = word("True");
      if (!fortran_order && !word("False")) return wrong("expected True or False");
      return std::nullopt;
    }
    if (!take('(')) return wrong("expected a tuple");
    while (!take(')')) {
      const std::size_t at = start();
      std::uint64_t size = 0;
      const auto [end, error] =
          std::from_chars(text_.data() + at, text_.data() + text_.size(), size);
      if (error != std::errc() || size == dynamic) return wrong("expected a size", at);
      if (shape.rank() == max_rank) return wrong("more dimensions than a tensor can have", at);
      shape.push_back(size);
      at_ = static_cast<std::size_t>(end - text_.data());
      if (at_ < text_.size() && text_[at_] == 'L') ++at_;  // as Python 2 wrote them
      if (!take(',') && peek() != ')') return wrong("expected ',' or ')'");
    }
    return std::nullopt;
  }

  /// Where the next token starts.
  std::size_t start() {
    while (at_ < text_.size() && " \n\t\r"sv.find(text_[at_]) != std::string_view::npos) ++at_;
    return at_;
  }
  char peek() { return start() < text_.size() ? text_[at_] : '\0'; }
  bool take(char c) {
    const bool there = start() < text_.size() && text_[at_] == c;
    at_ += there ? 1 : 0;
    return there;
  }
  bool word(std::string_view word) {
    const bool there = text_.substr(start()).starts_with(word);
    at_ += there ? word.size() : 0;
    return there;
  }
  /// Without escapes, which no key and no type code has.
  std::optional<std::string_view> string() {
    const char quote = peek();
    if (quote != '\'' && quote != '"') return std::nullopt;
    const std::size_t end = text_.find(quote, at_ + 1);
    if (end == std::string_view::npos) return std::nullopt;
    const auto text = text_.substr(at_ + 1, end - at_ - 1);
    at_ = end + 1;
    return text;
  }
  io::Error wrong(std::string_view what) { return wrong(what, start()); }
  io::Error wrong(std::string_view what, std::size_t at) const {
    return refuse({.code = Errc::invalid_value,
                   .field = "header",
                   .what = "is not one that NumPy writes",
                   .offset = base_ + at},
                  std::string(what));
  }

  std::string_view text_;
  std::uint64_t base_;
  std::size_t at_ = 0;
};

/// The last part of the path without ".npy".
std::string name_of(std::string_view path) {
  std::string_view name = path.substr(path.find_last_of('/') + 1);
  if (name.ends_with(".npy")) name.remove_suffix(4);
  return name.empty() || !io::is_utf8(name) ? "array" : std::string(name);
}

}  // namespace

bool is_npy(std::span<const std::byte> head, std::uint64_t) noexcept {
  return std::string_view(reinterpret_cast<const char*>(head.data()), head.size())
      .starts_with(npy_magic);
}

io::Result<io::Translation> see_npy(const io::ForeignSource& source) {
  std::array<std::byte, 12> start{};
  if (source.size < start.size())
    return refuse({.code = Errc::truncated,
                   .expect = Expect::at_least,
                   .field = "header",
                   .what = "bytes",
                   .expected = start.size(),
                   .found = source.size});
  if (auto read = source.read(start, 0); !read) return read.error();
  const auto major = std::to_integer<unsigned>(start[6]);
  if (major < 1 || major > 3)
    return refuse({.code = Errc::unsupported_version,
                   .expect = Expect::at_most,
                   .field = "version_major",
                   .offset = 6,
                   .expected = 3,
                   .found = major});
  const std::uint64_t base = major == 1 ? 10 : 12;
  const std::uint64_t length = major == 1 ? detail::load<std::uint16_t>(start.data() + 8)
                                          : detail::load<std::uint32_t>(start.data() + 8);
  if (length > max_header_bytes)
    return refuse({.code = Errc::limit_exceeded,
                   .expect = Expect::at_most,
                   .field = "header_length",
                   .what = "bytes",
                   .offset = 8,
                   .expected = max_header_bytes,
                   .found = length});
  if (length > source.size - base)
    return refuse({.code = Errc::truncated,
                   .expect = Expect::at_least,
                   .field = "header",
                   .what = "bytes",
                   .offset = base,
                   .expected = length,
                   .found = source.size - base});
  std::string text(static_cast<std::size_t>(length), '\0');
  if (auto read = source.read(std::as_writable_bytes(std::span(text)), base); !read)
    return read.error();
  Header header(text, base);
  if (auto error = header.parse()) return *std::move(error);

  const char order = header.descr.empty() ? '\0' : header.descr.front();
  const NpyType* type = nullptr;
  if (order == '<' || order == '>' || order == '|')
    for (const NpyType& row : npy_types)
      if (row.code == header.descr.substr(1)) type = &row;
  if (type == nullptr || (order == '|' && bits(type->dtype) > 8))
    return refuse({.code = Errc::unsupported,
                   .field = "descr",
                   .what = "an element type that has no counterpart of the same encoding",
                   .offset = header.descr_at},
                  quote(header.descr) + " cannot be converted");

  const std::uint64_t data = base + length;
  const unsigned stored_bits = type->dtype == DType::bool_ ? 8 : bits(type->dtype);
  const auto stored = checked_mul<std::uint64_t>(header.shape.count(), stored_bits / 8);
  if (!stored || *stored != source.size - data)
    return refuse(
        {.code = !stored || *stored > source.size - data ? Errc::truncated : Errc::length_mismatch,
         .expect = Expect::exactly,
         .field = "data",
         .what = "bytes, as shape and descr make",
         .offset = data,
         .expected = stored.value_or(UINT64_MAX),
         .found = source.size - data});
  Descriptor descriptor;
  descriptor.dtype = type->dtype;
  descriptor.shape = header.shape;
  if (header.fortran_order && header.shape.rank() > 1) descriptor.layout = ColumnMajor{};
  descriptor.buffers = {
      BufferHandle{.byte_size = *packed_bytes(bits(type->dtype), header.shape.count())}};
  io::StoredBuffer buffer{.offset = data, .size = *stored};
  if (type->dtype == DType::bool_)
    buffer.conversion = &pack_bools;
  else if (order == '>')
    buffer.conversion = swap_bytes(type->code.front() == 'c' ? stored_bits / 16 : stored_bits / 8);
  io::Translation::Builder seen("npy");
  const auto added = seen.add(name_of(source.path), canonical(std::move(descriptor)), {&buffer, 1});
  if (!added) return added.error();
  return seen.finish({});
}

}  // namespace hurray::formats
