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

#include "hurray/error.hpp"

namespace hurray {

/// A field's name in the format's words; "[]" in it stands for `index`.
struct Field {
  std::string_view name;
  std::uint32_t index = Error::no_index;

  template <std::size_t N>
  constexpr Field(const char (&field_name)[N]) : name(field_name, N - 1) {}
  constexpr Field(std::string_view field_name) : name(field_name) {}
  constexpr Field(std::string_view field_name, std::size_t i)
      : name(field_name), index(static_cast<std::uint32_t>(i)) {}
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

}  // namespace detail

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

  /// A rule of the format: `error` sticks unless `holds`. Without an offset of its own it points at
  /// the field that was handled last.
  void check(bool holds, const Error& error) noexcept {
    if (!holds) fail(error);
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
      : Cursor(origin, base), bytes_(bytes) {}

  std::size_t left() const noexcept { return bytes_.size(); }

  /// The next `n` bytes, or none after the first failure. Every read goes through here.
  std::span<const std::byte> take(Field field, std::uint64_t n) noexcept {
    if (!ok()) return {};
    if (n > bytes_.size()) {
      missing(field, n);
      return {};
    }
    advance(n);
    const auto taken = bytes_.first(static_cast<std::size_t>(n));
    bytes_ = bytes_.subspan(static_cast<std::size_t>(n));
    return taken;
  }

  template <WireInteger T>
  void operator()(Field field, T& value) noexcept {
    const auto raw = take(field, sizeof(T));
    value = raw.empty() ? T{} : detail::load<T>(raw.data());
  }

  void operator()(Field field, double& value) noexcept {
    std::uint64_t bits = 0;
    (*this)(field, bits);
    static_assert(sizeof bits == sizeof value);
    std::memcpy(&value, &bits, sizeof value);
  }

  /// A field of named bits.
  template <class Table>
  void bits(Field field, std::uint32_t& value, const Table&) noexcept {
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

  /// Makes room in `list` for as many of `count` elements of `width` bytes as are there, and runs
  /// `each(element, i)` for them and for the first that is missing, which then fails as truncated.
  template <class List, class Each>
  void list(Field, List& list, std::size_t count, std::size_t width, Each each) {
    if (!ok()) return;
    const std::size_t present = std::min(count, left() / width);
    list.resize(present);
    for (std::size_t i = 0; i < present; ++i) each(list[i], i);
    typename List::value_type missing{};
    if (present < count) each(missing, present);
  }

 private:
  HURRAY_EXPORT void missing(Field field, std::uint64_t n) noexcept;

  std::span<const std::byte> bytes_;
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
  void operator()(Field, const double&) noexcept { advance(8); }
  template <class Table>
  void bits(Field, const std::uint32_t&, const Table&) noexcept {
    advance(4);
  }
  void reserved(Field, std::uint64_t n) noexcept { advance(n); }
  void literal(Field, std::span<const std::byte> bytes, Errc, std::string_view = {}) noexcept {
    advance(bytes.size());
  }
  template <class List, class Each>
  void list(Field field, const List& list, std::size_t count, std::size_t, Each each) {
    if (list.size() != count)
      fail({.code = Errc::inconsistent,
            .expect = Expect::exactly,
            .field = field.name,
            .what = "entries",
            .offset = position(),
            .expected = count,
            .found = list.size()});
    if (!ok()) return;
    for (std::size_t i = 0; i < list.size(); ++i) each(list[i], i);
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

  template <WireInteger T>
  void operator()(Field, const T& value) noexcept {
    detail::store(take(sizeof(T)), value);
  }
  void operator()(Field field, const double& value) noexcept {
    std::uint64_t bits = 0;
    std::memcpy(&bits, &value, sizeof value);
    (*this)(field, bits);
  }
  template <class Table>
  void bits(Field field, const std::uint32_t& value, const Table&) noexcept {
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
  void list(Field, const List& list, std::size_t, std::size_t, Each each) {
    for (std::size_t i = 0; i < list.size(); ++i) each(list[i], i);
  }

 private:
  std::byte* take(std::uint64_t n) noexcept {
    return bytes_.data() + static_cast<std::size_t>(advance(n));
  }

  std::span<std::byte> bytes_;
};

}  // namespace hurray
