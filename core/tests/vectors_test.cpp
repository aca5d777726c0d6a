#include <gtest/gtest.h>

#include <cstdlib>

#include "support.hpp"

namespace hurray::testing {
namespace {

class Vectors : public ::testing::Test {
 protected:
  static const std::vector<Vector>& valid() {
    static const auto vectors = read_vectors("valid/descriptor");
    return vectors;
  }
};

TEST_F(Vectors, ValidOnesDecodeAndEncodeToTheSameBytes) {
  ASSERT_GE(valid().size(), 150u);
  for (const Vector& v : valid()) {
    const auto d = decode(v.bytes);
    ASSERT_TRUE(d) << v.path << ": " << to_string(d.error());
    const auto again = encode(*d);
    ASSERT_TRUE(again) << v.path << ": " << to_string(again.error());
    EXPECT_EQ(*again, v.bytes) << v.path;
    const Descriptor copy = *d;
    EXPECT_EQ(copy, *d);
  }
}

TEST_F(Vectors, AnnotationCoversEveryByteInOrder) {
  for (const Vector& v : valid()) {
    std::uint64_t at = 0;
    const auto done = describe(v.bytes, [&](const FieldRow& row) {
      EXPECT_EQ(row.offset, at) << v.path << " " << row.name;
      EXPECT_FALSE(row.name.empty());
      at += row.size;
    });
    ASSERT_TRUE(done);
    EXPECT_EQ(at, v.bytes.size()) << v.path;
  }
}

TEST_F(Vectors, InvalidOnesFailWithTheirSentence) {
  const bool update = std::getenv("HURRAY_UPDATE_VECTORS") != nullptr;
  const auto vectors = read_vectors("invalid/descriptor");
  ASSERT_GE(vectors.size(), 120u);
  for (const Vector& v : vectors) {
    const auto d = decode(v.bytes);
    ASSERT_FALSE(d) << v.path;
    const std::string sentence = "error: " + to_string(d.error());
    if (update && sentence != v.error) {
      std::ifstream in(v.path);
      std::string text, line;
      while (std::getline(in, line)) text += (line.starts_with("error:") ? sentence : line) + "\n";
      in.close();
      std::ofstream(v.path) << text;
    } else {
      EXPECT_EQ(sentence, v.error) << v.path;
    }
    const bool unsupported = v.path.filename().string().starts_with("unsupported");
    EXPECT_EQ(d.error().code == Errc::unsupported, unsupported) << v.path;
    EXPECT_LE(d.error().offset, v.bytes.size()) << v.path;
  }
}

TEST_F(Vectors, EveryPrefixIsRefused) {
  for (const Vector& v : valid())
    for_each_prefix(v.bytes, [&](const Bytes& cut) {
      const auto d = decode(cut);
      ASSERT_FALSE(d) << v.path << " cut to " << cut.size();
      EXPECT_EQ(d.error().code, Errc::truncated);
    });
}

TEST_F(Vectors, EveryBitFlipIsRefusedOrUnderstoodAndWrittenBackTheSame) {
  for (const Vector& v : valid())
    for_each_bit_flip(v.bytes, [&](const Bytes& bytes) {
      const auto d = decode(bytes);
      if (!d || d->version.minor != 0) return;
      const auto again = encode(*d);
      ASSERT_TRUE(again) << v.path << ": " << to_string(again.error());
      // A shorter descriptor_length is caught by row 7 or 66, so the whole input is in use.
      EXPECT_EQ(*again, bytes) << v.path;
    });
}

TEST_F(Vectors, ANewerMinorVersionKeepsItsNumberAndIsNotWrittenBack) {
  for (const Vector& v : read_vectors("newer/descriptor")) {
    const auto d = decode(v.bytes);
    ASSERT_TRUE(d) << v.path << ": " << to_string(d.error());
    EXPECT_EQ(d->version, (Version{1, 1}));
    EXPECT_EQ(d->shape, Shape{2});
    const auto again = encode(*d);
    ASSERT_FALSE(again);
    EXPECT_EQ(again.error().code, Errc::unsupported);
    EXPECT_EQ(again.error().field, "version_minor");
    EXPECT_EQ(again.error().offset, 5u);
  }
}

TEST_F(Vectors, TheOtherImplementationsBytesAreOurs) {
  const auto folder = std::filesystem::path(HURRAY_CONFORMANCE_DIR) / "../../shared/vectors";
  if (!std::filesystem::exists(folder)) GTEST_SKIP() << "no golden files beside the checkout";
  int compared = 0;
  for (const Vector& v : valid()) {
    std::ifstream file(folder / v.path.stem().replace_extension(".bin"), std::ios::binary);
    if (!file) continue;
    const std::string golden{std::istreambuf_iterator<char>(file), {}};
    ASSERT_EQ(golden.size(), v.bytes.size());
    EXPECT_EQ(std::memcmp(golden.data(), v.bytes.data(), golden.size()), 0) << v.path;
    ++compared;
  }
  EXPECT_EQ(compared, 5);
}

// 01-descriptor.md section 7, typed off by hand.
TEST(WorkedDescriptors, A) {
  const Bytes bytes =
      hex("48 52 52 59 01 00 45 00 00 00 00 00 00 00 03 01 03 00 00 00"
          "05 00 00 00 00 00 00 00 07 00 00 00 00 00 00 00 02 00 00 00 00 00 00 00"
          "40 00 00 00 00 00 00 00 01 58 01 00 00 00 00 00 00 80 00 00 00 00 00 00 00");
  Descriptor d;
  d.dtype = DType::float32;
  d.shape = {5, 7, 2};
  d.byte_offset = 64;
  d.buffers = {handle(344, 128)};
  ASSERT_EQ(*encode(d), bytes);
  EXPECT_EQ(*decode(bytes), d);
}

TEST(WorkedDescriptors, B) {
  const Bytes bytes =
      hex("48 52 52 59 01 00 4D 00 00 00 00 00 00 00 12 03 02 00 00 00 04 00 00 00 00 00 00 00"
          "03 00 00 00 00 00 00 00 3C 00 00 00 00 00 00 00 F8 FF FF FF FF FF FF FF"
          "FE FF FF FF FF FF FF FF 01 40 00 00 00 00 00 00 00 40 00 00 00 00 00 00 00");
  Descriptor d;
  d.dtype = DType::int16;
  d.shape = {4, 3};
  d.layout = Strided{{-8, -2}};
  d.byte_offset = 60;
  d.buffers = {handle(64)};
  ASSERT_EQ(*encode(d), bytes);
  EXPECT_EQ(*decode(bytes), d);
}

TEST(WorkedDescriptors, QuantizedAndMemberOnesAreUnsupportedNotInvalid) {
  const Bytes quantized =
      hex("48 52 52 59 01 00 85 00 00 00 03 00 00 00 10 01 02 00 00 00 06 00 00 00 00 00 00 00"
          "0A 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 02 3C 00 00 00 00 00 00 00 00 01 00 00"
          "01 00 02 00 18 00 00 00 00 00 00 00 00 01 00 00 01 00 02 00 14 00 00 00 02 01 01 00"
          "00 00 00 00 01 00 00 00 FF FF FF FF 03 00 00 00 0C 00 00 00 00 00 00 00"
          "0A 00 00 00 00 00 00 00 06 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00");
  const auto d = decode(quantized);
  ASSERT_FALSE(d);
  EXPECT_EQ(d.error().code, Errc::unsupported);
  EXPECT_EQ(d.error().field, "quantization.scheme_tag");
  EXPECT_EQ(d.error().offset, 81u);
}

}  // namespace
}  // namespace hurray::testing
