#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "command.hpp"
#include "elements.hpp"
#include "hurray/buffer.hpp"
#include "hurray/elements.hpp"
#include "hurray/printer.hpp"
#include "key_values.hpp"
#include "members.hpp"
#include "opened.hpp"
#include "text.hpp"

namespace hurray::cli {
namespace {

using Index = std::vector<std::uint64_t>;

/// What comparing the elements of two tensors has shown.
struct Comparison {
  std::uint64_t differing = 0;
  Index first;                    ///< Of those that differ.
  std::optional<double> largest;  ///< Absolute difference; none where none is a number.
  Index largest_index;
};

struct Tolerance {
  double relative = 0;
  double absolute = 0;

  bool none() const { return relative == 0 && absolute == 0; }
};

bool is_float(DType dtype) {
  const DTypeInfo* row = info(dtype);
  return row != nullptr && (row->kind == Kind::floating || row->kind == Kind::exponent);
}

double magnitude(DType dtype, Code code) {
  if (info(dtype)->kind != Kind::complex) return std::abs(to_double(dtype, code));
  const auto halves = complex_halves(dtype, code);
  return std::hypot(to_double(dtype, halves[0]), to_double(dtype, halves[1]));
}

/// |a - b|; none for private types.
std::optional<double> distance(DType a_type, Code a, DType b_type, Code b) {
  const DTypeInfo* row = info(a_type);
  if (row == nullptr) return std::nullopt;
  switch (row->kind) {
    case Kind::unsigned_integer:
    case Kind::boolean:
      return static_cast<double>(a.low > b.low ? a.low - b.low : b.low - a.low);
    case Kind::integer: {
      const std::int64_t first = to_integer(a_type, a);
      const std::int64_t second = to_integer(b_type, b);
      const auto low = static_cast<std::uint64_t>(std::min(first, second));
      return static_cast<double>(static_cast<std::uint64_t>(std::max(first, second)) - low);
    }
    case Kind::complex: {
      const auto first = complex_halves(a_type, a);
      const auto second = complex_halves(b_type, b);
      return std::hypot(to_double(a_type, first[0]) - to_double(b_type, second[0]),
                        to_double(a_type, first[1]) - to_double(b_type, second[1]));
    }
    default:
      return std::abs(to_double(a_type, a) - to_double(b_type, b));
  }
}

/// Takes in two elements.
class Judge {
 public:
  Judge(DType a, DType b, const Tolerance& tolerance) : a_(a), b_(b), tolerance_(tolerance) {}

  /// `index` returns where they are, for those that differ.
  template <class Where>
  void operator()(const std::optional<Code>& a, const std::optional<Code>& b, Where&& index) {
    const Code first = a.value_or(Code{});
    const Code second = b.value_or(Code{});
    if (a_ == b_ && first == second) return;
    const auto apart = distance(a_, first, b_, second);
    if (near(first, second, apart)) return;
    if (found_.differing++ == 0) found_.first = index();
    if (!apart || std::isnan(*apart) || (found_.largest && *apart <= *found_.largest)) return;
    found_.largest = apart;
    found_.largest_index = index();
  }

  const Comparison& found() const { return found_; }

 private:
  bool near(Code a, Code b, const std::optional<double>& apart) const {
    if (!apart) return false;
    if (a_ != b_) {
      // Two types of floats: NaN is NaN, and other numbers are what they are.
      const bool none = classify(a_, a) == FloatClass::nan;
      if (none || classify(b_, b) == FloatClass::nan)
        return none && classify(b_, b) == FloatClass::nan;
      if (to_double(a_, a) == to_double(b_, b)) return true;
    }
    return !tolerance_.none() &&
           *apart <= tolerance_.absolute + tolerance_.relative * magnitude(b_, b) &&
           std::isfinite(magnitude(b_, b));
  }

  DType a_;
  DType b_;
  Tolerance tolerance_;
  Comparison found_;
};

/// One tensor of a file.
struct Side {
  const io::FileSet& set;
  std::size_t entry;
  Descriptor descriptor;

