// `hurray ls`: what is listed, how names are matched, and what a terminal gets.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "../src/opened.hpp"
#include "hrry_files.hpp"
#include "running.hpp"

namespace hurray::cli {
namespace {

using nlohmann::json;

Tensor zeros(DType dtype, const Shape& shape) {
  const auto bytes = packed_bytes(bits(dtype), shape.count());
  return dense(dtype, shape, std::vector<std::uint8_t>(static_cast<std::size_t>(*bytes)));
}

std::vector<Named> model() {
  std::vector<Named> all = {{"embed", {zeros(DType::float32, {4, 8})}}};
  for (int layer = 0; layer < 12; ++layer)
    for (const char* name : {"attn.weight", "mlp.weight"})
      all.push_back(
          {"layers." + std::to_string(layer) + '.' + name,
           {zeros(DType::bfloat16, layer == 3 && name[0] == 'm' ? Shape{2, 2} : Shape{8, 8})}});
  all.push_back({"grid", columns()});
  return all;
}

TEST(Globs, MatchAsFnmatchDoesWithoutSpecialSlashes) {
  const auto yes = [](std::string_view pattern, std::string_view name) {
    EXPECT_TRUE(matches(pattern, name)) << pattern << " | " << name;
  };
  const auto no = [](std::string_view pattern, std::string_view name) {
    EXPECT_FALSE(matches(pattern, name)) << pattern << " | " << name;
  };
  yes("*", "a/b.c");
  yes("*", "");
  yes("", "");
  no("", "a");
  yes("a*c*e", "abcde");
  no("a*c*e", "abcdef");
  yes("**b", "ab");
  yes("layers.*.weight", "layers.0/x.weight");
  yes("?", "\xC3\xA9");
  no("?", "ab");
  yes("[a-c]x", "bx");
  no("[!a-c]x", "bx");
  yes("[^a-c]x", "dx");
  yes("[]]", "]");
  yes("[]-]", "-");
  yes("[a-]", "-");
  yes("[\xC3\xA0-\xC3\xBF]", "\xC3\xA9");
  yes("x[0-9][0-9]", "x42");
  yes("a[b", "a[b");
  yes("*[b", "a[b");
  yes("w[0]", "w[0]");
  yes("w\\[0\\]", "w[0]");
  no("w\\*", "wx");
  yes("[\\]]", "]");
  yes("?", "\xff");
  yes("a\\", "a\\");
  // Many stars do not make it slow.
  no("*a*a*a*a*a*a*a*a*a*a*b", std::string(20000, 'a'));
}

TEST_F(Command, LsListsTensorsMembersAndSums) {
  write_file(at("m.hrry"), model());
  const Ran ran = run({"ls", "m.hrry", "embed", "grid*", "layers.0.*"});
  EXPECT_EQ(ran.code, 0);
  EXPECT_EQ(ran.err, "");
  EXPECT_EQ(ran.out, R"(NAME                  DTYPE     SHAPE   LAYOUT         BYTES  REMARKS
embed                 float32   [4, 8]  row_major  128 bytes
layers.0.attn.weight  bfloat16  [8, 8]  row_major  128 bytes
layers.0.mlp.weight   bfloat16  [8, 8]  row_major  128 bytes
grid                  int8      [2, 3]  composite    0 bytes  partition of 2 members
  grid.0              int8      [2, 1]  row_major    2 bytes
  grid.1              int8      [2, 2]  row_major    4 bytes

6 tensors, 166 parameters, 390 bytes
  bfloat16: 256 bytes in 2 tensors
  float32: 128 bytes in 1 tensor
  int8: 6 bytes in 2 tensors
1 file, 109.7 KiB
)");
}

TEST_F(Command, LsGroupsLayersThatDifferByNumbersAlone) {
  write_file(at("m.hrry"), model());
  const Ran ran = run({"ls", "m.hrry", "--group"});
  EXPECT_EQ(ran.code, 0);
  for (const char* line : {"layers.{0..11}.attn.weight  ×12  bfloat16  [8, 8]",
                           "layers.{0..2}.mlp.weight  ×3     bfloat16  [8, 8]",
                           "layers.3.mlp.weight              bfloat16  [2, 2]",
                           "layers.{4..11}.mlp.weight  ×8    bfloat16  [8, 8]",
                           "grid                             int8      [2, 3]"})
    EXPECT_NE(ran.out.find(line), std::string::npos) << line << '\n' << ran.out;

  const json groups = json::parse(run({"ls", "--json", "--group", "m.hrry"}).out);
  EXPECT_EQ(groups["kind"], "ls");
  EXPECT_EQ(groups["count"], 28);
  const json& attention = groups["groups"][1];
  EXPECT_EQ(attention["name"], "layers.{0..11}.attn.weight");
  EXPECT_EQ(attention["count"], 12);
  EXPECT_EQ(attention["bytes"], 12 * 128);
}

TEST_F(Command, LsGroupsTwoNumbersAtOnce) {
  std::vector<Named> all;
  for (int layer = 0; layer < 2; ++layer)
    for (int expert = 0; expert < 3; ++expert)
      all.push_back({"l." + std::to_string(layer) + ".e." + std::to_string(expert) + ".w",
                     {zeros(DType::int8, {4})}});
  all.push_back({"x.007", {zeros(DType::int8, {4})}});
  all.push_back({"x.008", {zeros(DType::int8, {4})}});
  write_file(at("m.hrry"), all);
  const json groups = json::parse(run({"ls", "--json", "--group", "m.hrry"}).out);
  ASSERT_EQ(groups["groups"].size(), 3u);
  EXPECT_EQ(groups["groups"][0]["name"], "l.{0..1}.e.{0..2}.w");
  EXPECT_EQ(groups["groups"][0]["count"], 6);
  EXPECT_EQ(groups["groups"][0]["bytes"], 24);
  EXPECT_EQ(groups["groups"][1]["name"], "x.007");
}

TEST_F(Command, LsJson) {
  write_file(at("m.hrry"), {{"grid", columns()}});
  const json all = json::parse(run({"ls", "--json", "m.hrry"}).out);
  EXPECT_EQ(all["version"], 1);
  EXPECT_EQ(all["tensors"][0]["member_of"], nullptr);
  EXPECT_EQ(all["tensors"][1]["member_of"], "grid");
  EXPECT_EQ(all["tensors"][2]["shape"], (json{2, 2}));
  EXPECT_EQ(all["parameters"], 6);
  EXPECT_EQ(all["bytes"], 6);
  EXPECT_EQ(all["dtypes"], json::parse(R"([{"dtype":"int8","tensors":2,"bytes":6}])"));
  EXPECT_EQ(all["files"][0]["path"], "m.hrry");
  EXPECT_EQ(all["files"][0]["tensors"], 3);
}

TEST_F(Command, LsOfHostileNamesAndFiles) {
  const std::string name = "a\x1b[31m\nb\\";
  write_file(at("m.hrry"), {{name, {zeros(DType::int8, {1})}}});
  const Ran ran = run({"ls", "m.hrry"});
  EXPECT_EQ(ran.code, 0);
  EXPECT_EQ(ran.out.find('\x1b'), std::string::npos);
  EXPECT_EQ(json::parse(run({"ls", "--json", "m.hrry"}).out)["tensors"][0]["name"], name);
  EXPECT_EQ(run({"ls", "m.hrry", name}).code, 0);

  const Ran none = run({"ls", "m.hrry", "b*\x1b"});
  EXPECT_EQ(none.code, 1);
  EXPECT_EQ(none.out, "");
  EXPECT_EQ(none.err,
            "hurray: m.hrry: tensor \"b*\\x1b\": no name matches (not found); `hurray ls m.hrry` "
            "lists the names\n");

  put(at("empty"), "");
  EXPECT_EQ(run({"ls", "empty"}).code, 1);
  const std::string bytes = contents(at("m.hrry"));
  for (const std::size_t size : {std::size_t{10}, std::size_t{64}, bytes.size() - 1}) {
    put(at("cut.hrry"), bytes.substr(0, size));
    EXPECT_EQ(run({"ls", "cut.hrry"}).code, 1) << size;
  }
  EXPECT_EQ(run({"ls", "nothing.hrry"}).code, 3);
  EXPECT_EQ(run({"ls"}).code, 2);

  std::string broken = bytes;
  broken[64] = 'X';
  put(at("broken.hrry"), broken);
  const Ran shown = run({"ls", "broken.hrry"});
  EXPECT_EQ(shown.code, 1);
  EXPECT_NE(shown.out.find("broken: "), std::string::npos) << shown.out;
  EXPECT_NE(shown.err.find("1 tensor cannot be read"), std::string::npos) << shown.err;
  EXPECT_TRUE(
      json::parse(run({"ls", "--json", "broken.hrry"}).out)["tensors"][0].contains("error"));

  write_file(at("none.hrry"), {});
  EXPECT_EQ(run({"ls", "none.hrry"}).out, "0 tensors, 0 parameters, 0 bytes\n1 file, 176 bytes\n");
}

/// What the command shows on a terminal of so many columns.
std::string on_terminal(const std::function<Ran(const std::function<void()>&)>& run,
                        unsigned short columns) {
  const int terminal = posix_openpt(O_RDWR | O_NOCTTY);
  EXPECT_GE(terminal, 0);
  EXPECT_EQ(grantpt(terminal), 0);
  EXPECT_EQ(unlockpt(terminal), 0);
  const std::string name = ptsname(terminal);
  const int slave = ::open(name.c_str(), O_RDWR | O_NOCTTY);
  EXPECT_GE(slave, 0);
  const winsize size{.ws_row = 24, .ws_col = columns, .ws_xpixel = 0, .ws_ypixel = 0};
  EXPECT_EQ(ioctl(slave, TIOCSWINSZ, &size), 0);
  run([slave] { dup2(slave, 1); });
  std::string all(1 << 16, '\0');
  const ssize_t got = ::read(terminal, all.data(), all.size());
  all.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
  ::close(slave);
  ::close(terminal);
  return all;
}

TEST_F(Command, LsFitsTheTerminal) {
  const std::string name = "encoder." + std::string(60, 'x') + ".weight";
  write_file(at("m.hrry"), {{name, {zeros(DType::int8, {1})}}});
  const auto shown = [&](const char* variables, unsigned short columns) {
    return on_terminal(
        [&](const std::function<void()>& before) {
          return run({"ls", "m.hrry"}, [&] {
            unsetenv("NO_COLOR");
            unsetenv("COLUMNS");
            setenv("TERM", "xterm", 1);
            if (*variables != '\0') putenv(const_cast<char*>(variables));
            before();
          });
        },
        columns);
  };
  const std::string narrow = shown("", 60);
  EXPECT_NE(narrow.find("\x1b[1mNAME"), std::string::npos) << narrow;
  EXPECT_NE(narrow.find("encoder.xxxx"), std::string::npos) << narrow;
  EXPECT_NE(narrow.find("…"), std::string::npos) << narrow;
  EXPECT_NE(narrow.find("x.weight"), std::string::npos) << narrow;
  EXPECT_EQ(narrow.find(name), std::string::npos);
  EXPECT_NE(shown("COLUMNS=200", 60).find(name), std::string::npos);
  EXPECT_NE(shown("", 200).find(name), std::string::npos);
  EXPECT_EQ(shown("NO_COLOR=1", 60).find('\x1b'), std::string::npos);
  EXPECT_NE(run({"ls", "m.hrry"}).out.find(name), std::string::npos);
}

}  // namespace
}  // namespace hurray::cli
