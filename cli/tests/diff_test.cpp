// `hurray diff`: what two files have in common, and what not.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "hrry_files.hpp"
#include "running.hpp"
#include "safetensors_files.hpp"

namespace hurray::cli {
namespace {

using nlohmann::json;

class Diff : public Command {
 protected:
  /// One tensor in each file; what is said of it.
  json of(const Tensor& a, const Tensor& b, std::vector<std::string> words = {}) const {
    write_file(at("a.hrry"), {{"t", {a}}});
    write_file(at("b.hrry"), {{"t", {b}}});
    words.insert(words.begin(), {"diff", "--json", "a.hrry", "b.hrry"});
    const Ran ran = run(words);
    const json all = json::parse(ran.out);
    EXPECT_EQ(ran.code, all["equal"] ? 0 : 1) << ran.err;
    if (all["equal"]) return "equal";
    return all["tensors"].at(0);
  }
  std::string said(const std::vector<std::string>& words = {"a.hrry", "b.hrry"}) const {
    std::vector<std::string> all = {"diff"};
    all.insert(all.end(), words.begin(), words.end());
    return run(all).out;
  }
};

Tensor floats(const std::vector<float>& values) {
  return dense(DType::float32, {values.size()}, values);
}

TEST_F(Diff, EqualFiles) {
  const std::vector<Named> all = {{"w", {floats({1, NAN})}}, {"grid", columns()}};
  write_file(at("a.hrry"), all, {{"epoch", std::int64_t{3}}, {"nan", double{NAN}}});
  io::WriteOptions options;
  options.checksums = false;
  options.alignment = 8192;
  write_file(at("b.hrry"), all, {{"nan", double{NAN}}, {"epoch", std::int64_t{3}}}, options);
  const Ran ran = run({"diff", "a.hrry", "b.hrry"});
  EXPECT_EQ(ran.code, 0);
  EXPECT_EQ(ran.out, "4 tensors equal, 2 keys equal\n");
  EXPECT_EQ(run({"diff", "--json", "a.hrry", "b.hrry"}).out,
            R"({"version":1,"kind":"diff","a":"a.hrry","b":"b.hrry","tensors":[],"kv":[],)"
            R"("equal":true,"tensors_equal":4,"tensors_different":0,"only_in_a":0,"only_in_b":0,)"
            R"("keys_equal":2,"keys_different":0})"
            "\n");
}

TEST_F(Diff, EverythingThatCanDiffer) {
  write_file(at("a.hrry"),
             {{"same", {floats({1})}},
              {"only\x1b[1m", {floats({1, 2})}},
              {"values", {dense<std::int16_t>(DType::int16, {2, 2}, {1, 2, 3, 4})}},
              {"shape", {floats({1, 2})}},
              {"dtype", {dense<std::int8_t>(DType::int8, {1}, {1})}},
              {"layout", {dense<std::int8_t>(DType::int8, {2, 2}, {1, 2, 3, 4})}}},
             {{"epoch", std::int64_t{3}}, {"gone\n", true}});
  write_file(at("b.hrry"),
             {{"layout",
               {tensor(DescriptorBuilder::col_major(DType::int8, {2, 2}).build(),
                       {memory(std::vector<std::int8_t>{1, 3, 2, 4})})}},
              {"dtype", {dense<std::uint8_t>(DType::uint8, {1}, {1})}},
              {"shape", {dense<float>(DType::float32, {2, 1}, {1, 2})}},
              {"values", {dense<std::int16_t>(DType::int16, {2, 2}, {1, -2, 3, 5})}},
              {"same", {floats({1})}},
              {"new", {floats({})}}},
             {{"epoch", 3.0}, {"here", std::string("x")}});
  const Ran ran = run({"diff", "a.hrry", "b.hrry"});
  EXPECT_EQ(ran.code, 1);
  EXPECT_EQ(ran.err, "");
  EXPECT_EQ(ran.out, R"(- only\x1b[1m: only in a.hrry: float32 [2]
! values: 2 of 4 elements differ, the largest difference is 4 at [0, 1]
! shape: shape [2] and [2, 1]
! dtype: dtype int8 and uint8
! layout: layout row_major and col_major; values equal
+ new: only in b.hrry: float32 [0]
! key "epoch": 3 (int64) and 3 (float64)
- key "gone\n": only in a.hrry: true (bool)
+ key "here": only in b.hrry: "x" (string)
1 tensor equal, 4 different, 1 only in a.hrry, 1 only in b.hrry, 3 keys different
)");
  const json all = json::parse(run({"diff", "--json", "a.hrry", "b.hrry"}).out);
  EXPECT_EQ(all["equal"], false);
  EXPECT_EQ(all["tensors"][0]["name"], "only\x1b[1m");
  EXPECT_EQ(all["tensors"][0]["status"], "only_in_a");
  const json& values = all["tensors"][1];
  EXPECT_EQ(values["status"], "values");
  EXPECT_EQ(values["elements"], 4);
  EXPECT_EQ(values["differing"], 2);
  EXPECT_EQ(values["first_index"], (json{0, 1}));
  EXPECT_EQ(values["largest"], 4.0);
  EXPECT_EQ(values["largest_index"], (json{0, 1}));
  EXPECT_EQ(all["tensors"][2]["differs"], json::array({"shape"}));
  EXPECT_EQ(all["tensors"][4]["status"], "stored");
  EXPECT_EQ(all["kv"][0]["a"]["value"], 3);
  EXPECT_EQ(all["kv"][1]["status"], "only_in_a");
}

TEST_F(Diff, BitsAndTolerances) {
  const auto other_nan = std::bit_cast<float>(0x7FC00001u);
  EXPECT_EQ(of(floats({NAN}), floats({NAN})), "equal");
  const json nan = of(floats({NAN, 1}), floats({other_nan, 1}));
  EXPECT_EQ(nan["differing"], 1);
  EXPECT_FALSE(nan.contains("largest"));
  EXPECT_EQ(said(),
            "! t: 1 of 2 elements differ, the first at [0]\n0 tensors equal, 1 different\n");
  EXPECT_EQ(of(floats({0.f}), floats({-0.f}))["largest"], 0.0);
  EXPECT_EQ(of(floats({0.f}), floats({-0.f}), {"--atol", "1e-9"}), "equal");
  EXPECT_EQ(of(floats({100, 1}), floats({101, 1}), {"--rtol", "0.01"}), "equal");
  EXPECT_EQ(of(floats({100, 1}), floats({101, 1.5f}), {"--rtol", "0.01"})["differing"], 1);
  EXPECT_EQ(of(floats({1}), floats({NAN}), {"--atol", "9"})["differing"], 1);
  EXPECT_EQ(of(floats({1}), floats({INFINITY}), {"--rtol", "9"})["differing"], 1);
  EXPECT_EQ(of(floats({INFINITY}), floats({INFINITY}), {"--rtol", "9"}), "equal");
  EXPECT_EQ(run({"diff", "a.hrry", "b.hrry", "--atol", "-1"}).code, 2);
  EXPECT_EQ(run({"diff", "a.hrry", "b.hrry", "--atol", "x"}).code, 2);

  const auto ints = [](std::int64_t x) { return dense<std::int64_t>(DType::int64, {1}, {x}); };
  EXPECT_EQ(of(ints(std::numeric_limits<std::int64_t>::min()),
               ints(std::numeric_limits<std::int64_t>::max()))["largest"],
            0x1p64);
  EXPECT_EQ(of(dense<float>(DType::complex64, {1}, {1, 2}),
               dense<float>(DType::complex64, {1}, {4, 6}))["largest"],
            5.0);
  const json halves =
      of(floats({1, 0.1f}), dense<std::uint16_t>(DType::float16, {2}, {0x3C00, 0x2E66}));
  EXPECT_EQ(halves["differs"], json::array({"dtype"}));
  EXPECT_EQ(halves["differing"], 1);
  EXPECT_EQ(of(floats({1, 0.1f}), dense<std::uint16_t>(DType::float16, {2}, {0x3C00, 0x2E66}),
               {"--atol", "1e-3"})["status"],
            "stored");
}

TEST_F(Diff, LayoutsSchemesAndSections) {
  const auto csr = [](float last) {
    return tensor(DescriptorBuilder::csr(DType::float32, {2, 4}, 2).build(),
                  {memory(std::vector<float>{.5f, last}), memory(std::vector<std::uint64_t>{1, 3}),
                   memory(std::vector<std::uint64_t>{0, 1, 2})});
  };
  const Tensor full = dense<float>(DType::float32, {2, 4}, {0, .5f, 0, 0, 0, 0, 0, -1});
  EXPECT_EQ(of(csr(-1), csr(-1)), "equal");
  EXPECT_EQ(of(csr(-1), csr(2))["largest_index"], (json{1, 3}));
  EXPECT_EQ(of(csr(-1), full)["status"], "stored");
  EXPECT_EQ(of(full, csr(-1))["status"], "stored");
  EXPECT_EQ(of(full, csr(2))["differing"], 1);
  const Tensor more = dense<float>(DType::float32, {2, 4}, {7, .5f, 0, 0, 0, 0, 0, -1});
  EXPECT_EQ(of(csr(-1), more)["first_index"], (json{0, 0}));
  // Places that no element lies in do not count.
  const auto gap = [](std::int8_t between) {
    return tensor(DescriptorBuilder::strided(DType::int8, {2}, {2}).build(),
                  {memory(std::vector<std::int8_t>{1, between, 2})});
  };
  EXPECT_EQ(of(gap(5), gap(6)), "equal");

  const auto scaled = [](float scale) {
    return tensor(
        DescriptorBuilder::row_major(DType::int8, {2}).per_tensor_affine(scale, 0).build(),
        {memory(std::vector<std::int8_t>{1, 2})});
  };
  EXPECT_EQ(of(scaled(1), scaled(1)), "equal");
  EXPECT_EQ(of(scaled(1), scaled(2))["differs"], json::array({"quantization"}));
  EXPECT_EQ(of(scaled(1), scaled(2))["largest"], 2.0);
  EXPECT_EQ(of(scaled(2), floats({2, 4}))["status"], "stored");
  const auto channels = [](float scale) {
    return tensor(DescriptorBuilder::row_major(DType::int8, {2, 1})
                      .per_channel_affine(0, ZeroPoints::none)
                      .build(),
                  {memory(std::vector<std::int8_t>{1, 2}), memory(std::vector<float>{1, scale})});
  };
  EXPECT_EQ(of(channels(3), channels(3)), "equal");
  EXPECT_EQ(of(channels(3), channels(5))["largest"], 4.0);

  const auto sharded = [](std::uint64_t at) {
    return tensor(DescriptorBuilder::row_major(DType::int8, {1}).shard_of({4}, {at}).build(),
                  {memory(std::vector<std::int8_t>{1})});
  };
  EXPECT_EQ(of(sharded(1), sharded(2))["differs"], json::array({"shard"}));
  EXPECT_EQ(said(), "! t: shard differs; values equal\n0 tensors equal, 1 different\n");

  const auto dynamic_size = [](std::int8_t value) {
    return tensor(DescriptorBuilder::row_major(DType::int8, {dynamic}).buffer_bytes(0, 1).build(),
                  {memory(std::vector<std::int8_t>{value})});
  };
  EXPECT_EQ(of(dynamic_size(1), dynamic_size(1)), "equal");
  EXPECT_EQ(of(dynamic_size(1), dynamic_size(2))["status"], "bytes");
  EXPECT_NE(said().find("values cannot be compared: "), std::string::npos);
}

TEST_F(Diff, ManyBlocks) {
  std::vector<std::int16_t> values(3'000'000, 7);
  const Shape shape = {3, 1000, 1000};
  const Tensor a = dense(DType::int16, shape, values);
  values[2'345'678] = 17;
  values[1'000'000] = 8;
  const json found = of(a, dense(DType::int16, shape, values));
  EXPECT_EQ(found["differing"], 2);
  EXPECT_EQ(found["first_index"], (json{1, 0, 0}));
  EXPECT_EQ(found["largest_index"], (json{2, 345, 678}));
  EXPECT_EQ(found["largest"], 10.0);
}

TEST_F(Diff, MemoryDoesNotGrowWithTheTensors) {
  constexpr std::uint64_t size = 128u << 20;
  put(at("m.safetensors"),
      formats::safetensors(
          R"({"t":{"dtype":"U8","shape":[134217728],"data_offsets":[0,134217728]}})"));
  fs::resize_file(at("m.safetensors"), fs::file_size(at("m.safetensors")) + size);
  ASSERT_EQ(run({"convert", "--no-sync", "m.safetensors", "m.hrry"}).code, 0);
  const long before = run({"--version"}).peak_kib;
  const Ran ran = run({"diff", "m.hrry", "m.hrry"});
  EXPECT_EQ(ran.out, "1 tensor equal\n");
  EXPECT_LT(ran.peak_kib - before, 32 << 10);
}

TEST_F(Diff, Composites) {
  write_file(at("a.hrry"), {{"grid", columns()}});
  Item other = columns();
  other.members[1].tensor =
      tensor(DescriptorBuilder::row_major(DType::int8, {2, 2}).shard_of({2, 3}, {0, 1}).build(),
             {memory(std::vector<std::int8_t>{3, 4, 5, 9})});
  write_file(at("b.hrry"), {{"grid", other}});
  EXPECT_EQ(said(),
            "! grid.1: 1 of 4 elements differ, the largest difference is 3 at [1, 1]\n"
            "2 tensors equal, 1 different\n");
  const Item loose = columns();
  write_file(at("b.hrry"), {{"grid.0", loose.members[0]}, {"grid.1", loose.members[1]}});
  EXPECT_EQ(said(),
            "- grid: only in a.hrry: int8 [2, 3]\n"
            "! grid.0: member_of differs; values equal\n"
            "! grid.1: member_of differs; values equal\n"
            "0 tensors equal, 2 different, 1 only in a.hrry\n");
}

TEST_F(Diff, BadInput) {
  write_file(at("a.hrry"), {{"t", {floats({1})}}, {"u", {floats({1})}}});
  const std::string good = contents(at("a.hrry"));
  put(at("empty.hrry"), "");
  put(at("cut.hrry"), good.substr(0, good.size() - 1));
  for (const char* bad : {"empty.hrry", "cut.hrry"}) {
    EXPECT_EQ(run({"diff", "a.hrry", bad}).code, 1);
    EXPECT_EQ(run({"diff", bad, "a.hrry"}).code, 1);
  }
  EXPECT_EQ(run({"diff", "a.hrry", "none.hrry"}).code, 3);
  EXPECT_EQ(run({"diff", "a.hrry"}).code, 2);
  std::string broken = good;
  broken[64] = 'X';
  put(at("broken.hrry"), broken);
  const Ran ran = run({"diff", "a.hrry", "broken.hrry"});
  EXPECT_EQ(ran.code, 1);
  EXPECT_NE(ran.out.find("! t: cannot be compared: "), std::string::npos) << ran.out;
  EXPECT_NE(ran.out.find("1 tensor equal, 1 different"), std::string::npos) << ran.out;
  EXPECT_EQ(
      json::parse(run({"diff", "--json", "a.hrry", "broken.hrry"}).out)["tensors"][0]["status"],
      "broken");
}

}  // namespace
}  // namespace hurray::cli
