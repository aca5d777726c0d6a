#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "hurray/descriptor.hpp"

/// `manifest.json` for the C++ runners, and what the library reads in the manifest's own words
/// (README.md beside this file).
namespace hurray::conformance {

using Json = nlohmann::ordered_json;
using Bytes = std::vector<std::byte>;

inline std::filesystem::path folder() { return HURRAY_CONFORMANCE_DIR; }

/// A vector's text file: its bytes, and the line "error: …" of an invalid one.
struct Text {
  Bytes bytes;
  std::string error;
};

inline Text parse(std::istream& in) {
  Text text;
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("error:")) {
      text.error = line;
      continue;
    }
    const std::size_t first = text.bytes.size();
    std::istringstream words(line.substr(0, line.find('#')));
    for (std::string word; words >> word;) {
      if (word == "x") {
        std::size_t times = 0;
        words >> times;
        const Bytes once(text.bytes.begin() + static_cast<std::ptrdiff_t>(first), text.bytes.end());
        for (; times > 1; --times) text.bytes.insert(text.bytes.end(), once.begin(), once.end());
      } else {
        for (std::size_t i = 0; i + 1 < word.size(); i += 2)
          text.bytes.push_back(static_cast<std::byte>(std::stoul(word.substr(i, 2), nullptr, 16)));
      }
    }
  }
  return text;
}

inline std::filesystem::path path_of(const Json& entry) {
  return folder() / (entry["name"].get<std::string>() + ".txt");
}

inline Text text_of(const Json& entry) {
  std::ifstream in(path_of(entry));
  return parse(in);
}

/// Puts `sentence` in place of the line "error: …".
inline void update(const Json& entry, const std::string& sentence) {
  std::ifstream in(path_of(entry));
  std::string text;
  for (std::string line; std::getline(in, line);)
    text += (line.starts_with("error:") ? sentence : line) + "\n";
  in.close();
  std::ofstream(path_of(entry)) << text;
}

inline const Json& manifest() {
  static const Json read = [] {
    std::ifstream in(folder() / "manifest.json");
    return Json::parse(in);
  }();
  return read;
}

/// The entries of one kind, by name.
inline std::vector<Json> entries(std::string_view kind) {
  std::vector<Json> found;
  for (const Json& entry : manifest()["vectors"])
    if (entry["kind"] == kind) found.push_back(entry);
  return found;
}

inline bool is(const Json& entry, std::string_view outcome) { return entry["outcome"] == outcome; }

/// A number, or the decimal digits of one that JSON readers could round.
inline std::uint64_t number(const Json& value) {
  return value.is_string() ? std::stoull(value.get<std::string>()) : value.get<std::uint64_t>();
}

inline Json shown(std::uint64_t value) {
  constexpr std::uint64_t exact = std::uint64_t{1} << 53;
  return value < exact ? Json(value) : Json(std::to_string(value));
}
inline Json shown(std::int64_t value) {
  constexpr std::int64_t exact = std::int64_t{1} << 53;
  return -exact < value && value < exact ? Json(value) : Json(std::to_string(value));
}
template <class List>
Json shown_list(const List& list) {
  Json out = Json::array();
  for (const auto value : list) {
    if constexpr (std::is_signed_v<std::remove_const_t<decltype(value)>>)
      out.push_back(shown(std::int64_t{value}));
    else
      out.push_back(shown(std::uint64_t{value}));
  }
  return out;
}

/// `digits` hexadecimal digits, most significant first.
inline std::string hex(std::uint64_t bits, int digits) {
  char text[20];
  std::snprintf(text, sizeof text, "%0*llx", digits, static_cast<unsigned long long>(bits));
  return text;
}
inline std::string hex(float value) { return hex(std::bit_cast<std::uint32_t>(value), 8); }
inline std::string hex(double value) { return hex(std::bit_cast<std::uint64_t>(value), 16); }
inline std::string hex(std::span<const std::byte> bytes) {
  std::string text;
  for (const std::byte b : bytes) text += hex(static_cast<std::uint64_t>(b), 2);
  return text;
}
inline std::string tag_text(std::uint64_t tag) { return "0x" + hex(tag, 2); }

/// Decode options of an entry; the lists that they view live here.
class Options {
 public:
  explicit Options(const Json& entry) {
    if (!entry.contains("options")) return;
    const Json& options = entry["options"];
    permissive_ = options.value("permissive", false);
    cross_machine_ = options.value("cross_machine", false);
    if (!options.contains("agreed")) return;
    const Json& agreed = options["agreed"];
    for (const Json& pair : agreed.value("layouts", Json::array()))
      layouts_.push_back({pair[0].get<std::uint8_t>(), number(pair[1])});
    schemes_ = agreed.value("schemes", schemes_);
    memory_classes_ = agreed.value("memory_classes", memory_classes_);
    rules_ = agreed.value("rules", rules_);
  }
  Options(const Options&) = delete;
  Options& operator=(const Options&) = delete;

  DecodeOptions decode() const {
    DecodeOptions options;
    options.permissive = permissive_;
    options.cross_machine = cross_machine_;
    options.agreed = {.layouts = layouts_,
                      .schemes = schemes_,
                      .memory_classes = memory_classes_,
                      .composition_rules = rules_};
    return options;
  }

