// `hurray cat`: values as NumPy prints them, parts, bytes.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <numeric>
#include <string>
#include <vector>

#include "hrry_files.hpp"
#include "running.hpp"

namespace hurray::cli {
namespace {

using nlohmann::json;

template <class T>
std::vector<T> counting(std::size_t count) {
  std::vector<T> values(count);
  std::iota(values.begin(), values.end(), T{});
  return values;
}

class Cat : public Command {
 protected:
  void write(const Tensor& tensor, const std::string& name = "t") const {
    write_file(at("m.hrry"), {{name, {tensor}}});
  }
  std::string shows(std::vector<std::string> words = {}) const {
    words.insert(words.begin(), {"cat", "m.hrry", "t"});
    const Ran ran = run(words);
    EXPECT_EQ(ran.code, 0) << ran.err;
    return ran.out;
  }
  void refuses(std::vector<std::string> words, int code, const std::string& part) const {
    words.insert(words.begin(), "cat");
    const Ran ran = run(words);
    EXPECT_EQ(ran.code, code) << ran.err;
    EXPECT_NE(ran.err.find(part), std::string::npos) << ran.err;
    EXPECT_EQ(ran.err.find('\x1b'), std::string::npos);
  }
};

TEST_F(Cat, ShapesAndParts) {
  write(dense(DType::int16, {2, 3, 4}, counting<std::int16_t>(24)));
  EXPECT_EQ(shows(), R"([[[ 0  1  2  3]
  [ 4  5  6  7]
  [ 8  9 10 11]]

 [[12 13 14 15]
  [16 17 18 19]
  [20 21 22 23]]]
)");
  EXPECT_EQ(shows({"1"}), "[[12 13 14 15]\n [16 17 18 19]\n [20 21 22 23]]\n");
  EXPECT_EQ(shows({"0:2,-1,1:"}), "[[ 9 10 11]\n [21 22 23]]\n");
  EXPECT_EQ(shows({"..., ::2"}),
            "[[[ 0  2]\n  [ 4  6]\n  [ 8 10]]\n\n [[12 14]\n  [16 18]\n  [20 22]]]\n");
  EXPECT_EQ(shows({"1,2,3"}), "23\n");
  EXPECT_EQ(shows({"1,2,-2:100"}), "[22 23]\n");
  EXPECT_EQ(shows({"1,2,3:1"}), "[]\n");
  EXPECT_EQ(shows({"--", "-1,-1,-1"}), "23\n");
  EXPECT_EQ(json::parse(shows({"0:2,-1,1:", "--json"})),
            json::parse(R"({"version":1,"kind":"cat","path":"m.hrry","name":"t","dtype":"int16",
                            "shape":[2,3],"values":[[9,10,11],[21,22,23]]})"));
  for (const char* index :
       {"a", "1:2:3:4", "1.5", "::0", "::-1", ",", "...,...", "99999999999999999999"})
    refuses({"m.hrry", "t", index}, 1, "INDEX");
  refuses({"m.hrry", "t", "2"}, 1, "its size is 2");
  refuses({"m.hrry", "t", "--", "-3"}, 1, "found -3");
  refuses({"m.hrry", "t", "0,0,0,0"}, 1, "INDEX: expected at most 3");
}

TEST_F(Cat, ScalarsAndEmptyOnes) {
  write(dense<double>(DType::float64, {}, {0.1}));
  EXPECT_EQ(shows(), "0.1\n");
  write(dense<float>(DType::float32, {0, 7}, {}));
  EXPECT_EQ(shows(), "[]\n");
  write(dense<float>(DType::float32, {2, 0}, {}));
  EXPECT_EQ(shows(), "[[]\n []]\n");
  EXPECT_EQ(json::parse(shows({"--json"}))["values"], json::parse("[[],[]]"));
}

