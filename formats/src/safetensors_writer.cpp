#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <numeric>
#include <tuple>
#include <utility>

#include "format.hpp"
#include "hurray/checked.hpp"
#include "hurray/cursor.hpp"
#include "hurray/elements.hpp"
#include "hurray/formats/safetensors.hpp"
#include "hurray/gather.hpp"
#include "safetensors.hpp"

namespace hurray::formats {
namespace {

/// Whole elements of every type.
constexpr std::size_t piece_bytes =
    (std::size_t{1} << 20) / gather_granularity * gather_granularity;
/// Tensors in a message; the rest is counted.
constexpr std::size_t listed = 10;

const SafetensorsType* type_of(DType dtype) noexcept {
  const auto row = std::ranges::find(safetensors_types, dtype, &SafetensorsType::dtype);
  return row == safetensors_types.end() ? nullptr : &*row;
}

std::string text(std::string_view value) {
  return nlohmann::json(std::string(value)).dump(-1, ' ', false);
}

io::Error refuse(Errc code, std::string_view field, std::string_view what, std::string tensor) {
  return io::Error({.code = code, .origin = Origin::file, .field = field, .what = what}, {},
                   std::move(tensor));
}

/// Bytes that the elements take in the file.
std::uint64_t stored_bytes(const SafetensorsItem& item) {
  return item.descriptor.dtype == DType::bool_ ? item.descriptor.shape.count()
                                               : item.descriptor.buffers[0].byte_size;
}

/// The elements, in pieces.
io::Result<void> put_elements(const SafetensorsItem& item, std::vector<std::byte>& scratch,
                              const io::PutBytes& put) {
  const io::BufferSource& source = item.buffers.front();
  const bool bits = item.descriptor.dtype == DType::bool_;
  if (!source.converted() && !bits)
    return source.size() == 0 ? io::Result<void>() : put(source.bytes());
  scratch.resize(piece_bytes + (bits ? 8 * piece_bytes : 0));
  const auto stored = std::span(scratch).first(piece_bytes);
  const auto bytes = std::span(scratch).subspan(piece_bytes);
  const std::uint64_t count = item.descriptor.shape.count();
  for (std::uint64_t at = 0; at < source.size(); at += piece_bytes) {
    const auto part = stored.first(
        static_cast<std::size_t>(std::min<std::uint64_t>(piece_bytes, source.size() - at)));
    if (source.converted()) {
      if (auto filled = source.fill(at, part); !filled) return filled;
    } else {
      std::ranges::copy(source.bytes().subspan(static_cast<std::size_t>(at), part.size()),
                        part.begin());
    }
    if (!bits) {
      if (auto done = put(part); !done) return done;
      continue;
    }
    const auto here =
        static_cast<std::size_t>(std::min<std::uint64_t>(8 * part.size(), count - 8 * at));
    for (std::size_t i = 0; i < here; ++i) bytes[i] = part[i / 8] >> (i % 8) & std::byte{1};
    if (auto done = put(bytes.first(here)); !done) return done;
  }
  return {};
}

/// All tensors that such a file cannot hold.
std::optional<io::Error> losses(std::span<const SafetensorsItem> items) {
  std::optional<io::Error> error;
  std::size_t count = 0;
  for (const SafetensorsItem& item : items) {
    const auto what = safetensors_cannot_hold(item.descriptor);
    if (what.empty()) continue;
    if (!error) {
      error =
          refuse(Errc::unsupported, {}, "a safetensors file cannot hold this tensor", item.name);
      error->detail.append("it cannot keep ").append(what);
    } else if (++count < listed) {
      error->detail.append(", nor that of ")
          .append(quote(item.name))
          .append(" (")
          .append(what)
          .append(")");
    }
  }
  if (count >= listed)
    error->detail.append(" and ").append(std::to_string(count - listed + 1)).append(" more");
  return error;
}

}  // namespace

std::string_view safetensors_type(DType dtype) noexcept {
  const auto* row = type_of(dtype);
  return row == nullptr ? std::string_view() : row->name;
}

std::string_view safetensors_cannot_hold(const Descriptor& descriptor) noexcept {
  if (descriptor.quantization() != nullptr) return "its quantization";
  if (!std::holds_alternative<RowMajor>(descriptor.layout)) return "its layout";
  if (type_of(descriptor.dtype) == nullptr) return "its element type";
  if (descriptor.shape.is_dynamic()) return "a dynamic size";
  if (descriptor.extension_type() != nullptr) return "its extension type";
  if (descriptor.statistics() != nullptr) return "its statistics";
  if (descriptor.shard() != nullptr) return "its shard";
  if (ambiguous_bool(descriptor)) return "truth values that can be read in two ways";
  if (descriptor.byte_offset != 0) return "an element 0 that is not the first";
  if (descriptor.shape.count() * bits(descriptor.dtype) % 8 != 0 &&
      descriptor.dtype != DType::bool_)
    return "elements that end inside a byte";
  return {};
}

io::Result<void> write_safetensors(std::string path, std::span<const SafetensorsItem> items,
                                   const io::KeyValues& metadata,
                                   const io::ReplaceOptions& wanted) {
  return contain(Origin::file, [&]() -> io::Result<void> {
    const auto fail = [&](io::Error error) {
      error.path = path;
      return error;
    };
    std::vector<std::size_t> order(items.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    if (auto error = losses(items)) return fail(*std::move(error));
    for (const SafetensorsItem& item : items) {
      if (!io::is_utf8(item.name) || item.name == "__metadata__")
        return fail(
            refuse(Errc::invalid_value, "name", "must be UTF-8 and not __metadata__", item.name));
      if (item.buffers.size() != 1 ||
          item.buffers[0].size() != item.descriptor.buffers[0].byte_size)
        return fail(refuse(Errc::inconsistent, "buffers", "must be one, as the descriptor says",
                           item.name));
    }
    std::ranges::sort(order, [&](std::size_t a, std::size_t b) {
      const auto key = [&](std::size_t i) {
        return std::tuple(-(type_of(items[i].descriptor.dtype) - safetensors_types.data()),
                          std::string_view(items[i].name));
      };
      return key(a) < key(b);
    });
    std::vector<std::string_view> names;
    for (const SafetensorsItem& item : items) names.push_back(item.name);
    std::ranges::sort(names);
    if (const auto same = std::ranges::adjacent_find(names); same != names.end())
      return fail(
          refuse(Errc::duplicate, "name", "another tensor has this name", std::string(*same)));

    std::string header = "{";
    if (!metadata.empty()) {
      header += "\"__metadata__\":{";
      for (const auto& [key, value] : metadata) {
        const auto* words = std::get_if<std::string>(&value);
        if (words == nullptr) {
          io::Error error =
              refuse(Errc::unsupported, "metadata", "a safetensors file keeps text alone", {});
          error.detail.append("of ")
              .append(quote(key))
              .append(", which is ")
              .append(io::type_name(value));
          return fail(std::move(error));
        }
        if (header.back() != '{') header += ',';
        header.append(text(key)).append(":").append(text(*words));
      }
      header += '}';
    }
    std::uint64_t end = 0;
    for (const std::size_t i : order) {
      const SafetensorsItem& item = items[i];
      const std::uint64_t start = end;
      const auto next = checked_add(start, stored_bytes(item));
      if (!next)
        return fail(refuse(Errc::overflow, "data_offsets", "beyond 2^64 bytes", item.name));
      end = *next;
      if (header.size() > 1) header += ',';
      header.append(text(item.name)).append(":{\"dtype\":\"");
      header.append(safetensors_type(item.descriptor.dtype)).append("\",\"shape\":[");
      for (std::size_t k = 0; k < item.descriptor.shape.rank(); ++k)
        header.append(k == 0 ? "" : ",").append(std::to_string(item.descriptor.shape[k]));
      header.append("],\"data_offsets\":[").append(std::to_string(start)).append(",");
      header.append(std::to_string(end)).append("]}");
    }
    header += '}';
    header.resize((header.size() + 7) / 8 * 8, ' ');
    if (header.size() > max_safetensors_header_bytes)
      return fail(refuse(Errc::limit_exceeded, "header", "larger than readers take", {}));

    std::array<std::byte, safetensors_prefix_bytes> prefix{};
    detail::store(prefix.data(), static_cast<std::uint64_t>(header.size()));
    io::ReplaceOptions options = wanted;
    options.expected_bytes = prefix.size() + header.size() + end;
    return io::replace_file_with(
        path,
        [&](const io::PutBytes& put) -> io::Result<void> {
          if (auto done = put(prefix); !done) return done;
          if (auto done = put(std::as_bytes(std::span(header))); !done) return done;
          std::vector<std::byte> scratch;
          for (const std::size_t i : order)
            if (auto done = put_elements(items[i], scratch, put); !done) return done;
          return {};
        },
        options);
  });
}

}  // namespace hurray::formats