  io::Error about(const hurray::Error& error) const {
    return {error, set.path(), std::string(set.name(entry))};
  }
  io::Result<Tensor> tensor() const {
    const auto [file, i] = set.place(entry);
    return file->tensor(i);
  }
  io::Result<Elements> elements(const io::Result<Tensor>& read) const {
    if (!read) return read.error();
    auto over = Elements::over(*read);
    if (!over) return about(over.error());
    return *std::move(over);
  }
};

bool same_scheme(const Descriptor& a, const Descriptor& b) {
  return (a.quantization() == nullptr) == (b.quantization() == nullptr) &&
         (a.quantization() == nullptr || *a.quantization() == *b.quantization());
}

/// The bytes of `slice` in `memory`, which blocks share: none is larger than the first.
io::Result<std::span<const std::byte>> read(const io::Slice& slice, const Side& side,
                                            Buffer& memory) {
  if (slice.size_bytes() > memory.size()) {
    auto taken = Buffer::allocate(slice.size_bytes());
    if (!taken) return side.about(taken.error());
    memory = *std::move(taken);
  }
  const auto bytes = memory.bytes().first(static_cast<std::size_t>(slice.size_bytes()));
  if (auto done = slice.read_into(bytes); !done) return std::move(done).error();
  return std::span<const std::byte>(bytes);
}

struct BlockMemory {
  Buffer a;
  Buffer b;
};

/// Compares the block that begins at `first` (a number for each dimension up to the divided one).
io::Result<void> compare_block(const Side& a, const Side& b, const Blocks& blocks,
                               const Index& first, BlockMemory& memory, Judge& judge) {
  const Shape& shape = a.descriptor.shape;
  Selection part;
  for (std::size_t k = 0; k < first.size(); ++k)
    part.push_back(k < blocks.divided
                       ? Along::index(first[k])
                       : Along{.start = first[k],
                               .stop = first[k] + std::min(blocks.length, shape[k] - first[k])});
  const auto a_slice = a.set.slice(a.entry, part);
  if (!a_slice) return a_slice.error();
  const auto b_slice = b.set.slice(b.entry, part);
  if (!b_slice) return b_slice.error();
  const auto a_bytes = read(*a_slice, a, memory.a);
  if (!a_bytes) return a_bytes.error();
  const auto b_bytes = read(*b_slice, b, memory.b);
  if (!b_bytes) return b_bytes.error();
  if (a.descriptor.dtype == b.descriptor.dtype && same_scheme(a.descriptor, b.descriptor) &&
      a_bytes->size() == b_bytes->size() &&
      (a_bytes->empty() || std::memcmp(a_bytes->data(), b_bytes->data(), a_bytes->size()) == 0))
    return {};
  // The first of its dimensions is the one that blocks divide.
  const auto in_tensor = [&](std::span<const std::uint64_t> index) {
    Index whole = first;
    if (!first.empty()) whole.back() += index[0];
    whole.insert(whole.end(), index.begin() + (first.empty() ? 0 : 1), index.end());
    return whole;
  };
  const Shape& block = a_slice->descriptor().shape;
  const unsigned a_width = element_bits(a.descriptor);
  const unsigned b_width = element_bits(b.descriptor);
  if (a.descriptor.quantization() == nullptr && b.descriptor.quantization() == nullptr &&
      a_width <= 128 && b_width <= 128) {
    const std::uint64_t count = block.count();
    for (std::uint64_t i = 0; i < count; ++i) {
      const auto at = static_cast<std::int64_t>(i);
      judge(hurray::detail::load_code(a_bytes->data(), a_width, at),
            hurray::detail::load_code(b_bytes->data(), b_width, at), [&] {
              Index index(block.rank());
              std::uint64_t rest = i;
              for (std::size_t k = block.rank(); k-- > 0; rest /= block[k])
                index[k] = rest % block[k];
              return in_tensor(index);
            });
    }
    return {};
  }
  const auto a_elements = a.elements(a_slice->read());
  if (!a_elements) return a_elements.error();
  const auto b_elements = b.elements(b_slice->read());
  if (!b_elements) return b_elements.error();
  std::optional<io::Error> failed;
  const auto walked = a_elements->for_each([&](std::span<const std::uint64_t> index, std::int64_t) {
    const auto a_code = code_at(*a_elements, index);
    const auto b_code = code_at(*b_elements, index);
    if (!a_code || !b_code) {
      failed = a_code ? b.about(b_code.error()) : a.about(a_code.error());
      return false;
    }
    judge(*a_code, *b_code, [&] { return in_tensor(index); });
    return true;
  });
  if (failed) return *failed;
  if (!walked) return a.about(walked.error());
  return {};
}

io::Result<void> compare_in_blocks(const Side& a, const Side& b, Judge& judge) {
  constexpr std::uint64_t block_elements = std::uint64_t{1} << 20;
  const Shape& shape = a.descriptor.shape;
  if (shape.is_empty()) return {};
  const Blocks blocks = Blocks::of(shape, block_elements);
  BlockMemory memory;
  Index first(shape.rank() == 0 ? 0 : blocks.divided + 1);
  for (;;) {
    if (auto done = compare_block(a, b, blocks, first, memory, judge); !done) return done;
    std::size_t k = first.size();
    for (; k-- > 0;) {
      const std::uint64_t step = k == blocks.divided ? blocks.length : 1;
      if (shape[k] - first[k] > step) {
        first[k] += step;
        break;
      }
      first[k] = 0;
    }
    if (k >= first.size()) return {};
  }
}

/// Compares what either of two tensors stores.
io::Result<void> compare_whole(const Side& a, const Side& b, const Tensor& a_tensor,
                               const Tensor& b_tensor, Judge& judge) {
  const auto a_elements = a.elements(a_tensor);
  if (!a_elements) return a_elements.error();
  const auto b_elements = b.elements(b_tensor);
  if (!b_elements) return b_elements.error();
  std::optional<io::Error> failed;
  const auto pass = [&](const Elements& over, const Side& side,
                        bool only_missing) -> io::Result<void> {
    const auto walked = over.for_each([&](std::span<const std::uint64_t> index, std::int64_t) {
      const auto a_code = code_at(*a_elements, index);
      const auto b_code = code_at(*b_elements, index);
      if (!a_code || !b_code) {
        failed = a_code ? b.about(b_code.error()) : a.about(a_code.error());
        return false;
      }
      const auto slot = a_elements->slot(index);
      if (!only_missing || (slot && !*slot))
        judge(*a_code, *b_code, [&] { return Index(index.begin(), index.end()); });
      return true;
    });
    if (failed) return *failed;
    if (!walked) return side.about(walked.error());
    return {};
  };
  if (auto done = pass(*a_elements, a, false); !done) return done;
  const bool stores_all = is_dense(a.descriptor.layout);
  return stores_all ? io::Result<void>() : pass(*b_elements, b, true);
}

bool same_bytes(const Tensor& a, const Tensor& b) {
  return std::ranges::equal(a.buffers(), b.buffers(), [](const Buffer& one, const Buffer& other) {
    return std::ranges::equal(one.bytes(), other.bytes());
  });
}

/// What is to be said of one name.
struct Verdict {
  std::string_view status = "equal";
  std::vector<std::string_view> differs;  ///< Parts of the description.
  std::optional<Comparison> values;
  std::optional<io::Error> error;

