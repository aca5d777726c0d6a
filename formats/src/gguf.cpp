#include "hurray/formats/gguf.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "format.hpp"
#include "gguf_blocks.hpp"
#include "hurray/checked.hpp"
#include "hurray/cursor.hpp"
#include "hurray/descriptor.hpp"
#include "hurray/quantization.hpp"
#include "hurray/table.hpp"

namespace hurray::formats {
namespace {

using namespace std::string_view_literals;

constexpr auto gguf_magic = "GGUF"sv;
constexpr auto alignment_key = "general.alignment"sv;
constexpr std::uint64_t default_alignment = 32;
constexpr std::uint64_t max_text_bytes = UINT32_MAX;  // of a KV value
constexpr std::uint64_t max_name_bytes = UINT16_MAX;  // of keys and tensors, as in a .hrry file
constexpr std::uint64_t max_elements = INT64_MAX;     // as GGUF itself counts them
constexpr unsigned max_nesting = 16;
constexpr auto own_keys =
    std::to_array({gguf_types_key, gguf_block_tensors_key, gguf_block_types_key});

/// Types of values, by their number in the file.
enum class ValueType : std::uint32_t {
  uint8 = 0,
  int8 = 1,
  uint16 = 2,
  int16 = 3,
  uint32 = 4,
  int32 = 5,
  float32 = 6,
  boolean = 7,
  string = 8,
  array = 9,
  uint64 = 10,
  int64 = 11,
  float64 = 12,
};

/// Bytes of the smallest value of each type.
constexpr auto value_bytes = std::to_array<std::uint8_t>({1, 1, 2, 2, 4, 4, 4, 1, 8, 12, 8, 8, 8});

/// How the elements of a tensor are stored. Plain types have blocks of one element; a type with
/// `codes` becomes a per-block affine one; all others stay blocks, of uint8.
struct TensorType {
  std::uint32_t tag;  ///< Its number in the file.
  std::string_view name;
  std::uint32_t block_elements;
  std::uint32_t block_bytes;
  DType dtype;
  const BlockConversions* affine = nullptr;
};

constexpr auto tensor_types = std::to_array<TensorType>({
    {0, "F32", 1, 4, DType::float32},
    {1, "F16", 1, 2, DType::float16},
    {2, "Q4_0", 32, 18, DType::int4, &gguf_q4_0},
    {3, "Q4_1", 32, 20, DType::uint8},
    {6, "Q5_0", 32, 22, DType::int8, &gguf_q5_0},
    {7, "Q5_1", 32, 24, DType::uint8},
    {8, "Q8_0", 32, 34, DType::int8, &gguf_q8_0},
    {9, "Q8_1", 32, 40, DType::uint8},
    {10, "Q2_K", 256, 84, DType::uint8},
    {11, "Q3_K", 256, 110, DType::uint8},
    {12, "Q4_K", 256, 144, DType::uint8},
    {13, "Q5_K", 256, 176, DType::uint8},
    {14, "Q6_K", 256, 210, DType::int8, &gguf_q6_k},
    {15, "Q8_K", 256, 292, DType::uint8},
    {16, "IQ2_XXS", 256, 66, DType::uint8},
    {17, "IQ2_XS", 256, 74, DType::uint8},
    {18, "IQ3_XXS", 256, 98, DType::uint8},
    {19, "IQ1_S", 256, 50, DType::uint8},
    {20, "IQ4_NL", 32, 18, DType::uint8},
    {21, "IQ3_S", 256, 110, DType::uint8},
    {22, "IQ2_S", 256, 82, DType::uint8},
    {23, "IQ4_XS", 256, 136, DType::uint8},
    {24, "I8", 1, 1, DType::int8},
    {25, "I16", 1, 2, DType::int16},
    {26, "I32", 1, 4, DType::int32},
    {27, "I64", 1, 8, DType::int64},
    {28, "F64", 1, 8, DType::float64},
    {29, "IQ1_M", 256, 56, DType::uint8},
    {30, "BF16", 1, 2, DType::bfloat16},
    {34, "TQ1_0", 256, 54, DType::uint8},
    {35, "TQ2_0", 256, 66, DType::uint8},
    {39, "MXFP4", 32, 17, DType::uint8},
    {40, "NVFP4", 64, 36, DType::uint8},
    {41, "Q1_0", 128, 18, DType::uint8},
});
static_assert(strictly_sorted(tensor_types));

struct TensorInfo {
  std::string name;
  std::uint64_t name_at = 0;  ///< Places in the file, in bytes.
  Shape shape;                ///< Of elements, the innermost size last.
  const TensorType* type = nullptr;
  std::uint64_t offset = 0;  ///< From the start of the data.
  std::uint64_t offset_at = 0;
  std::uint64_t bytes = 0;

