#pragma once

#include <algorithm>
#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>

#include "hurray/blob.hpp"
#include "hurray/error.hpp"
#include "hurray/table.hpp"

namespace hurray {

/// A field's name in the format's words; "[]" in it stands for `index`.
struct Field {
  std::string_view name;
  std::uint64_t index = Error::no_index;

  template <std::size_t N>
  constexpr Field(const char (&field_name)[N]) : name(field_name, N - 1) {}
  constexpr Field(std::string_view field_name) : name(field_name) {}
  constexpr Field(std::string_view field_name, std::size_t i) : name(field_name), index(i) {}
};

template <class T>
concept WireInteger = (std::integral<T> || std::is_enum_v<T>) && !std::same_as<T, bool>;

namespace detail {

/// Little-endian at any address: copied where the machine is, else assembled from bytes.
template <WireInteger T>
T load(const std::byte* p) noexcept {
  if constexpr (std::endian::native == std::endian::little) {
    T native;
    std::memcpy(&native, p, sizeof native);
    return native;
  }
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < sizeof(T); ++i) value |= static_cast<std::uint64_t>(p[i]) << (8 * i);
  return static_cast<T>(value);
}

template <WireInteger T>
void store(std::byte* p, T value) noexcept {
  if constexpr (std::endian::native == std::endian::little) {
    std::memcpy(p, &value, sizeof value);
    return;
  }
  const auto bits = static_cast<std::uint64_t>(value);
  for (std::size_t i = 0; i < sizeof(T); ++i) p[i] = static_cast<std::byte>(bits >> (8 * i));
}

template <std::floating_point T>
using BitsOf = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;

}  // namespace detail

/// A tag that `field` must not hold: never valid, private and not agreed on, or not assigned.
/// `has_private` is false for tag spaces without private values.
constexpr Error unassigned(Field field, std::uint8_t tag, bool has_private = true) noexcept {
  return {.code = Errc::invalid_tag,
          .expect = Expect::as_said,
          .index = field.index,
          .field = field.name,
          .what = tag == 0x00 || tag == 0xFF       ? std::string_view("a valid tag")
                  : has_private && is_private(tag) ? std::string_view("a tag that was agreed on")
                                                   : std::string_view("an assigned tag"),
          .found = tag};
}

/// What a list of fields is run with: `Reader` decodes, `Sizer` checks and counts, `Writer`
/// encodes, `Printer` explains. The first failure sticks, and a list needs no test per line: later
/// reads give zero, and whoever runs the list looks at `error()` once, at its end. One thread at a
/// time.
class Cursor {
 public:
  bool ok() const noexcept { return !failed_; }
  const Error& error() const noexcept { return error_; }

  /// Offset of the next byte, and of the field that was handled last, from the start of `origin`.
  std::uint64_t position() const noexcept { return position_; }
  std::uint64_t last() const noexcept { return last_; }

  /// A rule of the format: `error`, or what it returns, sticks unless `holds`. Without an offset of
  /// its own it points at the field that was handled last.
  void check(bool holds, const Error& error) noexcept {
    if (!holds) fail(error);
  }
  template <std::invocable MakeError>
  void check(bool holds, MakeError&& error) noexcept {
    if (!holds) [[unlikely]]
      fail(error());
  }

  HURRAY_EXPORT void fail(Error error) noexcept;

 protected:
  explicit Cursor(Origin origin, std::uint64_t base) noexcept
      : origin_(origin), position_(base), last_(base) {}

  std::uint64_t advance(std::uint64_t n) noexcept {
    last_ = position_;
    position_ += n;
    return last_;
  }

 private:
  Error error_;
  Origin origin_;
  bool failed_ = false;

 protected:
  std::uint64_t position_;
  std::uint64_t last_;
};

/// Decodes from `bytes`; `base` is the offset of their first byte in messages.
class Reader : public Cursor {
 public:
  static constexpr bool reads = true;
  static constexpr bool checks = true;

