#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

namespace hurray {

/// A private layout is known by its tag and its id (02-layouts.md section 16).
struct PrivateLayoutId {
  std::uint8_t tag = 0;
  std::uint64_t id = 0;
  friend bool operator==(const PrivateLayoutId&, const PrivateLayoutId&) = default;
};

/// Private values that writer and reader agreed on out of band (01-descriptor.md section 6). The
/// lists are views: whoever passes them keeps them alive.
struct Agreed {
  bool all = false;  ///< Every private value counts as agreed: for looking and relaying.
  std::span<const PrivateLayoutId> layouts = {};
  std::span<const std::uint8_t> schemes = {};
  std::span<const std::uint8_t> memory_classes = {};  ///< On private devices only.
  std::span<const std::uint8_t> composition_rules = {};

  template <class T>
  bool has(std::span<const T> list, const T& value) const noexcept {
    return all || std::ranges::find(list, value) != list.end();
  }
};

/// What a decoder accepts (01-descriptor.md section 6).
struct DecodeOptions {
  std::uint32_t max_descriptor_bytes = 16u << 20;
  /// Lets through, opaque, what the column "perm" of section 6 allows: to look at, skip and relay
  /// tensors that are not fully understood.
  bool permissive = false;
  bool cross_machine = false;  ///< The bytes come from a network peer (row 42).
  Agreed agreed = {};
};

/// What a writer may write. Private values count as agreed: whoever writes them means them.
struct EncodeOptions {
  bool permissive = false;  ///< Also what only permissive mode reads: for relaying.
};

/// The decoder's options that a writer's stand for.
constexpr DecodeOptions rules_of(const EncodeOptions& options) noexcept {
  return {.permissive = options.permissive, .agreed = {.all = true}};
}

}  // namespace hurray
