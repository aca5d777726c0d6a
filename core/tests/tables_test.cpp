#include <gtest/gtest.h>

#include <set>

#include "hurray/descriptor.hpp"

namespace hurray {
namespace {

TEST(Tables, HaveEveryRowOnceWithANameOfItsOwn) {
  EXPECT_EQ(dtypes.size(), 26u);
  EXPECT_EQ(devices.size(), 9u);
  EXPECT_EQ(layouts.size(), 12u);
  std::set<std::string_view> names;
  for (const auto& row : dtypes) EXPECT_TRUE(names.insert(row.name).second);
  for (const auto& row : devices) EXPECT_TRUE(names.insert(row.name).second);
  for (const auto& row : layouts) EXPECT_TRUE(names.insert(row.name).second);
}

TEST(Tables, AreFoundByTagAndByName) {
  for (const auto& row : dtypes) {
    EXPECT_EQ(info(row.tag), &row);
    EXPECT_EQ(find_name(dtypes, row.name), &row);
    EXPECT_EQ(name(row.tag), row.name);
  }
  EXPECT_EQ(info(static_cast<DType>(0x47)), nullptr);
  EXPECT_EQ(name(static_cast<DType>(0xF2)), "extension");
  EXPECT_EQ(name(static_cast<DType>(0x80)), "");
  EXPECT_EQ(find_name(dtypes, "float42"), nullptr);
  EXPECT_EQ(name(static_cast<Device>(0xF0)), "private");
  EXPECT_EQ(name(static_cast<Device>(0x09)), "");
  EXPECT_EQ(name(SyncMode::consumer_stream), "consumer_stream");
}

TEST(Tables, LayoutTagsArePartitioned) {
  int named = 0, reserved = 0, agreed = 0, invalid = 0;
  for (unsigned tag = 0; tag < 256; ++tag) {
    const auto kind = layout_tag_kind(static_cast<std::uint8_t>(tag));
    named += kind == "named";
    reserved += kind == "reserved";
    agreed += kind == "private";
    invalid += kind == "invalid";
  }
  EXPECT_EQ(named, 12);
  EXPECT_EQ(agreed, 15);
  EXPECT_EQ(invalid, 2);
  EXPECT_EQ(named + reserved + agreed + invalid, 256);
}

TEST(Tables, DevicesAndMemoryClasses) {
  EXPECT_TRUE(can_have(Device::cpu, MemoryClass::unified));
  EXPECT_FALSE(can_have(Device::cpu, MemoryClass::peer));
  EXPECT_FALSE(can_have(Device::webgpu, MemoryClass::host_pinned));
  EXPECT_TRUE(can_have(Device::cuda, MemoryClass::peer));
  const auto private_device = static_cast<Device>(0xF2);
  const auto private_class = static_cast<MemoryClass>(0xF1);
  EXPECT_TRUE(can_have(private_device, private_class));
  EXPECT_TRUE(can_have(private_device, MemoryClass::standard));
  EXPECT_FALSE(can_have(private_device, MemoryClass::unified));
  EXPECT_FALSE(can_have(Device::cuda, private_class));
}

TEST(PackedBytes, FollowTheFormat) {
  EXPECT_EQ(packed_bytes(1, 9), 2u);
  EXPECT_EQ(packed_bytes(4, 7), 4u);
  EXPECT_EQ(packed_bytes(2, 9), 3u);
  EXPECT_EQ(packed_bytes(6, 1), 3u);
  EXPECT_EQ(packed_bytes(6, 4), 3u);
  EXPECT_EQ(packed_bytes(6, 5), 6u);
  EXPECT_EQ(packed_bytes(6, 100), 75u);
  EXPECT_EQ(packed_bytes(128, 3), 48u);
  for (const auto& row : dtypes) EXPECT_EQ(packed_bytes(row.bits, 0), 0u);
  EXPECT_EQ(packed_bytes(16, dynamic), std::nullopt);
  EXPECT_EQ(packed_bytes(1, dynamic), std::uint64_t{1} << 61);
}

TEST(Shapes, CountTheirElements) {
  EXPECT_EQ(Shape{}.count(), 1u);
  EXPECT_EQ((Shape{3, 4}).count(), 12u);
  EXPECT_EQ((Shape{std::uint64_t{1} << 60, std::uint64_t{1} << 60, 0}).count(), 0u);
  EXPECT_EQ((Shape{std::uint64_t{1} << 40, std::uint64_t{1} << 40}).count(), dynamic);
  EXPECT_TRUE((Shape{0, dynamic}).is_dynamic());
}

TEST(Errors, SayWhatWhereAndWhatToDo) {
  Error e{.code = Errc::invalid_value,
          .expect = Expect::at_least,
          .index = 2,
          .field = "buffers[].alignment",
          .offset = 61,
          .expected = 64,
          .found = 32};
  EXPECT_EQ(to_string(e),
            "buffers[2].alignment: expected at least 64, found 32 "
            "(invalid value at byte 61 of the descriptor)");
  e.origin = Origin::file;
  EXPECT_EQ(raise(e), Raise::file);
  EXPECT_EQ(exit_code(e), 1);
  EXPECT_EQ(status(e), -106);
  e.code = Errc::unsupported;
  EXPECT_EQ(raise(e), Raise::unsupported);
  EXPECT_EQ(status(e), -110);
  e.code = Errc::system;
  EXPECT_EQ(exit_code(e), 3);
  e = {.code = Errc::invalid_tag,
       .expect = Expect::as_said,
       .field = "type_tag",
       .what = "an assigned tag",
       .offset = 14,
       .found = 0x47};
  EXPECT_EQ(to_string(e),
            "type_tag: expected an assigned tag, found 0x47 (invalid tag at byte 14 of the "
            "descriptor); this release knows no such tag");
}

}  // namespace
}  // namespace hurray