  bool equal() const { return status == "equal"; }
};

std::vector<std::string_view> differing_parts(const Side& a, const Side& b,
                                              std::string_view a_owner, std::string_view b_owner) {
  const Descriptor& x = a.descriptor;
  const Descriptor& y = b.descriptor;
  std::vector<std::string_view> parts;
  const auto part = [&](std::string_view name, bool same) {
    if (!same) parts.push_back(name);
  };
  const auto both = [](const auto* one, const auto* other) {
    return one == nullptr || other == nullptr ? one == other : *one == *other;
  };
  part("dtype", x.dtype == y.dtype);
  part("shape", x.shape == y.shape);
  part("layout", x.layout == y.layout && x.byte_offset == y.byte_offset);
  part("quantization", both(x.quantization(), y.quantization()));
  part("extension_type", both(x.extension_type(), y.extension_type()));
  part("shard", both(x.shard(), y.shard()));
  part("member_role", both(x.member_role(), y.member_role()));
  part("member_of", a_owner == b_owner);
  part("statistics", both(x.statistics(), y.statistics()));
  part("placement",
       std::ranges::equal(x.buffers, y.buffers,
                          [](const BufferHandle& p, const BufferHandle& q) {
                            return p.device == q.device && p.memory_class == q.memory_class &&
                                   p.sync_mode == q.sync_mode;
                          }) ||
           x.layout.index() != y.layout.index() || x.buffers.size() != y.buffers.size());
  return parts;
}

bool has(const std::vector<std::string_view>& parts, std::string_view part) {
  return std::ranges::find(parts, part) != parts.end();
}

io::Result<Verdict> compare(const Side& a, const Side& b, std::vector<std::string_view> parts,
                            const Tolerance& tolerance) {
  Verdict verdict;
  verdict.differs = std::move(parts);
  const DType a_type = value_type(a.descriptor);
  const DType b_type = value_type(b.descriptor);
  const bool comparable = a_type == b_type || (is_float(a_type) && is_float(b_type));
  const bool is_head = std::holds_alternative<CompositeHead>(a.descriptor.layout) ||
                       std::holds_alternative<CompositeHead>(b.descriptor.layout);
  if (has(verdict.differs, "shape") || !comparable || (is_head && !verdict.differs.empty())) {
    verdict.status = "description";
    return verdict;
  }
  if (is_head) return verdict;
  Judge judge(a_type, b_type, tolerance);
  const bool same_form = !has(verdict.differs, "dtype") && !has(verdict.differs, "layout") &&
                         !has(verdict.differs, "quantization");
  const bool in_blocks = is_read_in_blocks(a.descriptor) && is_read_in_blocks(b.descriptor) &&
                         !a.descriptor.shape.is_dynamic();
  io::Result<void> compared;
  if (in_blocks) compared = compare_in_blocks(a, b, judge);
  if (!in_blocks || !compared) {
    // What has no values that can be addressed has bytes.
    if (!compared && compared.error().code != Errc::unsupported) return std::move(compared).error();
    const auto a_tensor = a.tensor();
    if (!a_tensor) return a_tensor.error();
    const auto b_tensor = b.tensor();
    if (!b_tensor) return b_tensor.error();
    if (same_form && same_bytes(*a_tensor, *b_tensor))
      compared = {};
    else if (!in_blocks)
      compared = compare_whole(a, b, *a_tensor, *b_tensor, judge);
  }
  if (!compared) {
    if (compared.error().code != Errc::unsupported) return std::move(compared).error();
    verdict.status = same_form ? "bytes" : "description";
    verdict.error = compared.error();
    return verdict;
  }
  if (judge.found().differing != 0) {
    verdict.status = "values";
    verdict.values = judge.found();
  } else if (!verdict.differs.empty()) {
    verdict.status = "stored";
  }
  return verdict;
}

// --- What is shown ---

std::string index_text(const Index& index) { return fmt::format("[{}]", fmt::join(index, ", ")); }

std::string aspect_text(const Descriptor& d, std::string_view part) {
  if (part == "dtype") return dtype_text(d.dtype);
  if (part == "shape") return shape_text(d.shape);
  if (part == "layout") return layout_text(d.layout);
  if (part == "quantization" && d.quantization() != nullptr) return remarks(d);
  return {};
}

std::string words(const Verdict& verdict, const Descriptor& a, const Descriptor& b) {
  std::string text;
  const auto add = [&](const std::string& more) { text += (text.empty() ? "" : "; ") + more; };
  for (const std::string_view part : verdict.differs) {
    const std::string first = aspect_text(a, part);
    const std::string second = aspect_text(b, part);
    add(first == second || first.empty() || second.empty()
            ? fmt::format("{} differs", part)
            : fmt::format("{} {} and {}", part, first, second));
  }
  if (verdict.values) {
    const Comparison& found = *verdict.values;
    const std::uint64_t count = a.shape.count();
    std::string values =
        fmt::format("{} of {} element{} differ", found.differing, count, count == 1 ? "" : "s");
    if (found.largest)
      values += fmt::format(", the largest difference is {} at {}", to_text(*found.largest),
                            index_text(found.largest_index));
    else
      values += fmt::format(", the first at {}", index_text(found.first));
    add(values);
  } else if (verdict.status == "stored") {
    add("values equal");
  } else if (verdict.status == "bytes") {
    add("bytes differ; values cannot be compared: " + reason(*verdict.error));
  }
  return text;
}

void index_member(Json& json, std::string_view key, const Index& index) {
  json.key(key);
  json.begin_array();
  for (const std::uint64_t i : index) json.value(i);
  json.end_array();
}

void side_member(Json& json, std::string_view key, const Descriptor& descriptor) {
  json.key(key);
  json.begin_object();
  descriptor_members(json, descriptor, buffer_bytes(descriptor));
  json.end_object();
}

struct Counts {
  std::size_t equal = 0;
  std::size_t different = 0;
  std::size_t only_a = 0;
  std::size_t only_b = 0;
  std::size_t keys_equal = 0;
  std::size_t keys_different = 0;

