#pragma once

#include <cstdint>

#include "hurray/cursor.hpp"

namespace hurray {

/// What a private element type is made of (01-descriptor.md section 3.7); the section is there
/// exactly when `type_tag` is private. A value, freely shared between threads.
struct ExtensionType {
  std::uint32_t bit_width = 0;      ///< Stored bits of one element: 1, 2, 4 or a multiple of 8.
  std::uint8_t packing_factor = 1;  ///< Elements per byte: 8, 4, 2 for 1, 2, 4 bits, otherwise 1.
  std::uint8_t is_float = 0;
  std::uint8_t is_signed = 0;  ///< Integers only.
  std::uint8_t sign_bits = 0;  ///< Floats only, like all that follow.
  std::uint8_t exponent_bits = 0;
  std::uint8_t mantissa_bits = 0;
  std::uint8_t has_nan = 0;
  std::uint8_t has_inf = 0;
  std::uint32_t exponent_bias = 0;

  static constexpr std::uint8_t packing_factor_of(std::uint32_t bit_width) noexcept {
    return bit_width == 1 || bit_width == 2 || bit_width == 4
               ? static_cast<std::uint8_t>(8 / bit_width)
               : std::uint8_t{1};
  }

  static void fields(auto& self, auto& io) {
    const std::uint32_t& width = self.bit_width;
    io("extension_type.bit_width", self.bit_width);
    io.check(width == 1 || width == 2 || width == 4 || (width != 0 && width % 8 == 0), [&] {
      return Error{.code = Errc::invalid_value,
                   .expect = Expect::as_said,
                   .field = "extension_type.bit_width",
                   .what = "1, 2 or 4, or a multiple of 8 greater than 0",
                   .found = width};
    });
    io("extension_type.packing_factor", self.packing_factor);
    io.check(self.packing_factor == packing_factor_of(width), [&] {
      return Error{.code = Errc::inconsistent,
                   .expect = Expect::exactly,
                   .field = "extension_type.packing_factor",
                   .what = "for this bit_width",
                   .expected = packing_factor_of(width),
                   .found = self.packing_factor};
    });
    const auto yes_or_no = [&](Field field, auto& value) {
      io(field, value);
      io.check(value <= 1, [&] {
        return Error{.code = Errc::invalid_value,
                     .expect = Expect::at_most,
                     .field = field.name,
                     .expected = 1,
                     .found = value};
      });
    };
    /// A field that is 0 unless the type is a float.
    const auto of_floats = [&](Field field, std::uint32_t value) {
      io.check(self.is_float == 1 || value == 0, [&] {
        return Error{.code = Errc::inconsistent,
                     .expect = Expect::exactly,
                     .field = field.name,
                     .what = "for an integer",
                     .expected = 0,
                     .found = value};
      });
    };
    yes_or_no("extension_type.is_float", self.is_float);
    yes_or_no("extension_type.is_signed", self.is_signed);
    io.check(self.is_float == 0 || self.is_signed == 0, [&] {
      return Error{.code = Errc::inconsistent,
                   .expect = Expect::exactly,
                   .field = "extension_type.is_signed",
                   .what = "for a float, whose sign is sign_bits",
                   .expected = 0,
                   .found = self.is_signed};
    });
    yes_or_no("extension_type.sign_bits", self.sign_bits);
    of_floats("extension_type.sign_bits", self.sign_bits);
    io("extension_type.exponent_bits", self.exponent_bits);
    of_floats("extension_type.exponent_bits", self.exponent_bits);
    io("extension_type.mantissa_bits", self.mantissa_bits);
    of_floats("extension_type.mantissa_bits", self.mantissa_bits);
    io.reserved("extension_type.reserved", 2);
    io("extension_type.exponent_bias", self.exponent_bias);
    of_floats("extension_type.exponent_bias", self.exponent_bias);
    yes_or_no("extension_type.has_nan", self.has_nan);
    of_floats("extension_type.has_nan", self.has_nan);
    yes_or_no("extension_type.has_inf", self.has_inf);
    of_floats("extension_type.has_inf", self.has_inf);
    io.reserved("extension_type.reserved", 2);
  }
  friend bool operator==(const ExtensionType&, const ExtensionType&) = default;
};

}  // namespace hurray
