#include <algorithm>
#include <cstring>
#include <limits>

#include "manifest.hpp"
#include "support.hpp"

using namespace hurray::testing;
using hurray::conformance::Json;

namespace {

const std::uint8_t* raw(const hurray::conformance::Bytes& bytes) {
  return reinterpret_cast<const std::uint8_t*>(bytes.data());
}

/// Descriptors that every reader takes.
std::vector<hurray::conformance::Bytes> valid_ones() {
  std::vector<hurray::conformance::Bytes> found;
  for (const Json& entry : hurray::conformance::entries("descriptor"))
    if (hurray::conformance::is(entry, "valid") && !entry.contains("options"))
      found.push_back(hurray::conformance::text_of(entry).bytes);
  return found;
}

/// A borrowed part, as bytes of one's own.
using Part = std::vector<std::uint8_t>;

}  // namespace

TEST(Descriptor, EveryVectorIsDecodedAndEncodedToItsBytes) {
  const std::size_t before = live_handles();
  const auto vectors = valid_ones();
  ASSERT_GE(vectors.size(), 500u);
  for (const auto& bytes : vectors) {
    HurrayDescriptor* handle = nullptr;
    ASSERT_EQ(hurray_descriptor_decode(raw(bytes), bytes.size(), &handle), HURRAY_OK)
        << hurray_last_error();
    const auto value = hurray::decode(bytes);
    ASSERT_TRUE(value);
    std::uint64_t length = 0;
    EXPECT_EQ(hurray_descriptor_encode(handle, nullptr, &length), HURRAY_ERR_BUFFER_TOO_SMALL);
    std::vector<std::uint8_t> again(length);
    EXPECT_EQ(hurray_descriptor_encode(handle, again.data(), &length), HURRAY_OK);
    EXPECT_TRUE(std::ranges::equal(again, std::span(raw(bytes), bytes.size())));

    std::uint32_t rank = 0, count = 0, flags = 0;
    std::uint8_t type = 0, layout = 0, major = 0, minor = 9;
    std::uint64_t offset = 7;
    EXPECT_EQ(hurray_descriptor_rank(handle, &rank), HURRAY_OK);
    EXPECT_EQ(hurray_descriptor_element_type_tag(handle, &type), HURRAY_OK);
    EXPECT_EQ(hurray_descriptor_layout_tag(handle, &layout), HURRAY_OK);
    EXPECT_EQ(hurray_descriptor_byte_offset(handle, &offset), HURRAY_OK);
    EXPECT_EQ(hurray_descriptor_buffer_count(handle, &count), HURRAY_OK);
    EXPECT_EQ(hurray_descriptor_flags(handle, &flags), HURRAY_OK);
    EXPECT_EQ(hurray_descriptor_version(handle, &major, &minor), HURRAY_OK);
    EXPECT_EQ(rank, value->shape.rank());
    EXPECT_EQ(type, static_cast<std::uint8_t>(value->dtype));
    EXPECT_EQ(layout, static_cast<std::uint8_t>(tag(value->layout)));
    EXPECT_EQ(offset, value->byte_offset);
    EXPECT_EQ(count, value->buffers.size());
    EXPECT_EQ(flags, value->sections());
    EXPECT_EQ(major, 1);
    EXPECT_EQ(minor, value->version.minor);

    std::uint64_t shape[64];
    std::uintptr_t capacity = 64;
    EXPECT_EQ(hurray_descriptor_shape(handle, shape, &capacity), HURRAY_OK);
    EXPECT_TRUE(std::ranges::equal(std::span(shape, capacity), value->shape));
    for (std::uint32_t i = 0; i < count; ++i) {
      HurrayBufferInfo info;
      EXPECT_EQ(hurray_descriptor_buffer(handle, i, &info), HURRAY_OK);
      EXPECT_EQ(info.byte_size, value->buffers[i].byte_size);
      EXPECT_EQ(info.alignment, value->buffers[i].alignment);
      EXPECT_EQ(info.device_tag, static_cast<std::uint8_t>(value->buffers[i].device));
      EXPECT_EQ(info.sync_mode, static_cast<std::uint8_t>(value->buffers[i].sync_mode));
      EXPECT_EQ(info.memory_class, static_cast<std::uint8_t>(value->buffers[i].memory_class));
    }
    std::uint64_t elements = 0;
    const HurrayStatus counted = hurray_descriptor_element_count(handle, &elements);
    if (value->shape.is_dynamic()) {
      EXPECT_EQ(counted, HURRAY_ERR_UNSUPPORTED);
    } else {
      EXPECT_EQ(counted, HURRAY_OK);
      EXPECT_EQ(elements, value->shape.count());
      for (std::uint32_t i = 0; i < count; ++i) {
        std::uint64_t required = 0;
        EXPECT_EQ(hurray_descriptor_required_bytes(handle, i, &required), HURRAY_OK);
        EXPECT_EQ(required, *required_bytes(*value, i));
      }
    }
    EXPECT_EQ(hurray_descriptor_destroy(handle), HURRAY_OK);
  }
  EXPECT_EQ(live_handles(), before);
}