  bool all_equal() const { return different + only_a + only_b + keys_different == 0; }
};

class Differences {
 public:
  Differences(const io::FileSet& a, const io::FileSet& b, const DiffRequest& request,
              Session& session)
      : a_(a),
        b_(b),
        tolerance_{request.relative, request.absolute},
        session_(session),
        json_(session.output) {}

  int run() {
    auto a_owners = a_.owners();
    if (!a_owners) return session_.fail(a_owners.error());
    auto b_owners = b_.owners();
    if (!b_owners) return session_.fail(b_owners.error());
    const auto a_kv = a_.kv();
    if (!a_kv) return session_.fail(a_kv.error());
    const auto b_kv = b_.kv();
    if (!b_kv) return session_.fail(b_kv.error());
    if (session_.json) {
      json_.begin_document("diff");
      json_.member("a", a_.path());
      json_.member("b", b_.path());
      json_.key("tensors");
      json_.begin_array();
    }
    const auto owner = [](const io::FileSet& set, const auto& owners, std::size_t i) {
      return owners[i] ? set.name(*owners[i]) : std::string_view();
    };
    for (std::size_t i = 0; i < a_.size(); ++i) {
      const auto other = b_.find(a_.name(i));
      if (other)
        both(i, *other, owner(a_, *a_owners, i), owner(b_, *b_owners, *other));
      else
        alone(a_, i, "only_in_a", counts_.only_a);
    }
    for (std::size_t i = 0; i < b_.size(); ++i)
      if (!a_.find(b_.name(i))) alone(b_, i, "only_in_b", counts_.only_b);
    if (session_.json) {
      json_.end_array();
      json_.key("kv");
      json_.begin_array();
    }
    key_values(*a_kv, *b_kv);
    finish();
    return code_ != 0 ? code_ : counts_.all_equal() ? 0 : 1;
  }

