// What `hurray inspect` says of each layout, scheme and section.
#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "hurray/descriptor.hpp"
#include "hurray/io/file_writer.hpp"
#include "hurray/io/stream.hpp"
#include "running.hpp"

namespace hurray::cli {
namespace {

using nlohmann::json;

Descriptor described(DType dtype, Shape shape, Layout layout,
                     const std::vector<std::uint64_t>& sizes) {
  Descriptor d;
  d.dtype = dtype;
  d.shape = std::move(shape);
  d.layout = std::move(layout);
  d.buffers.resize(sizes.size());
  for (std::size_t i = 0; i < sizes.size(); ++i)
    d.buffers[i] = {.byte_size = sizes[i], .alignment = sizes[i] != 0 ? 64u : 1u};
  return d;
}

Blob blob(std::initializer_list<std::uint8_t> bytes) {
  const std::vector<std::uint8_t> held(bytes);
  return Blob(std::as_bytes(std::span(held)));
}

/// One descriptor and what must be said of it: members of the JSON object, and whole lines or
/// parts of lines of the text.
struct Example {
  std::string name;
  Descriptor descriptor;
  std::string members;
  std::vector<std::string> lines;
  std::vector<std::string> roles;
};

Descriptor with(Descriptor d, Scheme scheme, Blob rest = {}) {
  d.set_quantization(Quantization{std::move(scheme), std::move(rest)});
  return d;
}

std::vector<Example> examples() {
  std::vector<Example> all;
  const auto dense = [](DType dtype, Shape shape, Layout layout, std::uint64_t bytes) {
    return described(dtype, std::move(shape), std::move(layout), {bytes});
  };
  all.push_back({"row_major",
                 dense(DType::float32, {2, 3}, RowMajor{}, 24),
                 R"({"dtype":"float32","shape":[2,3],"layout":"row_major","bytes":24})",
                 {"row_major (0x01)"},
                 {"data"}});
  all.push_back({"dynamic",
                 dense(DType::float32, {2, dynamic}, ColumnMajor{}, 24),
                 R"({"shape":[2,null],"layout":"col_major"})",
                 {"shape[1]", "dynamic"},
                 {"data"}});
  Strided strided;
  strided.strides = {-3, 1};
  auto backwards = dense(DType::float32, {2, 3}, strided, 24);
  backwards.byte_offset = 12;
  all.push_back({"strided",
                 backwards,
                 R"({"layout":"strided","byte_offset":12,"layout_fields":{"strides":[-3,1]}})",
                 {"layout.strides[0]", "-3"},
                 {"data"}});
  Tiled tiled({4, 4}, {.outer = LayoutTag::strided}, {2, 1});
  tiled.inside(Tiled({2, 2}, {LayoutTag::col_major, LayoutTag::strided}, {}, {1, 2}));
  all.push_back({"tiled",
                 dense(DType::uint8, {8, 8}, tiled, 64),
                 R"({"layout":"tiled","layout_fields":{"levels":[
                   {"tile_shape":[4,4],"outer_layout":"strided","inner_layout":"tiled",
                    "outer_strides":[2,1]},
                   {"tile_shape":[2,2],"outer_layout":"col_major","inner_layout":"strided",
                    "inner_strides":[1,2]}]}})",
                 {"layout.tile_shape[0]", "layout.inner_strides[1]", "tiled (0x04)"},
                 {"data"}});
  Morton morton;
  morton.bits = {2, 1};
  all.push_back({"morton",
                 dense(DType::uint8, {3, 2}, morton, 8),
                 R"({"layout":"morton","layout_fields":{"morton_bits":[2,1]}})",
                 {"layout.morton_bits[0]"},
                 {"data"}});
  all.push_back({"hilbert",
                 dense(DType::uint8, {4, 4}, Hilbert{2, 2}, 16),
                 R"({"layout":"hilbert",
                     "layout_fields":{"hilbert_order":2,"hilbert_rank":2}})",
                 {"layout.hilbert_order"},
                 {"data"}});
  all.push_back({"coo",
                 described(DType::float32, {4, 5}, Coo{2, 1}, {8, 32}),
                 R"({"layout":"coo","bytes":40,"layout_fields":{"nnz":2,"is_sorted":1}})",
                 {"layout.is_sorted"},
                 {"values", "indices"}});
  all.push_back({"csr",
                 described(DType::float32, {3, 3}, Csr{4}, {16, 32, 32}),
                 R"({"layout":"csr","layout_fields":{"nnz":4}})",
                 {"layout.nnz"},
                 {"values", "col_indices", "row_ptr"}});
  all.push_back({"csc",
                 described(DType::float32, {3, 3}, Csc{4}, {16, 32, 32}),
                 R"({"layout":"csc","layout_fields":{"nnz":4}})",
                 {"layout.nnz"},
                 {"values", "row_indices", "col_ptr"}});
  Csf csf;
  csf.nnz = 1;
  csf.mode_order = {2, 0, 1};
  all.push_back({"csf",
                 described(DType::float32, {2, 3, 4}, csf, {4, 16, 8, 16, 8, 16, 8}),
                 R"({"layout":"csf","layout_fields":{"nnz":1,"mode_order":[2,0,1]}})",
                 {"layout.mode_order[0]"},
                 {"values", "pos", "crd", "pos", "crd", "pos", "crd"}});
  BlockPaged paged;
  paged.num_pages = 2;
  paged.page_size = 4;
  paged.num_seqs = 1;
  paged.kv_role = KvRole::fused;
  const auto cache = described(DType::int8, {5, 2, 3}, paged, {48, 8, 8});
  all.push_back({"block_paged",
                 cache,
                 R"({"layout":"block_paged","layout_fields":{"page_size":4,"num_pages":2,
                     "paged_axis":0,"num_seqs":1,"kv_role":"fused","layer_index":null,
                     "block_table_index_type":"uint32"}})",
                 {"layout.kv_role", "fused (0x02)"},
                 {"page_pool", "block_table", "seq_ptr"}});
  all.push_back({"composite",
                 described(DType::float32, {4, 4},
                           CompositeHead{3, CompositionRule::overlay, CombineOp::add}, {}),
                 R"({"layout":"composite","bytes":0,"buffers":[],
                     "layout_fields":{"composition_rule":"overlay","combine_op":"add",
                                      "member_count":3}})",
                 {"overlay (0x02)", "layout.member_count"},
                 {}});
  PrivateLayout agreed;
  agreed.tag = LayoutTag{0xF3};
  agreed.id = (std::uint64_t{1} << 53) + 1;
  agreed.data = blob({0xAB, 0x01});
  all.push_back({"private layout",
                 described(DType::float32, {2}, agreed, {8, 4}),
                 R"({"layout":"extension","layout_tag":243,"opaque":"a private layout",
                     "layout_fields":{"extension_layout_id":9007199254740993,
                       "extension_data_length":2,"extension_data":"ab 01"}})",
                 {"extension (0xF3)", "opaque: a private layout; elements cannot be addressed"},
                 {"", ""}});

  const auto codes = described(DType::int4, {4, 64}, RowMajor{}, {128});
  all.push_back({"per_tensor_affine",
                 with(codes, PerTensorAffine{0.5f, -3}),
                 R"({"quantization":{"scheme":"per_tensor_affine","scheme_tag":1,"scale":0.5,
                     "zero_point":-3}})",
                 {"quantization.zero_point", "-3"},
                 {"data"}});
  auto scaled = described(DType::int4, {4, 64}, RowMajor{}, {128, 16, 16});
  all.push_back({"per_channel_affine",
                 with(scaled, PerChannelAffine{0, 1, 2}),
                 R"({"quantization":{"scheme":"per_channel_affine","scheme_tag":2,"axis":0,
                     "scale_buffer_index":1,"zero_point_buffer_index":2,
                     "scale_type":"float32"}})",
                 {"per_channel_affine (0x02)"},
                 {"data", "scales", "zero_points"}});
  scaled = described(DType::int4, {4, 64}, RowMajor{}, {128, 16});
  all.push_back(
      {"per_block_affine",
       with(scaled, PerBlockAffine{1, 32, 1, no_buffer, DType::bfloat16}, blob({0, 0})),
       R"({"quantization":{"scheme":"per_block_affine","scheme_tag":3,"axis":1,"block_size":32,
           "scale_buffer_index":1,"zero_point_buffer_index":null,"scale_type":"bfloat16",
           "padding":"00 00"}})",
       {"quantization.flags", "SYMMETRIC"},
       {"data", "scales"}});
  scaled = described(DType::uint4, {4, 64}, RowMajor{}, {128, 16});
  all.push_back({"nf4",
                 with(scaled, Nf4{1, 64, 1}),
                 R"({"quantization":{"scheme":"nf4","scheme_tag":4,"axis":1,"block_size":64,
                     "scale_buffer_index":1}})",
                 {"nf4 (0x04)"},
                 {"data", "scales"}});
  scaled = described(DType::float4_e2m1, {4, 64}, RowMajor{}, {128, 8});
  all.push_back({"mxfp",
                 with(scaled, Mxfp{1, 32, 1}),
                 R"({"dtype":"float4_e2m1","quantization":{"scheme":"mxfp","scheme_tag":5,
                     "axis":1,"block_size":32,"scale_buffer_index":1}})",
                 {"mxfp (0x05)"},
                 {"data", "scales"}});
  all.push_back({"private scheme",
                 with(codes, OpaqueScheme{SchemeTag{0xF1}, 2, 5}, blob({1, 2, 0xFF})),
                 R"({"quantization":{"scheme":"extension","scheme_tag":241,"scheme_version":2,
                     "flags":5,"payload":"01 02 ff"},"opaque":"an unknown quantization scheme"})",
                 {"quantization.payload"},
                 {"data"}});

  auto own_type = described(DType{0xF5}, {2}, RowMajor{}, {6});
  own_type.set_extension_type(ExtensionType{.bit_width = 24,
                                            .is_float = 1,
                                            .sign_bits = 1,
                                            .exponent_bits = 7,
                                            .mantissa_bits = 16,
                                            .has_nan = 1,
                                            .exponent_bias = 63});
  all.push_back({"private type",
                 own_type,
                 R"({"dtype":"extension","type_tag":245,"extension_type":{"bit_width":24,
                     "packing_factor":1,"is_float":1,"is_signed":0,"sign_bits":1,
                     "exponent_bits":7,"mantissa_bits":16,"exponent_bias":63,"has_nan":1,
                     "has_inf":0}})",
                 {"extension (0xF5)", "extension_type.mantissa_bits"},
                 {"data"}});
  auto member = dense(DType::float32, {2, 4}, RowMajor{}, 32);
  member.set_member_role(MemberRole::base);
  member.set_shard(Shard(std::array<std::uint64_t, 2>{4, 4}, std::array<std::uint64_t, 2>{2, 0}));
  all.push_back({"member",
                 member,
                 R"({"member_role":"base","shard":{"parent_shape":[4,4],"shard_offset":[2,0]}})",
                 {"composite_member.member_role", "base (0x01)"},
                 {"data"}});
  return all;
}

