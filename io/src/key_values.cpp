#include "hurray/io/key_values.hpp"

#include "key_values.hpp"

#include <algorithm>
#include <array>
#include <concepts>
#include <cstring>
#include <limits>

#include "hurray/cursor.hpp"
#include "hurray/table.hpp"

namespace hurray::io {
namespace {

constexpr std::uint64_t max_section_bytes = std::numeric_limits<std::uint32_t>::max();
constexpr std::size_t max_key_bytes = std::numeric_limits<std::uint16_t>::max();
constexpr std::size_t smallest_entry = 5;  // key_length, a key of one byte, value_tag, a bool

std::span<const std::byte> as_bytes(std::string_view text) noexcept {
  return std::as_bytes(std::span(text.data(), text.size()));
}
std::string_view as_text(std::span<const std::byte> bytes) noexcept {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// Payloads, run with a Reader, a Sizer or a Writer.

template <class Io>
void check_text(Io& io, Field field, std::string_view text) noexcept {
  if constexpr (Io::checks)
    if (!is_utf8(text))
      io.fail({.code = Errc::invalid_value,
               .index = field.index,
               .field = field.name,
               .what = "must be valid UTF-8"});
}

/// The number of bytes or elements that follow, of which each takes `smallest` bytes at least:
/// `size` when written, no more than can be there when read.
template <class Io>
std::size_t count(Io& io, Field field, std::size_t size, std::size_t smallest) noexcept {
  auto wire = static_cast<std::uint32_t>(size);  // encode_kv refuses what does not fit
  io(field, wire);
  if constexpr (Io::reads) {
    size = wire;
    if (size > io.left() / smallest) {
      io.fail({.code = Errc::truncated,
               .expect = Expect::at_most,
               .index = field.index,
               .field = field.name,
               .what = "in the bytes that are left",
               .expected = io.left() / smallest,
               .found = size});
      size = 0;
    }
  }
  return size;
}

template <class T, class... Types>
concept OneOf = (std::same_as<std::remove_const_t<T>, Types> || ...);

template <class Io, OneOf<std::int64_t, std::uint64_t, double> T>
void payload(Io& io, Field field, T& value) noexcept {
  io(field, value);
}

template <class Io, OneOf<bool> T>
void payload(Io& io, Field field, T& value) noexcept {
  auto wire = static_cast<std::uint8_t>(value);
  io(field, wire);
  if constexpr (Io::reads) {
    if (wire > 1)
      io.fail({.code = Errc::invalid_value,
               .expect = Expect::at_most,
               .index = field.index,
               .field = field.name,
               .what = "(a bool is 0 or 1)",
               .expected = 1,
               .found = wire});
    value = wire == 1;
  }
}

template <class Io, OneOf<std::string, Bytes, std::span<const std::byte>> T>
void payload(Io& io, Field field, T& value) {
  const std::size_t size = count(io, field, value.size(), 1);
  if constexpr (Io::reads) {
    const auto raw = io.take(field, size);
    const auto* data = reinterpret_cast<const typename T::value_type*>(raw.data());
    value.assign(data, data + raw.size());
  } else {
    io.literal(field, std::as_bytes(std::span(value.data(), size)), Errc{});
  }
  if constexpr (OneOf<T, std::string>) check_text(io, field, value);
}

/// One type. `read` is for a value of it, `read_array` for a count and elements of `smallest`
/// bytes.
struct KvTypeInfo {
  KvTag tag;
  std::string_view name;
  std::size_t smallest;  ///< Bytes of the smallest payload.
  KvValue (*read)(Reader& io, std::size_t entry);
  KvValue (*read_array)(Reader& io, std::size_t entry, std::size_t smallest);
};

template <class T>
KvValue read_one(Reader& io, std::size_t entry) {
  T value{};
  payload(io, {"kv[].value", entry}, value);
  return value;
}

template <class T>
KvValue read_many(Reader& io, std::size_t entry, std::size_t smallest) {
  std::vector<T> values;
  const std::size_t size = count(io, {"kv[].value", entry}, 0, smallest);
  for (std::size_t i = 0; i < size && io.ok(); ++i) {
    T value{};
    payload(io, {"kv[].value", entry}, value);
    values.push_back(std::move(value));
  }
  return values;
}

KvValue read_typed(Reader& io, std::size_t entry);

template <class T>
constexpr KvTypeInfo type(KvTag tag, std::string_view name, std::size_t smallest) noexcept {
  return {tag, name, smallest, read_one<T>, read_many<T>};
}

/// In the order of the alternatives of `KvValue`: the single ones, then the vectors of them.
constexpr auto kv_types = std::to_array<KvTypeInfo>({
    type<std::string>(KvTag::string, "string", 4),
    type<std::int64_t>(KvTag::int64, "int64", 8),
    type<std::uint64_t>(KvTag::uint64, "uint64", 8),
    type<double>(KvTag::float64, "float64", 8),
    type<bool>(KvTag::boolean, "bool", 1),
    type<Bytes>(KvTag::bytes, "bytes", 4),
    {KvTag::array, "array", 5, read_typed, nullptr},
});
static_assert(strictly_sorted(kv_types));
constexpr std::size_t element_types = kv_types.size() - 1;
static_assert(std::variant_size_v<KvValue> == 2 * element_types);

/// The row that the next byte names; null after a failure.
const KvTypeInfo* read_tag(Reader& io, Field field) noexcept {
  std::uint8_t tag = 0;
  io(field, tag);
  if (!io.ok()) return nullptr;
  const KvTypeInfo* row = find_row(kv_types, static_cast<KvTag>(tag));
  if (row == nullptr)
    io.fail({.code = Errc::invalid_tag,
             .expect = Expect::as_said,
             .index = field.index,
             .field = field.name,
             .what = is_private(tag)
                         ? "a type from 0x01 to 0x07 (only its writer knows a private one)"
                         : "a type from 0x01 to 0x07",
             .found = tag});
  return row;
}

KvValue read_typed(Reader& io, std::size_t entry) {
  const Field field{"kv[].element_tag", entry};
  const KvTypeInfo* element = read_tag(io, field);
  if (element == nullptr) return {};
  if (element->read_array == nullptr) {
    io.fail({.code = Errc::invalid_tag,
             .expect = Expect::as_said,
             .index = field.index,
             .field = field.name,
             .what = "a type from 0x01 to 0x06 (arrays do not nest)",
             .found = static_cast<std::uint64_t>(element->tag)});
    return {};
  }
  return element->read_array(io, entry, element->smallest);
}

template <class Io>
void write_value(Io& io, Field field, const KvValue& value) {
  const KvTypeInfo& type = kv_types[value.index() % element_types];
  const bool array = value.index() >= element_types;
  io(field, array ? KvTag::array : type.tag);
  std::visit(
      [&]<class T>(const T& single) {
        if constexpr (requires { payload(io, field, single); }) {
          payload(io, field, single);
        } else {
          io(field, type.tag);
          count(io, field, single.size(), type.smallest);
          for (const typename T::value_type& element : single) payload(io, field, element);
        }
      },
      value);
}

template <class Io>
void write_key(Io& io, std::size_t entry, std::string_view key) {
  if constexpr (Io::checks)
    if (key.empty() || key.size() > max_key_bytes)
      io.fail({.code = Errc::invalid_value,
               .expect = Expect::at_most,
               .index = static_cast<std::uint32_t>(entry),
               .field = "kv[].key_length",
               .what = "bytes (and at least 1)",
               .expected = max_key_bytes,
               .found = key.size()});
  io({"kv[].key_length", entry}, static_cast<std::uint16_t>(key.size()));
  io.literal({"kv[].key", entry}, as_bytes(key), Errc{});
  check_text(io, {"kv[].key", entry}, key);
}

std::string_view read_key(Reader& io, std::size_t entry) noexcept {
  std::uint16_t length = 0;
  io({"kv[].key_length", entry}, length);
  if (io.ok() && length == 0)
    io.fail({.code = Errc::invalid_value,
             .expect = Expect::at_least,
             .index = static_cast<std::uint32_t>(entry),
             .field = "kv[].key_length",
             .expected = 1,
             .found = 0});
  const std::string_view key = as_text(io.take({"kv[].key", entry}, length));
  check_text(io, {"kv[].key", entry}, key);
  return key;
}

/// The key of one entry, and where it stands in the section or list.
struct KeyPlace {
  std::string_view key;
  std::uint32_t entry;
  std::uint64_t offset;
};

/// Sorts `keys` and reports the second of two equal ones.
template <class Io>
void check_unique(Io& io, std::vector<KeyPlace>& keys) {
  std::ranges::sort(keys, {}, [](const KeyPlace& k) { return std::pair(k.key, k.entry); });
  const auto twice = std::ranges::adjacent_find(keys, {}, &KeyPlace::key);
  if (twice == keys.end()) return;
  const KeyPlace& second = *std::next(twice);
  io.fail({.code = Errc::duplicate,
           .index = second.entry,
           .field = "kv[].key",
           .what = "keys are unique",
           .offset = second.offset});
}

bool is_ours(std::string_view key) noexcept { return key == checksums_key; }
bool is_ours(std::span<const std::byte> value) noexcept {
  return as_text(value).starts_with(checksums_magic);
}

template <class Io>
void write_section(Io& io, const KeyValues& kv) {
  io("kv_count", static_cast<std::uint32_t>(kv.size()));
  for (std::size_t i = 0; i < kv.size() && io.ok(); ++i) {
    const auto& [key, value] = kv[i];
    write_key(io, i, key);
    write_value(io, {"kv[].value", i}, value);
    if constexpr (Io::checks) {
      const auto* bytes = std::get_if<Bytes>(&value);
      if (is_ours(key) || (bytes != nullptr && is_ours(*bytes)))
        io.fail({.code = Errc::invalid_value,
                 .index = static_cast<std::uint32_t>(i),
                 .field = is_ours(key) ? "kv[].key" : "kv[].value",
                 .what = is_ours(key)
                             ? "\"hurray.crc32c\" is the writer's own; take another key"
                             : "bytes that begin with HRRYSUM1 are the writer's own checksums"});
    }
  }
}

/// A failure over a caller's list, which has entries but no offsets yet.
Error about_list(hurray::Error error, const KeyValues& kv) {
  error.offset = hurray::Error::no_offset;
  std::string detail;
  if (error.index < kv.size() && kv[error.index].first.size() <= 200)
    detail = "the key is \"" + printable(kv[error.index].first) + '"';
  return {error, {}, {}, std::move(detail)};
}

Error too_long(std::uint64_t size) {
  return hurray::Error{.code = Errc::overflow,
                       .origin = Origin::file,
                       .expect = Expect::at_most,
                       .field = "kv_length",
                       .what = "bytes of keys and values in one file",
                       .expected = max_section_bytes,
                       .found = size};
}

/// Bytes of the multi-byte character that `text` begins with; 0 where it begins with none.
std::size_t character(std::string_view text) noexcept {
  const auto at = [&](std::size_t i) {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u;
  };
  const auto follows = [&](std::size_t i) { return (at(i) & 0xC0) == 0x80; };
  const unsigned lead = at(0);
  const unsigned next = at(1);
  if (!follows(1)) return 0;
  if (lead >= 0xC2 && lead <= 0xDF) return 2;
  if (!follows(2)) return 0;
  if (lead >= 0xE0 && lead <= 0xEF) {
    const bool overlong = lead == 0xE0 && next < 0xA0;
    const bool surrogate = lead == 0xED && next > 0x9F;
    return overlong || surrogate ? 0 : 3;
  }
  if (!follows(3) || lead < 0xF0 || lead > 0xF4) return 0;
  const bool overlong = lead == 0xF0 && next < 0x90;
  const bool too_high = lead == 0xF4 && next > 0x8F;
  return overlong || too_high ? 0 : 4;
}

}  // namespace

bool is_utf8(std::string_view text) noexcept {
  while (!text.empty()) {
    std::uint64_t eight = 0;
    if (text.size() >= sizeof eight) {
      std::memcpy(&eight, text.data(), sizeof eight);
      if ((eight & 0x8080'8080'8080'8080) == 0) {
        text.remove_prefix(sizeof eight);
        continue;
      }
    } else if (std::ranges::all_of(text, [](char c) { return (c & 0x80) == 0; })) {
      return true;
    }
    const bool ascii = static_cast<unsigned char>(text.front()) < 0x80;
    const std::size_t size = ascii ? 1 : character(text);
    if (size == 0) return false;
    text.remove_prefix(size);
  }
  return true;
}

std::string_view type_name(const KvValue& value) noexcept {
  return kv_types[value.index() % element_types].name;
}

const KvValue* find(const KeyValues& kv, std::string_view key) noexcept {
  const auto found = std::ranges::find(kv, key, &KeyValues::value_type::first);
  return found != kv.end() ? &found->second : nullptr;
}

Result<Bytes> encode_kv(const KeyValues& kv) {
  return contain(Origin::file, [&]() -> Result<Bytes> {
    Sizer sizer(Origin::file);
    write_section(sizer, kv);
    if (sizer.ok()) {
      std::vector<KeyPlace> keys;
      keys.reserve(kv.size());
      for (std::size_t i = 0; i < kv.size(); ++i)
        keys.push_back({kv[i].first, static_cast<std::uint32_t>(i), 0});
      check_unique(sizer, keys);
    }
    if (!sizer.ok()) return about_list(sizer.error(), kv);
    if (sizer.position() > max_section_bytes) return too_long(sizer.position());

    Bytes section(static_cast<std::size_t>(sizer.position()));
    Writer writer(section, Origin::file);
    write_section(writer, kv);
    return section;
  });
}

Result<void> append_checksums(Bytes& section, std::span<const std::byte> payload_bytes) {
  return contain(Origin::file, [&]() -> Result<void> {
    const auto entry = [&](auto& io) {
      write_key(io, 0, checksums_key);
      io("kv[].value_tag", KvTag::bytes);
      payload(io, "kv[].value", payload_bytes);
    };
    Sizer sizer(Origin::file);
    entry(sizer);
    const std::size_t before = section.size();
    if (sizer.position() > max_section_bytes - before) return too_long(before + sizer.position());

    section.resize(before + static_cast<std::size_t>(sizer.position()));
    Writer writer(std::span<std::byte>(section).subspan(before), Origin::file);
    entry(writer);
    const auto count = hurray::detail::load<std::uint32_t>(section.data());
    hurray::detail::store(section.data(), count + 1);
    return {};
  });
}

Result<KvSection> split_kv(std::span<const std::byte> section, std::uint64_t base,
                           bool newer_minor) {
  return contain(Origin::file, [&]() -> Result<KvSection> {
    KvSection result;
    std::vector<KeyPlace> keys;
    Reader io(section, Origin::file, base);
    const std::size_t entries = count(io, "kv_count", 0, smallest_entry);
    for (std::size_t i = 0; i < entries && io.ok(); ++i) {
      const std::string_view key = read_key(io, i);
      keys.push_back({key, static_cast<std::uint32_t>(i), io.last()});
      const KvTypeInfo* type = read_tag(io, {"kv[].value_tag", i});
      if (type == nullptr) break;

      Reader ahead = io;
      std::span<const std::byte> opaque;
      if (type->tag == KvTag::bytes)
        opaque = ahead.take("kv[].value", count(ahead, {"kv[].value", i}, 0, 1));
      if (!is_ours(key) && !is_ours(opaque)) {
        result.entries.emplace_back(key, type->read(io, i));
        continue;
      }
      result.checksums.push_back({key, opaque, ahead.last(), i + 1 == entries});
      if (type->tag == KvTag::bytes)
        io = ahead;
      else
        type->read(io, i);
    }
    if (io.ok()) check_unique(io, keys);
    if (io.ok() && io.left() != 0 && !newer_minor)
      io.fail({.code = Errc::length_mismatch,
               .expect = Expect::exactly,
               .field = "kv_length",
               .what = "bytes after the last entry",
               .offset = io.position(),
               .expected = 0,
               .found = io.left()});
    if (!io.ok()) return io.error();
    return result;
  });
}

Result<KeyValues> decode_kv(std::span<const std::byte> section, std::uint64_t base,
                            bool newer_minor) {
  auto split = split_kv(section, base, newer_minor);
  if (!split) return std::move(split).error();
  return std::move(split->entries);
}

}  // namespace hurray::io
