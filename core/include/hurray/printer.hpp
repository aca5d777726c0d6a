#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "hurray/cursor.hpp"
#include "hurray/shape.hpp"

namespace hurray {

/// One line of an annotated encoding.
struct FieldRow {
  std::uint64_t offset = 0;  ///< Bytes from the start of what is annotated.
  std::uint64_t size = 0;    ///< Bytes.
  std::string name;
  std::string value;
};

/// The shortest decimal that reads back to `value`, whatever the locale.
HURRAY_EXPORT std::string to_text(double value);
HURRAY_EXPORT std::string to_text(float value);
/// "0x0F": hexadecimal digits, two of them at least.
HURRAY_EXPORT std::string to_hex(std::uint64_t value);

/// Explains an encoding: one row per field, with the tables' names for tags and flags.
class Printer : public Cursor {
 public:
  static constexpr bool reads = false;
  static constexpr bool checks = false;

  explicit Printer(std::function<void(const FieldRow&)> row, Origin origin = Origin::descriptor)
      : Cursor(origin, 0), row_(std::move(row)) {}

  void check(bool, const Error&) noexcept {}
  template <std::invocable MakeError>
  void check(bool, MakeError&&) noexcept {}

  template <WireInteger T>
  void operator()(Field field, const T& value) {
    if constexpr (std::is_enum_v<T>) {
      emit(field, sizeof(T), named(name(value), static_cast<std::uint64_t>(value)));
    } else if (field.name == "shape[]" && static_cast<std::uint64_t>(value) == dynamic) {
      emit(field, sizeof(T), "dynamic");
    } else {
      emit(field, sizeof(T), std::to_string(value));
    }
  }
  template <std::floating_point T>
  void operator()(Field field, const T& value) {
    emit(field, sizeof(T), to_text(value));
  }
  void opaque(Field field, const Blob& bytes, std::uint64_t) {
    if (!bytes.empty()) emit(field, bytes.size(), std::to_string(bytes.size()) + " bytes");
  }

  template <std::unsigned_integral T, class Table>
  void bits(Field field, const T& value, const Table& table) {
    std::string names;
    for (const auto& row : table)
      if ((value & static_cast<std::uint32_t>(row.tag)) != 0)
        names += (names.empty() ? "" : " | ") + std::string(row.name);
    emit(field, sizeof(T), names.empty() ? "0" : names);
  }
  void reserved(Field field, std::uint64_t n) { emit(field, n, "0"); }
  void literal(Field field, std::span<const std::byte> bytes, Errc, std::string_view = {}) {
    std::string text;
    for (const std::byte b : bytes) text += static_cast<char>(b);
    emit(field, bytes.size(), "\"" + text + "\"");
  }
  template <class List, class Each>
  void list(Field, const List& list, std::size_t count, std::size_t, Each each,
            std::size_t from = 0) {
    for (std::size_t i = 0; i < count; ++i) each(list[from + i], i);
  }

  void emit(Field field, std::uint64_t size, std::string value) {
    const std::uint64_t offset = advance(size);
    if (!row_) return;
    row_({offset, size, field_name({.index = field.index, .field = field.name}), std::move(value)});
  }

 private:
  static std::string named(std::string_view name, std::uint64_t value) {
    return std::string(name).append(" (").append(to_hex(value)).append(")");
  }

  std::function<void(const FieldRow&)> row_;
};

}  // namespace hurray