std::string encoded(const Descriptor& descriptor) {
  const auto bytes = encode(descriptor);
  EXPECT_TRUE(bytes) << to_string(bytes.error());
  return bytes ? text_of(*bytes) : "";
}

class Inspect : public Command {
 protected:
  json inspected(std::vector<std::string> arguments, int code = 0) const {
    arguments.insert(arguments.begin(), {"inspect", "--json"});
    const Ran ran = run(std::move(arguments));
    EXPECT_EQ(ran.code, code) << ran.err;
    return json::parse(ran.out, nullptr, false);
  }
};

TEST_F(Inspect, EveryLayoutSchemeAndSection) {
  for (const Example& example : examples()) {
    SCOPED_TRACE(example.name);
    const std::string bytes = encoded(example.descriptor);
    put(at("d"), bytes);
    const Ran text = run({"inspect", "d"});
    EXPECT_EQ(text.code, 0) << text.err;
    for (const std::string& line : example.lines)
      EXPECT_NE(text.out.find(line), std::string::npos) << line << "\n" << text.out;
    EXPECT_EQ(text.out.find("strict"), std::string::npos) << text.out;

    const json shown = inspected({"d"});
    const json members = json::parse(example.members);
    for (const auto& [key, value] : members.items()) EXPECT_EQ(shown.value(key, json()), value);
    for (const char* optional :
         {"quantization", "extension_type", "member_role", "shard", "opaque", "strict_error"})
      EXPECT_EQ(shown.contains(optional), members.contains(optional)) << optional;
    std::vector<std::string> roles;
    for (const json& buffer : shown.at("buffers")) roles.push_back(buffer.at("role"));
    EXPECT_EQ(roles, example.roles);
    std::size_t end = 0;  // the fields account for every byte
    for (const json& field : shown.at("fields")) {
      EXPECT_EQ(field.at("offset"), end);
      end += field.at("size").get<std::size_t>();
    }
    EXPECT_EQ(end, bytes.size());
  }
}

