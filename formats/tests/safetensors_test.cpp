#include "safetensors.hpp"

#include <gtest/gtest.h>

#include <memory>

#include "safetensors_files.hpp"

namespace hurray::formats {
namespace {

io::Result<SafetensorsHeader> read(const std::string& file) {
  // An exact copy on the heap, so that memory checkers see its end.
  const auto copy = std::make_unique<std::byte[]>(file.size());
  std::memcpy(copy.get(), file.data(), file.size());
  return read_safetensors_header({copy.get(), file.size()}, file.size());
}

/// The whole message of the refusal, or "accepted".
std::string refusal(const std::string& file) {
  const auto header = read(file);
  return header ? "accepted" : to_string(header.error());
}

Errc code(const std::string& file) {
  const auto header = read(file);
  EXPECT_FALSE(header);
  return header ? Errc{} : header.error().code;
}

std::string tensors(std::string_view inside, std::string_view data = {}) {
  return safetensors('{' + std::string(inside) + '}', data);
}

TEST(Safetensors, NoTensors) {
  const auto header = read(safetensors("{}"));
  ASSERT_TRUE(header);
  EXPECT_TRUE(header->tensors.empty());
  EXPECT_TRUE(header->metadata.empty());
  EXPECT_EQ(header->data_offset, 10u);
}

TEST(Safetensors, OrderOfDataAndOfMetadata) {
  const auto header = read(tensors(R"("z":{"dtype":"F32","shape":[2],"data_offsets":[4,12]},)"
                                   R"("__metadata__":{"format":"pt","a":"","é\n":"x\u0000y"},)"
                                   R"("e1":{"dtype":"I8","shape":[0,7],"data_offsets":[4,4]},)"
                                   R"("a":{"data_offsets":[0,4],"shape":[2,1],"dtype":"BF16"},)"
                                   R"("e0":{"dtype":"U64","shape":[3,0],"data_offsets":[0,0]},)"
                                   R"("e2":{"dtype":"I8","shape":[0],"data_offsets":[4,4]},)"
                                   R"("s":{"dtype":"C64","shape":[],"data_offsets":[12,20]})",
                                   "01234567890123456789"));
  ASSERT_TRUE(header) << to_string(header.error());
  std::vector<std::string> names;
  for (const auto& tensor : header->tensors) names.push_back(tensor.name);
  EXPECT_EQ(names, (std::vector<std::string>{"e0", "a", "e1", "e2", "z", "s"}));
  EXPECT_EQ(header->tensors[1].shape, (Shape{2, 1}));
  EXPECT_EQ(header->tensors[1].dtype, DType::bfloat16);
  EXPECT_EQ(header->tensors[4].begin, 4u);
  EXPECT_EQ(header->tensors[4].end, 12u);
  EXPECT_EQ(header->tensors[5].shape.rank(), 0u);
  EXPECT_EQ(header->metadata,
            (io::KeyValues{{"format", "pt"}, {"a", ""}, {"é\n", std::string("x\0y", 3)}}));
}

TEST(Safetensors, EveryTypeHasItsSize) {
  for (const SafetensorsType& row : safetensors_types) {
    SCOPED_TRACE(row.name);
    const unsigned width = row.dtype == DType::bool_ ? 8 : bits(row.dtype);
    const std::string exact =
        safetensors(tensor_a(row.name, "[2,4]", width), std::string(width, 'x'));
    const auto header = read(exact);
    ASSERT_TRUE(header) << to_string(header.error());
    EXPECT_EQ(header->tensors[0].dtype, row.dtype);
    EXPECT_EQ(
        code(safetensors(tensor_a(row.name, "[2,4]", width + 1), std::string(width + 1, 'x'))),
        Errc::length_mismatch);
  }
}

TEST(Safetensors, OtherTypesAreRefusedByName) {
  for (const std::string name : {"F8_E4M3FNUZ", "F8_E5M2FNUZ", "f32", "C128", "I4", ""}) {
    const std::string file = safetensors(tensor_a(name, "[8]", 8), "01234567");
    EXPECT_EQ(code(file), Errc::unsupported);
    EXPECT_EQ(refusal(file),
              "tensor \"a\": dtype: an element type that has no counterpart of the same encoding "
              "(unsupported at byte 22 of the file); \"" +
                  name + "\" cannot be converted");
  }
}

TEST(Safetensors, ElementsThatEndInsideAByte) {
  EXPECT_EQ(
      refusal(safetensors(tensor_a("F4", "[3]", 2), "01")),
      "tensor \"a\": shape: the elements end inside a byte (invalid value at byte 9 of the file)");
  EXPECT_EQ(code(safetensors(tensor_a("F6_E2M3", "[2]", 2), "01")), Errc::invalid_value);
}

TEST(Safetensors, Prefix) {
  EXPECT_EQ(code(""), Errc::truncated);
  EXPECT_EQ(code("1234567"), Errc::truncated);
  EXPECT_EQ(refusal(safetensors("{")),
            "file: expected at least 10 bytes, found 9 (truncated at byte 0 "
            "of the file); pass all of the bytes");
  EXPECT_EQ(refusal(safetensors(" {}")),
            "header: expected 0x7B ('{'), found 0x20 (invalid magic at byte 8 "
            "of the file); these bytes are something else");
  EXPECT_EQ(code(safetensors("[]")), Errc::invalid_magic);
  EXPECT_EQ(
      refusal(safetensors_with_length(3, "{}")),
      "header_length: expected at most 2 bytes, which the file has after it, found 3 (truncated "
      "at byte 0 of the file); pass all of the bytes");
  EXPECT_EQ(code(safetensors_with_length(1, "{}")), Errc::invalid_value);
  EXPECT_EQ(code(safetensors_with_length(0, "{}")), Errc::invalid_value);
  EXPECT_EQ(
      refusal(safetensors_with_length(100'000'001, "{}")),
      "header_length: expected at most 100000000 bytes, found 100000001 (limit exceeded at byte "
      "0 of the file); raise the limit if the source is trusted");
  EXPECT_EQ(code(safetensors_with_length(~std::uint64_t{0}, "{}")), Errc::limit_exceeded);
}

TEST(Safetensors, Spaces) {
  EXPECT_EQ(refusal(safetensors("{}   ")), "accepted");
  EXPECT_EQ(refusal(safetensors("{ \n\t\r }")), "accepted");
  EXPECT_EQ(
      refusal(safetensors("{} \n")),
      "header: expected 32 (a space) after the object, found 10 (invalid value at byte 11 of the "
      "file)");
  EXPECT_EQ(code(safetensors(std::string("{}\0x", 4))), Errc::invalid_value);
  EXPECT_EQ(code(safetensors("{}{}")), Errc::invalid_value);
  EXPECT_EQ(code(safetensors(std::string("{}\0", 3))), Errc::invalid_value);
}

TEST(Safetensors, NotJson) {
  EXPECT_EQ(
      refusal(safetensors("{\"a\":}")),
      "tensor \"a\": header: not JSON (invalid value at byte 13 of the file); syntax error while "
      "parsing value - unexpected '}'; expected '[', '{', or a literal");
  for (const std::string header : {"{\"a\"", "{'a':1}", "{\"a\":1e999}", "{\"a\\ud800\":1}",
                                   "{\"a\xff\":1}", "{,}", "{\"a\":{},}"})
    EXPECT_EQ(code(safetensors(header)), Errc::invalid_value) << header;
}

TEST(Safetensors, OtherForms) {
  const auto a = [](std::string_view value) { return tensors("\"a\":" + std::string(value)); };
  EXPECT_EQ(refusal(a("1")),
            "tensor \"a\": header: expected an object with dtype, shape and "
            "data_offsets (invalid value at byte 13 of the file)");
  for (const std::string value : {"-1", "1.5", "null", "true", "false", "\"x\"", "[]", "[[]]"})
    EXPECT_EQ(code(a(value)), Errc::invalid_value) << value;
  EXPECT_EQ(refusal(a(R"({"dtype":"U8","shape":[1]})")),
            "tensor \"a\": data_offsets: is missing (invalid value at byte 38 of the file)");
  EXPECT_EQ(
      refusal(a(R"({"dtype":"U8","shape":[1],"data_offsets":[0]})")),
      "tensor \"a\": data_offsets: expected 2 numbers, begin and end, found 1 (invalid value at "
      "byte 56 of the file)");
  EXPECT_EQ(
      refusal(a(R"({"dtype":"U8","shape":[1],"data_offsets":[0,1],"x":0})")),
      "tensor \"a\": header: a key that has no meaning (invalid value at byte 60 of the file); "
      "expected dtype, shape and data_offsets, found \"x\"");
  EXPECT_EQ(refusal(a(R"({"dtype":8})")),
            "tensor \"a\": dtype: expected a string (invalid value at byte 22 of the file)");
  EXPECT_EQ(refusal(a(R"({"shape":"[1]"})")),
            "tensor \"a\": shape: expected an array (invalid value at byte 22 of the file)");
  for (const std::string shape : {"[1.0]", "[-1]", "[1e2]", "[[1]]", "[null]", "[\"1\"]", "{}"})
    EXPECT_EQ(code(a("{\"shape\":" + shape + "}")), Errc::invalid_value) << shape;
  EXPECT_EQ(
      refusal(a(R"({"shape":[1,-23]})")),
      "tensor \"a\": shape: expected sizes: whole numbers from 0 to 2^64 - 2 (invalid value at "
      "byte 25 of the file)");
  EXPECT_EQ(refusal(tensors(R"("__metadata__":{"a":1})")),
            "__metadata__: expected a string (invalid value at byte 29 of the file)");
  EXPECT_EQ(code(tensors(R"("__metadata__":{"a":{}})")), Errc::invalid_value);
  EXPECT_EQ(code(tensors(R"("__metadata__":[])")), Errc::invalid_value);
  EXPECT_EQ(refusal(tensors(R"("__metadata__":null)")), "accepted");
}

TEST(Safetensors, Twice) {
  const std::string a = R"("a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]})";
  EXPECT_EQ(
      refusal(tensors(a + "," + a, "x")),
      "tensor \"a\": header: the name occurs twice (duplicate at byte 61 of the file); the other "
      "one is at byte 9");
  EXPECT_EQ(code(tensors(a + R"(,"\u0061":{"dtype":"U8","shape":[0],"data_offsets":[1,1]})", "x")),
            Errc::duplicate);
  EXPECT_EQ(refusal(tensors(R"("a":{"dtype":"U8","dtype":"U8"})")),
            "tensor \"a\": dtype: occurs twice (duplicate at byte 27 of the file)");
  EXPECT_EQ(code(tensors(R"("__metadata__":{"k":"1","k":"1"})")), Errc::duplicate);
  EXPECT_EQ(code(tensors(R"("__metadata__":{},"__metadata__":{})")), Errc::duplicate);
}