 private:
  void both(std::size_t i, std::size_t j, std::string_view a_owner, std::string_view b_owner) {
    auto a = a_.descriptor(i);
    auto b = b_.descriptor(j);
    if (!a || !b) {
      ++counts_.different;
      return broken(a_.name(i), a ? b.error() : a.error());
    }
    const Side x{a_, i, *std::move(a)};
    const Side y{b_, j, *std::move(b)};
    const auto verdict = compare(x, y, differing_parts(x, y, a_owner, b_owner), tolerance_);
    ++(verdict && verdict->equal() ? counts_.equal : counts_.different);
    if (!verdict) return broken(a_.name(i), verdict.error());
    if (verdict->equal()) return;
    if (!session_.json)
      return line(Style::bold, '!', a_.name(i), words(*verdict, x.descriptor, y.descriptor));
    json_.begin_object();
    json_.member("name", a_.name(i));
    json_.member("status", verdict->status);
    json_.key("differs");
    json_.begin_array();
    for (const std::string_view part : verdict->differs) json_.value(part);
    json_.end_array();
    side_member(json_, "a", x.descriptor);
    side_member(json_, "b", y.descriptor);
    if (verdict->values) {
      const Comparison& found = *verdict->values;
      json_.member("elements", x.descriptor.shape.count());
      json_.member("differing", found.differing);
      index_member(json_, "first_index", found.first);
      if (found.largest) {
        json_.member("largest", *found.largest);
        index_member(json_, "largest_index", found.largest_index);
      }
    }
    json_.end_object();
  }

  void alone(const io::FileSet& set, std::size_t i, std::string_view status, std::size_t& count) {
    ++count;
    const auto descriptor = set.descriptor(i);
    const bool in_a = &set == &a_;
    if (!session_.json)
      return line(in_a ? Style::red : Style::green, in_a ? '-' : '+', set.name(i),
                  fmt::format("only in {}{}", io::printable(set.path()),
                              descriptor ? fmt::format(": {} {}", dtype_text(descriptor->dtype),
                                                       shape_text(descriptor->shape))
                                         : ""));
    json_.begin_object();
    json_.member("name", set.name(i));
    json_.member("status", status);
    if (descriptor) side_member(json_, in_a ? "a" : "b", *descriptor);
    json_.end_object();
  }

