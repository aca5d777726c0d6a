#include "members.hpp"

#include <fmt/format.h>

#include <concepts>
#include <limits>
#include <string_view>
#include <type_traits>
#include <variant>

#include "text.hpp"

namespace hurray::cli {
namespace {

/// Runs a list of the format's fields and writes each as a member: the field's own name without
/// the section's before it, the tables' names for tags where they have one.
class Members {
 public:
  explicit Members(Json& json) : json_(json) {}

  bool ok() const noexcept { return true; }
  std::uint64_t last() const noexcept { return 0; }
  void check(bool, const auto&) noexcept {}
  void reserved(Field, std::uint64_t) noexcept {}

  void operator()(Field field, const auto& value) {
    if (field.index == Error::no_index) json_.key(key_of(field.name));
    put(field.name, value);
  }
  void opaque(Field field, const Blob& bytes, std::uint64_t) {
    json_.member(key_of(field.name), hex(bytes.bytes(), bytes.size()));
  }
  void list(Field field, const auto& list, std::size_t count, std::size_t, auto each) {
    json_.key(key_of(field.name));
    json_.begin_array();
    for (std::size_t i = 0; i < count; ++i) each(list[i], i);
    json_.end_array();
  }

  // What a scheme's own list asks.
  void axis(const auto& value, auto& io) const { io("quantization.axis", value); }
  void block_size(const auto& value, std::uint32_t, auto& io) const {
    io("quantization.block_size", value);
  }
  void buffer(Field field, const auto& value, auto& io) const { io(field, value); }
  void zero_point_buffer(const auto& value, auto& io) const {
    io("quantization.zero_point_buffer_index", value);
  }
  template <DType...>
  void scale_type(const auto& value, auto& io) const {
    io("quantization.scale_type", value);
  }
  void zero_point(const auto&, auto&) const {}

 private:
  static std::string_view key_of(std::string_view field) {
    field.remove_prefix(field.find('.') + 1);
    if (field.ends_with("[]")) field.remove_suffix(2);
    return field;
  }

  template <class T>
  void put(std::string_view field, const T& value) {
    if constexpr (std::is_enum_v<T>) {
      const std::string_view word = name(value);
      if (word.empty() || word == opaque_layout.name)
        json_.value(static_cast<unsigned>(value));
      else
        json_.value(word);
    } else if constexpr (std::floating_point<T>) {
      json_.value(double{value});
    } else if (stands_for_none(field, static_cast<std::uint64_t>(value))) {
      json_.null();
    } else {
      json_.value(value);
    }
  }
  static bool stands_for_none(std::string_view field, std::uint64_t value) {
    return (field == "layout.layer_index" && value == BlockPaged::no_layer) ||
           (field == "quantization.zero_point_buffer_index" && value == no_buffer);
  }