/// What the readers of parts give, put together again by hurray_descriptor_new.
TEST(Descriptor, IsTheSumOfItsParts) {
  for (const auto& bytes : valid_ones()) {
    const auto value = hurray::decode(bytes);
    if (!value || value->version.minor != 0) continue;
    HurrayDescriptor* handle = nullptr;
    ASSERT_EQ(hurray_descriptor_decode(raw(bytes), bytes.size(), &handle), HURRAY_OK);
    HurrayDescriptorInit init = {};
    init.struct_size = sizeof init;
    ASSERT_EQ(hurray_descriptor_element_type_tag(handle, &init.element_type_tag), HURRAY_OK);
    ASSERT_EQ(hurray_descriptor_layout_tag(handle, &init.layout_tag), HURRAY_OK);
    ASSERT_EQ(hurray_descriptor_rank(handle, &init.rank), HURRAY_OK);
    ASSERT_EQ(hurray_descriptor_byte_offset(handle, &init.byte_offset), HURRAY_OK);
    ASSERT_EQ(hurray_descriptor_buffer_count(handle, &init.buffer_count), HURRAY_OK);
    std::uint64_t shape[64];
    std::uintptr_t rank = 64;
    ASSERT_EQ(hurray_descriptor_shape(handle, shape, &rank), HURRAY_OK);
    init.shape = shape;
    std::vector<HurrayBufferInfo> buffers(init.buffer_count);
    for (std::uint32_t i = 0; i < init.buffer_count; ++i)
      ASSERT_EQ(hurray_descriptor_buffer(handle, i, &buffers[i]), HURRAY_OK);
    init.buffers = buffers.data();
    ASSERT_EQ(
        hurray_descriptor_layout_bytes(handle, &init.layout_fields, &init.layout_fields_length),
        HURRAY_OK);
    const HurrayStatus quantized =
        hurray_descriptor_quantization_bytes(handle, &init.quantization, &init.quantization_length);
    EXPECT_EQ(quantized, value->quantization() ? HURRAY_OK : HURRAY_ERR_NOT_FOUND);

    Part shard(16 * rank + 1), statistics, type, role;
    if (value->shard()) {
      std::uint64_t parent[64], offset[64];
      std::uintptr_t capacity = 64;
      ASSERT_EQ(hurray_descriptor_shard(handle, parent, offset, &capacity), HURRAY_OK);
      std::memcpy(shard.data(), parent, 8 * rank);
      std::memcpy(shard.data() + 8 * rank, offset, 8 * rank);
      init.shard = shard.data();
      init.shard_length = 16 * rank;
    }
    HurrayStatistics numbers;
    if (hurray_descriptor_statistics(handle, &numbers) == HURRAY_OK) {
      init.statistics = reinterpret_cast<const std::uint8_t*>(&numbers);
      init.statistics_length = sizeof numbers;
    }
    HurrayExtensionType extension;
    if (hurray_descriptor_extension_type(handle, &extension) == HURRAY_OK) {
      init.extension_type = reinterpret_cast<const std::uint8_t*>(&extension);
      init.extension_type_length = sizeof extension;
    }
    std::uint8_t member[16] = {};
    if (hurray_descriptor_member_role(handle, member) == HURRAY_OK) {
      init.composite_member = member;
      init.composite_member_length = sizeof member;
    }
    HurrayDescriptor* made = nullptr;
    ASSERT_EQ(hurray_descriptor_new(&init, &made), HURRAY_OK) << hurray_last_error();
    std::vector<std::uint8_t> again(bytes.size() + 1);
    std::uint64_t length = again.size();
    ASSERT_EQ(hurray_descriptor_encode(made, again.data(), &length), HURRAY_OK);
    EXPECT_TRUE(
        std::ranges::equal(std::span(again).first(length), std::span(raw(bytes), bytes.size())));
    EXPECT_EQ(hurray_descriptor_destroy(made), HURRAY_OK);
    EXPECT_EQ(hurray_descriptor_destroy(handle), HURRAY_OK);
  }
}