  explicit Reader(std::span<const std::byte> bytes, Origin origin = Origin::descriptor,
                  std::uint64_t base = 0) noexcept
      : Cursor(origin, base), data_(bytes.data()), base_(base), end_(base + bytes.size()) {}

  /// Bytes that can still be read: none after the first failure.
  std::size_t left() const noexcept { return static_cast<std::size_t>(end_ - position_); }

  void check(bool holds, const Error& error) noexcept {
    if (!holds) [[unlikely]]
      fail(error);
  }
  template <std::invocable MakeError>
  void check(bool holds, MakeError&& error) noexcept {
    if (!holds) [[unlikely]]
      fail(error());
  }
  HURRAY_EXPORT void fail(const Error& error) noexcept;

  /// The next `n` bytes, or none after the first failure. Every read goes through here.
  std::span<const std::byte> take(Field field, std::uint64_t n) noexcept {
    if (n > end_ - position_) [[unlikely]] {
      missing(field, n);
      return {};
    }
    return {data_ + static_cast<std::size_t>(advance(n) - base_), static_cast<std::size_t>(n)};
  }

  template <WireInteger T>
  void operator()(Field field, T& value) noexcept {
    const auto raw = take(field, sizeof(T));
    value = raw.empty() ? T{} : detail::load<T>(raw.data());
  }

  template <std::floating_point T>
  void operator()(Field field, T& value) noexcept {
    detail::BitsOf<T> bits = 0;
    (*this)(field, bits);
    std::memcpy(&value, &bits, sizeof value);
  }

  /// `n` bytes that nobody here understands.
  void opaque(Field field, Blob& bytes, std::uint64_t n) { bytes = Blob(take(field, n)); }

  /// A field of named bits.
  template <std::unsigned_integral T, class Table>
  void bits(Field field, T& value, const Table&) noexcept {
    (*this)(field, value);
  }

  /// `n` bytes that must be 0.
  void reserved(Field field, std::uint64_t n) noexcept {
    for (const std::byte b : take(field, n))
      if (b != std::byte{0})
        fail({.code = Errc::reserved_bits,
              .expect = Expect::exactly,
              .index = field.index,
              .field = field.name,
              .expected = 0,
              .found = static_cast<std::uint64_t>(b)});
  }

  /// Bytes that are always the same: `expected`, which `what` names in a message that also shows
  /// what stands there, as far as eight bytes reach.
  void literal(Field field, std::span<const std::byte> expected, Errc code,
               std::string_view what = {}) noexcept {
    const auto raw = take(field, expected.size());
    if (raw.empty() || std::equal(raw.begin(), raw.end(), expected.begin())) return;
    std::uint64_t found = 0;  // in the order in which the bytes are read
    for (const std::byte b : raw.first(std::min<std::size_t>(raw.size(), 8)))
      found = found << 8 | static_cast<std::uint64_t>(b);
    fail({.code = code,
          .expect = what.empty() ? Expect::nothing : Expect::as_said,
          .index = field.index,
          .field = field.name,
          .what = what,
          .found = found});
  }

  /// Makes room in `list`, from element `from` on, for as many of `count` elements of `width` bytes
  /// as are there, and runs `each(element, i)` for them and for the first that is missing, which
  /// then fails as truncated. `i` counts from `from`.
  template <class List, class Each>
  void list(Field, List& list, std::size_t count, std::size_t width, Each each,
            std::size_t from = 0) {
    if (!ok()) return;
    const std::size_t present = std::min(count, left() / width);
    list.resize(from + present);
    for (std::size_t i = 0; i < present; ++i) each(list[from + i], i);
    typename List::value_type missing{};
    if (present < count) each(missing, present);
  }

 private:
  HURRAY_EXPORT void missing(Field field, std::uint64_t n) noexcept;

  const std::byte* data_;
  std::uint64_t base_;
  std::uint64_t end_;
};