  Json& json_;
};

void array(Json& json, std::string_view key, const auto& numbers) {
  json.key(key);
  json.begin_array();
  for (const auto n : numbers) json.value(n);
  json.end_array();
}

void sizes(Json& json, std::string_view key, std::span<const std::uint64_t> shape) {
  json.key(key);
  json.begin_array();
  for (const std::uint64_t n : shape)
    if (n == dynamic)
      json.null();
    else
      json.value(n);
  json.end_array();
}

void level_members(Json& json, const TileLevel& level) {
  json.begin_object();
  array(json, "tile_shape", level.tile_shape);
  json.member("outer_layout", name(level.orders.outer));
  json.member("inner_layout", name(level.orders.inner));
  if (level.orders.outer == LayoutTag::strided) array(json, "outer_strides", level.outer_strides);
  if (level.orders.inner == LayoutTag::strided) array(json, "inner_strides", level.inner_strides);
  json.end_object();
}

template <class T>
constexpr bool has_no_fields = std::is_same_v<T, RowMajor> || std::is_same_v<T, ColumnMajor> ||
                               std::is_same_v<T, UnknownLayout>;

void layout_members(Json& json, const Descriptor& d) {
  std::visit(
      [&]<class T>(const T& layout) {
        if constexpr (!has_no_fields<T>) {
          json.key("layout_fields");
          json.begin_object();
          if constexpr (std::is_same_v<T, Tiled>) {
            json.key("levels");
            json.begin_array();
            for (std::size_t i = 0; i < layout.levels(); ++i)
              level_members(json, layout.level(i, d.shape.rank()));
            json.end_array();
          } else {
            Members io(json);
            layout.fields(layout, io, FieldContext{d.shape, DecodeOptions{}});
          }
          json.end_object();
        }
      },
      d.layout);
}

void quantization_members(Json& json, const Quantization& quantization) {
  json.key("quantization");
  json.begin_object();
  json.member("scheme", name(quantization.scheme));
  json.member("scheme_tag", static_cast<unsigned>(tag(quantization.scheme)));
  std::visit(
      [&]<class T>(const T& scheme) {
        if constexpr (std::is_same_v<T, OpaqueScheme>) {
          json.member("scheme_version", scheme.version);
          json.member("flags", scheme.flags);
        } else {
          Members io(json);
          scheme.fields(scheme, io, io);
        }
      },
      quantization.scheme);
  const Blob& rest = quantization.rest;
  if (const bool opaque = std::holds_alternative<OpaqueScheme>(quantization.scheme);
      opaque || !rest.empty())
    json.member(opaque ? "payload" : "padding", hex(rest.bytes(), rest.size()));
  json.end_object();
}

std::string tagged(std::string_view name, std::uint8_t tag) {
  return fmt::format("{} ({})", name, to_hex(tag));
}

}  // namespace

std::optional<std::uint64_t> buffer_bytes(const Descriptor& descriptor) {
  if (std::holds_alternative<UnknownLayout>(descriptor.layout)) return std::nullopt;
  std::uint64_t sum = 0;  // a valid descriptor's does not overflow
  for (const BufferHandle& buffer : descriptor.buffers) sum += buffer.byte_size;
  return sum;
}

std::string dtype_text(DType dtype) {
  if (info(dtype) != nullptr) return std::string(name(dtype));
  const auto tag = static_cast<std::uint8_t>(dtype);
  return tagged(is_private(tag) ? name(dtype) : "unknown", tag);
}

std::string layout_text(const Layout& layout) {
  const LayoutTag own = tag(layout);
  if (info(own) != nullptr) return std::string(name(own));
  return tagged(name(own), static_cast<std::uint8_t>(own));
}

std::string shape_text(const Shape& shape) {
  std::string text = "[";
  for (const std::uint64_t n : shape) {
    if (text.size() > 1) text += ", ";
    text += n == dynamic ? "?" : std::to_string(n);
  }
  return text + ']';
}

std::string role_text(const Descriptor& descriptor, std::size_t i) {
  std::string text(role(descriptor.layout, i));
  if (!text.empty() || descriptor.quantization() == nullptr) return text;
  const SchemeParameters of = parameters(descriptor.quantization()->scheme);
  if (i == of.scale_buffer) text = "scales";
  if (i == of.zero_point_buffer) text += text.empty() ? "zero_points" : ", zero_points";
  return text;
}

std::string remarks(const Descriptor& descriptor) {
  std::string text;
  const auto add = [&](std::string_view remark) {
    if (!text.empty()) text += ", ";
    text += remark;
  };
  if (const auto* head = std::get_if<CompositeHead>(&descriptor.layout)) {
    const bool combines = head->combine_op != CombineOp::none;
    add(fmt::format("{}{}{} of {} member{}", name(head->rule), combines ? " by " : "",
                    combines ? name(head->combine_op) : "", head->member_count,
                    head->member_count == 1 ? "" : "s"));
  }
  if (const Quantization* quantization = descriptor.quantization()) {
    const SchemeTag scheme = tag(quantization->scheme);
    add(info(scheme) != nullptr ? std::string(name(scheme))
                                : tagged("scheme", static_cast<std::uint8_t>(scheme)));
  }
  if (const MemberRole* member = descriptor.member_role())
    add(fmt::format("member: {}", name(*member)));
  return text;
}

void descriptor_members(Json& json, const Descriptor& d, std::optional<std::uint64_t> bytes) {
  const auto type_tag = static_cast<std::uint8_t>(d.dtype);
  const bool known_type = info(d.dtype) != nullptr;
  json.member("dtype", known_type || is_private(type_tag) ? name(d.dtype) : "unknown");
  if (!known_type) json.member("type_tag", type_tag);
  sizes(json, "shape", d.shape);
  json.member("layout", name(d.layout));
  if (info(tag(d.layout)) == nullptr)
    json.member("layout_tag", static_cast<unsigned>(tag(d.layout)));
  json.member("byte_offset", d.byte_offset);
  json.key("bytes");
  if (bytes)
    json.value(*bytes);
  else
    json.null();
  layout_members(json, d);
  if (const Quantization* quantization = d.quantization())
    quantization_members(json, *quantization);
  if (const Shard* shard = d.shard()) {
    json.key("shard");
    json.begin_object();
    array(json, "parent_shape", shard->parent_shape());
    array(json, "shard_offset", shard->shard_offset());
    json.end_object();
  }
  if (const ExtensionType* type = d.extension_type()) {
    json.key("extension_type");
    json.begin_object();
    Members io(json);
    type->fields(*type, io);
    json.end_object();
  }
  if (const MemberRole* member = d.member_role()) json.member("member_role", name(*member));
  if (const auto reason = opaque(d)) json.member("opaque", reason->what);
}

}  // namespace hurray::cli