TEST(Safetensors, DataThatDoesNotCover) {
  const auto pair = [](int a0, int a1, int b0, int b1, std::string_view data) {
    const auto one = [](std::string_view name, int from, int to) {
      return '"' + std::string(name) + R"(":{"dtype":"U8","shape":[)" + std::to_string(to - from) +
             R"(],"data_offsets":[)" + std::to_string(from) + ',' + std::to_string(to) + "]}";
    };
    return tensors(one("a", a0, a1) + ',' + one("b", b0, b1), data);
  };
  EXPECT_EQ(refusal(pair(0, 2, 2, 4, "0123")), "accepted");
  EXPECT_EQ(refusal(pair(2, 4, 0, 2, "0123")), "accepted");
  EXPECT_EQ(refusal(pair(0, 1, 2, 4, "0123")),
            "tensor \"b\": data_offsets[0]: expected 1 (no bytes between two tensors), found 2 "
            "(inconsistent at byte 61 of the file); two fields contradict each other");
  EXPECT_EQ(refusal(pair(0, 3, 2, 4, "0123")),
            "tensor \"b\": data_offsets[0]: expected 3 (no bytes in two tensors), found 2 "
            "(inconsistent at byte 61 of the file); two fields contradict each other");
  EXPECT_EQ(code(pair(1, 2, 2, 4, "0123")), Errc::inconsistent);
  EXPECT_EQ(code(pair(0, 4, 2, 2, "0123")), Errc::inconsistent);
  EXPECT_EQ(code(pair(0, 4, 0, 4, "0123")), Errc::inconsistent);
  EXPECT_EQ(
      refusal(pair(0, 2, 2, 4, "01234")),
      "data: expected 4 bytes, where the last tensor ends, found 5 (length mismatch at byte 117 "
      "of the file); the bytes after it belong to no tensor");
  EXPECT_EQ(refusal(pair(0, 2, 2, 4, "012")),
            "data: expected 4 bytes, found 3 (truncated at byte 116 of the file); an unfinished "
            "download or copy?");
  EXPECT_EQ(code(safetensors(R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[1,0]}})", "x")),
            Errc::invalid_value);
}