  bool kept_as_blocks() const { return type->block_elements > 1 && type->affine == nullptr; }
};

io::Error refuse(hurray::Error error, std::string tensor = {}, std::string detail = {}) {
  error.origin = Origin::file;
  return {error, {}, std::move(tensor), std::move(detail)};
}

/// Reads a header from its first byte on, a window at a time. Nothing is allocated because a length
/// in the file says so. After the first failure it hands out zeros.
class Cursor {
 public:
  explicit Cursor(const io::ForeignSource& source) : source_(source) {}

  bool ok() const { return !error_; }
  /// Precondition: not ok.
  io::Error error() && { return std::move(*error_); }
  std::uint64_t at() const { return at_; }
  std::uint64_t left() const { return source_.size - at_; }

  void fail(io::Error error) {
    if (ok()) error_ = std::move(error);
  }
  void fail(hurray::Error error, std::string detail = {}) {
    if (ok()) error_ = refuse(error, {}, std::move(detail));
  }
  /// What the first failure is about, where it does not say so itself.
  void about(std::string tensor, std::string detail) {
    if (ok()) return;
    if (error_->tensor.empty()) error_->tensor = std::move(tensor);
    if (error_->detail.empty()) error_->detail = std::move(detail);
  }

  void take(Field field, std::span<std::byte> into) {
    if (!room(field, into.size())) return;
    while (!into.empty()) {
      if (used_ == window_.size() && !refill()) return;
      const std::size_t size = std::min(into.size(), window_.size() - used_);
      std::copy_n(window_.begin() + static_cast<std::ptrdiff_t>(used_), size, into.begin());
      if (record_ != nullptr)
        record_->insert(record_->end(), into.begin(),
                        into.begin() + static_cast<std::ptrdiff_t>(size));
      used_ += size;
      at_ += size;
      into = into.subspan(size);
    }
  }

  template <WireInteger T>
  T number(Field field) {
    std::array<std::byte, sizeof(T)> bytes{};
    take(field, bytes);
    return ok() ? hurray::detail::load<T>(bytes.data()) : T{};
  }

  /// The number of things that follow, of `smallest` bytes at least: no more than can be there.
  std::uint64_t count(Field field, std::uint64_t smallest) {
    const std::uint64_t start = at_;
    const auto count = number<std::uint64_t>(field);
    if (count <= left() / smallest) return count;
    fail({.code = Errc::truncated,
          .expect = Expect::at_most,
          .index = field.index,
          .field = field.name,
          .what = "in the bytes that the file has after it",
          .offset = start,
          .expected = left() / smallest,
          .found = count});
    return 0;
  }

  /// A length and as many bytes.
  std::string text(Field field, std::uint64_t most) {
    const std::uint64_t start = at_;
    const std::uint64_t length = count(field, 1);
    if (length > most)
      fail({.code = Errc::out_of_bounds,
            .expect = Expect::at_most,
            .index = field.index,
            .field = field.name,
            .what = "bytes",
            .offset = start,
            .expected = most,
            .found = length});
    std::string text;
    while (ok() && text.size() < length) {
      const std::size_t size = text.size();
      text.resize(size +
                  static_cast<std::size_t>(std::min<std::uint64_t>(length - size, step_bytes)));
      take(field, std::as_writable_bytes(std::span(text)).subspan(size));
    }
    if (!ok()) text.clear();
    return text;
  }

  /// A text of 1 to `max_name_bytes` bytes of UTF-8.
  std::string name(Field field) {
    const std::uint64_t start = at_;
    std::string name = text(field, max_name_bytes);
    if (ok() && (name.empty() || !io::is_utf8(name)))
      fail({.code = Errc::invalid_value,
            .index = field.index,
            .field = field.name,
            .what = name.empty() ? "must not be empty" : "must be valid UTF-8",
            .offset = start});
    return name;
  }

