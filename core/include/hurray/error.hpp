#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

#include "hurray/export.hpp"

namespace hurray {

/// What is wrong. The first nine are the categories of 01-descriptor.md section 6.
enum class Errc : std::uint8_t {
  invalid_magic,
  unsupported_version,
  truncated,
  length_mismatch,
  reserved_bits,
  invalid_tag,
  invalid_value,
  out_of_bounds,
  overflow,
  inconsistent,
  unsupported,
  limit_exceeded,
  checksum_mismatch,
  duplicate,
  not_found,
  copy_required,
  invalid_state,
  system,
  out_of_memory,
};

/// Where the evidence lies that the error speaks of.
enum class Origin : std::uint8_t { descriptor, buffer, file, stream };

/// What a language binding raises. `by_origin` leaves the choice to the origin's row.
enum class Raise : std::uint8_t {
  by_origin,
  invalid_descriptor,
  buffer,
  file,
  stream,
  unsupported,
  copy_required,
  memory,
};

/// One row per error code. `status` is the number that a C interface returns for it, 0 where
/// the origin's row, or the field, decides; `exit_code` is the command's.
struct ErrcInfo {
  Errc code;
  std::string_view name;
  std::string_view hint;
  std::int32_t status;
  int exit_code;
  Raise raise;
};

inline constexpr auto errcs = std::to_array<ErrcInfo>({
    {Errc::invalid_magic, "invalid magic", "these bytes are something else", -1, 1,
     Raise::by_origin},
    {Errc::unsupported_version, "unsupported version", "this release reads version 1", -2, 1,
     Raise::by_origin},
    {Errc::truncated, "truncated", "pass all of the bytes", -101, 1, Raise::by_origin},
    {Errc::length_mismatch, "length mismatch", "two lengths disagree", 0, 1, Raise::by_origin},
    {Errc::reserved_bits, "reserved bits", "reserved bits and bytes must be 0", 0, 1,
     Raise::by_origin},
    {Errc::invalid_tag, "invalid tag", "this release knows no such tag", 0, 1, Raise::by_origin},
    {Errc::invalid_value, "invalid value", "", 0, 1, Raise::by_origin},
    {Errc::out_of_bounds, "out of bounds", "", 0, 1, Raise::by_origin},
    {Errc::overflow, "overflow", "a size leaves the range of its type", 0, 1, Raise::by_origin},
    {Errc::inconsistent, "inconsistent", "two fields contradict each other", 0, 1,
     Raise::by_origin},
    {Errc::unsupported, "unsupported", "", -110, 1, Raise::unsupported},
    {Errc::limit_exceeded, "limit exceeded", "raise the limit if the source is trusted", -102, 1,
     Raise::by_origin},
    {Errc::checksum_mismatch, "checksum mismatch", "the bytes changed after they were written",
     -105, 1, Raise::by_origin},
    {Errc::duplicate, "duplicate", "", -104, 1, Raise::by_origin},
    {Errc::not_found, "not found", "", -103, 1, Raise::by_origin},
    {Errc::copy_required, "copy required", "allow a copy", -107, 1, Raise::copy_required},
    {Errc::invalid_state, "invalid state", "", -111, 1, Raise::by_origin},
    {Errc::system, "system error", "", -100, 3, Raise::by_origin},
    {Errc::out_of_memory, "out of memory", "", -109, 3, Raise::memory},
});

/// One row per origin: the class and status of an error whose code leaves them open.
struct OriginInfo {
  Origin origin;
  std::string_view name;
  std::int32_t status;
  Raise raise;
};

inline constexpr auto origins = std::to_array<OriginInfo>({
    {Origin::descriptor, "descriptor", -3, Raise::invalid_descriptor},
    {Origin::buffer, "buffer", -3, Raise::buffer},
    {Origin::file, "file", -106, Raise::file},
    {Origin::stream, "stream", -106, Raise::stream},
});

/// How `expected` is to be read in a message.
enum class Expect : std::uint8_t {
  nothing,         ///< no number: `what` says it all
  exactly,         ///< expected N
  at_least,        ///< expected at least N
  at_most,         ///< expected at most N
  type,            ///< expected N, both numbers being tags of element types
  as_said,         ///< expected `what`, without a number of its own
  float_as_said,   ///< the same; `found` holds the bits of a float64
  signed_as_said,  ///< the same; `found` holds an int64
};

/// Why an operation failed: a value, made of numbers and of text that lives as long as the program,
/// freely shared between threads.
///
/// `field` is a name of 01-descriptor.md section 6 (or of the container parts); "[]" in it stands
/// for `index`. `offset` counts bytes from the start of the descriptor, buffer, file or stream
/// named by `origin`.
struct Error {
  static constexpr std::uint64_t no_index = std::numeric_limits<std::uint64_t>::max();
  static constexpr std::uint64_t no_offset = std::numeric_limits<std::uint64_t>::max();

  Errc code = Errc::invalid_value;
  Origin origin = Origin::descriptor;
  Expect expect = Expect::nothing;
  std::uint64_t index = no_index;
  std::string_view field = {};
  std::string_view what = {};  ///< what the numbers cannot say; may be empty
  std::uint64_t offset = no_offset;
  std::uint64_t expected = 0;
  std::uint64_t found = 0;

  friend bool operator==(const Error&, const Error&) = default;
};

/// The row of `code` or `origin`; never fails for an enumerator.
HURRAY_EXPORT const ErrcInfo& info(Errc code) noexcept;
HURRAY_EXPORT const OriginInfo& info(Origin origin) noexcept;

/// What a C interface returns, what the command exits with, what a binding raises.
HURRAY_EXPORT std::int32_t status(const Error& error) noexcept;
HURRAY_EXPORT int exit_code(const Error& error) noexcept;
HURRAY_EXPORT Raise raise(const Error& error) noexcept;

/// The field's name with its index in place: "buffers[2].alignment".
HURRAY_EXPORT std::string field_name(const Error& error);

/// One line: field, what was expected and found, the kind of error and where, and what to do.
HURRAY_EXPORT std::string to_string(const Error& error);

}  // namespace hurray
