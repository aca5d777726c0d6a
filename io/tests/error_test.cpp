#include "hurray/io/error.hpp"

#include <gtest/gtest.h>

#include <cerrno>
#include <thread>
#include <vector>

namespace hurray::io {
namespace {

using namespace std::string_view_literals;

TEST(Printable, LeavesTextAlone) {
  for (const std::string_view text : {""sv, "model.layers.0"sv, "Größe ∑ 😀"sv, "a b\"c'"sv})
    EXPECT_EQ(printable(text), text);
}

TEST(Printable, EscapesWhatMovesTheCursorOrHides) {
  EXPECT_EQ(printable("a\nb\tc\r\x1B[31m\0\x7F"sv), "a\\nb\\tc\\x0d\\x1b[31m\\x00\\x7f");
  EXPECT_EQ(printable("\\"), "\\\\");
  EXPECT_EQ(printable("\u0085\u009B"), "\\x85\\x9b");          // C1 controls
  EXPECT_EQ(printable("a\u202Eb\u2066"), "a\\u202eb\\u2066");  // right to left, isolate
  EXPECT_EQ(printable("\u2028\u200B\uFEFF"), "\\u2028\\u200b\\ufeff");
  EXPECT_EQ(printable("\U000E0041"), "\\U000e0041");  // a tag
  EXPECT_EQ(printable("\xFF\xC0\x80z"), "\\xff\\xc0\\x80z");
  EXPECT_EQ(printable("\xE2\x82"), "\\xe2\\x82");
}

TEST(IoError, OneLineWithEverything) {
  Error error({.code = Errc::length_mismatch,
               .origin = Origin::file,
               .expect = Expect::exactly,
               .index = 3,
               .field = "index[].data_length",
               .what = "bytes",
               .offset = 12,
               .expected = 6,
               .found = 5},
              "a\nb.hrry", "w\x1B", "do this");
  EXPECT_EQ(to_string(error),
            "a\\nb.hrry: tensor \"w\\x1b\": index[3].data_length: expected 6 bytes, found 5 "
            "(length mismatch at byte 12 of the file); do this");
}

TEST(IoError, TheSystemsWords) {
  Error error({.code = Errc::system, .origin = Origin::file, .what = "open"}, "a.hrry");
  error.system_errno = ENOENT;
  EXPECT_EQ(to_string(error), "a.hrry: open: No such file or directory");
  error.what = "";
  error.system_errno = 123456;
  EXPECT_EQ(to_string(error), "a.hrry: Unknown error 123456");
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([copy = error, t]() mutable {
      copy.system_errno = t % 2 == 0 ? 200000 + t : ENOSPC;
      for (int i = 0; i < 1000; ++i)
        EXPECT_EQ(to_string(copy), t % 2 == 0
                                       ? "a.hrry: Unknown error " + std::to_string(200000 + t)
                                       : "a.hrry: No space left on device");
    });
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace hurray::io
