#include "safetensors.hpp"

#include <algorithm>
#include <array>
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>
#include <tuple>
#include <utility>

#include "format.hpp"
#include "hurray/buffer.hpp"
#include "hurray/checked.hpp"
#include "hurray/cursor.hpp"
#include "hurray/descriptor.hpp"

namespace hurray::formats {
namespace {

constexpr std::string_view metadata_key = "__metadata__";

/// Bits that an element takes in a safetensors file.
constexpr unsigned stored_bits(DType dtype) { return dtype == DType::bool_ ? 8 : bits(dtype); }

io::Error refuse(hurray::Error error, std::string tensor = {}, std::string detail = {}) {
  error.origin = Origin::file;
  return {error, {}, std::move(tensor), std::move(detail)};
}

/// Reads a text and tells how far: the JSON parser hands out no positions.
class Tracked {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  Tracked(const char* at, const char** reached) : at_(at), reached_(reached) {}
  reference operator*() const { return *at_; }
  Tracked& operator++() {
    *reached_ = ++at_;
    return *this;
  }
  Tracked operator++(int) {
    Tracked before = *this;
    ++*this;
    return before;
  }
  friend bool operator!=(const Tracked& a, const Tracked& b) { return a.at_ != b.at_; }

 private:
  const char* at_;
  const char** reached_;
};

/// Takes the header's JSON apart, event by event. The first thing that does not belong ends it, so
/// that nothing nests deeper than the format does.
class Events {
 public:
  using number_integer_t = nlohmann::json::number_integer_t;
  using number_unsigned_t = nlohmann::json::number_unsigned_t;
  using number_float_t = nlohmann::json::number_float_t;
  using string_t = nlohmann::json::string_t;
  using binary_t = nlohmann::json::binary_t;

  /// `text` is the header, `base` its offset in the file.
  Events(std::string_view text, std::uint64_t base)
      : text_(text), base_(base), reached_(text.data()) {}

  bool run() {
    const char* end = text_.data() + text_.size();
    return nlohmann::json::sax_parse(Tracked(text_.data(), &reached_), Tracked(end, &reached_),
                                     this) &&
           padding();
  }

  io::Error error() && { return std::move(*error_); }
  std::vector<SafetensorsTensor> tensors;
  std::vector<std::pair<std::string, std::uint64_t>> metadata_keys;  ///< With offsets in the file.
  io::KeyValues metadata;

  bool null() { return place_ == Place::top && is_metadata_ ? true : unexpected(literal(4)); }
  bool boolean(bool value) { return unexpected(literal(value ? 4 : 5)); }
  bool number_integer(number_integer_t) { return unexpected(number()); }
  bool number_float(number_float_t, const string_t&) { return unexpected(number()); }
  bool binary(binary_t&) { return unexpected(literal(1)); }

  bool number_unsigned(number_unsigned_t value) {
    if (place_ == Place::shape) {
      Shape& shape = tensors.back().shape;
      if (shape.rank() == max_rank)
        return fail({.code = Errc::out_of_bounds,
                     .expect = Expect::at_most,
                     .field = "shape",
                     .what = "dimensions",
                     .offset = number(),
                     .expected = max_rank,
                     .found = max_rank + 1});
      if (value == dynamic)
        return fail({.code = Errc::out_of_bounds,
                     .expect = Expect::at_most,
                     .index = static_cast<std::uint32_t>(shape.rank()),
                     .field = "shape[]",
                     .offset = number(),
                     .expected = dynamic - 1,
                     .found = value});
      shape.push_back(value);
      return true;
    }
    if (place_ == Place::data_offsets) {
      if (ends_ < 2) (ends_ == 0 ? tensors.back().begin : tensors.back().end) = value;
      ++ends_;
      return true;
    }
    return unexpected(number());
  }