 private:
  bool permissive_ = false;
  bool cross_machine_ = false;
  std::vector<PrivateLayoutId> layouts_;
  std::vector<std::uint8_t> schemes_, memory_classes_, rules_;
};

// ------------------------------------------------------------------------------------------
// A descriptor in the manifest's words.

template <class Tag>
std::string name_or_tag(Tag tag) {
  const std::string_view known = name(tag);
  if (!known.empty() && known != "extension" && known != "private") return std::string(known);
  return tag_text(static_cast<std::uint64_t>(tag));
}

inline Json shown_level(const Tiled& tiled, std::size_t i, std::size_t rank) {
  const TileLevel level = tiled.level(i, rank);
  Json out{{"tile_shape", shown_list(level.tile_shape)},
           {"outer_layout", name(level.orders.outer)},
           {"inner_layout", name(level.orders.inner)}};
  if (!level.outer_strides.empty()) out["outer_strides"] = shown_list(level.outer_strides);
  if (!level.inner_strides.empty()) out["inner_strides"] = shown_list(level.inner_strides);
  if (i + 1 < tiled.levels()) out["inner_tiled"] = shown_level(tiled, i + 1, rank);
  return out;
}

struct ShownLayout {
  const Shape& shape;

  Json operator()(const RowMajor&) const { return Json::object(); }
  Json operator()(const ColumnMajor&) const { return Json::object(); }
  Json operator()(const Strided& l) const { return {{"strides", shown_list(l.strides)}}; }
  Json operator()(const Tiled& l) const { return shown_level(l, 0, shape.rank()); }
  Json operator()(const Morton& l) const { return {{"morton_bits", shown_list(l.bits)}}; }
  Json operator()(const Hilbert& l) const {
    return {{"hilbert_order", l.order}, {"hilbert_rank", l.rank}};
  }
  Json operator()(const Coo& l) const {
    return {{"nnz", shown(l.nnz)}, {"is_sorted", l.is_sorted == 1}};
  }
  Json operator()(const Csr& l) const { return {{"nnz", shown(l.nnz)}}; }
  Json operator()(const Csc& l) const { return {{"nnz", shown(l.nnz)}}; }
  Json operator()(const Csf& l) const {
    return {{"nnz", shown(l.nnz)}, {"mode_order", shown_list(l.mode_order)}};
  }
  Json operator()(const BlockPaged& l) const {
    Json layer;
    if (l.layer_index != BlockPaged::no_layer) layer = l.layer_index;
    return {{"page_size", l.page_size},
            {"num_pages", shown(l.num_pages)},
            {"paged_axis", l.paged_axis},
            {"num_seqs", l.num_seqs},
            {"kv_role", name(l.kv_role)},
            {"layer_index", layer},
            {"block_table_index_type", name(l.index_type)}};
  }
  Json operator()(const CompositeHead& l) const {
    const bool agreed = name(l.rule) == "extension";
    Json op;
    if (agreed)
      op = static_cast<unsigned>(l.combine_op);
    else if (l.combine_op != CombineOp::none)
      op = name(l.combine_op);
    return {{"composition_rule", agreed ? Json(static_cast<unsigned>(l.rule)) : Json(name(l.rule))},
            {"combine_op", op},
            {"member_count", l.member_count}};
  }
  Json operator()(const PrivateLayout& l) const {
    return {{"tag", tag_text(static_cast<std::uint64_t>(l.tag))},
            {"extension_layout_id", shown(l.id)},
            {"extension_data", hex(l.data.bytes())}};
  }
  Json operator()(const UnknownLayout& l) const {
    return {{"tag", tag_text(static_cast<std::uint64_t>(l.tag))},
            {"raw_bytes", hex(l.tail.bytes())}};
  }
};

inline Json shown(const Quantization& q) {
  Json out{{"scheme", name_or_tag(tag(q.scheme))}};
  const auto buffer = [](std::uint32_t index) { return index == no_buffer ? Json() : Json(index); };
  std::visit(
      [&]<class T>(const T& s) {
        if constexpr (std::is_same_v<T, PerTensorAffine>) {
          out["scale"] = hex(s.scale);
          out["zero_point"] = s.zero_point;
        } else if constexpr (std::is_same_v<T, OpaqueScheme>) {
          out["scheme_version"] = s.version;
          out["flags"] = s.flags;
        } else {
          if constexpr (requires { s.zero_point_buffer_index; })
            out["symmetric"] = s.zero_point_buffer_index == no_buffer;
          out["axis"] = s.axis;
          if constexpr (requires { s.block_size; }) out["block_size"] = s.block_size;
          out["scale_buffer_index"] = s.scale_buffer_index;
          if constexpr (requires { s.zero_point_buffer_index; })
            out["zero_point_buffer_index"] = buffer(s.zero_point_buffer_index);
          if constexpr (std::is_same_v<T, PerBlockAffine>) out["scale_type"] = name(s.scale_type);
        }
      },
      q.scheme);
  const bool is_opaque = std::holds_alternative<OpaqueScheme>(q.scheme);
  if (!is_opaque) out["scheme_version"] = 1;
  if (is_opaque || !q.rest.empty()) out[is_opaque ? "payload" : "surplus"] = hex(q.rest.bytes());
  return out;
}