TEST_F(Cat, Types) {
  const auto is = [&](const Tensor& tensor, const std::string& text, const std::string& values) {
    write(tensor);
    EXPECT_EQ(shows(), text);
    EXPECT_EQ(json::parse(shows({"--json"}))["values"], json::parse(values));
  };
  is(dense<float>(DType::float32, {4}, {0.1f, -INFINITY, NAN, 3}), "[ 0.1 -inf  nan    3]\n",
     R"([0.10000000149011612,"-inf","nan",3.0])");
  is(dense<std::uint16_t>(DType::float16, {3}, {0x2E66, 0x7BFF, 0x8000}), "[  0.1 65500    -0]\n",
     "[0.0999755859375,65504.0,-0.0]");
  is(dense<std::uint16_t>(DType::bfloat16, {2}, {0x3DCD, 0x7F80}), "[0.1 inf]\n",
     R"([0.10009765625,"inf"])");
  is(dense<std::uint8_t>(DType::bool_, {3}, {0b101}), "[ True False  True]\n", "[true,false,true]");
  is(dense<std::uint8_t>(DType::int4, {3}, {0x8F, 0x07}), "[-1 -8  7]\n", "[-1,-8,7]");
  is(dense<std::uint64_t>(DType::uint64, {1}, {~std::uint64_t{0}}), "[18446744073709551615]\n",
     "[18446744073709551615]");
  is(dense<std::int64_t>(DType::int64, {1}, {std::numeric_limits<std::int64_t>::min()}),
     "[-9223372036854775808]\n", "[-9223372036854775808]");
  is(dense<float>(DType::complex64, {2}, {1.5f, -2, 0, 0.1f}), "[1.5-2j 0+0.1j]\n",
     "[[1.5,-2.0],[0.0,0.10000000149011612]]");
  is(dense<std::uint8_t>(DType::float8_e4m3, {2}, {0x38, 0x7F}), "[  1 nan]\n", R"([1.0,"nan"])");
}

TEST_F(Cat, LayoutsAndSchemes) {
  write(tensor(DescriptorBuilder::col_major(DType::int8, {2, 3}).build(),
               {memory(std::vector<std::int8_t>{0, 3, 1, 4, 2, 5})}));
  EXPECT_EQ(shows(), "[[0 1 2]\n [3 4 5]]\n");
  EXPECT_EQ(shows({":,1"}), "[1 4]\n");
  write(tensor(DescriptorBuilder::strided(DType::int8, {2, 3}, {-1, 0}).byte_offset(1).build(),
               {memory(std::vector<std::int8_t>{7, 8})}));
  EXPECT_EQ(shows(), "[[8 8 8]\n [7 7 7]]\n");
  write(tensor(DescriptorBuilder::csr(DType::float32, {2, 4}, 3).build(),
               {memory(std::vector<float>{.5f, 2, -1}), memory(std::vector<std::uint64_t>{1, 0, 3}),
                memory(std::vector<std::uint64_t>{0, 1, 3})}));
  EXPECT_EQ(shows(), "[[  0 0.5   0   0]\n [  2   0   0  -1]]\n");
  EXPECT_EQ(shows({"1,::3"}), "[ 2 -1]\n");
  write(tensor(DescriptorBuilder::row_major(DType::int8, {4}).per_tensor_affine(0.5f, 1).build(),
               {memory(std::vector<std::int8_t>{0, 1, 2, 3})}));
  EXPECT_EQ(shows(), "[-0.5    0  0.5    1]\n");
  write(tensor(DescriptorBuilder::row_major(DType::int8, {2, 2})
                   .per_channel_affine(0, ZeroPoints::none)
                   .build(),
               {memory(std::vector<std::int8_t>{1, 2, 3, 4}), memory(std::vector<float>{1, 10})}));
  EXPECT_EQ(shows(), "[[ 1  2]\n [30 40]]\n");
}

