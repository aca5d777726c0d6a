#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <string_view>

#include "hurray/buffer.hpp"
#include "hurray/formats/formats.hpp"
#include "hurray/io/file.hpp"

namespace hurray::formats {
namespace {

std::string npy(std::string_view header, std::string_view data = {}, unsigned major = 1) {
  std::string file("\x93NUMPY", 6);
  file += static_cast<char>(major);
  file += '\0';
  for (unsigned i = 0; i < (major == 1 ? 2u : 4u); ++i)
    file += static_cast<char>(header.size() >> (8 * i) & 0xFF);
  return file.append(header).append(data);
}

std::string header(std::string_view descr, std::string_view shape, bool fortran = false) {
  std::string text = "{'descr': '";
  text.append(descr).append("', 'fortran_order': ").append(fortran ? "True" : "False");
  return text.append(", 'shape': ").append(shape).append(", }   \n");
}

io::Result<io::File> open(const std::string& bytes) {
  auto image = Buffer::allocate(bytes.size());
  EXPECT_TRUE(image);
  std::memcpy(image->data(), bytes.data(), bytes.size());
  io::OpenOptions options;
  options.mode = io::Mode::memory;
  options.foreign = reader();
  return io::File::over(*std::move(image), options);
}

/// "" for what is taken.
std::string refusal(const std::string& bytes) {
  const auto file = open(bytes);
  return file ? "" : to_string(file.error());
}

std::string content(const io::File& file) {
  const auto tensor = file.tensor(0);
  EXPECT_TRUE(tensor);
  const Buffer& buffer = tensor->buffer(0);
  return {reinterpret_cast<const char*>(buffer.data()), buffer.size()};
}

TEST(Npy, ArraysAreTensors) {
  struct Row {
    std::string_view descr, shape, stored, seen;
    DType dtype;
    bool fortran = false;
    std::uint64_t count = 1;
  };
  using namespace std::string_view_literals;
  for (const Row& row : {
           Row{"<i2", "(3,)", "\1\2\3\4\5\6"sv, "\1\2\3\4\5\6"sv, DType::int16, false, 3},
           Row{">i2", "(3,)", "\1\2\3\4\5\6"sv, "\2\1\4\3\6\5"sv, DType::int16, false, 3},
           Row{">f8", "()", "\1\2\3\4\5\6\7\x8"sv, "\x8\7\6\5\4\3\2\1"sv, DType::float64},
           Row{">c8", "(1, 1)", "\1\2\3\4\5\6\7\x8"sv, "\4\3\2\1\x8\7\6\5"sv, DType::complex64},
           Row{"|u1", "(2, 3)", "abcdef"sv, "abcdef"sv, DType::uint8, true, 6},
           Row{"|b1", "(10L,)", "\1\0\0\1\0\0\0\0\0\2"sv, "\x09\x02"sv, DType::bool_, false, 10},
           Row{"<f4", "(0, 5)", ""sv, ""sv, DType::float32, true, 0},
       }) {
    for (const unsigned major : {1u, 2u, 3u}) {
      const auto file = open(npy(header(row.descr, row.shape, row.fortran), row.stored, major));
      ASSERT_TRUE(file) << to_string(file.error());
      EXPECT_EQ(file->format(), "npy");
      EXPECT_EQ(file->name(0), "array");
      const auto descriptor = file->descriptor(0);
      ASSERT_TRUE(descriptor);
      EXPECT_EQ(descriptor->dtype, row.dtype);
      EXPECT_EQ(descriptor->shape.count(), row.count);
      EXPECT_EQ(std::holds_alternative<ColumnMajor>(descriptor->layout), row.fortran);
      EXPECT_EQ(content(*file), row.seen);
    }
  }
}

TEST(Npy, OtherThingsAreRefusedByNameAndPlace) {
  const std::string good = npy(header("<i2", "(3,)"), "abcdef");
  EXPECT_EQ(refusal(good), "");
  EXPECT_EQ(
      refusal(good + "x"),
      "data: expected 6 bytes, as shape and descr make, found 7 (length mismatch at byte 71 of "
      "the file); two lengths disagree");
  EXPECT_EQ(refusal(good.substr(0, good.size() - 1)),
            "data: expected 6 bytes, as shape and descr make, found 5 (truncated at byte 71 of the "
            "file); pass all of the bytes");
  EXPECT_EQ(refusal(npy(header("|O", "(3,)"))),
            "descr: an element type that has no counterpart of the same encoding (unsupported at "
            "byte 20 of the file); \"|O\" cannot be converted");
  for (const std::string_view descr : {"<U5", "|V2", "<i3", "|i2", "i2", "", "<", "=i2", "<m8[ns]"})
    EXPECT_NE(refusal(npy(header(descr, "(0,)"))).find("cannot be converted"), std::string::npos)
        << descr;
  EXPECT_NE(refusal(npy("{'descr': [('a', '<i4')], 'fortran_order': False, 'shape': (0,), }"))
                .find("structured types"),
            std::string::npos);
  for (const std::string_view text :
       {"{ ", "{}", "{'descr'}", "{'descr': '<i2'", "{'descr': '<i2', 'descr': '<i2'}",
        "{'descr': '<i2', 'fortran_order': 0, 'shape': ()}",
        "{'descr': '<i2', 'fortran_order': False, 'shape': (,)}",
        "{'descr': '<i2', 'fortran_order': False, 'shape': (-1,)}",
        "{'descr': '<i2', 'fortran_order': False, 'shape': (18446744073709551615,)}",
        "{'descr': '<i2', 'fortran_order': False, 'shape': (1 1)}",
        "{'descr': '<i2', 'fortran_order': False, 'shape': 3}", "{'more': 1}",
        "{'descr': '<i2', 'fortran_order': False, 'shape': (0,)} x", "[1]"})
    EXPECT_NE(refusal(npy(text)).find("is not one that NumPy writes"), std::string::npos) << text;
  EXPECT_NE(refusal(npy(header("<f8", "(9223372036854775807, 9223372036854775807)"))), "");
  EXPECT_NE(refusal(npy(header("<i2", "(0,)"), "", 4)).find("version_major"), std::string::npos);
  for (std::size_t size = 6; size < good.size(); ++size)
    EXPECT_NE(refusal(good.substr(0, size)), "") << size;
  std::string long_header = npy(header("<i2", "(0,)"), "", 2);
  std::memcpy(long_header.data() + 8, "\xFF\xFF\xFF\x7F", 4);
  EXPECT_NE(refusal(long_header).find("header_length"), std::string::npos);
}

}  // namespace
}  // namespace hurray::formats