  bool string(string_t& value) {
    if (place_ == Place::metadata) {
      metadata.emplace_back(std::move(key_), std::move(value));
      return true;
    }
    if (place_ != Place::tensor || field_ != Field::dtype) return unexpected(quoted());
    const auto row = find_name(safetensors_types, std::string_view(value));
    if (row == nullptr)
      return fail({.code = Errc::unsupported,
                   .field = "dtype",
                   .what = "an element type that has no counterpart of the same encoding",
                   .offset = quoted()},
                  quote(value) + " cannot be converted");
    tensors.back().dtype = row->dtype;
    return true;
  }

  bool key(string_t& value) {
    switch (place_) {
      case Place::top:
        is_metadata_ = value == metadata_key;
        if (!is_metadata_) {
          tensors.emplace_back();
          tensors.back().name = std::move(value);
          tensors.back().offset = quoted();
        } else if (std::exchange(seen_metadata_, true)) {
          return twice("__metadata__");
        }
        return true;
      case Place::metadata:
        key_ = std::move(value);
        metadata_keys.emplace_back(key_, quoted());
        return true;
      default:
        break;
    }
    const auto field = std::ranges::find(field_names, std::string_view(value));
    if (field == field_names.end())
      return fail({.code = Errc::invalid_value,
                   .field = "header",
                   .what = "a key that has no meaning",
                   .offset = quoted()},
                  "expected dtype, shape and data_offsets, found " + quote(value));
    field_ = static_cast<Field>(field - field_names.begin());
    const auto bit = 1u << static_cast<unsigned>(field_);
    if ((fields_ & bit) != 0) return twice(*field);
    fields_ |= bit;
    return true;
  }

  bool start_object(std::size_t) {
    if (place_ == Place::start) {
      place_ = Place::top;
    } else if (place_ == Place::top) {
      place_ = is_metadata_ ? Place::metadata : Place::tensor;
      fields_ = 0;
    } else {
      return unexpected(literal(1));
    }
    return true;
  }

  bool end_object() {
    if (place_ == Place::tensor) {
      for (std::size_t i = 0; i < field_names.size(); ++i)
        if ((fields_ & (1u << i)) == 0)
          return fail({.code = Errc::invalid_value,
                       .field = field_names[i],
                       .what = "is missing",
                       .offset = literal(1)});
    }
    if (place_ == Place::top) end_ = reached_;
    place_ = place_ == Place::top ? Place::done : Place::top;
    return true;
  }

  bool start_array(std::size_t) {
    if (place_ != Place::tensor || field_ == Field::dtype) return unexpected(literal(1));
    place_ = field_ == Field::shape ? Place::shape : Place::data_offsets;
    ends_ = 0;
    return true;
  }

  bool end_array() {
    if (place_ == Place::data_offsets && ends_ != 2)
      return fail({.code = Errc::invalid_value,
                   .expect = Expect::exactly,
                   .field = "data_offsets",
                   .what = "numbers, begin and end",
                   .offset = literal(1),
                   .expected = 2,
                   .found = ends_});
    place_ = Place::tensor;
    return true;
  }

  bool parse_error(std::size_t position, const std::string&, const nlohmann::json::exception& why) {
    std::string_view words = why.what();  // [kind] place: what is wrong; last read: …; expected …
    words.remove_prefix(std::min(words.size(), words.find("] ") + 2));
    if (const auto at = words.find("syntax error "); at != words.npos) words.remove_prefix(at);
    words = words.substr(0, std::min<std::size_t>(words.find("; last read"), 120));
    return fail({.code = Errc::invalid_value,
                 .field = "header",
                 .what = "not JSON",
                 .offset = base_ + (position == 0 ? 0 : position - 1)},
                io::printable(words));
  }

 private:
  enum class Place : std::uint8_t { start, top, metadata, tensor, shape, data_offsets, done };
  enum class Field : std::uint8_t { dtype, shape, data_offsets };
  static constexpr auto field_names =
      std::to_array<std::string_view>({"dtype", "shape", "data_offsets"});

