#include "hurray/error.hpp"

#include <bit>

#include "hurray/dtype.hpp"
#include "hurray/printer.hpp"

namespace hurray {
namespace {

constexpr bool in_enum_order() {
  for (std::size_t i = 0; i < errcs.size(); ++i)
    if (static_cast<std::size_t>(errcs[i].code) != i) return false;
  for (std::size_t i = 0; i < origins.size(); ++i)
    if (static_cast<std::size_t>(origins[i].origin) != i) return false;
  return errcs.back().code == Errc::out_of_memory && origins.back().origin == Origin::stream;
}
static_assert(in_enum_order());

std::string number(const Error& error, std::uint64_t value) {
  if (error.expect == Expect::float_as_said) return to_text(std::bit_cast<double>(value));
  if (error.expect == Expect::signed_as_said)
    return std::to_string(static_cast<std::int64_t>(value));
  if (error.expect == Expect::type)
    if (const DTypeInfo* row = info(static_cast<DType>(value)))
      return std::string(row->name) + " (" + std::to_string(value) + ")";
  if (error.code != Errc::invalid_tag && error.code != Errc::invalid_magic)
    return std::to_string(value);
  return to_hex(value);
}

}  // namespace

const ErrcInfo& info(Errc code) noexcept { return errcs[static_cast<std::size_t>(code)]; }
const OriginInfo& info(Origin origin) noexcept { return origins[static_cast<std::size_t>(origin)]; }

std::int32_t status(const Error& error) noexcept {
  constexpr std::int32_t invalid_type = -4;
  constexpr std::int32_t invalid_sync_mode = -8;
  const std::int32_t by_origin = info(error.origin).status;
  const std::int32_t own = info(error.code).status;
  const bool container = error.origin == Origin::file || error.origin == Origin::stream;
  switch (error.code) {
    case Errc::invalid_magic:
      return container ? by_origin : own;
    case Errc::unsupported_version:  // of the descriptor; that of a scheme is a field like others
      return container || error.field != "version_major" ? by_origin : own;
    case Errc::truncated:
      return container ? own : by_origin;
    case Errc::invalid_tag:
    case Errc::inconsistent:
      if (container) return by_origin;
      if (error.field == "buffers[].sync_mode") return invalid_sync_mode;
      if (error.field == "type_tag" || error.field == "buffers[].device_tag" ||
          error.field == "buffers[].memory_class")
        return invalid_type;
      return by_origin;
    default:
      return own != 0 ? own : by_origin;
  }
}

int exit_code(const Error& error) noexcept { return info(error.code).exit_code; }

Raise raise(const Error& error) noexcept {
  const Raise own = info(error.code).raise;
  return own != Raise::by_origin ? own : info(error.origin).raise;
}

std::string field_name(const Error& error) {
  std::string name(error.field);
  const auto at = name.find("[]");
  if (at == std::string::npos) return name;
  if (error.index == Error::no_index)
    name.erase(at, 2);
  else
    name.insert(at + 1, std::to_string(error.index));
  return name;
}

std::string to_string(const Error& error) {
  const ErrcInfo& row = info(error.code);
  std::string text = field_name(error);
  if (!text.empty()) text += ": ";
  const std::string_view relation = error.expect == Expect::at_least  ? "at least "
                                    : error.expect == Expect::at_most ? "at most "
                                                                      : "";
  if (error.expect >= Expect::as_said) {
    text.append("expected ").append(error.what).append(", found ") += number(error, error.found);
  } else if (error.expect != Expect::nothing) {
    text += "expected ";
    text += relation;
    text += number(error, error.expected);
    if (!error.what.empty()) text.append(" ").append(error.what);
    text += ", found " + number(error, error.found);
  } else if (!error.what.empty()) {
    text += error.what;
  } else {
    text += row.name;
  }
  const bool says_code = error.expect == Expect::nothing && error.what.empty();
  const bool says_place = error.offset != Error::no_offset;
  if (!says_code || says_place) {
    text += " (";
    if (!says_code) text += row.name;
    if (says_place) {
      if (!says_code) text += " ";
      text.append("at byte ").append(std::to_string(error.offset));
      text.append(" of the ").append(info(error.origin).name);
    }
    text += ")";
  }
  if (!row.hint.empty()) text.append("; ").append(row.hint);
  return text;
}

}  // namespace hurray