  void skip(Field field, std::uint64_t size) {
    std::array<std::byte, 4096> bytes;
    while (ok() && size != 0) {
      const auto part = static_cast<std::size_t>(std::min<std::uint64_t>(size, bytes.size()));
      take(field, std::span(bytes).first(part));
      size -= part;
    }
  }

  /// Bytes that something takes in memory beyond those in the file.
  void spend(std::uint64_t bytes) { spent_ += bytes; }
  /// Bytes that are taken also go there, until it is null.
  void record(io::Bytes* into) { record_ = into; }

 private:
  static constexpr std::size_t step_bytes = std::size_t{1} << 20;

  bool room(Field field, std::uint64_t size) {
    if (!ok()) return false;
    if (size > left()) {
      fail({.code = Errc::truncated,
            .expect = Expect::at_least,
            .index = field.index,
            .field = field.name,
            .what = "bytes",
            .offset = at_,
            .expected = size,
            .found = left()});
      return false;
    }
    if (at_ + spent_ + size > source_.max_index_bytes) {
      fail({.code = Errc::limit_exceeded,
            .expect = Expect::at_most,
            .field = "max_index_bytes",
            .what = "bytes of the header and of what it takes in memory",
            .offset = at_,
            .expected = source_.max_index_bytes,
            .found = at_ + spent_ + size});
      return false;
    }
    return true;
  }

  bool refill() {
    window_.resize(static_cast<std::size_t>(
        std::min({std::uint64_t{step_bytes}, left(), source_.max_index_bytes - at_})));
    used_ = 0;
    auto read = source_.read(window_, at_);
    if (!read) error_ = std::move(read).error();
    return ok();
  }