TEST_F(Cat, SummarisesBeyondAThousandElements) {
  write(dense(DType::int32, {2000}, counting<std::int32_t>(2000)));
  EXPECT_EQ(shows(), "[   0    1    2 ... 1997 1998 1999]\n");
  EXPECT_EQ(json::parse(shows({"--json"}))["values"], nullptr);
  EXPECT_EQ(json::parse(shows({"--json", "--all"}))["values"].get<std::vector<std::int32_t>>(),
            counting<std::int32_t>(2000));
  const std::string all = shows({"--all"});
  EXPECT_EQ(std::ranges::count(all, ' '), 10 * 3 + 90 * 2 + 900 + 1999);
  write(dense(DType::int32, {40, 40}, counting<std::int32_t>(1600)));
  EXPECT_EQ(shows(), R"([[   0    1    2 ...   37   38   39]
 [  40   41   42 ...   77   78   79]
 [  80   81   82 ...  117  118  119]
 ...
 [1480 1481 1482 ... 1517 1518 1519]
 [1520 1521 1522 ... 1557 1558 1559]
 [1560 1561 1562 ... 1597 1598 1599]]
)");
  // Zero strides make many elements of few bytes, and many dimensions many ends.
  Shape wide;
  Strides still;
  for (int k = 0; k < 40; ++k) {
    wide.push_back(2);
    still.push_back(0);
  }
  write(tensor(DescriptorBuilder::strided(DType::int8, wide, still).build(),
               {memory(std::vector<std::int8_t>{5})}));
  const std::string shown = shows();
  EXPECT_LT(shown.size(), 100'000u);
  EXPECT_NE(shown.find("..."), std::string::npos);
  write(tensor(DescriptorBuilder::strided(DType::int8, {std::uint64_t{1} << 60}, {0}).build(),
               {memory(std::vector<std::int8_t>{5})}));
  EXPECT_EQ(shows(), "[5 5 5 ... 5 5 5]\n");
}

TEST_F(Cat, ReadsInBlocks) {
  write(dense(DType::int32, {300, 700}, counting<std::int32_t>(210'000)));
  const json all = json::parse(shows({"--json", "--all", ":,::3"}));
  ASSERT_EQ(all["values"].size(), 300u);
  for (std::size_t i = 0; i < 300; ++i)
    for (std::size_t j = 0; j < 234; ++j) ASSERT_EQ(all["values"][i][j], i * 700 + 3 * j);
}

TEST_F(Cat, RawBytes) {
  write(tensor(DescriptorBuilder::csr(DType::float32, {2, 4}, 1).build(),
               {memory(std::vector<float>{.5f}), memory(std::vector<std::uint64_t>{1}),
                memory(std::vector<std::uint64_t>{0, 1, 1})}));
  EXPECT_EQ(shows({"--raw"}), std::string("\0\0\0\x3f", 4));
  EXPECT_EQ(shows({"--raw", "--buffer", "1"}), std::string("\1\0\0\0\0\0\0\0", 8));
  refuses({"m.hrry", "t", "--raw", "--buffer", "3"}, 1, "it has 3 buffers");
  refuses({"m.hrry", "t", "--raw", "--json"}, 2, "--raw");
  refuses({"m.hrry", "t", "0", "--raw"}, 2, "--raw");
  refuses({"m.hrry", "t", "--buffer", "0"}, 2, "--raw");
}

TEST_F(Cat, RefusesWhatHasNoValues) {
  write_file(at("m.hrry"),
             {{"grid", columns()}, {"e\x1b[2J", {dense<float>(DType::float32, {1}, {1})}}});
  refuses({"m.hrry", "grid"}, 1, "composite");
  refuses({"m.hrry", "no\x1b\n"}, 1, R"(tensor "no\x1b\n": there is no tensor of this name)");
  refuses({"m.hrry"}, 2, "NAME is required");
  refuses({"none.hrry", "t"}, 3, "none.hrry");
  put(at("empty.hrry"), "");
  refuses({"empty.hrry", "t"}, 1, "empty.hrry");
  std::string bytes = contents(at("m.hrry"));
  put(at("cut.hrry"), std::string_view(bytes).substr(0, bytes.size() - 7));
  refuses({"cut.hrry", "grid.0"}, 1, "cut.hrry");
  EXPECT_EQ(run({"cat", "m.hrry", "grid.1"}).out, "[[3 4]\n [5 6]]\n");
  EXPECT_EQ(run({"cat", "m.hrry", "e\x1b[2J"}).out, "[1]\n");

  write(tensor(DescriptorBuilder::csr(DType::float32, {2, 4}, 1).build(),
               {memory(std::vector<float>{.5f}), memory(std::vector<std::uint64_t>{9}),
                memory(std::vector<std::uint64_t>{0, 1, 1})}));
  refuses({"m.hrry", "t"}, 1, "col_indices");
}

}  // namespace
}  // namespace hurray::cli
