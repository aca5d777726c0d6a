#include <gtest/gtest.h>

#include <map>
#include <random>

#include "random_descriptor.hpp"
#include "support.hpp"

namespace hurray::testing {
namespace {

struct Random {
  std::mt19937_64 engine;
  std::uint64_t below(std::uint64_t n) { return engine() % n; }
};

TEST(Property, RandomDescriptorsComeBackAsTheyWere) {
  Random random{std::mt19937_64(20240917)};
  std::map<std::string, int> seen;
  int built = 0;
  for (int i = 0; i < 20000; ++i) {
    const auto d = RandomDescriptor<Random>(random)();
    if (!d) continue;
    ++built;
    const auto bytes = encode(*d);
    ASSERT_TRUE(bytes) << to_string(bytes.error());
    const auto again = decode(*bytes, {.agreed = {.all = true}});
    ASSERT_TRUE(again) << to_string(again.error());
    ASSERT_EQ(*again, *d);
    ASSERT_EQ(*encode(*again), *bytes);
    ++seen["layout " + std::string(name(d->layout))];
    ++seen["type " + std::string(name(d->dtype))];
    if (d->quantization() != nullptr)
      ++seen["scheme " + std::string(name(d->quantization()->scheme))];
    for (const FlagInfo& flag : flags)
      if ((d->sections() & static_cast<std::uint32_t>(flag.tag)) != 0)
        ++seen["section " + std::string(flag.name)];
  }
  EXPECT_GT(built, 8000);
  for (const auto& row : layouts)
    EXPECT_GT(seen["layout " + std::string(row.name)], 20) << row.name;
  for (const auto& row : dtypes) EXPECT_GT(seen["type " + std::string(row.name)], 20) << row.name;
  for (const auto& row : schemes)
    EXPECT_GT(seen["scheme " + std::string(row.name)], 10) << row.name;
  for (const auto& row : flags) EXPECT_GT(seen["section " + std::string(row.name)], 20) << row.name;
  EXPECT_GT(seen["layout extension"], 20);
  EXPECT_GT(seen["scheme extension"], 10);
}

}  // namespace
}  // namespace hurray::testing