inline Json shown(const Statistics& s) {
  Json out{{"computed_mask", s.computed_mask}};
  if (s.has(StatisticsBit::nnz)) out["nnz"] = shown(s.nnz);
  if (s.has(StatisticsBit::sparsity)) out["sparsity_ratio"] = hex(s.sparsity_ratio);
  if (s.has(StatisticsBit::value_range)) {
    out["value_min"] = hex(s.value_min);
    out["value_max"] = hex(s.value_max);
    out["value_abs_max"] = hex(s.value_abs_max);
  }
  if (s.has(StatisticsBit::value_stats)) {
    out["value_mean"] = hex(s.value_mean);
    out["value_stddev"] = hex(s.value_stddev);
  }
  if (s.has(StatisticsBit::nm_sparsity)) {
    out["nm_n"] = s.nm_n;
    out["nm_m"] = s.nm_m;
  }
  if (s.has(StatisticsBit::nan_inf)) {
    out["has_nan"] = s.has_nan;
    out["has_inf"] = s.has_inf;
  }
  return out;
}

inline Json shown(const ExtensionType& e) {
  return {{"bit_width", e.bit_width},
          {"packing_factor", e.packing_factor},
          {"is_float", e.is_float},
          {"is_signed", e.is_signed},
          {"sign_bits", e.sign_bits},
          {"exponent_bits", e.exponent_bits},
          {"mantissa_bits", e.mantissa_bits},
          {"exponent_bias", e.exponent_bias},
          {"has_nan", e.has_nan},
          {"has_inf", e.has_inf}};
}

/// `flags` of the wire by name.
inline Json shown_flags(std::uint32_t bits) {
  Json out = Json::array();
  for (const FlagInfo& row : flags)
    if ((bits & static_cast<std::uint32_t>(row.tag)) != 0) out.push_back(row.name);
  return out;
}

inline Json shown(const Descriptor& d) {
  Json shape = Json::array();
  for (const std::uint64_t n : d.shape) shape.push_back(n == dynamic ? Json("dynamic") : shown(n));
  const auto* unknown = std::get_if<UnknownLayout>(&d.layout);
  Json out{{"dtype", name_or_tag(d.dtype)},
           {"shape", shape},
           {"byte_offset", shown(d.byte_offset)},
           {"version", {d.version.major, d.version.minor}},
           {"flags", shown_flags(unknown != nullptr ? unknown->flags : d.sections())},
           {"layout", name(d.layout)},
           {"layout_fields", std::visit(ShownLayout{d.shape}, d.layout)}};
  if (unknown != nullptr) return out;
  out["buffers"] = Json::array();
  for (const BufferHandle& handle : d.buffers)
    out["buffers"].push_back({{"byte_size", shown(handle.byte_size)},
                              {"alignment", handle.alignment},
                              {"device", name_or_tag(handle.device)},
                              {"sync_mode", name(handle.sync_mode)},
                              {"memory_class", name_or_tag(handle.memory_class)}});
  if (const auto* q = d.quantization()) out["quantization"] = shown(*q);
  if (const auto* s = d.shard())
    out["shard"] = {{"parent_shape", shown_list(s->parent_shape())},
                    {"shard_offset", shown_list(s->shard_offset())}};
  if (const auto* s = d.statistics()) out["statistics"] = shown(*s);
  if (const auto* e = d.extension_type()) out["extension_type"] = shown(*e);
  if (const auto* r = d.member_role()) out["member_role"] = name(*r);
  return out;
}

/// The keys of `expect` that a descriptor has. Without `alignments` those of the buffers are left
/// out on both sides: a reader reports what it measured.
inline Json descriptor_part(const Json& expect, bool alignments = true) {
  Json out = Json::object();
  for (const char* key :
       {"dtype", "shape", "byte_offset", "version", "flags", "layout", "layout_fields", "buffers",
        "quantization", "shard", "statistics", "extension_type", "member_role"})
    if (expect.contains(key)) out[key] = expect[key];
  if (!alignments && out.contains("buffers"))
    for (Json& handle : out["buffers"]) handle.erase("alignment");
  return out;
}

/// Why the two differ, as a JSON patch from what was wanted to what is there; "" when they agree.
inline std::string difference(const Json& wanted, const Json& found) {
  const nlohmann::json a = wanted, b = found;  // without the order of keys
  return a == b ? std::string() : nlohmann::json::diff(a, b).dump();
}

/// What an error is, in the manifest's words; only the keys that `wanted` prescribes.
inline Json shown(const Error& error, const Json& wanted) {
  const Json all{{"code", info(error.code).name},
                 {"field", field_name(error)},
                 {"offset", error.offset},
                 {"origin", info(error.origin).name}};
  Json out = Json::object();
  for (const auto& [key, value] : wanted.items())
    if (all.contains(key)) out[key] = all[key];
  return out;
}

}  // namespace hurray::conformance
