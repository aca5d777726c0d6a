#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "hurray/buffer.hpp"
#include "hurray/dequantize.hpp"
#include "hurray/formats/formats.hpp"
#include "hurray/formats/gguf.hpp"
#include "hurray/io/file.hpp"

namespace hurray::formats {
namespace {

using namespace std::string_literals;
using namespace std::string_view_literals;

template <class T>
std::string le(T value) {
  std::string bytes(sizeof value, '\0');
  std::memcpy(bytes.data(), &value, sizeof value);
  return bytes;
}
std::string u32(std::uint32_t value) { return le(value); }
std::string u64(std::uint64_t value) { return le(value); }
std::string text(std::string_view bytes) { return u64(bytes.size()).append(bytes); }

/// A key-value of the type with that number.
std::string kv(std::string_view key, std::uint32_t type, std::string_view value) {
  return text(key) + u32(type) + std::string(value);
}
std::string array(std::uint32_t type, std::uint64_t count, std::string_view elements) {
  return u32(type) + u64(count) + std::string(elements);
}
std::string info(std::string_view name, const std::vector<std::uint64_t>& ne, std::uint32_t type,
                 std::uint64_t offset) {
  std::string bytes = text(name) + u32(static_cast<std::uint32_t>(ne.size()));
  for (const std::uint64_t n : ne) bytes += u64(n);
  return bytes + u32(type) + u64(offset);
}

struct Parts {
  std::vector<std::string> kvs = {};
  std::vector<std::string> infos = {};
  std::string data = {};
  std::uint32_t version = 3;
  std::size_t alignment = 32;
};

std::string gguf(const Parts& parts) {
  std::string file = "GGUF" + u32(parts.version) + u64(parts.infos.size()) + u64(parts.kvs.size());
  for (const std::string& one : parts.kvs) file += one;
  for (const std::string& one : parts.infos) file += one;
  if (!parts.infos.empty())
    file.resize((file.size() + parts.alignment - 1) / parts.alignment * parts.alignment);
  return file + parts.data;
}

io::Result<io::File> open(const std::string& bytes, io::OpenOptions options = {}) {
  auto image = Buffer::allocate(bytes.size());
  EXPECT_TRUE(image);
  if (!bytes.empty()) std::memcpy(image->data(), bytes.data(), bytes.size());
  options.mode = io::Mode::memory;
  options.foreign = reader();
  return io::File::over(*std::move(image), options);
}

/// "" for what is taken.
std::string refusal(const std::string& bytes, const io::OpenOptions& options = {}) {
  const auto file = open(bytes, options);
  return file ? "" : to_string(file.error());
}

std::string refused(const Parts& parts) { return refusal(gguf(parts)); }

std::string content(const Tensor& tensor, std::size_t buffer = 0) {
  const Buffer& bytes = tensor.buffer(buffer);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// Values of a file with one tensor.
std::vector<float> values(const io::File& file) {
  const auto tensor = file.tensor(0);
  EXPECT_TRUE(tensor) << to_string(tensor.error());
  const auto plain = dequantize(*tensor);
  EXPECT_TRUE(plain) << to_string(plain.error());
  std::vector<float> values(plain->descriptor().shape.count());
  std::memcpy(values.data(), plain->buffer(0).data(), values.size() * sizeof(float));
  return values;
}

/// The one value of a file with one key.
io::KvValue only_value(std::uint32_t type, std::string_view value, char code) {
  const auto file = open(gguf({.kvs = {kv("k", type, value)}}));
  if (!file) {
    ADD_FAILURE() << to_string(file.error());
    return {};
  }
  EXPECT_EQ(file->kv().size(), 2u);
  EXPECT_EQ(file->kv()[0].first, "k");
  EXPECT_EQ(file->kv()[1].first, gguf_types_key);
  EXPECT_EQ(file->kv()[1].second, io::KvValue(std::string(1, code)));
  return file->kv()[0].second;
}

io::Bytes bytes_of(std::string_view text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

/// A scale as float16: 1, 2, 0.5 … by their bits.
std::string half(std::uint16_t bits) { return le(bits); }

TEST(Gguf, ValuesKeepTheirTypes) {
  using S = std::uint64_t;
  EXPECT_EQ(only_value(0, "\xFF", 'a'), io::KvValue(S{255}));
  EXPECT_EQ(only_value(1, "\xFF", 'b'), io::KvValue(std::int64_t{-1}));
  EXPECT_EQ(only_value(2, "\xFF\xFF", 'c'), io::KvValue(S{65535}));
  EXPECT_EQ(only_value(3, "\xFE\xFF", 'd'), io::KvValue(std::int64_t{-2}));
  EXPECT_EQ(only_value(4, u32(0xFFFFFFFF), 'e'), io::KvValue(S{0xFFFFFFFF}));
  EXPECT_EQ(only_value(5, u32(0x80000000), 'f'), io::KvValue(std::int64_t{-2147483648LL}));
  EXPECT_EQ(only_value(6, le(1e-6f), 'g'), io::KvValue(double{1e-6f}));
  EXPECT_EQ(only_value(7, "\1", 'h'), io::KvValue(true));
  EXPECT_EQ(only_value(7, "\0"sv, 'h'), io::KvValue(false));
  EXPECT_EQ(only_value(8, text("héllo"), 'i'), io::KvValue(std::string("héllo")));
  EXPECT_EQ(only_value(8, text(""), 'i'), io::KvValue(std::string()));
  EXPECT_EQ(only_value(8, text("\xFF\xFE"), 'i'), io::KvValue(bytes_of("\xFF\xFE")));
  EXPECT_EQ(only_value(10, u64(UINT64_MAX), 'k'), io::KvValue(UINT64_MAX));
  EXPECT_EQ(only_value(11, u64(UINT64_MAX), 'l'), io::KvValue(std::int64_t{-1}));
  EXPECT_EQ(only_value(12, le(0.1), 'm'), io::KvValue(0.1));

  // Bits of NaNs stay: a quiet and a signalling one.
  for (const std::uint32_t bits : {0xFFC00001u, 0x7F800001u, 0x7F800000u}) {
    const auto wide = std::bit_cast<std::uint64_t>(std::get<double>(only_value(6, u32(bits), 'g')));
    const std::uint64_t sign = std::uint64_t{bits >> 31} << 63;
    EXPECT_EQ(wide, sign | 0x7FF0000000000000 | std::uint64_t{bits & 0x7FFFFF} << 29) << bits;
  }
}

TEST(Gguf, ArraysKeepTheirTypes) {
  using std::vector;
  using S = std::uint64_t;
  using I = std::int64_t;
  EXPECT_EQ(only_value(9, array(0, 3, "\1\2\xFF"), 'A'), io::KvValue(vector<S>{1, 2, 255}));
  EXPECT_EQ(only_value(9, array(1, 2, "\1\xFF"), 'B'), io::KvValue(vector<I>{1, -1}));
  EXPECT_EQ(only_value(9, array(2, 2, "\1\0\2\1"sv), 'C'), io::KvValue(vector<S>{1, 258}));
  EXPECT_EQ(only_value(9, array(3, 1, "\xFF\xFF"), 'D'), io::KvValue(vector<I>{-1}));
  EXPECT_EQ(only_value(9, array(4, 1, u32(7)), 'E'), io::KvValue(vector<S>{7}));
  EXPECT_EQ(only_value(9, array(5, 2, u32(7) + u32(0xFFFFFFFF)), 'F'),
            io::KvValue(vector<I>{7, -1}));
  EXPECT_EQ(only_value(9, array(6, 2, le(0.1f) + le(-2.f)), 'G'),
            io::KvValue(vector<double>{0.1f, -2}));
  EXPECT_EQ(only_value(9, array(7, 3, "\1\0\1"sv), 'H'),
            io::KvValue(vector<bool>{true, false, true}));
  EXPECT_EQ(only_value(9, array(8, 2, text("a") + text("")), 'I'),
            io::KvValue(vector<std::string>{"a", ""}));
  EXPECT_EQ(only_value(9, array(8, 2, text("a") + text("\xFF")), 'I'),
            io::KvValue(vector<io::Bytes>{bytes_of("a"), bytes_of("\xFF")}));
  EXPECT_EQ(only_value(9, array(10, 1, u64(9)), 'K'), io::KvValue(vector<S>{9}));
  EXPECT_EQ(only_value(9, array(11, 1, u64(UINT64_MAX)), 'L'), io::KvValue(vector<I>{-1}));
  EXPECT_EQ(only_value(9, array(12, 1, le(0.1)), 'M'), io::KvValue(vector<double>{0.1}));

  for (const std::uint32_t type : {0u, 1u, 2u, 3u, 4u, 5u, 6u, 7u, 8u, 10u, 11u, 12u})
    EXPECT_EQ(only_value(9, array(type, 0, ""), static_cast<char>('A' + type)),
              io::KvValue(io::Bytes()));
  const std::string nested = array(9, 4,
                                   array(8, 2, text("a") + text("bc")) + array(0, 0, "") +
                                       array(5, 1, u32(3)) + array(9, 1, array(7, 1, "\1")));
  EXPECT_EQ(only_value(9, nested, 'J'), io::KvValue(bytes_of(nested)));
  EXPECT_EQ(only_value(9, array(9, 0, ""), 'J'), io::KvValue(bytes_of(array(9, 0, ""))));
}

TEST(Gguf, TypesAreInTheOrderOfTheKeys) {
  const auto file = open(gguf({.kvs = {kv("b", 0, "\1"), kv("a", 8, text("x")),
                                       kv("c", 9, array(7, 1, "\1")), kv("d", 12, le(1.5))}}));
  ASSERT_TRUE(file) << to_string(file.error());
  EXPECT_EQ(file->format(), "gguf");
  ASSERT_EQ(file->kv().size(), 5u);
  EXPECT_EQ(file->kv()[0].first, "b");
  EXPECT_EQ(file->kv()[3].first, "d");
  EXPECT_EQ(file->kv()[4].second, io::KvValue(std::string("aiHm")));
}

TEST(Gguf, PlainTypesAreAsTheyStand) {
  struct Row {
    std::uint32_t type;
    DType dtype;
    std::size_t width;
  };
  for (const Row& row :
       {Row{0, DType::float32, 4}, Row{1, DType::float16, 2}, Row{24, DType::int8, 1},
        Row{25, DType::int16, 2}, Row{26, DType::int32, 4}, Row{27, DType::int64, 8},
        Row{28, DType::float64, 8}, Row{30, DType::bfloat16, 2}}) {
    std::string data(6 * row.width, '\0');
    for (std::size_t i = 0; i < data.size(); ++i) data[i] = static_cast<char>(i + 1);
    for (const std::uint32_t version : {2u, 3u}) {
      const auto file = open(gguf({.infos = {info("w", {3, 2}, row.type, 0), info("s", {}, 24, 64)},
                                   .data = data + std::string(64 - data.size(), '\0') + "z",
                                   .version = version}));
      ASSERT_TRUE(file) << to_string(file.error());
      ASSERT_EQ(file->size(), 2u);
      EXPECT_EQ(file->name(0), "w");
      const auto tensor = file->tensor(0);
      ASSERT_TRUE(tensor);
      EXPECT_EQ(tensor->descriptor().dtype, row.dtype);
      EXPECT_EQ(tensor->descriptor().shape, (Shape{2, 3}));
      EXPECT_EQ(tensor->descriptor().quantization(), nullptr);
      EXPECT_EQ(content(*tensor), data);
      const auto scalar = file->tensor(1);
      ASSERT_TRUE(scalar);
      EXPECT_EQ(scalar->descriptor().shape.rank(), 0u);
      EXPECT_EQ(content(*scalar), "z");
      EXPECT_EQ(io::find(file->kv(), gguf_block_types_key), nullptr);
    }
  }
}

TEST(Gguf, Q8_0) {
  std::string codes;
  for (int i = 0; i < 32; ++i) codes += static_cast<char>(i * 8 - 128);
  // Scales: -0.5, then 0 with codes that are not.
  const auto file = open(gguf(
      {.infos = {info("w", {64}, 8, 0)}, .data = half(0xB800) + codes + half(0x8000) + codes}));
  ASSERT_TRUE(file) << to_string(file.error());
  const auto tensor = file->tensor(0);
  ASSERT_TRUE(tensor);
  EXPECT_EQ(tensor->descriptor().dtype, DType::int8);
  EXPECT_EQ(content(*tensor), codes + std::string(32, '\0'));
  EXPECT_EQ(content(*tensor, 1), half(0xB800) + half(0x3C00));
  const auto* quantization = tensor->descriptor().quantization();
  ASSERT_NE(quantization, nullptr);
  EXPECT_EQ(quantization->scheme,
            Scheme(PerBlockAffine{.axis = 0, .block_size = 32, .scale_type = DType::float16}));
  const auto seen = values(*file);
  for (int i = 0; i < 32; ++i) {
    EXPECT_EQ(seen[static_cast<std::size_t>(i)], -0.5f * static_cast<float>(i * 8 - 128));
    EXPECT_EQ(seen[static_cast<std::size_t>(i) + 32], 0);
  }
}

TEST(Gguf, Q4_0) {
  std::string nibbles;  // element j is j % 16, element j + 16 is 15 - j % 16
  for (int j = 0; j < 16; ++j) nibbles += static_cast<char>(j | (15 - j) << 4);
  const auto file = open(gguf(
      {.infos = {info("w", {32, 2}, 2, 0)}, .data = half(0x4000) + nibbles + half(0) + nibbles}));
  ASSERT_TRUE(file) << to_string(file.error());
  const auto tensor = file->tensor(0);
  ASSERT_TRUE(tensor);
  EXPECT_EQ(tensor->descriptor().dtype, DType::int4);
  EXPECT_EQ(tensor->descriptor().shape, (Shape{2, 32}));
  EXPECT_EQ(content(*tensor, 1), half(0x4000) + half(0x3C00));
  const auto seen = values(*file);
  for (int j = 0; j < 16; ++j) {
    const auto at = static_cast<std::size_t>(j);
    EXPECT_EQ(seen[at], 2.f * static_cast<float>(j - 8));
    EXPECT_EQ(seen[at + 16], 2.f * static_cast<float>(7 - j));
    EXPECT_EQ(seen[at + 32], 0);
    EXPECT_EQ(seen[at + 48], 0);
  }
}

TEST(Gguf, Q5_0) {
  // Element j is j: the lower half has a clear fifth bit, the upper one a set one.
  std::string nibbles;
  for (int j = 0; j < 16; ++j) nibbles += static_cast<char>(j | j << 4);
  const auto file = open(
      gguf({.infos = {info("w", {32}, 6, 0)}, .data = half(0x3C00) + u32(0xFFFF0000) + nibbles}));
  ASSERT_TRUE(file) << to_string(file.error());
  EXPECT_EQ(file->descriptor(0)->dtype, DType::int8);
  const auto seen = values(*file);
  for (int j = 0; j < 32; ++j)
    EXPECT_EQ(seen[static_cast<std::size_t>(j)], static_cast<float>(j - 16));
}

TEST(Gguf, Q6_K) {
  std::string block(210, '\0');
  // Element 0 of each group of 32 in the first half: 1 + 16 * group, less 32.
  block[0] = '\x11';   // groups 0 and 2, low nibble and high one
  block[32] = '\x11';  // groups 1 and 3
  block[128] = static_cast<char>(0b11'10'01'00);
  for (std::size_t i = 0; i < 16; ++i)
    block[192 + i] = static_cast<char>(i == 15 ? 0 : -1 - int(i));
  block.replace(208, 2, half(0x0001));  // 2^-24, the smallest one
  const auto file = open(gguf({.infos = {info("w", {256, 1}, 14, 0)}, .data = block}));
  ASSERT_TRUE(file) << to_string(file.error());
  const auto descriptor = file->descriptor(0);
  ASSERT_TRUE(descriptor);
  EXPECT_EQ(descriptor->quantization()->scheme,
            Scheme(PerBlockAffine{.axis = 1, .block_size = 16, .scale_type = DType::float32}));
  EXPECT_EQ(content(*file->tensor(0), 1).substr(15 * 4), le(1.f));
  const auto seen = values(*file);
  for (std::size_t i = 0; i < 256; ++i) {
    const float factor = i / 16 == 15 ? 0.f : -1.f - static_cast<float>(i / 16);
    const float code = i < 128 && i % 32 == 0 ? 16 * static_cast<float>(i / 32) - 31 : -32;
    EXPECT_EQ(seen[i], std::ldexp(factor, -24) * code) << i;
  }
}

TEST(Gguf, ScalesThatAreNotFiniteAreRefusedWhenTheyAreRead) {
  for (const std::uint32_t type : {2u, 6u, 8u, 14u}) {
    const std::size_t size = type == 2 ? 18 : type == 6 ? 22 : type == 8 ? 34 : 210;
    for (const std::uint16_t bits : std::vector<std::uint16_t>{0x7C00, 0xFC00, 0x7E00}) {
      std::string block(size, '\0');
      block.replace(type == 14 ? 208 : 0, 2, half(bits));
      const auto file =
          open(gguf({.infos = {info("w", {type == 14 ? 256u : 32u}, type, 0)}, .data = block}));
      ASSERT_TRUE(file);
      const auto tensor = file->tensor(0);
      ASSERT_FALSE(tensor);
      const std::string words = to_string(tensor.error());
      EXPECT_NE(words.find("a block whose scale is not a finite number"), std::string::npos)
          << words;
      EXPECT_EQ(tensor.error().tensor, "w");
    }
  }
}

TEST(Gguf, OtherTypesAreKeptBlockForBlock) {
  struct Row {
    std::uint32_t type;
    std::string_view name;
    std::uint64_t elements, bytes;
  };
  Parts parts;
  const std::vector<Row> rows{
      {3, "Q4_1", 32, 20},      {7, "Q5_1", 32, 24},      {9, "Q8_1", 32, 40},
      {10, "Q2_K", 256, 84},    {11, "Q3_K", 256, 110},   {12, "Q4_K", 256, 144},
      {13, "Q5_K", 256, 176},   {15, "Q8_K", 256, 292},   {16, "IQ2_XXS", 256, 66},
      {17, "IQ2_XS", 256, 74},  {18, "IQ3_XXS", 256, 98}, {19, "IQ1_S", 256, 50},
      {20, "IQ4_NL", 32, 18},   {21, "IQ3_S", 256, 110},  {22, "IQ2_S", 256, 82},
      {23, "IQ4_XS", 256, 136}, {29, "IQ1_M", 256, 56},   {34, "TQ1_0", 256, 54},
      {35, "TQ2_0", 256, 66},   {39, "MXFP4", 32, 17},    {40, "NVFP4", 64, 36},
      {41, "Q1_0", 128, 18}};
  for (const Row& row : rows) {
    parts.infos.push_back(info(row.name, {2 * row.elements, 3}, row.type, parts.data.size()));
    parts.data += std::string(6 * row.bytes, static_cast<char>(row.type));
    parts.data.resize((parts.data.size() + 31) / 32 * 32);
  }
  parts.infos.push_back(info("plain", {1}, 24, parts.data.size()));
  parts.data += 'x';
  const auto file = open(gguf(parts));
  ASSERT_TRUE(file) << to_string(file.error());
  std::vector<std::string> names;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    names.emplace_back(rows[i].name);
    const auto tensor = file->tensor(i);
    ASSERT_TRUE(tensor);
    EXPECT_EQ(tensor->descriptor().dtype, DType::uint8);
    EXPECT_EQ(tensor->descriptor().shape, (Shape{3, 2 * rows[i].bytes})) << rows[i].name;
    EXPECT_EQ(content(*tensor), std::string(6 * rows[i].bytes, static_cast<char>(rows[i].type)));
  }
  EXPECT_EQ(*io::find(file->kv(), gguf_block_tensors_key), io::KvValue(names));
  EXPECT_EQ(*io::find(file->kv(), gguf_block_types_key), io::KvValue(names));
}

TEST(Gguf, EmptyTensors) {
  const auto file = open(gguf({.infos = {info("a", {0, 5}, 0, 0), info("b", {0, 3}, 8, 0),
                                         info("c", {256, 0}, 12, 0), info("d", {1}, 24, 0)},
                               .data = "x"}));
  ASSERT_TRUE(file) << to_string(file.error());
  EXPECT_EQ(file->descriptor(0)->shape, (Shape{5, 0}));
  EXPECT_EQ(file->descriptor(1)->shape, (Shape{3, 0}));
  EXPECT_EQ(file->descriptor(2)->shape, (Shape{0, 144}));
  for (std::size_t i = 0; i < 3; ++i) EXPECT_TRUE(file->tensor(i));
  EXPECT_EQ(content(*file->tensor(3)), "x");
}

TEST(Gguf, AlignmentIsThatOfTheFile) {
  Parts parts{.kvs = {kv("general.alignment", 4, u32(8))},
              .infos = {info("a", {3}, 24, 0), info("b", {2}, 24, 8)},
              .data = "abc\0\0\0\0\0de"s,
              .alignment = 8};
  const auto file = open(gguf(parts));
  ASSERT_TRUE(file) << to_string(file.error());
  EXPECT_EQ(content(*file->tensor(0)), "abc");
  EXPECT_EQ(content(*file->tensor(1)), "de");
  EXPECT_EQ(file->kv()[0].second, io::KvValue(std::uint64_t{8}));

  for (const std::uint32_t other : {0u, 1u, 4u, 12u, 24u, 0xFFFFFFF8u}) {
    parts.kvs = {kv("general.alignment", 4, u32(other))};
    EXPECT_NE(refused(parts).find("a power of two from 8 on, found " + std::to_string(other)),
              std::string::npos)
        << refused(parts);
  }
  parts.kvs = {kv("general.alignment", 10, u64(8))};
  EXPECT_NE(refused(parts).find("expected a number of the type uint32"), std::string::npos);
  parts.kvs = {kv("general.alignment", 4, u32(1u << 31))};
  EXPECT_NE(refused(parts).find("offset"), std::string::npos) << refused(parts);
}

/// A file with all kinds of things in its header.
std::string small() {
  return gguf({.kvs = {kv("general.architecture", 8, text("llama")), kv("n", 4, u32(7)),
                       kv("tokens", 9, array(8, 2, text("a") + text("bc"))),
                       kv("nested", 9, array(9, 1, array(5, 2, u64(1)))),
                       kv("flags", 9, array(7, 2, "\1\0"sv))},
               .infos = {info("w", {3}, 0, 0), info("q", {32}, 8, 32)},
               .data = std::string(32 + 34, '\1')});
}

TEST(Gguf, EveryPrefixIsRefused) {
  const std::string good = small();
  EXPECT_EQ(refusal(good), "");
  EXPECT_EQ(refusal(good + "x"), "");
  for (std::size_t size = 0; size < good.size(); ++size) {
    const std::string words = refusal(good.substr(0, size));
    EXPECT_NE(words, "") << size;
    if (size < 4) continue;
    EXPECT_NE(words.find("truncated"), std::string::npos) << size << words;
  }
}

TEST(Gguf, EveryFlippedByteIsRefusedOrRead) {
  const std::string good = small();
  for (std::size_t at = 0; at < good.size(); ++at)
    for (const unsigned flip : {0x01u, 0x80u, 0xFFu}) {
      std::string spoiled = good;
      spoiled[at] = static_cast<char>(static_cast<unsigned char>(spoiled[at]) ^ flip);
      const auto file = open(spoiled);
      if (!file) {
        EXPECT_NE(to_string(file.error()), "");
        continue;
      }
      for (std::size_t i = 0; i < file->size(); ++i) {
        const auto tensor = file->tensor(i);
        EXPECT_TRUE(tensor || !to_string(tensor.error()).empty());
      }
    }
}

TEST(Gguf, Versions) {
  EXPECT_EQ(refusal(gguf({.version = 1})),
            "version: expected 2 or 3 in a GGUF file, found 1 (unsupported version at byte 4 of "
            "the file); write the file again with a current program");
  EXPECT_EQ(refusal(gguf({.version = 4})).substr(0, 46),
            "version: expected 2 or 3 in a GGUF file, found");
  EXPECT_EQ(refusal(gguf({.version = 3u << 24})),
            "version: a big-endian GGUF file, of which none is read (unsupported at byte 4 of the "
            "file); make a little-endian one with gguf-convert-endian");
}

TEST(Gguf, HostileCountsAndLengths) {
  const std::string start = "GGUF" + u32(3);
  EXPECT_EQ(refusal(start + u64(UINT64_MAX) + u64(0)),
            "tensor_count: expected at most 0 in the bytes that the file has after it, found "
            "18446744073709551615 (truncated at byte 8 of the file); pass all of the bytes");
  EXPECT_NE(refusal(start + u64(0) + u64(1ull << 60)).find("metadata_kv_count: expected at most 0"),
            std::string::npos);
  EXPECT_EQ(refusal(start + u64(0) + u64(1) + u64(1ull << 62) + "abcdef"),
            "kv[0].key: expected at most 6 in the bytes that the file has after it, found "
            "4611686018427387904 (truncated at byte 24 of the file); pass all of the bytes");
  const auto with = [](std::uint32_t type, std::string_view value) {
    return refused({.kvs = {kv("k", type, value)}});
  };
  EXPECT_EQ(with(8, u64(9) + "12345678"),
            "kv[0].value: expected at most 8 in the bytes that the file has after it, found 9 "
            "(truncated at byte 37 of the file); the key is \"k\"");
  for (std::uint32_t type = 0; type < 13; ++type) {
    const std::string words = with(9, array(type, UINT64_MAX, std::string(100, '\0')));
    EXPECT_NE(words.find("kv[0].element_count: expected at most"), std::string::npos) << words;
  }
  EXPECT_NE(
      with(9, array(9, 1, array(0, UINT64_MAX / 8, ""))).find("kv[0].value: expected at most"),
      std::string::npos);
  EXPECT_NE(with(9, array(9, 1, array(8, 1, u64(1ull << 63)))).find("kv[0].value"),
            std::string::npos);
  EXPECT_EQ(
      with(13, std::string(20, '\0')),
      "kv[0].value_type: expected at most 0x0C as the number of a GGUF value type, found 0x0D "
      "(invalid tag at byte 33 of the file); the key is \"k\"");
  EXPECT_NE(with(9, array(13, 0, "")).find("kv[0].element_type: expected at most 0x0C"),
            std::string::npos);
  EXPECT_NE(with(7, "\2").find("(a bool is 0 or 1)"), std::string::npos);
  EXPECT_NE(with(9, array(7, 2, "\1\2")).find("(a bool is 0 or 1)"), std::string::npos);

  const auto nest = [](unsigned depth) {
    std::string value = array(0, 0, "");
    for (unsigned i = 1; i < depth; ++i) value = array(9, 1, value);
    return value;
  };
  EXPECT_EQ(with(9, nest(16)), "");
  EXPECT_NE(with(9, nest(17)).find("expected at most 16 arrays in one another, found 17"),
            std::string::npos)
      << with(9, nest(17));
  EXPECT_NE(with(9, nest(2000)).find("arrays in one another"), std::string::npos);
}

TEST(Gguf, Keys) {
  const auto with = [](std::string_view key) { return refused({.kvs = {kv(key, 0, "\1")}}); };
  EXPECT_EQ(with(std::string(65535, 'k')), "");
  EXPECT_NE(with(std::string(65536, 'k')).find("expected at most 65535 bytes, found 65536"),
            std::string::npos);
  EXPECT_NE(with("").find("kv[0].key: must not be empty (invalid value at byte 24"),
            std::string::npos)
      << with("");
  EXPECT_NE(with("\xFF").find("must be valid UTF-8"), std::string::npos);
  for (const std::string_view own :
       {"gguf.types", "gguf.block_tensors", "gguf.block_types", "hurray.crc32c"})
    EXPECT_NE(with(own).find("a meaning of its own"), std::string::npos);
  EXPECT_EQ(refused({.kvs = {kv("a", 0, "\1"), kv("b", 0, "\1"), kv("a", 7, "\1")}}),
            "kv[2].key: the key occurs twice (duplicate at byte 52 of the file); \"a\" is also at "
            "byte 24");
}

TEST(Gguf, Tensors) {
  const auto with = [](const std::string& one) {
    return refused({.infos = {one}, .data = std::string(64, '\0')});
  };
  EXPECT_EQ(with(info("w", {16}, 0, 0)), "");
  EXPECT_EQ(with(info("w", {17}, 0, 0)),
            "tensor \"w\": data: expected at least 68 bytes at the tensor's offset, found 64 "
            "(truncated at byte 49 of the file); an unfinished download or copy?");
  EXPECT_NE(with(info("w", {1}, 0, 64)).find("found 0"), std::string::npos);
  EXPECT_NE(with(info("w", {1}, 0, 96)).find("found 0"), std::string::npos);
  EXPECT_NE(with(info("w", {1}, 0, 0xFFFFFFFFFFFFFFE0)).find("found 0"), std::string::npos);
  EXPECT_EQ(
      with(info("w", {1}, 0, 4)),
      "tensor \"w\": offset: expected a multiple of general.alignment, found 4 (invalid value at "
      "byte 49 of the file); which is 32");
  EXPECT_NE(with(info("", {1}, 0, 0)).find("tensors[0].name: must not be empty"),
            std::string::npos);
  EXPECT_NE(with(info("\xC0", {1}, 0, 0)).find("must be valid UTF-8"), std::string::npos);
  EXPECT_NE(with(info("w", std::vector<std::uint64_t>(65, 1), 0, 0)).find("at most 64 dimensions"),
            std::string::npos);
  EXPECT_EQ(with(info("w", std::vector<std::uint64_t>(64, 1), 0, 0)), "");
  EXPECT_NE(with(info("w", {UINT64_MAX}, 0, 0)).find("ne[0]: expected at most"), std::string::npos);
  EXPECT_NE(with(info("w", {1ull << 32, 1ull << 32}, 24, 0)).find("2^63 - 1 elements"),
            std::string::npos);
  EXPECT_NE(with(info("w", {1ull << 62}, 28, 0)).find("2^64 - 1 bytes"), std::string::npos);
  EXPECT_NE(with(info("w", {1ull << 62}, 24, 0)).find("data: expected at least"),
            std::string::npos);
  EXPECT_EQ(with(info("w", {33, 2}, 8, 0)),
            "tensor \"w\": ne[0]: expected a multiple of the elements in a block, found 33 "
            "(inconsistent at byte 37 of the file); Q8_0 has blocks of 32");
  EXPECT_NE(with(info("w", {}, 12, 0)).find("found 1"), std::string::npos);
  for (const std::uint32_t type : {4u, 5u, 31u, 36u, 42u, UINT32_MAX})
    EXPECT_NE(with(info("w", {1}, type, 0)).find("its number in GGUF is " + std::to_string(type)),
              std::string::npos);

  const auto two = [](const std::string& one, const std::string& other) {
    return refused({.infos = {one, other}, .data = std::string(96, '\0')});
  };
  EXPECT_EQ(two(info("a", {33}, 24, 0), info("b", {1}, 24, 64)), "");
  EXPECT_EQ(two(info("b", {1}, 24, 64), info("a", {64}, 24, 0)), "");
  EXPECT_EQ(two(info("b", {1}, 24, 64), info("a", {65}, 24, 0)),
            "tensor \"b\": offset: expected at least 65 (no bytes in two tensors), found 64 "
            "(inconsistent at byte 49 of the file); the tensor \"a\" ends there");
  EXPECT_NE(two(info("a", {1}, 24, 0), info("b", {1}, 24, 0)).find("no bytes in two tensors"),
            std::string::npos);
  EXPECT_EQ(
      two(info("a", {1}, 24, 0), info("a", {1}, 24, 32)),
      "tensor \"a\": tensors[1].name: the name occurs twice (duplicate at byte 57 of the file); "
      "the other one is at byte 24");
}

TEST(Gguf, HeadersAreBounded) {
  io::OpenOptions options;
  options.max_index_bytes = 4096;
  const auto with = [&](const std::string& value) {
    return refusal(gguf({.kvs = {kv("k", 9, value)}}), options);
  };
  EXPECT_EQ(with(array(0, 400, std::string(400, '\0'))), "");
  // Numbers of one byte take eight.
  EXPECT_NE(with(array(0, 600, std::string(600, '\0'))).find("max_index_bytes: expected at most"),
            std::string::npos);
  EXPECT_NE(with(array(8, 300, std::string(2400, '\0'))).find("max_index_bytes"),
            std::string::npos);
  EXPECT_NE(with(array(9, 1, array(0, 5000, std::string(5000, '\0')))).find("max_index_bytes"),
            std::string::npos);
  options.max_index_bytes = 20;
  EXPECT_NE(refusal(gguf({}), options).find("max_index_bytes"), std::string::npos);
}

TEST(Gguf, LongHeadersAreReadInPieces) {
  std::string tokens;
  constexpr std::size_t count = 40'000;
  for (std::size_t i = 0; i < count; ++i) tokens += text(std::string(60, 'a' + char(i % 26)));
  const std::string long_text(3'000'000, 'x');
  const auto file =
      open(gguf({.kvs = {kv("t", 9, array(8, count, tokens)), kv("l", 8, text(long_text))},
                 .infos = {info("w", {4}, 24, 0)},
                 .data = "abcd"}));
  ASSERT_TRUE(file) << to_string(file.error());
  const auto& texts = std::get<std::vector<std::string>>(file->kv()[0].second);
  ASSERT_EQ(texts.size(), count);
  for (std::size_t i = 0; i < count; ++i)
    ASSERT_EQ(texts[i], std::string(60, 'a' + char(i % 26))) << i;
  EXPECT_EQ(file->kv()[1].second, io::KvValue(long_text));
  EXPECT_EQ(content(*file->tensor(0)), "abcd");
}

}  // namespace
}  // namespace hurray::formats