TEST(Descriptor, EveryInvalidVectorHasAPublishedStatus) {
  int count = 0;
  for (const Json& entry : hurray::conformance::entries("descriptor")) {
    if (!hurray::conformance::is(entry, "invalid") || entry.contains("options")) continue;
    const auto text = hurray::conformance::text_of(entry);
    auto* handle = sentinel<HurrayDescriptor>();
    hurray_clear_last_error();
    const HurrayStatus status =
        hurray_descriptor_decode(raw(text.bytes), text.bytes.size(), &handle);
    if (text.bytes.empty()) continue;
    const std::string code = entry["error"].value("code", "");
    const std::string field = entry["error"].value("field", "");
    HurrayStatus expected = HURRAY_ERR_INVALID_LAYOUT;
    if (code == "invalid magic") expected = HURRAY_ERR_INVALID_MAGIC;
    if (code == "unsupported version" && field == "version_major")
      expected = HURRAY_ERR_VERSION_MISMATCH;
    if ((code == "invalid tag" || code == "inconsistent")) {
      if (field == "type_tag" || field.ends_with(".device_tag") || field.ends_with(".memory_class"))
        expected = HURRAY_ERR_INVALID_TYPE;
      if (field.ends_with(".sync_mode")) expected = HURRAY_ERR_INVALID_SYNC_MODE;
    }
    EXPECT_EQ(status, expected) << entry["name"] << ' ' << hurray_last_error();
    EXPECT_EQ(handle, sentinel<HurrayDescriptor>());
    EXPECT_EQ("error: " + std::string(hurray_last_error()), text.error);
    ++count;
  }
  EXPECT_GE(count, 300);
}

TEST(Descriptor, GivesStridesWhereThereAreSome) {
  const auto strides_of = [](hurray::Descriptor d) {
    d.buffers.push_back({.byte_size = 4096, .alignment = 64});
    const auto bytes = hurray::encode(d);
    EXPECT_TRUE(bytes) << to_string(bytes.error());
    HurrayDescriptor* handle = nullptr;
    EXPECT_EQ(hurray_descriptor_decode(raw(*bytes), bytes->size(), &handle), HURRAY_OK);
    std::int64_t strides[3];
    std::uintptr_t rank = 3;
    const HurrayStatus status = hurray_descriptor_strides(handle, strides, &rank);
    EXPECT_EQ(hurray_descriptor_destroy(handle), HURRAY_OK);
    std::vector<std::int64_t> out;
    if (status == HURRAY_OK)
      out.assign(strides, strides + rank);
    else
      out.push_back(status);
    return out;
  };
  using Strides = std::vector<std::int64_t>;
  hurray::Descriptor d;
  d.shape = hurray::Shape{4, 3, 2};
  EXPECT_EQ(strides_of(d), (Strides{6, 2, 1}));
  d.layout = hurray::ColumnMajor{};
  EXPECT_EQ(strides_of(d), (Strides{1, 4, 12}));
  d.layout = hurray::Strided{.strides = {1, 8, 0}};
  EXPECT_EQ(strides_of(d), (Strides{1, 8, 0}));
  d.layout = hurray::RowMajor{};
  d.shape = hurray::Shape{4, hurray::dynamic, 2};
  EXPECT_EQ(strides_of(d), Strides{HURRAY_ERR_UNSUPPORTED});
  d.shape = hurray::Shape{4, 2};
  d.layout = hurray::Morton{.bits = {2, 1}};
  EXPECT_EQ(strides_of(d), Strides{HURRAY_ERR_NOT_FOUND});
}