TEST_F(Inspect, ListsSayWhatATensorIsBesideItsShape) {
  auto stream = io::StreamWriter::in_memory();
  ASSERT_TRUE(stream);
  const std::string data(512, '\0');
  for (const Example& example : examples()) {
    if (example.name == "composite" || example.name == "member") continue;
    std::vector<io::BufferSource> buffers;
    for (const BufferHandle& buffer : example.descriptor.buffers)
      buffers.emplace_back(std::as_bytes(std::span(data.data(), buffer.byte_size)));
    const auto written = stream->write(example.descriptor, buffers);
    ASSERT_TRUE(written) << example.name << ": " << to_string(written.error());
  }
  put(at("s"), text_of(stream->bytes()));
  const Ran listed = run({"inspect", "s"});
  EXPECT_EQ(listed.code, 0) << listed.err;
  EXPECT_EQ(listed.out.find("PROBLEM"), std::string::npos) << listed.out;
  for (const char* part : {"extension (0xF3)", "extension (0xF5)", "per_tensor_affine", "nf4",
                           "scheme (0xF1)", "block_paged", "mxfp"})
    EXPECT_NE(listed.out.find(part), std::string::npos) << part << "\n" << listed.out;
  const json shown = inspected({"s"});
  std::size_t frame = 0;
  for (const Example& example : examples()) {
    if (example.name == "composite" || example.name == "member") continue;
    const json members = json::parse(example.members);
    for (const auto& [key, value] : members.items())
      EXPECT_EQ(shown.at("frames").at(frame).value(key, json()), value) << example.name;
    ++frame;
  }
  EXPECT_EQ(shown.at("frames").size(), frame);
}

