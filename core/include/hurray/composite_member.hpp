#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "hurray/table.hpp"

namespace hurray {

/// What a member is in its overlay (01-descriptor.md section 3.7).
enum class MemberRole : std::uint8_t { correction = 0, base = 1 };

struct MemberRoleInfo {
  MemberRole tag;
  std::string_view name;
};

inline constexpr auto member_roles = std::to_array<MemberRoleInfo>({
    {MemberRole::correction, "correction"},
    {MemberRole::base, "base"},
});
static_assert(strictly_sorted(member_roles));

constexpr std::string_view name(MemberRole role) noexcept {
  const MemberRoleInfo* row = find_row(member_roles, role);
  return row != nullptr ? row->name : "";
}

}  // namespace hurray