TEST(Descriptor, ShapeTellsTheRankWhateverTheArray) {
  const auto bytes = vector_descriptor(5);
  HurrayDescriptor* handle = nullptr;
  ASSERT_EQ(hurray_descriptor_decode(bytes.data(), bytes.size(), &handle), HURRAY_OK);
  std::uint64_t dims[2] = {7, 7};
  std::uintptr_t rank = 0;
  EXPECT_EQ(hurray_descriptor_shape(handle, dims, &rank), HURRAY_ERR_BUFFER_TOO_SMALL);
  EXPECT_EQ(rank, 1u);
  EXPECT_EQ(dims[0], 7u);
  rank = 64;
  EXPECT_EQ(hurray_descriptor_shape(handle, nullptr, &rank), HURRAY_ERR_BUFFER_TOO_SMALL);
  EXPECT_EQ(rank, 1u);
  EXPECT_EQ(hurray_descriptor_shape(handle, dims, &rank), HURRAY_OK);
  EXPECT_EQ(dims[0], 5u);
  EXPECT_EQ(dims[1], 7u);
  HurrayBufferInfo info = {};
  EXPECT_EQ(hurray_descriptor_buffer(handle, 1, &info), HURRAY_ERR_INDEX_OUT_OF_BOUNDS);
  std::uint64_t required = 7;
  EXPECT_EQ(hurray_descriptor_required_bytes(handle, 1, &required), HURRAY_ERR_INDEX_OUT_OF_BOUNDS);
  EXPECT_EQ(required, 7u);
  EXPECT_EQ(hurray_descriptor_nnz(handle, &required), HURRAY_ERR_NOT_FOUND);
  std::uint8_t rule = 7, op = 7;
  std::uint32_t members = 7;
  EXPECT_EQ(hurray_descriptor_composite(handle, &rule, &op, &members), HURRAY_ERR_NOT_FOUND);
  EXPECT_EQ(rule + op + members, 21u);
  EXPECT_EQ(hurray_descriptor_destroy(handle), HURRAY_OK);

  hurray::Descriptor scalar;
  scalar.buffers.push_back({.byte_size = 4, .alignment = 64});
  const auto encoded = hurray::encode(scalar);
  ASSERT_EQ(hurray_descriptor_decode(raw(*encoded), encoded->size(), &handle), HURRAY_OK);
  rank = 1;
  EXPECT_EQ(hurray_descriptor_shape(handle, nullptr, &rank), HURRAY_ERR_BUFFER_TOO_SMALL);
  EXPECT_EQ(rank, 0u);
  EXPECT_EQ(hurray_descriptor_shape(handle, dims, &rank), HURRAY_OK);
  EXPECT_EQ(hurray_descriptor_destroy(handle), HURRAY_OK);
}

