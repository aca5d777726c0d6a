#include "key_values.hpp"

#include <string>
#include <type_traits>

#include "hurray/memory.hpp"
#include "status.hpp"

namespace hurray::c {

namespace {

/// The tag of one value of C++.
template <class T>
constexpr std::uint8_t tag_of = [] {
  if constexpr (std::is_same_v<T, std::string>) return HURRAY_KV_STRING;
  if constexpr (std::is_same_v<T, std::int64_t>) return HURRAY_KV_INT64;
  if constexpr (std::is_same_v<T, std::uint64_t>) return HURRAY_KV_UINT64;
  if constexpr (std::is_same_v<T, double>) return HURRAY_KV_FLOAT64;
  if constexpr (std::is_same_v<T, bool>) return HURRAY_KV_BOOL;
  if constexpr (std::is_same_v<T, io::Bytes>) return HURRAY_KV_BYTES;
}();

template <class T>
constexpr bool is_text = std::is_same_v<T, std::string> || std::is_same_v<T, io::Bytes>;

HurrayStatus invalid(const std::string& message) {
  return fail(HURRAY_ERR_INVALID_ARGUMENT, message);
}

HurrayStatus read(const void* data, std::uint64_t size, std::string& out) {
  out.assign(static_cast<const char*>(data), static_cast<std::size_t>(size));
  return HURRAY_OK;
}
HurrayStatus read(const void* data, std::uint64_t size, io::Bytes& out) {
  const auto* bytes = static_cast<const std::byte*>(data);
  out.assign(bytes, bytes + static_cast<std::size_t>(size));
  return HURRAY_OK;
}

/// Element `i` of an array at `data`.
template <class T>
HurrayStatus element(const void* data, std::size_t i, T& out) {
  if constexpr (is_text<T>) {
    const HurraySpan& span = static_cast<const HurraySpan*>(data)[i];
    if (span.data == nullptr && span.length != 0) return null_pointer("entry->data[].data");
    if (!to_size(span.length)) return invalid("entry->data[].length: too large for this machine");
    out.clear();
    return span.length != 0 ? read(span.data, span.length, out) : HURRAY_OK;
  } else if constexpr (std::is_same_v<T, bool>) {
    const std::uint8_t byte = static_cast<const std::uint8_t*>(data)[i];
    if (byte > 1) return invalid("entry->data: a bool is 0 or 1, found " + std::to_string(byte));
    out = byte != 0;
    return HURRAY_OK;
  } else {
    out = static_cast<const T*>(data)[i];
    return HURRAY_OK;
  }
}

/// Calls `make` with a value of the type that `tag` says, if there is one.
template <class Make>
HurrayStatus with_type(std::uint8_t tag, std::string_view field, Make&& make) {
  switch (tag) {
    case HURRAY_KV_STRING:
      return make(std::string());
    case HURRAY_KV_INT64:
      return make(std::int64_t{});
    case HURRAY_KV_UINT64:
      return make(std::uint64_t{});
    case HURRAY_KV_FLOAT64:
      return make(double{});
    case HURRAY_KV_BOOL:
      return make(bool{});
    case HURRAY_KV_BYTES:
      return make(io::Bytes());
    default:
      return invalid(std::string(field) + ": expected one of HURRAY_KV_..., found " +
                     std::to_string(tag));
  }
}

}  // namespace

KvViews::KvViews(const io::KeyValues& kv) {
  entries_.reserve(kv.size());
  for (const auto& [key, value] : kv) {
    HurrayKvEntry entry = {};
    entry.key = key.data();
    entry.key_length = key.size();
    std::visit(
        [&]<class T>(const T& held) {
          if constexpr (is_text<T>) {
            entry.type = tag_of<T>;
            entry.data = held.data();
            entry.count = held.size();
          } else if constexpr (requires { typename T::value_type; }) {
            using Element = typename T::value_type;
            entry.type = HURRAY_KV_ARRAY;
            entry.element_type = tag_of<Element>;
            entry.count = held.size();
            if constexpr (std::is_same_v<Element, bool>) {
              entry.data = bools_.emplace_back(held.begin(), held.end()).data();
            } else if constexpr (is_text<Element>) {
              auto& spans = spans_.emplace_back();
              spans.reserve(held.size());
              for (const Element& one : held) spans.push_back({one.data(), one.size()});
              entry.data = spans.data();
            } else {
              entry.data = held.data();
            }
          } else {
            entry.type = tag_of<T>;
            entry.data = &held;
            entry.count = 1;
          }
        },
        value);
    entries_.push_back(entry);
  }
}

HurrayStatus copy(const HurrayKvEntry& entry, io::KeyValues::value_type& out) {
  if (entry.key == nullptr) return null_pointer("entry->key");
  for (const std::uint8_t byte : entry.reserved)
    if (byte != 0) return invalid("entry->reserved: expected 0");
  if (entry.type != HURRAY_KV_ARRAY && entry.element_type != 0)
    return invalid("entry->element_type: expected 0 where the type is no array");
  if (entry.data == nullptr && (entry.count != 0)) return null_pointer("entry->data");
  const auto count = to_size(entry.count);
  if (!count || !to_size(entry.key_length)) return invalid("entry: too large for this machine");
  out.first.assign(entry.key, static_cast<std::size_t>(entry.key_length));
  if (entry.type != HURRAY_KV_ARRAY)
    return with_type(entry.type, "entry->type", [&]<class T>(T value) -> HurrayStatus {
      HurrayStatus status = HURRAY_OK;
      if constexpr (is_text<T>) {
        if (*count != 0) status = read(entry.data, entry.count, value);
      } else {
        if (*count != 1)
          return invalid("entry->count: expected 1 for this type, found " +
                         std::to_string(entry.count));
        status = element(entry.data, 0, value);
      }
      if (status == HURRAY_OK) out.second = std::move(value);
      return status;
    });
  return with_type(entry.element_type, "entry->element_type",
                   [&]<class T>(T value) -> HurrayStatus {
                     std::vector<T> values;
                     for (std::size_t i = 0; i < *count; ++i) {
                       const HurrayStatus status = element(entry.data, i, value);
                       if (status != HURRAY_OK) return status;
                       values.push_back(value);
                     }
                     out.second = std::move(values);
                     return HURRAY_OK;
                   });
}

}  // namespace hurray::c