  void broken(std::string_view name, const io::Error& error) {
    code_ = std::max(code_, exit_code(error));
    complain(to_string(error));
    if (!session_.json) return line(Style::bold, '!', name, "cannot be compared: " + reason(error));
    json_.begin_object();
    json_.member("name", name);
    json_.member("status", "broken");
    json_.key("error");
    json_.begin_object();
    error_members(json_, error);
    json_.end_object();
    json_.end_object();
  }

  void key_values(const io::KeyValues& a, const io::KeyValues& b) {
    // NaN is what its bits are.
    const auto same = [](const io::KvValue& x, const io::KvValue& y) {
      const auto first = io::encode_kv({{"k", x}});
      const auto second = io::encode_kv({{"k", y}});
      return first && second && *first == *second;
    };
    for (const auto& [key, value] : a) {
      const io::KvValue* other = io::find(b, key);
      if (other != nullptr && same(value, *other))
        ++counts_.keys_equal;
      else
        key_value(key, &value, other);
    }
    for (const auto& [key, value] : b)
      if (io::find(a, key) == nullptr) key_value(key, nullptr, &value);
  }

  void key_value(const std::string& key, const io::KvValue* a, const io::KvValue* b) {
    ++counts_.keys_different;
    const auto text = [](const io::KvValue& value) {
      return value_text(value) + " (" + type_text(value) + ")";
    };
    if (!session_.json) {
      const std::string name = "key " + quote(key);
      if (a != nullptr && b != nullptr)
        return plain_line(Style::bold, '!', name, text(*a) + " and " + text(*b));
      const io::FileSet& where = a != nullptr ? a_ : b_;
      return plain_line(
          a != nullptr ? Style::red : Style::green, a != nullptr ? '-' : '+', name,
          fmt::format("only in {}: {}", io::printable(where.path()), text(a != nullptr ? *a : *b)));
    }
    json_.begin_object();
    json_.member("key", key);
    json_.member("status", a == nullptr ? "only_in_b" : b == nullptr ? "only_in_a" : "values");
    const auto side = [&](std::string_view name, const io::KvValue* value) {
      if (value == nullptr) return;
      json_.key(name);
      json_.begin_object();
      value_members(json_, *value);
      json_.end_object();
    };
    side("a", a);
    side("b", b);
    json_.end_object();
  }

  void line(Style style, char sign, std::string_view name, const std::string& text) {
    plain_line(style, sign, io::printable(name), text);
  }
  void plain_line(Style style, char sign, std::string_view name, const std::string& text) {
    session_.output.write(session_.paint(style, fmt::format("{} {}", sign, name)) + ": " + text +
                          '\n');
  }

  void finish() {
    if (session_.json) {
      json_.end_array();
      json_.member("equal", counts_.all_equal());
      json_.member("tensors_equal", counts_.equal);
      json_.member("tensors_different", counts_.different);
      json_.member("only_in_a", counts_.only_a);
      json_.member("only_in_b", counts_.only_b);
      json_.member("keys_equal", counts_.keys_equal);
      json_.member("keys_different", counts_.keys_different);
      return json_.end_document();
    }
    std::string text = plural(counts_.equal, "tensor") + " equal";
    const auto add = [&](std::size_t n, const std::string& what) {
      if (n != 0) text += fmt::format(", {}", what);
    };
    add(counts_.different, fmt::format("{} different", counts_.different));
    add(counts_.only_a, fmt::format("{} only in {}", counts_.only_a, io::printable(a_.path())));
    add(counts_.only_b, fmt::format("{} only in {}", counts_.only_b, io::printable(b_.path())));
    add(counts_.keys_equal, plural(counts_.keys_equal, "key") + " equal");
    add(counts_.keys_different, plural(counts_.keys_different, "key") + " different");
    session_.output.write(text + '\n');
  }

  const io::FileSet& a_;
  const io::FileSet& b_;
  Tolerance tolerance_;
  Session& session_;
  Json json_;
  Counts counts_;
  int code_ = 0;
};

}  // namespace

int diff(const DiffRequest& request, Session& session) {
  const auto a = open_any(request.a);
  if (!a) return session.fail(a.error());
  const auto b = open_any(request.b);
  if (!b) return session.fail(b.error());
  return Differences(*a, *b, request, session).run();
}

}  // namespace hurray::cli
