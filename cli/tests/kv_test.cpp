// `hurray kv`: key-values shown, set and removed.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "hrry_files.hpp"
#include "hurray/io/file.hpp"
#include "running.hpp"

namespace hurray::cli {
namespace {

using nlohmann::json;

class Kv : public Command {
 protected:
  void SetUp() override {
    Command::SetUp();
    write_file(at("m.hrry"), {{"w", {dense<float>(DType::float32, {2}, {1, 2})}}},
               {{"name", std::string("bert")},
                {"epoch", std::int64_t{3}},
                {"list", std::vector<std::string>{"a", "b\n"}},
                {"big", std::uint64_t{1} << 63}});
  }
  io::KeyValues kv(std::string_view file = "m.hrry") const {
    const auto loaded = io::load_kv(at(file).string());
    EXPECT_TRUE(loaded);
    return loaded ? *loaded : io::KeyValues();
  }
  io::KvValue value(std::string_view key) const {
    const io::KeyValues all = kv();
    const io::KvValue* found = io::find(all, key);
    EXPECT_NE(found, nullptr) << key;
    return found != nullptr ? *found : io::KvValue();
  }
  void set(std::vector<std::string> words) const {
    words.insert(words.begin(), {"kv", "set", "m.hrry"});
    const Ran ran = run(words);
    EXPECT_EQ(ran.code, 0) << ran.err;
    const Ran verified = run({"verify", "m.hrry"});
    EXPECT_EQ(verified.code, 0) << verified.err;
    EXPECT_NE(verified.out.find("checksums: valid"), std::string::npos) << verified.out;
  }
  void refuses(std::vector<std::string> words, int code, const std::string& part) const {
    const std::string before = contents(at("m.hrry"));
    words.insert(words.begin(), "kv");
    const Ran ran = run(words);
    EXPECT_EQ(ran.code, code) << ran.err;
    EXPECT_EQ(ran.out, "");
    EXPECT_NE(ran.err.find(part), std::string::npos) << ran.err;
    EXPECT_EQ(contents(at("m.hrry")), before);
  }
};

TEST_F(Kv, Get) {
  EXPECT_EQ(run({"kv", "get", "m.hrry"}).out, R"(KEY    TYPE      VALUE
name   string    "bert"
epoch  int64     3
list   string[]  ["a", "b\n"]
big    uint64    9223372036854775808
)");
  EXPECT_EQ(run({"kv", "get", "m.hrry", "name"}).out, "bert\n");
  EXPECT_EQ(run({"kv", "get", "m.hrry", "list"}).out, "a\nb\\n\n");
  EXPECT_EQ(run({"kv", "get", "--json", "m.hrry", "list"}).out,
            R"({"version":1,"kind":"kv","path":"m.hrry",)"
            R"("kv":[{"key":"list","type":"string","array":true,"value":["a","b\n"]}]})"
            "\n");
  refuses({"get", "m.hrry", "no\x1b"}, 1, R"(no key is "no\x1b")");
  refuses({"get", "none.hrry"}, 3, "none.hrry");
  refuses({"get"}, 2, "FILE is required");
  refuses({}, 2, "A subcommand is required");
}

TEST_F(Kv, SetTakesEveryType) {
  set({"license", "MIT"});
  EXPECT_EQ(value("license"), io::KvValue("MIT"));
  set({"epoch", "--", "-4"});
  EXPECT_EQ(value("epoch"), io::KvValue(std::int64_t{-4}));
  set({"big", "7"});
  EXPECT_EQ(value("big"), io::KvValue(std::uint64_t{7}));
  set({"n", "18446744073709551615", "--type", "int"});
  EXPECT_EQ(value("n"), io::KvValue(~std::uint64_t{0}));
  set({"x", "1e-3", "--type", "float"});
  EXPECT_EQ(value("x"), io::KvValue(1e-3));
  set({"x", "nan", "--type", "float"});
  EXPECT_TRUE(std::isnan(std::get<double>(value("x"))));
  set({"b", "true", "--type", "bool"});
  EXPECT_EQ(value("b"), io::KvValue(true));
  set({"raw", "00 ffA0", "--type", "bytes"});
  EXPECT_EQ(value("raw"), io::KvValue(io::Bytes{std::byte{0}, std::byte{0xFF}, std::byte{0xA0}}));
  set({"list", R"(["x", "é"])"});
  EXPECT_EQ(value("list"), io::KvValue(std::vector<std::string>{"x", "é"}));
  set({"l", "[1, -2]", "--type", "int-list"});
  EXPECT_EQ(value("l"), io::KvValue(std::vector<std::int64_t>{1, -2}));
  set({"l", "[1, 18446744073709551615]", "--type", "int-list"});
  EXPECT_EQ(value("l"), io::KvValue(std::vector<std::uint64_t>{1, ~std::uint64_t{0}}));
  set({"l", R"([1, 2.5, "inf"])", "--type", "float-list"});
  EXPECT_EQ(value("l"), io::KvValue(std::vector<double>{1, 2.5, INFINITY}));
  set({"l", "[]", "--type", "bool-list"});
  EXPECT_EQ(value("l"), io::KvValue(std::vector<bool>{}));
  set({"l", R"(["", "0a"])", "--type", "bytes-list"});
  EXPECT_EQ(value("l"), io::KvValue(std::vector<io::Bytes>{{}, {std::byte{10}}}));
  EXPECT_EQ(kv().front().first, "name");
}

TEST_F(Kv, SetAndRemoveSayWhatTheyDid) {
  EXPECT_EQ(run({"kv", "set", "m.hrry", "epoch", "4"}).out, "m.hrry: epoch is 4 (int64)\n");
  EXPECT_EQ(run({"kv", "rm", "m.hrry", "name", "list", "big"}).out, "m.hrry: removed 3 keys\n");
  EXPECT_EQ(run({"kv", "set", "--json", "m.hrry", "epoch", "5", "--output", "n.hrry"}).out,
            R"({"version":1,"kind":"kv","path":"m.hrry","target":"n.hrry",)"
            R"("kv":[{"key":"epoch","type":"int64","array":false,"value":5}]})"
            "\n");
  EXPECT_EQ(kv("n.hrry"), (io::KeyValues{{"epoch", std::int64_t{5}}}));
  EXPECT_EQ(kv(), (io::KeyValues{{"epoch", std::int64_t{4}}}));
  EXPECT_EQ(run({"verify", "n.hrry"}).code, 0);
  EXPECT_EQ(names(), (std::vector<std::string>{"m.hrry", "n.hrry"}));
  const Ran piped = run({"kv", "set", "m.hrry", "epoch", "5", "--output", "/dev/stdout"});
  EXPECT_EQ(piped.code, 0);
  EXPECT_EQ(piped.out, contents(at("n.hrry")));
}

TEST_F(Kv, RefusesAndChangesNothing) {
  refuses({"set", "m.hrry", "epoch", "four"}, 1, "VALUE: expected an integer");
  refuses({"set", "m.hrry", "n", "18446744073709551616", "--type", "int"}, 1, "integer");
  refuses({"set", "m.hrry", "n", "0x", "--type", "bytes"}, 1, "hexadecimal");
  refuses({"set", "m.hrry", "n", "abc", "--type", "bytes"}, 1, "hexadecimal");
  refuses({"set", "m.hrry", "n", "yes", "--type", "bool"}, 1, "true or false");
  refuses({"set", "m.hrry", "n", "[1,", "--type", "int-list"}, 1, "a JSON array");
  refuses({"set", "m.hrry", "n", "[1, \"a\"]", "--type", "int-list"}, 1, "of every element");
  refuses({"set", "m.hrry", "n", "[1, [2]]", "--type", "float-list"}, 1, "a number");
  refuses({"set", "m.hrry", "n", "1", "--type", "tensor"}, 2, "there is no type tensor");
  refuses({"set", "m.hrry", "hurray.crc32c", "00", "--type", "bytes"}, 1, "hurray.crc32c");
  refuses({"set", "m.hrry", "x", "485252595355 4D31", "--type", "bytes"}, 1, "");
  refuses({"set", "m.hrry", "bad\xff", "x"}, 1, "UTF-8");
  refuses({"set", "m.hrry", "x", "bad\xff"}, 1, "UTF-8");
  refuses({"set", "m.hrry", "", "x"}, 1, "");
  refuses({"set", "m.hrry", "n"}, 2, "VALUE is required");
  refuses({"rm", "m.hrry", "name", "no\nkey"}, 1, R"("no\nkey")");
  refuses({"rm", "m.hrry", "name", "name"}, 1, "\"name\"");
  refuses({"set", "m.hrry", "n", "1", "--output", "no/such/x.hrry"}, 3, "no/such/x.hrry");

  const std::string good = contents(at("m.hrry"));
  for (const std::size_t size : {std::size_t{0}, std::size_t{100}, good.size() - 1}) {
    put(at("cut.hrry"), good.substr(0, size));
    refuses({"set", "cut.hrry", "n", "1"}, 1, "cut.hrry");
    EXPECT_EQ(contents(at("cut.hrry")).size(), size);
  }
  EXPECT_EQ(names(), (std::vector<std::string>{"cut.hrry", "m.hrry"}));
}

}  // namespace
}  // namespace hurray::cli