TEST(Descriptor, NewRefusesWhatDoesNotFitTogether) {
  const std::uint64_t shape[] = {5};
  const HurrayBufferInfo buffers[] = {{20, 64, 0, 0, 0, 0}};
  HurrayDescriptorInit good = {};
  good.struct_size = sizeof good;
  good.element_type_tag = HURRAY_TYPE_FLOAT32;
  good.layout_tag = HURRAY_LAYOUT_ROW_MAJOR;
  good.shape = shape;
  good.rank = 1;
  good.buffers = buffers;
  good.buffer_count = 1;
  HurrayDescriptor* handle = nullptr;
  ASSERT_EQ(hurray_descriptor_new(&good, &handle), HURRAY_OK) << hurray_last_error();
  std::vector<std::uint8_t> out(200);
  std::uint64_t length = out.size();
  EXPECT_EQ(hurray_descriptor_encode(handle, out.data(), &length), HURRAY_OK);
  out.resize(length);
  EXPECT_EQ(out, vector_descriptor(5));
  EXPECT_EQ(hurray_descriptor_destroy(handle), HURRAY_OK);

  const auto refused = [&](auto change) {
    HurrayDescriptorInit init = good;
    change(init);
    auto* none = sentinel<HurrayDescriptor>();
    const HurrayStatus status = hurray_descriptor_new(&init, &none);
    EXPECT_EQ(none, sentinel<HurrayDescriptor>());
    return status;
  };
  const std::uint8_t bytes[72] = {};
  constexpr HurrayStatus invalid = HURRAY_ERR_INVALID_LAYOUT;
  using Init = HurrayDescriptorInit&;
  EXPECT_EQ(refused([](Init i) { i.struct_size = 3; }), HURRAY_ERR_INVALID_ARGUMENT);
  EXPECT_EQ(refused([](Init i) { i.struct_size = 0; }), HURRAY_ERR_INVALID_ARGUMENT);
  EXPECT_EQ(refused([](Init i) { i.shape = nullptr; }), HURRAY_ERR_NULL_POINTER);
  EXPECT_EQ(refused([](Init i) { i.buffers = nullptr; }), HURRAY_ERR_NULL_POINTER);
  EXPECT_EQ(refused([](Init i) { i.layout_fields_length = 1; }), HURRAY_ERR_NULL_POINTER);
  EXPECT_EQ(refused([](Init i) { i.statistics_length = 72; }), HURRAY_ERR_NULL_POINTER);
  EXPECT_EQ(refused([](Init i) { i.rank = 65; }), invalid);
  EXPECT_EQ(refused([](Init i) { i.rank = UINT32_MAX; }), invalid);
  EXPECT_EQ(refused([](Init i) { i.buffer_count = 256; }), invalid);
  EXPECT_EQ(refused([](Init i) { i.buffer_count = 0; }), invalid);
  EXPECT_EQ(refused([](Init i) { i.element_type_tag = 0x47; }), HURRAY_ERR_INVALID_TYPE);
  EXPECT_EQ(refused([](Init i) { i.layout_tag = 0x30; }), invalid);
  EXPECT_EQ(refused([](Init i) { i.byte_offset = 4; }), invalid);
  EXPECT_EQ(refused([](Init i) { i.byte_offset = UINT64_MAX; }), invalid);
  EXPECT_EQ(refused([&](Init i) {
              i.statistics = bytes;
              i.statistics_length = 71;
            }),
            invalid);
  EXPECT_EQ(refused([&](Init i) {
              i.layout_fields = bytes;
              i.layout_fields_length = 8;
            }),
            invalid);
  EXPECT_EQ(refused([&](Init i) {
              i.quantization = bytes;
              i.quantization_length = UINT64_MAX;
            }),
            HURRAY_ERR_LIMIT_EXCEEDED);
  EXPECT_EQ(refused([&](Init i) {
              i.layout_fields = bytes;
              i.layout_fields_length = UINT64_MAX;
            }),
            HURRAY_ERR_LIMIT_EXCEEDED);

  // The fields are those that the caller says they are.
  EXPECT_EQ(refused([&](Init i) {
              i.layout_tag = HURRAY_LAYOUT_STRIDED;
              i.layout_fields = bytes;
              i.layout_fields_length = 9;
            }),
            invalid);
  EXPECT_STREQ(hurray_last_error(), "layout_fields_length: expected 8, found 9");
  const std::uint8_t swallows[12] = {1, 0, 0, 0, 0, 0, 0, 0, 17, 0, 0, 0};
  const HurrayBufferInfo two[] = {{20, 64, 0, 0, 0, 0}, {20, 64, 0, 0, 0, 0}};
  EXPECT_EQ(refused([&](Init i) {
              i.layout_tag = 0xF0;
              i.layout_fields = swallows;
              i.layout_fields_length = sizeof swallows;
              i.buffers = two;
              i.buffer_count = 2;
            }),
            invalid);
  EXPECT_EQ(refused([](Init i) { i.reserved[1] = 1; }), HURRAY_ERR_INVALID_ARGUMENT);

  // A caller that was compiled when the struct was shorter.
  HurrayDescriptorInit shorter = good;
  shorter.struct_size = offsetof(HurrayDescriptorInit, quantization);
  shorter.quantization = bytes;
  shorter.quantization_length = 4;
  EXPECT_EQ(hurray_descriptor_new(&shorter, &handle), HURRAY_OK) << hurray_last_error();
  EXPECT_EQ(hurray_descriptor_destroy(handle), HURRAY_OK);
}

