// `hurray stats`: numbers of tensors, and files that carry them.
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "hrry_files.hpp"
#include "hurray/io/file.hpp"
#include "running.hpp"

namespace hurray::cli {
namespace {

using nlohmann::json;

class Stats : public Command {
 protected:
  void SetUp() override {
    Command::SetUp();
    write_file(
        at("m.hrry"),
        {{"w", {dense<float>(DType::float32, {4}, {1, 0, -3, 4})}},
         {"n\x1b[2J", {dense<float>(DType::float32, {2}, {NAN, INFINITY})}},
         {"grid", columns()},
         {"q",
          {tensor(DescriptorBuilder::row_major(DType::int8, {2}).per_tensor_affine(0.5f, 0).build(),
                  {memory(std::vector<std::int8_t>{2, 4})})}},
         {"open",
          {tensor(DescriptorBuilder::row_major(DType::int8, {dynamic}).buffer_bytes(0, 1).build(),
                  {memory(std::vector<std::int8_t>{1})})}}},
        {{"epoch", std::int64_t{3}}});
  }
  Descriptor descriptor(std::string_view file, std::string_view name) const {
    const auto opened = io::File::open(at(file).string());
    EXPECT_TRUE(opened);
    const auto i = opened->find(name);
    EXPECT_TRUE(i) << name;
    const auto read = opened->descriptor(*i);
    EXPECT_TRUE(read);
    return *read;
  }
};

TEST_F(Stats, Shows) {
  const Ran ran = run({"stats", "m.hrry", "w", "n*", "q"});
  EXPECT_EQ(ran.code, 0);
  EXPECT_EQ(ran.err, "");
  EXPECT_EQ(ran.out,
            R"(NAME      DTYPE    SHAPE  NONZERO   ZEROS  MIN  MAX  MEAN  STDDEV  HOLDS
w         float32  [4]          3  25.00%   -3    4   0.5     2.5
n\x1b[2J  float32  [2]          2   0.00%                          nan, inf
q         int8     [2]          2   0.00%    1    2   1.5     0.5
)");
  const json all = json::parse(run({"stats", "--json", "m.hrry"}).out);
  EXPECT_EQ(all["kind"], "stats");
  ASSERT_EQ(all["tensors"].size(), 6u);
  EXPECT_EQ(all["tensors"][0]["statistics"],
            json::parse(R"({"nnz":3,"sparsity_ratio":0.25,"value_min":-3.0,"value_max":4.0,
                            "value_abs_max":4.0,"value_mean":0.5,"value_stddev":2.5,
                            "has_nan":false,"has_inf":false})"));
  EXPECT_EQ(all["tensors"][1]["statistics"],
            json::parse(R"({"nnz":2,"sparsity_ratio":0.0,"has_nan":true,"has_inf":true})"));
  EXPECT_EQ(all["tensors"][2]["name"], "grid.0");
  EXPECT_EQ(all["tensors"][5]["error"]["code"], "unsupported");
}

TEST_F(Stats, Writes) {
  const Ran ran = run({"stats", "m.hrry", "--write", "n.hrry"});
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_NE(ran.out.find("NONZERO"), std::string::npos);
  EXPECT_EQ(run({"verify", "n.hrry"}).code, 0);
  const auto kv = io::load_kv(at("n.hrry").string());
  ASSERT_TRUE(kv);
  EXPECT_EQ(*kv, (io::KeyValues{{"epoch", std::int64_t{3}}}));
  const Descriptor w = descriptor("n.hrry", "w");
  ASSERT_NE(w.statistics(), nullptr);
  EXPECT_EQ(w.statistics()->value_mean, 0.5);
  EXPECT_EQ(w.statistics()->nnz, 3u);
  EXPECT_NE(descriptor("n.hrry", "grid.1").statistics(), nullptr);
  EXPECT_EQ(descriptor("n.hrry", "grid").statistics(), nullptr);
  EXPECT_EQ(descriptor("n.hrry", "open").statistics(), nullptr);
  const json found = json::parse(run({"diff", "--json", "m.hrry", "n.hrry"}).out);
  for (const json& tensor : found["tensors"]) {
    EXPECT_EQ(tensor["differs"], json::array({"statistics"})) << tensor["name"];
    EXPECT_EQ(tensor["status"], "stored") << tensor["name"];
  }
  EXPECT_EQ(found["tensors_equal"], 2);

  // In place, and of one tensor alone.
  ASSERT_EQ(run({"stats", "--json", "m.hrry", "q", "--write", "m.hrry"}).code, 0);
  EXPECT_NE(descriptor("m.hrry", "q").statistics(), nullptr);
  EXPECT_EQ(descriptor("m.hrry", "w").statistics(), nullptr);
  EXPECT_EQ(names(), (std::vector<std::string>{"m.hrry", "n.hrry"}));
  const Ran piped = run({"stats", "m.hrry", "--write", "/dev/stdout"});
  EXPECT_EQ(piped.code, 0);
  EXPECT_EQ(piped.out, contents(at("n.hrry")));
}

TEST_F(Stats, BadInput) {
  const std::string good = contents(at("m.hrry"));
  put(at("empty.hrry"), "");
  put(at("cut.hrry"), good.substr(0, good.size() - 1));
  for (const char* bad : {"empty.hrry", "cut.hrry"}) EXPECT_EQ(run({"stats", bad}).code, 1);
  EXPECT_EQ(run({"stats", "none.hrry"}).code, 3);
  EXPECT_EQ(run({"stats"}).code, 2);
  const Ran unknown = run({"stats", "m.hrry", "x\x1b*"});
  EXPECT_EQ(unknown.code, 1);
  EXPECT_NE(unknown.err.find(R"("x\x1b*": no name matches)"), std::string::npos) << unknown.err;

  std::string broken = good;
  broken[4096] ^= 1;
  put(at("broken.hrry"), broken);
  const Ran shown = run({"stats", "broken.hrry"});
  EXPECT_EQ(shown.code, 1);
  EXPECT_NE(shown.out.find("checksum mismatch"), std::string::npos) << shown.out;
  const Ran refused = run({"stats", "--json", "broken.hrry", "--write", "n.hrry"});
  EXPECT_EQ(refused.code, 1);
  EXPECT_EQ(json::parse(refused.out)["error"]["code"], "checksum mismatch");
  EXPECT_EQ(names(), (std::vector<std::string>{"broken.hrry", "cut.hrry", "empty.hrry", "m.hrry"}));

  // Zero strides make many elements of few bytes: once is enough, and too many are refused.
  write_file(
      at("wide.hrry"),
      {{"t",
        {tensor(DescriptorBuilder::strided(DType::int8, {std::uint64_t{1} << 40}, {0}).build(),
                {memory(std::vector<std::int8_t>{5})})}}});
  EXPECT_EQ(
      json::parse(run({"stats", "--json", "wide.hrry"}).out)["tensors"][0]["statistics"]["nnz"],
      std::uint64_t{1} << 40);
}

}  // namespace
}  // namespace hurray::cli
