#pragma once

#include <limits>

#include "hurray/blob.hpp"
#include "hurray/layout/fields.hpp"
#include "hurray/layout/tags.hpp"

namespace hurray {

/// A layout that two parties agreed on (02-layouts.md section 16): its fields and buffers are
/// carried along, and elements cannot be addressed.
struct PrivateLayout {
  static constexpr std::string_view role(std::size_t) noexcept { return ""; }

  LayoutTag tag{0xF0};
  std::uint64_t id = 0;
  Blob data;

  static void fields(auto& self, auto& io, const FieldContext& in) {
    io("layout.extension_layout_id", self.id);
    const PrivateLayoutId who{static_cast<std::uint8_t>(self.tag), self.id};
    io.check(in.options.permissive || in.options.agreed.has(in.options.agreed.layouts, who), [&] {
      return Error{.code = Errc::invalid_tag,
                   .expect = Expect::as_said,
                   .field = "layout.extension_layout_id",
                   .what = "an id that was agreed on",
                   .found = self.id};
    });
    auto length = static_cast<std::uint32_t>(self.data.size());
    io("layout.extension_data_length", length);
    io.opaque("layout.extension_data", self.data, length);
  }

  /// Only the layout's owner knows.
  std::optional<std::uint64_t> required_bytes(std::size_t, unsigned, const Shape&) const noexcept {
    return 0;
  }
  friend bool operator==(const PrivateLayout&, const PrivateLayout&) = default;
};

/// A tag that this release does not know, let through in permissive mode (02-layouts.md L26):
/// fields, buffer table and sections are one tail whose parts cannot be told apart.
struct UnknownLayout {
  static constexpr std::string_view role(std::size_t) noexcept { return ""; }

  LayoutTag tag{0x0C};
  std::uint32_t flags = 0;  ///< As they came; the sections that they announce are in the tail.
  Blob tail;                ///< Everything after `byte_offset`.

  std::optional<std::uint64_t> required_bytes(std::size_t, unsigned, const Shape&) const noexcept {
    return 0;
  }
  friend bool operator==(const UnknownLayout&, const UnknownLayout&) = default;
};

}  // namespace hurray