  const io::ForeignSource& source_;
  std::vector<std::byte> window_;
  std::size_t used_ = 0;  ///< Of the window.
  std::uint64_t at_ = 0;  ///< The next byte in the file.
  std::uint64_t spent_ = 0;
  io::Bytes* record_ = nullptr;
  std::optional<io::Error> error_;
};

/// The value is that of `bits`, also where it is a signalling NaN.
double widen(std::uint32_t bits) {
  const std::uint64_t sign = std::uint64_t{bits >> 31} << 63;
  const std::uint64_t mantissa = bits & 0x007FFFFF;
  if ((bits & 0x7F800000) == 0x7F800000 && mantissa != 0)
    return std::bit_cast<double>(sign | 0x7FF0'0000'0000'0000 | mantissa << 29);
  return std::bit_cast<float>(bits);
}

/// A value of the type `Wire` in the file, as one of the type `Kind`.
template <class Wire, class Kind>
Kind scalar(Cursor& in, Field field) {
  if constexpr (std::is_same_v<Wire, float>) {
    return widen(in.number<std::uint32_t>(field));
  } else if constexpr (std::is_same_v<Wire, double>) {
    return std::bit_cast<double>(in.number<std::uint64_t>(field));
  } else if constexpr (std::is_same_v<Wire, bool>) {
    const std::uint64_t start = in.at();
    const auto byte = in.number<std::uint8_t>(field);
    if (byte > 1)
      in.fail({.code = Errc::invalid_value,
               .expect = Expect::at_most,
               .index = field.index,
               .field = field.name,
               .what = "(a bool is 0 or 1)",
               .offset = start,
               .expected = 1,
               .found = byte});
    return byte == 1;
  } else {
    return in.number<Wire>(field);
  }
}

/// Calls `use` with the type of numbers and truth values in the file and with that of KV.
template <class Use>
io::KvValue with_types(ValueType type, Use&& use) {
  switch (type) {
    case ValueType::uint8:
      return use.template operator()<std::uint8_t, std::uint64_t>();
    case ValueType::int8:
      return use.template operator()<std::int8_t, std::int64_t>();
    case ValueType::uint16:
      return use.template operator()<std::uint16_t, std::uint64_t>();
    case ValueType::int16:
      return use.template operator()<std::int16_t, std::int64_t>();
    case ValueType::uint32:
      return use.template operator()<std::uint32_t, std::uint64_t>();
    case ValueType::int32:
      return use.template operator()<std::int32_t, std::int64_t>();
    case ValueType::float32:
      return use.template operator()<float, double>();
    case ValueType::boolean:
      return use.template operator()<bool, bool>();
    case ValueType::uint64:
      return use.template operator()<std::uint64_t, std::uint64_t>();
    case ValueType::int64:
      return use.template operator()<std::int64_t, std::int64_t>();
    case ValueType::float64:
      return use.template operator()<double, double>();
    case ValueType::string:
    case ValueType::array:
      break;
  }
  return {};
}

ValueType value_type(Cursor& in, Field field) {
  const std::uint64_t start = in.at();
  const auto type = in.number<std::uint32_t>(field);
  if (type >= value_bytes.size())
    in.fail({.code = Errc::invalid_tag,
             .expect = Expect::at_most,
             .index = field.index,
             .field = field.name,
             .what = "as the number of a GGUF value type",
             .offset = start,
             .expected = value_bytes.size() - 1,
             .found = type});
  return in.ok() ? static_cast<ValueType>(type) : ValueType::uint8;
}

io::Bytes as_bytes(std::string_view text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

io::KvValue string_value(std::string text) {
  if (!io::is_utf8(text)) return as_bytes(text);
  return text;
}

io::KvValue strings(Cursor& in, Field field, std::uint64_t count) {
  std::vector<std::string> texts;
  for (std::uint64_t i = 0; i < count && in.ok(); ++i) {
    in.spend(sizeof(std::string));
    texts.push_back(in.text(field, max_text_bytes));
  }
  if (std::ranges::all_of(texts, io::is_utf8)) return texts;
  std::vector<io::Bytes> bytes;
  bytes.reserve(texts.size());
  for (const std::string& text : texts) bytes.push_back(as_bytes(text));
  return bytes;
}

/// Passes over the elements of an array, which has `depth` arrays around it.
void skip_array(Cursor& in, Field field, ValueType element, std::uint64_t count, unsigned depth) {
  const std::size_t smallest = value_bytes[static_cast<std::size_t>(element)];
  if (element != ValueType::string && element != ValueType::array)
    return in.skip(field, count * smallest);
  for (; count != 0 && in.ok(); --count) {
    if (element == ValueType::string) {
      in.skip(field, in.count(field, 1));
      continue;
    }
    if (depth == max_nesting)
      return in.fail({.code = Errc::unsupported,
                      .expect = Expect::at_most,
                      .index = field.index,
                      .field = field.name,
                      .what = "arrays in one another",
                      .offset = in.at(),
                      .expected = max_nesting,
                      .found = max_nesting + 1});
    const ValueType inner = value_type(in, field);
    const std::uint64_t size = in.count(field, value_bytes[static_cast<std::size_t>(inner)]);
    skip_array(in, field, inner, size, depth + 1);
  }
}

/// A value and its character in `gguf_types_key`.
std::pair<io::KvValue, char> value(Cursor& in, std::size_t index) {
  const Field field{"kv[].value", index};
  const ValueType type = value_type(in, {"kv[].value_type", index});
  const auto number = static_cast<int>(type);
  if (type == ValueType::string)
    return {string_value(in.text(field, max_text_bytes)), static_cast<char>('a' + number)};
  if (type != ValueType::array)
    return {with_types(type,
                       [&]<class Wire, class Kind>() -> io::KvValue {
                         return scalar<Wire, Kind>(in, field);
                       }),
            static_cast<char>('a' + number)};

  io::Bytes raw;
  in.record(&raw);
  const ValueType element = value_type(in, {"kv[].element_type", index});
  const std::uint64_t count =
      in.count({"kv[].element_count", index}, value_bytes[static_cast<std::size_t>(element)]);
  if (element != ValueType::array) in.record(nullptr);
  const char code = static_cast<char>('A' + static_cast<int>(element));
  if (element == ValueType::array) {
    skip_array(in, field, element, count, 1);
    in.record(nullptr);
    return {std::move(raw), code};
  }
  if (count == 0) return {io::Bytes(), code};
  if (element == ValueType::string) return {strings(in, field, count), code};
  return {with_types(element,
                     [&]<class Wire, class Kind>() -> io::KvValue {
                       std::vector<Kind> values;
                       for (std::uint64_t i = 0; i < count && in.ok(); ++i) {
                         if constexpr (sizeof(Kind) > sizeof(Wire))
                           in.spend(sizeof(Kind) - sizeof(Wire));
                         values.push_back(scalar<Wire, Kind>(in, field));
                       }
                       return values;
                     }),
          code};
}

struct Keys {
  io::KeyValues kv;
  std::string types;
  std::vector<std::uint64_t> at;  ///< Of each key in the file.
};

Keys read_keys(Cursor& in, std::uint64_t count) {
  Keys keys;
  for (std::uint64_t i = 0; i < count && in.ok(); ++i) {
    const auto index = static_cast<std::size_t>(i);
    in.spend(sizeof(io::KeyValues::value_type));
    const std::uint64_t start = in.at();
    std::string key = in.name({"kv[].key", index});
    if (key == io::checksums_key || std::ranges::find(own_keys, key) != own_keys.end())
      in.fail({.code = Errc::unsupported,
               .index = index,
               .field = "kv[].key",
               .what = "a key that has a meaning of its own in a .hrry file",
               .offset = start});
    auto [one, type] = value(in, index);
    if (!key.empty()) in.about({}, "the key is " + quote(key));
    keys.kv.emplace_back(std::move(key), std::move(one));
    keys.types += type;
    keys.at.push_back(start);
  }
  if (!in.ok()) return keys;
  const auto twice =
      find_duplicate(keys.kv, [](const auto& entry) -> std::string_view { return entry.first; });
  if (twice)
    in.fail({.code = Errc::duplicate,
             .index = twice->second,
             .field = "kv[].key",
             .what = "the key occurs twice",
             .offset = keys.at[twice->second]},
            quote(keys.kv[twice->second].first) + " is also at byte " +
                std::to_string(keys.at[twice->first]));
  return keys;
}

/// Bytes that the start of the data and of every tensor is a multiple of.
std::uint64_t read_alignment(Cursor& in, const Keys& keys) {
  const auto found = std::ranges::find(keys.kv, alignment_key, &io::KeyValues::value_type::first);
  if (!in.ok() || found == keys.kv.end()) return default_alignment;
  const auto index = static_cast<std::size_t>(found - keys.kv.begin());
  const auto* value = std::get_if<std::uint64_t>(&found->second);
  const bool typed =
      keys.types[index] == static_cast<char>('a' + static_cast<int>(ValueType::uint32));
  if (typed && std::has_single_bit(*value) && *value % 8 == 0) return *value;
  in.fail({.code = Errc::invalid_value,
           .expect = typed ? Expect::as_said : Expect::nothing,
           .index = index,
           .field = "kv[].value",
           .what = typed ? "a power of two from 8 on"sv : "expected a number of the type uint32"sv,
           .offset = keys.at[index],
           .found = typed ? *value : 0},
          "the key is " + quote(alignment_key));
  return default_alignment;
}

/// Sizes as they stand, the innermost one first, and what they make with the type.
void read_shape(Cursor& in, TensorInfo& tensor) {
  const std::uint64_t start = in.at();
  const auto rank = in.number<std::uint32_t>("n_dims");
  if (rank > max_rank)
    return in.fail({.code = Errc::out_of_bounds,
                    .expect = Expect::at_most,
                    .field = "n_dims",
                    .what = "dimensions",
                    .offset = start,
                    .expected = max_rank,
                    .found = rank});
  for (std::uint32_t k = 0; k < rank && in.ok(); ++k) {
    const std::uint64_t size_at = in.at();
    const auto size = in.number<std::uint64_t>({"ne[]", k});
    if (size > max_elements)
      in.fail({.code = Errc::out_of_bounds,
               .expect = Expect::at_most,
               .index = k,
               .field = "ne[]",
               .what = "elements",
               .offset = size_at,
               .expected = max_elements,
               .found = size});
    tensor.shape.push_back(size);
  }
  std::ranges::reverse(tensor.shape);
  const std::uint64_t type_at = in.at();
  const auto number = in.number<std::uint32_t>("type");
  if (!in.ok()) return;
  tensor.type = find_row(tensor_types, number);
  if (tensor.type == nullptr)
    return in.fail({.code = Errc::unsupported,
                    .field = "type",
                    .what = "a type of tensor that this release does not know",
                    .offset = type_at},
                   "its number in GGUF is " + std::to_string(number));
  if (tensor.shape.count() > max_elements)
    return in.fail({.code = Errc::overflow,
                    .field = "ne",
                    .what = "more than 2^63 - 1 elements",
                    .offset = start});
  const std::uint64_t row = rank == 0 ? 1 : tensor.shape[rank - 1];
  if (row % tensor.type->block_elements != 0)
    return in.fail({.code = Errc::inconsistent,
                    .expect = Expect::as_said,
                    .index = 0,
                    .field = "ne[]",
                    .what = "a multiple of the elements in a block",
                    .offset = start + (rank == 0 ? 0 : sizeof rank),
                    .found = row},
                   std::string(tensor.type->name) + " has blocks of " +
                       std::to_string(tensor.type->block_elements));
  const auto bytes = checked_mul<std::uint64_t>(tensor.shape.count() / tensor.type->block_elements,
                                                tensor.type->block_bytes);
  if (!bytes)
    return in.fail({.code = Errc::overflow,
                    .field = "ne",
                    .what = "the elements take more than 2^64 - 1 bytes",
                    .offset = start});
  tensor.bytes = *bytes;
}

std::vector<TensorInfo> read_infos(Cursor& in, std::uint64_t count, std::uint64_t alignment) {
  std::vector<TensorInfo> tensors;
  for (std::uint64_t i = 0; i < count && in.ok(); ++i) {
    in.spend(sizeof(TensorInfo));
    TensorInfo& tensor = tensors.emplace_back();
    tensor.name_at = in.at();
    tensor.name = in.name({"tensors[].name", static_cast<std::size_t>(i)});
    read_shape(in, tensor);
    tensor.offset_at = in.at();
    tensor.offset = in.number<std::uint64_t>("offset");
    if (tensor.offset % alignment != 0)
      in.fail({.code = Errc::invalid_value,
               .expect = Expect::as_said,
               .field = "offset",
               .what = "a multiple of general.alignment",
               .offset = tensor.offset_at,
               .found = tensor.offset},
              "which is " + std::to_string(alignment));
    in.about(tensor.name, {});
  }
  if (!in.ok()) return tensors;
  const auto twice = find_duplicate(
      tensors, [](const TensorInfo& tensor) -> std::string_view { return tensor.name; });
  if (twice)
    in.fail(refuse({.code = Errc::duplicate,
                    .index = twice->second,
                    .field = "tensors[].name",
                    .what = "the name occurs twice",
                    .offset = tensors[twice->second].name_at},
                   tensors[twice->second].name,
                   "the other one is at byte " + std::to_string(tensors[twice->first].name_at)));
  return tensors;
}

/// Whether every tensor is in the file, and no byte in two of them.
std::optional<io::Error> check_places(const std::vector<TensorInfo>& tensors, std::uint64_t start,
                                      std::uint64_t size) {
  const std::uint64_t there = size > start ? size - start : 0;
  std::vector<const TensorInfo*> order;
  for (const TensorInfo& tensor : tensors) {
    if (tensor.offset > there || tensor.bytes > there - tensor.offset)
      return refuse({.code = Errc::truncated,
                     .expect = Expect::at_least,
                     .field = "data",
                     .what = "bytes at the tensor's offset",
                     .offset = tensor.offset_at,
                     .expected = tensor.bytes,
                     .found = tensor.offset > there ? 0 : there - tensor.offset},
                    tensor.name, "an unfinished download or copy?");
    if (tensor.bytes != 0) order.push_back(&tensor);
  }
  std::ranges::sort(order, {}, [](const TensorInfo* tensor) {
    return std::pair(tensor->offset, tensor->offset_at);
  });
  const auto shared =
      std::ranges::adjacent_find(order, [](const TensorInfo* one, const TensorInfo* next) {
        return one->offset + one->bytes > next->offset;
      });
  if (shared == order.end()) return std::nullopt;
  const TensorInfo& one = **shared;
  const TensorInfo& next = **std::next(shared);
  return refuse({.code = Errc::inconsistent,
                 .expect = Expect::at_least,
                 .field = "offset",
                 .what = "(no bytes in two tensors)",
                 .offset = next.offset_at,
                 .expected = one.offset + one.bytes,
                 .found = next.offset},
                next.name, "the tensor " + quote(one.name) + " ends there");
}

io::Result<void> add(io::Translation::Builder& seen, const TensorInfo& tensor,
                     std::uint64_t data_start) {
  const TensorType& type = *tensor.type;
  io::StoredBuffer stored{.offset = data_start + tensor.offset, .size = tensor.bytes};
  Descriptor descriptor;
  descriptor.dtype = type.dtype;
  descriptor.shape = tensor.shape;
  if (type.affine == nullptr) {
    if (tensor.kept_as_blocks()) {
      std::uint64_t& row = descriptor.shape[descriptor.shape.rank() - 1];
      row = row / type.block_elements * type.block_bytes;
    }
    descriptor.buffers = {BufferHandle{.byte_size = tensor.bytes}};
    return seen.add(tensor.name, canonical(std::move(descriptor)), {&stored, 1});
  }
  const BlockConversions& affine = *type.affine;
  const std::uint64_t blocks = tensor.bytes / type.block_bytes;
  descriptor.set_quantization(Quantization{
      .scheme = PerBlockAffine{.axis = static_cast<std::uint32_t>(tensor.shape.rank() - 1),
                               .block_size = affine.block_size,
                               .scale_type = affine.scale_type},
      .rest = {}});
  descriptor.buffers = {BufferHandle{.byte_size = blocks * affine.codes.bytes},
                        BufferHandle{.byte_size = blocks * affine.scales.bytes}};
  std::array<io::StoredBuffer, 2> both{stored, stored};
  both[0].conversion = &affine.codes;
  both[1].conversion = &affine.scales;
  return seen.add(tensor.name, canonical(std::move(descriptor)), both);
}

}  // namespace

bool is_gguf(std::span<const std::byte> head, std::uint64_t) noexcept {
  return std::string_view(reinterpret_cast<const char*>(head.data()), head.size())
      .starts_with(gguf_magic);
}

io::Result<io::Translation> see_gguf(const io::ForeignSource& source) {
  Cursor in(source);
  in.skip("magic", gguf_magic.size());
  const auto version = in.number<std::uint32_t>("version");
  if (in.ok() && version != 2 && version != 3) {
    const bool big_endian = version != 0 && (version & 0xFFFF) == 0;
    return refuse({.code = big_endian ? Errc::unsupported : Errc::unsupported_version,
                   .expect = big_endian ? Expect::nothing : Expect::as_said,
                   .field = "version",
                   .what = big_endian ? "a big-endian GGUF file, of which none is read"sv
                                      : "2 or 3 in a GGUF file"sv,
                   .offset = gguf_magic.size(),
                   .found = version},
                  {},
                  big_endian ? "make a little-endian one with gguf-convert-endian"
                             : "write the file again with a current program");
  }
  constexpr std::uint64_t smallest_info = 8 + 4 + 4 + 8;
  constexpr std::uint64_t smallest_entry = 8 + 4 + 1;
  const std::uint64_t tensor_count = in.count("tensor_count", smallest_info);
  const std::uint64_t kv_count = in.count("metadata_kv_count", smallest_entry);
  Keys keys = read_keys(in, kv_count);
  const std::uint64_t alignment = read_alignment(in, keys);
  const std::vector<TensorInfo> tensors = read_infos(in, tensor_count, alignment);
  if (!in.ok()) return std::move(in).error();

  const auto data_start = checked_align_up<std::uint64_t>(in.at(), alignment);
  if (!data_start) return refuse({.code = Errc::overflow, .field = "data"});
  if (auto error = check_places(tensors, *data_start, source.size)) return *std::move(error);
  io::Translation::Builder seen("gguf");
  std::vector<std::string> block_tensors;
  std::vector<std::string> block_types;
  for (const TensorInfo& tensor : tensors) {
    if (auto added = add(seen, tensor, *data_start); !added) return std::move(added).error();
    if (!tensor.kept_as_blocks()) continue;
    block_tensors.push_back(tensor.name);
    block_types.emplace_back(tensor.type->name);
  }
  keys.kv.emplace_back(gguf_types_key, std::move(keys.types));
  if (!block_tensors.empty()) {
    keys.kv.emplace_back(gguf_block_tensors_key, std::move(block_tensors));
    keys.kv.emplace_back(gguf_block_types_key, std::move(block_types));
  }
  return seen.finish(keys.kv);
}

}  // namespace hurray::formats