TEST(Descriptor, LargeOnesAreReadInPartsToo) {
  hurray::Descriptor d;
  d.dtype = hurray::DType::int8;
  d.shape = hurray::Shape{4};
  d.buffers.push_back({.byte_size = 4, .alignment = 64});
  hurray::Quantization scheme;
  scheme.rest = hurray::Blob(std::vector<std::byte>((17u << 20) - 16));
  d.set_quantization(scheme);
  const auto encoded = hurray::encode(d);
  ASSERT_TRUE(encoded) << to_string(encoded.error());
  HurrayDescriptor* handle = nullptr;
  EXPECT_EQ(hurray_descriptor_decode(raw(*encoded), encoded->size(), &handle),
            HURRAY_ERR_INVALID_LAYOUT);
  HurrayDecodeOptions options = {};
  options.struct_size = sizeof options;
  options.max_descriptor_bytes = 64u << 20;
  ASSERT_EQ(hurray_descriptor_decode_with(raw(*encoded), encoded->size(), &options, &handle),
            HURRAY_OK)
      << hurray_last_error();
  const std::uint8_t* part = nullptr;
  std::uint64_t length = 0;
  EXPECT_EQ(hurray_descriptor_quantization_bytes(handle, &part, &length), HURRAY_OK);
  EXPECT_EQ(length, 17u << 20);
  EXPECT_EQ(part + length, [&] {
    const std::uint8_t* start = nullptr;
    std::uint64_t none = 7;
    EXPECT_EQ(hurray_descriptor_layout_bytes(handle, &start, &none), HURRAY_OK);
    EXPECT_EQ(none, 0u);
    return part + (17u << 20);
  }());
  EXPECT_EQ(part[length - 1], 0);
  EXPECT_EQ(hurray_descriptor_destroy(handle), HURRAY_OK);
}

TEST(Descriptor, PrivateOnesAreDecodedWhereTheCallerAgrees) {
  int count = 0;
  for (const Json& entry : hurray::conformance::entries("descriptor")) {
    if (!hurray::conformance::is(entry, "opaque") || !entry.contains("options")) continue;
    const auto text = hurray::conformance::text_of(entry);
    HurrayDescriptor* handle = nullptr;
    EXPECT_LT(hurray_descriptor_decode(raw(text.bytes), text.bytes.size(), &handle), 0)
        << entry["name"];
    HurrayDecodeOptions options = {};
    options.struct_size = sizeof options;
    options.permissive = entry["options"].value("permissive", false);
    options.private_values = entry["options"].contains("agreed");
    ASSERT_EQ(hurray_descriptor_decode_with(raw(text.bytes), text.bytes.size(), &options, &handle),
              HURRAY_OK)
        << entry["name"] << ' ' << hurray_last_error();
    EXPECT_EQ(hurray_descriptor_destroy(handle), HURRAY_OK);
    ++count;
  }
  EXPECT_GE(count, 5);
}