TEST_F(Inspect, CompositesAreFramesInTheirOrder) {
  const auto all = examples();
  std::string stream;
  for (const Example& example : all)
    if (example.name == "composite" || example.name == "member")
      stream += encoded(example.descriptor) + std::string(example.name == "member" ? 32 : 0, '\0');
  put(at("s"), stream);
  const Ran listed = run({"inspect", "s"});
  EXPECT_EQ(listed.code, 0) << listed.err;
  EXPECT_EQ(listed.out, R"(s: Hurray stream, 194 bytes

FRAME  DTYPE    SHAPE   LAYOUT     BYTES  OFFSET  REMARKS
    0  float32  [4, 4]  composite      0      53  overlay by add of 3 members
    1  float32  [2, 4]  row_major     32     162  member: base

2 frames, 32 bytes of data
)");
}

// --- what only permissive readers take ---

TEST_F(Inspect, UnknownTypesAndSchemesAreOpaque) {
  std::string bytes = encoded(described(DType::uint8, {4}, RowMajor{}, {4}));
  bytes[14] = 0x2F;
  put(at("d"), bytes);
  const Ran text = run({"inspect", "d"});
  EXPECT_EQ(text.code, 0);
  EXPECT_NE(text.out.find(R"(
opaque: an unknown element type; elements cannot be addressed
strict readers reject it: type_tag: expected an assigned tag, found 0x2F (invalid tag at byte 14 )"
                          R"(of the descriptor); this release knows no such tag
)"),
            std::string::npos)
      << text.out;
  json shown = inspected({"d"});
  EXPECT_EQ(shown.at("dtype"), "unknown");
  EXPECT_EQ(shown.at("type_tag"), 0x2F);
  EXPECT_EQ(shown.at("strict_error").at("code"), "invalid tag");
  EXPECT_EQ(shown.at("buffers").size(), 1);

  bytes = encoded(with(described(DType::uint8, {4}, RowMajor{}, {4}), PerTensorAffine{}));
  bytes[57] = 0x7F;
  put(at("d"), bytes);
  shown = inspected({"d"});
  EXPECT_EQ(shown.at("quantization").at("scheme_tag"), 0x7F);
  EXPECT_EQ(shown.at("opaque"), "an unknown quantization scheme");
  EXPECT_EQ(shown.at("strict_error").at("field"), "quantization.scheme_tag");
}

TEST_F(Inspect, StatisticsThatBreakARuleAreReported) {
  auto d = described(DType::uint8, {4}, RowMajor{}, {4});
  Statistics statistics;
  statistics.computed_mask = static_cast<std::uint32_t>(StatisticsBit::sparsity);
  statistics.sparsity_ratio = 0.5;
  d.set_statistics(statistics);
  std::string bytes = encoded(d);
  const std::size_t at_ratio = bytes.size() - 72 + 16;
  ASSERT_EQ(bytes[at_ratio + 7], '\x3f');
  bytes[at_ratio + 7] = '\x40';  // 0.5 becomes 2^1023
  put(at("d"), bytes);
  const json shown = inspected({"d"});
  EXPECT_EQ(shown.at("strict_error").at("field"), "statistics.sparsity_ratio");
  EXPECT_FALSE(shown.contains("opaque"));
}

