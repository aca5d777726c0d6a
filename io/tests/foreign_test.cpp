#include <gtest/gtest.h>

#include "file_support.hpp"

namespace hurray::io {
namespace {

/// What opening such a file says.
std::string opened(std::string_view content) {
  const TemporaryFolder folder;
  write_bytes(folder / "model.hrry", bytes_of(content));
  const auto file = File::open(folder / "model.hrry");
  EXPECT_FALSE(file);
  if (file) return {};
  EXPECT_EQ(file.error().code, Errc::invalid_magic);
  EXPECT_EQ(file.error().origin, Origin::file);
  return to_string(file.error()).substr((folder / "model.hrry").size());
}

using namespace std::string_view_literals;

TEST(ForeignFile, IsNamedForWhatItIs) {
  struct Case {
    std::string_view content;
    std::string_view says;
  };
  const std::string npz = "PK\x03\x04" + std::string(26, 'x') + "weights.npy";
  const std::string torch = "PK\x03\x04" + std::string(26, 'x') + "archive/data.pkl";
  const Case cases[] = {
      {"", "it is an empty file; unfinished download or write?"},
      {"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 5000000000\n",
       "it is a Git LFS pointer to 5.0 GB; run git lfs pull"},
      {"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 999\n",
       "it is a Git LFS pointer to 999 bytes; run git lfs pull"},
      {"version https://git-lfs.github.com/spec/v1\n", "it is a Git LFS pointer; run git lfs pull"},
      {"\xEF\xBB\xBF \n<!DOCTYPE HTML><title>404</title>", "it is an HTML page"},
      {"<html>", "it is an HTML page"},
      {"\x0A\0\0\0\0\0\0\0{\"a\": {}}  "sv, "it is a safetensors file; `hurray convert`"},
      {"GGUF\3\0\0\0"sv, "it is a GGUF model; `hurray convert`"},
      {"\x93NUMPY\1\0"sv, "it is a NumPy .npy array"},
      {npz, "it is a NumPy .npz archive"},
      {torch, "it is a PyTorch checkpoint"},
      {"PK\x03\x04", "it is a zip archive"},
      {"HRRY\1\0\x35\0\0\0"sv, "it is a bare Hurray descriptor or a Hurray stream"},
      {"{\"weight_map\": {}}", "it is a JSON text"},
      {"\0\0\0\0\0\0\0\0\0\0"sv, "it is nothing but zeros at the start"},
      {"something else", "a .hrry file begins with HRRYFILE"},
  };
  for (const Case& c : cases) {
    const std::string message = opened(c.content);
    EXPECT_NE(message.find(c.says), std::string::npos) << message;
    EXPECT_TRUE(message.starts_with(": magic: this is no .hrry file")) << message;
  }
}

TEST(ForeignFile, LargeSizesAreForPeople) {
  const auto pointer = [](std::string_view size) {
    return describe_foreign_file(
        bytes_of("version https://git-lfs.github.com/spec/v1\nsize " + std::string(size) + "\n"),
        100);
  };
  EXPECT_EQ(pointer("1000"), "a Git LFS pointer to 1.0 kB; run git lfs pull");
  EXPECT_EQ(pointer("999949"), "a Git LFS pointer to 999.9 kB; run git lfs pull");
  EXPECT_EQ(pointer("999950"), "a Git LFS pointer to 1.0 MB; run git lfs pull");
  EXPECT_EQ(pointer("90868376"), "a Git LFS pointer to 90.9 MB; run git lfs pull");
  EXPECT_EQ(pointer("18446744073709551615"), "a Git LFS pointer to 18446.7 PB; run git lfs pull");
  EXPECT_EQ(pointer("99999999999999999999"), "a Git LFS pointer; run git lfs pull");
}

TEST(ForeignFile, BeginningOfOurOwnIsTruncated) {
  const TemporaryFolder folder;
  write_bytes(folder / "a.hrry", bytes_of("HRRYFI"));
  const Error error = error_of(File::open(folder / "a.hrry"));
  EXPECT_EQ(error.code, Errc::truncated);
  EXPECT_NE(to_string(error).find("unfinished download or write?"), std::string::npos);
}

}  // namespace
}  // namespace hurray::io