  // Where a token begins that the parser has just read.
  std::uint64_t offset_of(const char* at) const {
    return base_ + static_cast<std::uint64_t>(at - text_.data());
  }
  std::uint64_t literal(std::ptrdiff_t length) const { return offset_of(reached_ - length); }
  std::uint64_t quoted() const {
    const char* at = reached_ - 2;
    const auto escaped = [&] {
      const char* before = at;
      while (before[-1] == '\\') --before;
      return (at - before) % 2 != 0;
    };
    while (*at != '"' || escaped()) --at;
    return offset_of(at);
  }
  std::uint64_t number() const {
    const char* at = reached_ - 1;  // the parser looks one character ahead
    while (std::string_view("+-.0123456789eE").find(at[-1]) != std::string_view::npos) --at;
    return offset_of(at);
  }

  bool fail(hurray::Error error, std::string detail = {}) {
    const bool in_tensor = place_ != Place::start && place_ != Place::metadata && !is_metadata_ &&
                           !tensors.empty() && place_ != Place::done;
    error_ = refuse(error, in_tensor ? tensors.back().name : std::string(), std::move(detail));
    return false;
  }
  bool twice(std::string_view field) {
    return fail(
        {.code = Errc::duplicate, .field = field, .what = "occurs twice", .offset = quoted()});
  }
  bool unexpected(std::uint64_t offset) {
    static constexpr auto expected = std::to_array<std::string_view>({
        "expected an object of tensors",
        "expected an object with dtype, shape and data_offsets",
        "expected a string",
        "",
        "expected sizes: whole numbers from 0 to 2^64 - 2",
        "expected bytes: whole numbers from 0 to 2^64 - 1",
        "",
    });
    std::string_view what = expected[static_cast<std::size_t>(place_)];
    std::string_view field = "header";
    if (place_ == Place::top && is_metadata_) what = "expected an object of strings";
    if (place_ == Place::metadata || is_metadata_) field = metadata_key;
    if (place_ == Place::tensor) {
      what = field_ == Field::dtype ? "expected a string" : "expected an array";
      field = field_names[static_cast<std::size_t>(field_)];
    }
    if (place_ == Place::shape) field = "shape";
    if (place_ == Place::data_offsets) field = "data_offsets";
    return fail({.code = Errc::invalid_value, .field = field, .what = what, .offset = offset});
  }

  /// After the object there are spaces and nothing else.
  bool padding() {
    const auto after = static_cast<std::size_t>(end_ - text_.data());
    const auto other = text_.find_first_not_of(' ', after);
    if (other == text_.npos) return true;
    return fail({.code = Errc::invalid_value,
                 .expect = Expect::exactly,
                 .field = "header",
                 .what = "(a space) after the object",
                 .offset = base_ + other,
                 .expected = ' ',
                 .found = static_cast<unsigned char>(text_[other])});
  }