/// Counts the bytes of an encoding and runs the same checks as decoding does.
class Sizer : public Cursor {
 public:
  static constexpr bool reads = false;
  static constexpr bool checks = true;

  explicit Sizer(Origin origin = Origin::descriptor) noexcept : Cursor(origin, 0) {}

  template <WireInteger T>
  void operator()(Field, const T&) noexcept {
    advance(sizeof(T));
  }
  template <std::floating_point T>
  void operator()(Field, const T&) noexcept {
    advance(sizeof(T));
  }
  void opaque(Field, const Blob& bytes, std::uint64_t) noexcept { advance(bytes.size()); }
  template <std::unsigned_integral T, class Table>
  void bits(Field, const T&, const Table&) noexcept {
    advance(sizeof(T));
  }
  void reserved(Field, std::uint64_t n) noexcept { advance(n); }
  void literal(Field, std::span<const std::byte> bytes, Errc, std::string_view = {}) noexcept {
    advance(bytes.size());
  }
  /// Without `from` the list holds these elements and no others.
  template <class List, class Each>
  void list(Field field, const List& list, std::size_t count, std::size_t width, Each each) {
    this->count(field, list.size() == count, count, list.size());
    this->list(field, list, count, width, each, 0);
  }
  template <class List, class Each>
  void list(Field field, const List& list, std::size_t count, std::size_t, Each each,
            std::size_t from) {
    this->count(field, list.size() >= from + count, from + count, list.size());
    if (!ok()) return;
    for (std::size_t i = 0; i < count; ++i) each(list[from + i], i);
  }

 private:
  void count(Field field, bool holds, std::size_t expected, std::size_t found) noexcept {
    if (!holds)
      fail({.code = Errc::inconsistent,
            .expect = Expect::exactly,
            .field = field.name,
            .what = "entries",
            .offset = position(),
            .expected = expected,
            .found = found});
  }
};

/// Encodes into `bytes`, whose size a `Sizer` has told.
class Writer : public Cursor {
 public:
  static constexpr bool reads = false;
  static constexpr bool checks = false;

  explicit Writer(std::span<std::byte> bytes, Origin origin = Origin::descriptor) noexcept
      : Cursor(origin, 0), bytes_(bytes) {}

  void check(bool, const Error&) noexcept {}
  template <std::invocable MakeError>
  void check(bool, MakeError&&) noexcept {}

  template <WireInteger T>
  void operator()(Field, const T& value) noexcept {
    detail::store(take(sizeof(T)), value);
  }
  template <std::floating_point T>
  void operator()(Field field, const T& value) noexcept {
    detail::BitsOf<T> bits = 0;
    std::memcpy(&bits, &value, sizeof value);
    (*this)(field, bits);
  }
  void opaque(Field, const Blob& bytes, std::uint64_t) noexcept {
    std::byte* p = take(bytes.size());
    for (const std::byte b : bytes.bytes()) *p++ = b;
  }
  template <std::unsigned_integral T, class Table>
  void bits(Field field, const T& value, const Table&) noexcept {
    (*this)(field, value);
  }
  void reserved(Field, std::uint64_t n) noexcept {
    std::byte* p = take(n);
    for (std::uint64_t i = 0; i < n; ++i) p[i] = std::byte{0};
  }
  void literal(Field, std::span<const std::byte> bytes, Errc, std::string_view = {}) noexcept {
    std::byte* p = take(bytes.size());
    for (const std::byte b : bytes) *p++ = b;
  }
  template <class List, class Each>
  void list(Field, const List& list, std::size_t count, std::size_t, Each each,
            std::size_t from = 0) {
    for (std::size_t i = 0; i < count; ++i) each(list[from + i], i);
  }

 private:
  std::byte* take(std::uint64_t n) noexcept {
    return bytes_.data() + static_cast<std::size_t>(advance(n));
  }

  std::span<std::byte> bytes_;
};

}  // namespace hurray