TEST_F(Inspect, AnUnknownLayoutHidesItsBuffers) {
  const std::string known = encoded(described(DType::uint8, {4}, RowMajor{}, {4}));
  std::string unknown = known;
  unknown[15] = 0x0C;
  put(at("d"), unknown);
  const Ran text = run({"inspect", "d"});
  EXPECT_EQ(text.code, 0);
  EXPECT_NE(text.out.find(R"(
buffers: an unknown layout hides the buffer table
opaque: an unknown layout; elements cannot be addressed
strict readers reject it: layout_tag: )"),
            std::string::npos)
      << text.out;
  json shown = inspected({"d"});
  EXPECT_EQ(shown.at("layout"), "extension");
  EXPECT_EQ(shown.at("layout_tag"), 0x0C);
  EXPECT_EQ(shown.at("bytes"), json());
  EXPECT_EQ(shown.at("buffers"), json());

  // A stream ends there: nobody can tell where the next frame begins.
  put(at("s"), known + "abcd" + unknown + "abcd" + known + "abcd");
  const Ran listed = run({"inspect", "s"});
  EXPECT_EQ(listed.code, 0) << listed.err;
  EXPECT_NE(listed.out.find("    1  uint8  [4]    extension (0x0C)      ?     110"),
            std::string::npos)
      << listed.out;
  EXPECT_NE(listed.out.find("\n2 frames, 4 bytes of data\nunsupported: layout_tag: an unknown "
                            "layout does not say where its data end"),
            std::string::npos)
      << listed.out;
  shown = inspected({"s"});
  EXPECT_EQ(shown.at("frames").size(), 2);
  EXPECT_EQ(shown.at("error").at("code"), "unsupported");
  EXPECT_EQ(run({"inspect", "s", "1"}).code, 0);
  EXPECT_EQ(run({"inspect", "s", "2"}).code, 1);
}

TEST_F(Inspect, FilesListWhatTheyHold) {
  io::WriteOptions options;
  options.sync = false;
  auto writer = io::FileWriter::create(at("m.hrry").string(), options);
  ASSERT_TRUE(writer);
  const std::string data(512, '\0');
  std::size_t tensors = 0;
  for (const Example& example : examples()) {
    if (example.name == "composite" || example.name == "member") continue;
    std::vector<io::BufferSource> buffers;
    for (const BufferHandle& buffer : example.descriptor.buffers)
      buffers.emplace_back(std::as_bytes(std::span(data.data(), buffer.byte_size)));
    const auto written = writer->write(example.name, example.descriptor, buffers);
    ASSERT_TRUE(written) << example.name << ": " << to_string(written.error());
    ++tensors;
  }
  ASSERT_TRUE(writer->finish());
  const json listed = inspected({"m.hrry"});
  ASSERT_EQ(listed.at("tensors").size(), tensors);
  for (const Example& example : examples()) {
    if (example.name == "composite" || example.name == "member") continue;
    SCOPED_TRACE(example.name);
    const json shown = inspected({"m.hrry", example.name});
    const json members = json::parse(example.members);
    for (const auto& [key, value] : members.items()) EXPECT_EQ(shown.value(key, json()), value);
    for (const json& buffer : shown.at("buffers"))
      EXPECT_EQ(buffer.contains("offset"), buffer.at("byte_size") != 0);
  }

  // The index still says how long the data of an unknown layout are.
  std::string changed = contents(at("m.hrry"));
  changed[64 + 15] = 0x0C;
  put(at("m.hrry"), changed);
  const Ran text = run({"inspect", "m.hrry"});
  EXPECT_EQ(text.code, 0) << text.err;
  EXPECT_NE(text.out.find("extension (0x0C)"), std::string::npos) << text.out;
  EXPECT_NE(text.out.find("strict readers reject it: layout_tag: "), std::string::npos) << text.out;
  const json first = inspected({"m.hrry"}).at("tensors").at(0);
  EXPECT_EQ(first.at("layout_tag"), 0x0C);
  EXPECT_EQ(first.at("bytes"), 24);
  EXPECT_EQ(inspected({"m.hrry", "row_major"}).at("bytes"), 24);
}

}  // namespace
}  // namespace hurray::cli
