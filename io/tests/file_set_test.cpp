#include "hurray/io/file_set.hpp"

#include <gtest/gtest.h>

#include "file_support.hpp"

namespace hurray::io {
namespace {

class Set : public ::testing::Test {
 protected:
  /// Tensors of one byte each.
  SetMember made(const std::string& file, const std::vector<std::string>& names,
                 const KeyValues& kv = {}) {
    auto writer = create(folder / file);
    for (const std::string& name : names)
      EXPECT_EQ(failure(write(writer, name, dense(DType::uint8, {1}, 1), {Bytes(1)})), "");
    EXPECT_EQ(failure(writer.finish(kv)), "");
    return {folder / file, names, {}};
  }
  Result<FileSet> open(const std::vector<SetMember>& members) {
    return FileSet::open("the index", members);
  }

  TemporaryFolder folder;
};

TEST_F(Set, EntriesAreCountedThroughAllFiles) {
  const auto set = open({made("a", {"x", "y"}), made("b", {}), made("c", {"z"})});
  ASSERT_EQ(failure(set), "");
  EXPECT_EQ(set->size(), 3u);
  EXPECT_EQ(set->files().size(), 3u);
  for (const std::size_t i : {0u, 1u, 2u}) {
    EXPECT_EQ(set->find(set->name(i)), i);
    EXPECT_EQ(failure(set->item(i)), "");
    EXPECT_EQ(failure(set->descriptor(i)), "");
  }
  EXPECT_EQ(set->name(2), "z");
  EXPECT_EQ(set->place(2).first, &set->files()[2]);
  EXPECT_EQ(set->find("nothing"), std::nullopt);
  EXPECT_EQ(set->size_bytes(), set->files()[0].size_bytes() + set->files()[1].size_bytes() +
                                   set->files()[2].size_bytes());
  const auto asked = set->prefetch(std::vector<File::Wanted>{{2, {}}, {0, {}}, {1, {}}});
  ASSERT_EQ(failure(asked), "");
  EXPECT_GE(*asked, 3u);
}

TEST_F(Set, OneFileIsItself) {
  made("a", {"x", "y"}, {{"k", std::int64_t{1}}});
  auto file = File::open(folder / "a");
  ASSERT_EQ(failure(file), "");
  const std::uint32_t sum = file->trailer().index_crc32c;
  const FileSet set(*std::move(file));
  EXPECT_EQ(set.index_crc32c(), sum);
  EXPECT_EQ(set.path(), folder / "a");
  EXPECT_EQ(set.find("y"), 1u);
  EXPECT_EQ(set.kv()->size(), 1u);
}

TEST_F(Set, WhatIsMissingIsNamed) {
  SetMember a = made("a", {"x"});
  a.names.push_back("ghost");
  const Error tensors = error_of(open({a}));
  EXPECT_EQ(tensors.code, Errc::not_found);
  EXPECT_NE(to_string(tensors).find("1 of 2 tensors missing: \"ghost\" in a"), std::string::npos)
      << to_string(tensors);
  const Error files =
      error_of(open({{folder / "no", {"n"}, {}}, made("b", {"y"}), {folder / "nor", {}, {}}}));
  EXPECT_EQ(files.code, Errc::not_found);
  EXPECT_NE(to_string(files).find("2 of 3 shards missing: no, nor"), std::string::npos)
      << to_string(files);
  EXPECT_FALSE(open({}));
}

TEST_F(Set, WhatDoesNotBelongTogether) {
  const Error twice = error_of(open({made("a", {"x", "y"}), made("b", {"y"})}));
  EXPECT_EQ(twice.code, Errc::duplicate);
  EXPECT_EQ(twice.tensor, "y");
  SetMember other = made("c", {"z"});
  other.index_crc32c = 5;
  EXPECT_EQ(error_of(open({other})).code, Errc::checksum_mismatch);
  const auto set = open({made("d", {"p"}, {{"k", std::int64_t{1}}, {"same", true}}),
                         made("e", {"q"}, {{"k", std::int64_t{2}}, {"same", true}})});
  ASSERT_EQ(failure(set), "");
  EXPECT_EQ(error_of(set->kv()).code, Errc::inconsistent);
}

TEST_F(Set, WhatTheIndexDoesNotNameIsNotThere) {
  SetMember a = made("a", {"x", "extra"});
  a.names.pop_back();
  const auto set = open({a, made("b", {"y"})});
  ASSERT_EQ(failure(set), "");
  EXPECT_EQ(set->find("extra"), std::nullopt);
  const auto owners = set->owners();
  ASSERT_EQ(failure(owners), "");
  EXPECT_EQ(*owners, (std::vector<std::optional<std::size_t>>{{}, 1, {}}));
}

}  // namespace
}  // namespace hurray::io