TEST(Safetensors, Sizes) {
  const auto file = [](std::string_view shape, std::uint64_t bytes) {
    return safetensors(tensor_a("F32", shape, bytes));
  };
  EXPECT_EQ(code(file("[18446744073709551615]", 0)), Errc::out_of_bounds);
  EXPECT_EQ(code(file("[0,18446744073709551615]", 0)), Errc::out_of_bounds);
  EXPECT_EQ(code(file("[18446744073709551616]", 0)), Errc::invalid_value);
  EXPECT_EQ(refusal(file("[18446744073709551614,2,0]", 0)), "accepted");
  EXPECT_EQ(code(file("[4611686018427387904]", 0)), Errc::overflow);
  EXPECT_EQ(code(file("[4294967296,4294967296]", 0)), Errc::overflow);
  EXPECT_EQ(code(file("[3]", 18446744073709551615u)), Errc::length_mismatch);

  std::string shape = "[1";
  for (int i = 1; i < 64; ++i) shape += ",1";
  EXPECT_EQ(refusal(safetensors(tensor_a("U8", shape + "]", 1), "x")), "accepted");
  EXPECT_EQ(code(safetensors(tensor_a("U8", shape + ",1]", 1), "x")), Errc::out_of_bounds);
}

TEST(Safetensors, NamesAreShownHarmlessly) {
  const std::string file = tensors("\"\\u001b[31m\":{\"dtype\":\"\\u001b]0;x\"}");
  EXPECT_EQ(refusal(file).find('\x1b'), std::string::npos);
  EXPECT_EQ(code(file), Errc::unsupported);
}

TEST(Safetensors, EveryPrefixAndEveryChangedByte) {
  const std::string good = safetensors(
      R"({"__metadata__":{"k":"v"},"a":{"dtype":"F32","shape":[2,1],"data_offsets":[0,8]},)"
      R"("b":{"dtype":"BOOL","shape":[3],"data_offsets":[8,11]}}  )",
      "01234567890");
  ASSERT_EQ(refusal(good), "accepted");
  for (std::size_t n = 0; n < good.size(); ++n) EXPECT_NE(refusal(good.substr(0, n)), "accepted");
  for (std::size_t i = 0; i < good.size(); ++i)
    for (int bit = 0; bit < 8; ++bit) {
      std::string bad = good;
      bad[i] = static_cast<char>(bad[i] ^ (1 << bit));
      const auto header = read(bad);
      if (!header) continue;  // else what was understood covers the data
      ASSERT_EQ(header->tensors.size(), 2u) << i << ' ' << bit;
      EXPECT_EQ(header->tensors[1].end, 11u);
    }
}

}  // namespace
}  // namespace hurray::formats