  std::string_view text_;
  std::uint64_t base_;
  const char* reached_;
  const char* end_ = nullptr;
  std::optional<io::Error> error_;
  std::string key_;
  std::uint64_t ends_ = 0;
  unsigned fields_ = 0;
  Place place_ = Place::start;
  Field field_ = Field::dtype;
  bool is_metadata_ = false;
  bool seen_metadata_ = false;
};

/// The later of two equal names, and where the earlier one is.
template <class List, class Name, class Offset>
std::optional<io::Error> duplicate(const List& list, std::string_view field, Name name,
                                   Offset offset) {
  const auto same = find_duplicate(list, name);
  if (!same) return std::nullopt;
  const auto& second = list[same->second];
  return refuse({.code = Errc::duplicate,
                 .field = field,
                 .what = "the name occurs twice",
                 .offset = offset(second)},
                std::string(name(second)),
                "the other one is at byte " + std::to_string(offset(list[same->first])));
}

/// Whether the declared range has the size that shape and type make.
std::optional<io::Error> check_size(const SafetensorsTensor& tensor) {
  const auto fail = [&](hurray::Error error) {
    error.offset = tensor.offset;
    return refuse(error, tensor.name);
  };
  if (tensor.begin > tensor.end)
    return fail({.code = Errc::invalid_value,
                 .expect = Expect::at_least,
                 .index = 1,
                 .field = "data_offsets[]",
                 .expected = tensor.begin,
                 .found = tensor.end});
  const std::uint64_t count = tensor.shape.count();
  const auto total = checked_mul<std::uint64_t>(count, stored_bits(tensor.dtype));
  if (!total)
    return fail({.code = Errc::overflow,
                 .field = "shape",
                 .what = "the elements take more than 2^64 - 1 bits"});
  if (*total % 8 != 0)
    return fail(
        {.code = Errc::invalid_value, .field = "shape", .what = "the elements end inside a byte"});
  if (*total / 8 != tensor.end - tensor.begin)
    return fail({.code = Errc::length_mismatch,
                 .expect = Expect::exactly,
                 .field = "data_offsets",
                 .what = "bytes, as shape and dtype make",
                 .expected = *total / 8,
                 .found = tensor.end - tensor.begin});
  return std::nullopt;
}

/// Whether the ranges, in order, cover `size` bytes.
std::optional<io::Error> check_cover(const std::vector<SafetensorsTensor>& tensors,
                                     std::uint64_t data_offset, std::uint64_t size) {
  std::uint64_t end = 0;
  for (const SafetensorsTensor& tensor : tensors) {
    if (tensor.begin != end)
      return refuse({.code = Errc::inconsistent,
                     .expect = Expect::exactly,
                     .index = 0,
                     .field = "data_offsets[]",
                     .what = tensor.begin > end ? "(no bytes between two tensors)"
                                                : "(no bytes in two tensors)",
                     .offset = tensor.offset,
                     .expected = end,
                     .found = tensor.begin},
                    tensor.name);
    end = tensor.end;
  }
  if (end < size)
    return refuse({.code = Errc::length_mismatch,
                   .expect = Expect::exactly,
                   .field = "data",
                   .what = "bytes, where the last tensor ends",
                   .offset = data_offset + end,
                   .expected = end,
                   .found = size},
                  {}, "the bytes after it belong to no tensor");
  if (end > size)
    return refuse({.code = Errc::truncated,
                   .expect = Expect::exactly,
                   .field = "data",
                   .what = "bytes",
                   .offset = data_offset + size,
                   .expected = end,
                   .found = size},
                  {}, "an unfinished download or copy?");
  return std::nullopt;
}

}  // namespace

io::Result<std::uint64_t> safetensors_header_bytes(std::span<const std::byte> bytes,
                                                   std::uint64_t file_size) {
  constexpr std::uint64_t least = safetensors_prefix_bytes + 2;
  if (file_size < least || bytes.size() <= safetensors_prefix_bytes)
    return refuse({.code = Errc::truncated,
                   .expect = Expect::at_least,
                   .field = "file",
                   .what = "bytes",
                   .offset = 0,
                   .expected = least,
                   .found = file_size});
  const auto length = detail::load<std::uint64_t>(bytes.data());
  const hurray::Error outside{.code = Errc::limit_exceeded,
                              .expect = Expect::at_most,
                              .field = "header_length",
                              .what = "bytes",
                              .offset = 0,
                              .expected = max_safetensors_header_bytes,
                              .found = length};
  if (bytes[safetensors_prefix_bytes] != std::byte{'{'})
    return refuse({.code = Errc::invalid_magic,
                   .expect = Expect::exactly,
                   .field = "header",
                   .what = "('{')",
                   .offset = safetensors_prefix_bytes,
                   .expected = '{',
                   .found = std::to_integer<std::uint64_t>(bytes[safetensors_prefix_bytes])});
  if (length > max_safetensors_header_bytes) return refuse(outside);
  if (length > file_size - safetensors_prefix_bytes)
    return refuse({.code = Errc::truncated,
                   .expect = Expect::at_most,
                   .field = "header_length",
                   .what = "bytes, which the file has after it",
                   .offset = 0,
                   .expected = file_size - safetensors_prefix_bytes,
                   .found = length});
  if (length < 2)
    return refuse({.code = Errc::invalid_value,
                   .expect = Expect::at_least,
                   .field = "header_length",
                   .what = "bytes",
                   .offset = 0,
                   .expected = 2,
                   .found = length});
  return length;
}

io::Result<SafetensorsHeader> read_safetensors_header(std::span<const std::byte> bytes,
                                                      std::uint64_t file_size) {
  return contain(Origin::file, [&]() -> io::Result<SafetensorsHeader> {
    const auto length = safetensors_header_bytes(bytes, file_size);
    if (!length) return length.error();
    const std::string_view text(
        reinterpret_cast<const char*>(bytes.data()) + safetensors_prefix_bytes,
        static_cast<std::size_t>(*length));

    Events events(text, safetensors_prefix_bytes);
    if (!events.run()) return std::move(events).error();
    auto& tensors = events.tensors;
    if (auto error = duplicate(
            tensors, "header", [](const auto& t) -> const std::string& { return t.name; },
            [](const auto& t) { return t.offset; }))
      return *std::move(error);
    if (auto error = duplicate(
            events.metadata_keys, metadata_key,
            [](const auto& k) -> const std::string& { return k.first; },
            [](const auto& k) { return k.second; }))
      return *std::move(error);
    for (const SafetensorsTensor& tensor : tensors)
      if (auto error = check_size(tensor)) return *std::move(error);
    std::ranges::sort(tensors, {}, [](const SafetensorsTensor& tensor) {
      return std::tuple(tensor.begin, tensor.end, tensor.offset);
    });

    SafetensorsHeader header;
    header.data_offset = safetensors_prefix_bytes + *length;
    if (auto error = check_cover(tensors, header.data_offset, file_size - header.data_offset))
      return *std::move(error);
    header.tensors = std::move(tensors);
    header.metadata = std::move(events.metadata);
    return header;
  });
}

bool is_safetensors(std::span<const std::byte> head, std::uint64_t size) noexcept {
  if (head.size() <= safetensors_prefix_bytes || size < safetensors_prefix_bytes + 2) return false;
  return head[safetensors_prefix_bytes] == std::byte{'{'} &&
         detail::load<std::uint64_t>(head.data()) <= max_safetensors_header_bytes;
}

io::Result<io::Translation> see_safetensors(const io::ForeignSource& source) {
  std::array<std::byte, safetensors_prefix_bytes + 1> start{};
  const auto head = std::span(start).first(
      static_cast<std::size_t>(std::min<std::uint64_t>(start.size(), source.size)));
  if (auto read = source.read(head, 0); !read) return read.error();
  const auto length = safetensors_header_bytes(head, source.size);
  if (!length) return length.error();
  if (*length > source.max_index_bytes)
    return refuse({.code = Errc::limit_exceeded,
                   .expect = Expect::at_most,
                   .field = "max_index_bytes",
                   .what = "bytes of the header",
                   .expected = source.max_index_bytes,
                   .found = *length});
  io::Translation::Builder seen("safetensors");
  auto header = [&]() -> io::Result<SafetensorsHeader> {
    auto bytes = Buffer::allocate(safetensors_prefix_bytes + *length);
    if (!bytes) return io::Error(bytes.error());
    if (auto read = source.read(bytes->bytes(), 0); !read) return read.error();
    return read_safetensors_header(bytes->bytes(), source.size);
  }();
  if (!header) return std::move(header).error();
  for (const SafetensorsTensor& tensor : header->tensors) {
    const auto size = packed_bytes(bits(tensor.dtype), tensor.shape.count());
    if (!size) return refuse({.code = Errc::overflow, .field = "shape"}, tensor.name);
    Descriptor descriptor;
    descriptor.dtype = tensor.dtype;
    descriptor.shape = tensor.shape;
    descriptor.buffers = {BufferHandle{.byte_size = *size}};
    const io::StoredBuffer stored{
        .offset = header->data_offset + tensor.begin,
        .size = tensor.end - tensor.begin,
        .conversion = tensor.dtype == DType::bool_ ? &pack_bools : nullptr};
    const auto added = seen.add(tensor.name, canonical(std::move(descriptor)), {&stored, 1});
    if (!added) return added.error();
  }
  return seen.finish(header->metadata);
}

}  // namespace hurray::formats
