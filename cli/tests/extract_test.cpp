// `hurray extract`: some tensors of a file, and .npy files.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "hrry_files.hpp"
#include "hurray/io/file.hpp"
#include "running.hpp"

namespace hurray::cli {
namespace {

/// A base and a sparse correction of it.
Item patched() {
  Item head{
      tensor(DescriptorBuilder::overlay(DType::int8, {2}, CombineOp::replace, 2).build(), {})};
  auto base = DescriptorBuilder::row_major(DType::int8, {2}).shard_of({2}, {0}).build();
  base->set_member_role(MemberRole::base);
  auto fix = DescriptorBuilder::row_major(DType::int8, {1}).shard_of({2}, {1}).build();
  fix->set_member_role(MemberRole::correction);
  head.members = {{tensor(base, {memory(std::vector<std::int8_t>{1, 2})})},
                  {tensor(fix, {memory(std::vector<std::int8_t>{9})})}};
  return head;
}

class Extract : public Command {
 protected:
  void SetUp() override {
    Command::SetUp();
    write_file(at("m.hrry"),
               {{"a", {dense<float>(DType::float32, {2}, {1, 2})}},
                {"grid", columns()},
                {"layers.0.w", {dense<std::int16_t>(DType::int16, {1}, {7})}},
                {"layers.1.w", {dense<std::int16_t>(DType::int16, {1}, {8})}},
                {"over", patched()}},
               {{"epoch", std::int64_t{3}}});
  }
  std::vector<std::string> tensors(std::string_view name) const {
    const auto file = io::File::open(at(name).string());
    EXPECT_TRUE(file);
    std::vector<std::string> all;
    for (std::size_t i = 0; file && i < file->size(); ++i) all.emplace_back(file->name(i));
    EXPECT_EQ(run({"verify", std::string(name)}).code, 0);
    return all;
  }
  void refuses(std::vector<std::string> words, int code, const std::string& part) const {
    words.insert(words.begin(), "extract");
    const auto before = names();
    const Ran ran = run(words);
    EXPECT_EQ(ran.code, code) << ran.err;
    EXPECT_NE(ran.err.find(part), std::string::npos) << ran.err;
    EXPECT_EQ(ran.err.find('\x1b'), std::string::npos);
    EXPECT_EQ(names(), before);
  }
};

TEST_F(Extract, TakesTensorsByNamesAndPatterns) {
  const Ran ran = run({"extract", "m.hrry", "layers.*", "a", "-o", "n.hrry"});
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_EQ(ran.out, "n.hrry: 3 tensors, 12 bytes (from m.hrry)\n");
  EXPECT_EQ(tensors("n.hrry"), (std::vector<std::string>{"a", "layers.0.w", "layers.1.w"}));
  EXPECT_EQ(io::load_kv(at("n.hrry").string()).operator*(),
            (io::KeyValues{{"epoch", std::int64_t{3}}}));
  EXPECT_EQ(run({"cat", "n.hrry", "layers.1.w"}).out, "[8]\n");

  EXPECT_EQ(run({"extract", "--json", "--no-kv", "m.hrry", "a", "-o", "n.hrry"}).out,
            R"({"version":1,"kind":"extract","path":"m.hrry","target":"n.hrry","tensors":1,)"
            R"("bytes":8})"
            "\n");
  EXPECT_TRUE(io::load_kv(at("n.hrry").string())->empty());
  EXPECT_EQ(run({"extract", "--no-checksums", "m.hrry", "a", "-o", "n.hrry"}).code, 0);
  EXPECT_NE(run({"verify", "n.hrry"}).out.find("checksums: none"), std::string::npos);
}

TEST_F(Extract, TakesCompositesWhole) {
  ASSERT_EQ(run({"extract", "m.hrry", "grid", "over", "-o", "n.hrry"}).code, 0);
  EXPECT_EQ(tensors("n.hrry"),
            (std::vector<std::string>{"grid", "grid.0", "grid.1", "over", "over.0", "over.1"}));
  ASSERT_EQ(run({"extract", "m.hrry", "*", "-o", "n.hrry"}).code, 0);
  ASSERT_EQ(run({"convert", "m.hrry", "again.hrry"}).code, 0);
  EXPECT_EQ(contents(at("n.hrry")), contents(at("again.hrry")));
  // A member alone is a tensor like others.
  ASSERT_EQ(run({"extract", "m.hrry", "grid.1", "over.1", "-o", "n.hrry"}).code, 0);
  EXPECT_EQ(tensors("n.hrry"), (std::vector<std::string>{"grid.1", "over.1"}));
  EXPECT_EQ(run({"cat", "n.hrry", "grid.1"}).out, "[[3 4]\n [5 6]]\n");
}

TEST_F(Extract, OverItself) {
  ASSERT_EQ(run({"extract", "m.hrry", "a", "-o", "m.hrry"}).code, 0);
  EXPECT_EQ(tensors("m.hrry"), std::vector<std::string>{"a"});
  const Ran piped = run({"extract", "m.hrry", "a", "-o", "/dev/stdout"});
  EXPECT_EQ(piped.out, contents(at("m.hrry")));
}

TEST_F(Extract, Refuses) {
  refuses({"m.hrry", "b\x1b", "-o", "n.hrry"}, 1, R"("b\x1b": no name matches)");
  refuses({"m.hrry", "a", "x*", "-o", "n.hrry"}, 1, "no name matches");
  refuses({"m.hrry", "a"}, 2, "--output is required");
  refuses({"m.hrry", "-o", "n.hrry"}, 2, "NAME is required");
  refuses({"none.hrry", "a", "-o", "n.hrry"}, 3, "none.hrry");
  refuses({"m.hrry", "a", "-o", "no/such/n.hrry"}, 3, "no/such");
  put(at("empty.hrry"), "");
  refuses({"empty.hrry", "a", "-o", "n.hrry"}, 1, "empty.hrry");
  std::string bytes = contents(at("m.hrry"));
  put(at("cut.hrry"), std::string_view(bytes).substr(0, bytes.size() - 1));
  refuses({"cut.hrry", "a", "-o", "n.hrry"}, 1, "cut.hrry");
  // Damage is not carried on under new sums.
  const auto file = io::File::open(at("m.hrry").string());
  bytes[static_cast<std::size_t>(file->entry(0).data_offset)] ^= 1;
  put(at("bad.hrry"), bytes);
  refuses({"bad.hrry", "a", "-o", "n.hrry"}, 1, "checksum mismatch");
}

TEST_F(Extract, NpyFiles) {
  write_file(
      at("t.hrry"),
      {{"c",
        {tensor(DescriptorBuilder::col_major(DType::int16, {2, 3}).build(),
                {memory(std::vector<std::int16_t>{0, 3, 1, 4, 2, 5})})}},
       {"b", {dense<std::uint8_t>(DType::bool_, {9}, {0b10100101, 1})}},
       {"s", {dense<double>(DType::float64, {}, {.5})}},
       {"e", {dense<float>(DType::float32, {0, 2}, {})}},
       {"h", {dense<std::uint16_t>(DType::bfloat16, {1}, {0})}},
       {"q",
        {tensor(DescriptorBuilder::row_major(DType::int8, {1}).per_tensor_affine(1, 0).build(),
                {memory(std::vector<std::int8_t>{1})})}},
       {"sparse",
        {tensor(DescriptorBuilder::coo(DType::int8, {2}, 0, true).build(),
                {memory(std::vector<std::int8_t>{}), memory(std::vector<std::uint64_t>{})})}}});
  const auto npy = [&](const std::string& name) {
    const Ran ran = run({"extract", "t.hrry", name, "--npy", "-o", "t.npy"});
    EXPECT_EQ(ran.code, 0) << ran.err;
    return contents(at("t.npy"));
  };
  const auto header = [](const std::string& dict) {
    std::string text = dict;
    text.resize(117, ' ');
    return std::string("\x93NUMPY\x01\x00\x76\x00", 10) + text + '\n';
  };
  EXPECT_EQ(npy("c"), header("{'descr': '<i2', 'fortran_order': False, 'shape': (2, 3), }") +
                          std::string("\0\0\1\0\2\0\3\0\4\0\5\0", 12));
  EXPECT_EQ(npy("b"), header("{'descr': '|b1', 'fortran_order': False, 'shape': (9,), }") +
                          std::string("\1\0\1\0\0\1\0\1\1", 9));
  EXPECT_EQ(npy("s"), header("{'descr': '<f8', 'fortran_order': False, 'shape': (), }") +
                          std::string("\0\0\0\0\0\0\xe0\x3f", 8));
  EXPECT_EQ(npy("e"), header("{'descr': '<f4', 'fortran_order': False, 'shape': (0, 2), }"));
  for (std::uint64_t count = 1; count < 40; ++count) {
    std::vector<std::uint8_t> bits(static_cast<std::size_t>((count + 7) / 8), 0x6D);
    write_file(at("t2.hrry"), {{"b", {dense(DType::bool_, {count}, bits)}}});
    ASSERT_EQ(run({"extract", "t2.hrry", "b", "--npy", "-o", "t.npy"}).code, 0);
    std::string expected;
    for (std::uint64_t i = 0; i < count; ++i) expected += static_cast<char>(0x6D >> i % 8 & 1);
    EXPECT_EQ(contents(at("t.npy")).substr(128), expected) << count;
  }
  refuses({"t.hrry", "h", "--npy", "-o", "n.npy"}, 1, "this one is bfloat16");
  refuses({"t.hrry", "q", "--npy", "-o", "n.npy"}, 1, "no quantized");
  refuses({"t.hrry", "sparse", "--npy", "-o", "n.npy"}, 1, "this one is coo");
  refuses({"m.hrry", "grid", "--npy", "-o", "n.npy"}, 1, "this one is composite");
  refuses({"t.hrry", "b", "c", "--npy", "-o", "n.npy"}, 1, "NAME: expected 1");
  refuses({"t.hrry", "b", "--npy", "--no-kv", "-o", "n.npy"}, 2, "--npy");
}

}  // namespace
}  // namespace hurray::cli
