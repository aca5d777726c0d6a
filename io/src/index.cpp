#include "index.hpp"

#include <algorithm>
#include <bit>
#include <functional>
#include <limits>
#include <ranges>
#include <utility>

#include "hurray/io/crc32c.hpp"

namespace hurray::io {

namespace {

/// Reads an entry whose bytes are all there. Rules are judged, and a broken one is not explained;
/// or, of an entry that has been judged, they are not looked at.
template <bool judges>
class Present {
 public:
  static constexpr bool reads = true;
  static constexpr bool checks = judges;

  explicit Present(const std::byte* at) noexcept : at_(at) {}

  bool sound() const noexcept { return sound_; }
  std::uint64_t last() const noexcept { return 0; }

  template <WireInteger T>
  void operator()(Field, T& value) noexcept {
    value = hurray::detail::load<T>(take("", sizeof(T)).data());
  }
  std::span<const std::byte> take(Field, std::size_t n) noexcept {
    return {std::exchange(at_, at_ + n), n};
  }
  void reserved(Field, std::size_t n) noexcept {
    for (const std::byte b : take("", n)) check(b == std::byte{0}, {});
  }
  void check(bool holds, const hurray::Error&) noexcept { sound_ &= holds; }

 private:
  const std::byte* at_;
  bool sound_ = true;
};

/// Bytes of the entry that `bytes` begin with; none where they hold less.
std::size_t present_entry(std::span<const std::byte> bytes) noexcept {
  if (bytes.size() < smallest_index_entry) return 0;
  const std::size_t size =
      smallest_index_entry - 1 + hurray::detail::load<std::uint16_t>(bytes.data());
  return size <= bytes.size() ? size : 0;
}

constexpr std::uint64_t max_entries = std::numeric_limits<std::uint32_t>::max();

std::uint32_t hash(std::string_view name) noexcept {
  const auto* p = reinterpret_cast<const std::byte*>(name.data());
  std::uint64_t sum = name.size();
  const auto add = [&](std::uint64_t bits) {
    sum = (sum ^ bits) * 0x9E3779B97F4A7C15u;
    sum ^= sum >> 32;
  };
  std::size_t left = name.size();
  for (; left > 8; left -= 8, p += 8) add(hurray::detail::load<std::uint64_t>(p));
  if (name.size() >= 8) {
    add(hurray::detail::load<std::uint64_t>(p + left - 8));
  } else {
    std::uint64_t bits = 0;
    for (std::size_t i = 0; i < left; ++i) bits = bits << 8 | static_cast<std::uint64_t>(p[i]);
    add(bits);
  }
  return static_cast<std::uint32_t>(sum);
}
constexpr std::uint32_t hash_of(std::uint64_t slot) noexcept {
  return static_cast<std::uint32_t>(slot >> 32);
}
constexpr std::uint32_t entry_of(std::uint64_t slot) noexcept {
  return static_cast<std::uint32_t>(slot);
}

/// First by the highest bits, which spread names evenly; then each small rest. Names made to
/// collide cost what sorting costs, no more.
void sort_slots(std::vector<std::uint64_t>& slots) {
  const std::size_t buckets = std::bit_ceil(slots.size());
  const int shift = 64 - std::countr_zero(buckets);
  const auto bucket = [&](std::uint64_t slot) {
    return shift == 64 ? std::size_t{0} : static_cast<std::size_t>(slot >> shift);
  };
  std::vector<std::uint32_t> ends(buckets + 1);
  for (const std::uint64_t slot : slots) ++ends[bucket(slot) + 1];
  for (std::size_t i = 1; i <= buckets; ++i) ends[i] += ends[i - 1];
  std::vector<std::uint64_t> spread(slots.size());
  for (const std::uint64_t slot : slots) spread[ends[bucket(slot)]++] = slot;
  for (auto first = spread.begin(); first != spread.end();) {
    const auto last = spread.begin() + ends[bucket(*first)];
    std::sort(first, last);
    first = last;
  }
  slots = std::move(spread);
}

/// The bytes that one tensor takes.
struct Span {
  std::uint64_t start = 0;
  std::uint64_t end = 0;
  std::uint32_t entry = 0;
};

Span span_of(const Entry& entry, std::size_t i) noexcept {
  return {entry.descriptor_offset,
          entry.data_length != 0 ? entry.data_offset + entry.data_length
                                 : entry.descriptor_offset + entry.descriptor_length,
          static_cast<std::uint32_t>(i)};
}

hurray::Error overlap(const Span& before, const Span& span) noexcept {
  return {.code = Errc::inconsistent,
          .origin = Origin::file,
          .expect = Expect::at_least,
          .index = span.entry,
          .field = "index[].descriptor_offset",
          .what = "where the tensor before it ends",
          .expected = before.end,
          .found = span.start};
}

}  // namespace

/// Takes entries out of the bytes that are there so far.
class Index::Parser {
 public:
  Parser(Index& index, const Ends& ends, const OpenOptions& options) noexcept
      : index_(index),
        header_(ends.header),
        trailer_(ends.trailer),
        max_tensors_(std::min(options.max_tensors, max_entries)) {}

  /// The entry that a failure speaks of, empty for none.
  std::string_view guilty() const noexcept { return guilty_; }
  std::uint32_t crc() const noexcept { return crc_; }

  hurray::Result<void> step(std::span<const std::byte> bytes) {
    const bool whole = bytes.size() == trailer_.index_length;
    crc_ = crc32c(bytes.subspan(summed_), crc_);
    summed_ = bytes.size();
    if (whole && has(header_, FileFlag::has_index_crc32c) && crc_ != trailer_.index_crc32c)
      return hurray::Error{.code = Errc::checksum_mismatch,
                           .origin = Origin::file,
                           .expect = Expect::exactly,
                           .field = "index_crc32c",
                           .what = "from the bytes of the index",
                           .offset = trailer_.index_offset,
                           .expected = trailer_.index_crc32c,
                           .found = crc_};

    Reader io(bytes.subspan(position_), Origin::file, trailer_.index_offset + position_);
    if (position_ == 0) begin(io, bytes.size());
    while (io.ok() && index_.starts_.size() < count_) {
      const auto left = bytes.last(io.left());
      const std::size_t size = present_entry(left);
      if (size == 0 && !whole) break;  // the rest comes with the next step
      one(io, left.first(size), bytes.size() - left.size());
    }
    if (whole && io.ok() && !newer(header_))
      io.check(io.left() == 0, {.code = Errc::length_mismatch,
                                .expect = Expect::exactly,
                                .field = "index_length",
                                .what = "bytes after the last entry",
                                .offset = io.position(),
                                .expected = 0,
                                .found = io.left()});
    if (!io.ok()) return io.error();
    position_ = bytes.size() - io.left();
    if (!whole) return {};
    return spans();
  }

 private:
  void begin(Reader& io, std::size_t present) {
    std::uint64_t count = 0;
    io("index_entry_count", count);
    io.check(count <= (trailer_.index_length - index_count_bytes) / smallest_index_entry,
             {.code = Errc::truncated,
              .expect = Expect::at_most,
              .field = "index_entry_count",
              .what = "entries in so many bytes",
              .expected = (trailer_.index_length - index_count_bytes) / smallest_index_entry,
              .found = count});
    io.check(count <= max_tensors_, {.code = Errc::limit_exceeded,
                                     .expect = Expect::at_most,
                                     .field = "max_tensors",
                                     .expected = max_tensors_,
                                     .found = count});
    if (!io.ok()) return;
    count_ = static_cast<std::size_t>(count);
    index_.starts_.reserve(std::min(count_, present / smallest_index_entry));
  }

  /// `present`: the entry's bytes, none where some are missing.
  void one(Reader& io, std::span<const std::byte> present, std::size_t start) {
    const std::size_t i = index_.starts_.size();
    Entry entry;
    const std::uint64_t at = io.position();
    Present<true> quick(present.data());
    if (!present.empty()) fields(entry, quick, i, header_);
    if (!present.empty() && quick.sound()) {
      (void)io.take("index", present.size());
    } else {
      fields(entry, io, i, header_);
    }
    if (!io.ok()) {
      guilty_ = entry.name;
      return;
    }
    region(io, entry, i, at + 2 + entry.name.size());

    if (i != 0 && index_.ascending_ && !(last_name_ < entry.name)) {
      index_.ascending_ = false;
      if (has(header_, FileFlag::sorted_index))
        io.check(false, {.code = last_name_ == entry.name ? Errc::duplicate : Errc::inconsistent,
                         .index = static_cast<std::uint32_t>(i),
                         .field = "index[].name",
                         .what = "the header promises names in ascending order",
                         .offset = at + 2});
    }
    last_name_ = entry.name;
    if (entry.data_length == 0) index_.may_have_heads_ = true;

    const Span span = span_of(entry, i);
    if (i == 0 || span.start < lowest_) lowest_ = span.start;
    if (i != 0 && span.start < last_.end) in_order_ = false;
    last_ = span;
    if (!io.ok()) guilty_ = entry.name;
    index_.starts_.push_back(start);
  }

  /// Rows 16 and 17, as far as they are not in the list of fields.
  void region(Reader& io, const Entry& entry, std::size_t i, std::uint64_t at) const noexcept {
    const std::uint64_t end = region_end(trailer_);
    const std::uint64_t descriptor_end = entry.descriptor_offset + entry.descriptor_length;
    const auto within = [&](std::string_view field, std::uint64_t place, std::uint64_t value,
                            std::uint64_t least, std::uint64_t most) {
      if (least <= value && value <= most) return;
      const bool low = value < least;
      io.check(false, {.code = Errc::out_of_bounds,
                       .expect = low ? Expect::at_least : Expect::at_most,
                       .index = static_cast<std::uint32_t>(i),
                       .field = field,
                       .offset = at + place,
                       .expected = low ? least : most,
                       .found = value});
    };
    within("index[].descriptor_offset", 0, entry.descriptor_offset, header_.first_descriptor_offset,
           end);
    within("index[].descriptor_length", 8, entry.descriptor_length, 0,
           end - entry.descriptor_offset);
    within("index[].data_offset", 12, entry.data_offset, descriptor_end, end);
    within("index[].data_length", 20, entry.data_length, 0, end - entry.data_offset);
  }

  /// Rows 18 and 19, once all entries are known.
  hurray::Result<void> spans() {
    if (!in_order_) {
      std::vector<Span> spans;
      spans.reserve(index_.size());
      for (std::size_t i = 0; i < index_.size(); ++i) spans.push_back(span_of(index_.entry(i), i));
      std::ranges::sort(spans, {}, [](const Span& s) { return std::pair(s.start, s.entry); });
      for (std::size_t i = 1; i < spans.size(); ++i)
        if (spans[i].start < spans[i - 1].end) {
          guilty_ = index_.name(spans[i].entry);
          return overlap(spans[i - 1], spans[i]);
        }
      index_.by_offset_.reserve(spans.size());
      for (const Span& span : spans) index_.by_offset_.push_back(span.entry);
    }
    if (index_.size() != 0 && lowest_ != header_.first_descriptor_offset)
      return hurray::Error{.code = Errc::inconsistent,
                           .origin = Origin::file,
                           .expect = Expect::exactly,
                           .field = "first_descriptor_offset",
                           .what = "where the first tensor starts",
                           .offset = 20,
                           .expected = lowest_,
                           .found = header_.first_descriptor_offset};
    return {};
  }

  Index& index_;
  const FileHeader& header_;
  const FileTrailer& trailer_;
  std::uint64_t max_tensors_;
  std::size_t count_ = 0;
  std::size_t position_ = 0;
  std::size_t summed_ = 0;
  std::uint32_t crc_ = 0;
  std::string_view last_name_;
  std::string_view guilty_;
  Span last_;
  std::uint64_t lowest_ = 0;
  bool in_order_ = true;
};

Result<Index> Index::read(const Source& source, const Ends& ends, const OpenOptions& options) {
  Index index;
  index.header_ = ends.header;
  Parser parser(index, ends, options);
  auto bytes = source.read_in_steps("index", ends.trailer.index_offset, ends.trailer.index_length,
                                    [&](std::span<const std::byte> so_far) -> Result<void> {
                                      index.bytes_ = Buffer::borrow(
                                          const_cast<std::byte*>(so_far.data()), so_far.size(),
                                          std::shared_ptr<Owner>(), true);
                                      if (auto parsed = parser.step(so_far); !parsed)
                                        return source.about(parsed.error(), parser.guilty());
                                      return {};
                                    });
  if (!bytes) return std::move(bytes).error();
  index.bytes_ = *std::move(bytes);
  index.crc_ = parser.crc();
  if (!index.ascending_)
    if (auto unique = index.order_names(); !unique)
      return source.about(unique.error(), index.name(unique.error().index));
  return index;
}

hurray::Result<void> Index::order_names() {
  by_name_.reserve(size());
  for (std::size_t i = 0; i < size(); ++i)
    by_name_.push_back(static_cast<std::uint64_t>(hash(name(i))) << 32 | i);
  sort_slots(by_name_);
  const auto slot_name = [&](std::uint64_t slot) { return name(entry_of(slot)); };
  for (auto first = by_name_.begin(); first != by_name_.end();) {
    const auto last = std::find_if(first, by_name_.end(), [&](std::uint64_t slot) {
      return hash_of(slot) != hash_of(*first);
    });
    if (last - first > 1) {
      std::sort(first, last, [&](std::uint64_t a, std::uint64_t b) {
        const int order = slot_name(a).compare(slot_name(b));
        return order != 0 ? order < 0 : a < b;
      });
      const auto twice = std::adjacent_find(first, last, [&](std::uint64_t a, std::uint64_t b) {
        return slot_name(a) == slot_name(b);
      });
      if (twice != last)
        return hurray::Error{.code = Errc::duplicate,
                             .origin = Origin::file,
                             .index = entry_of(*std::next(twice)),
                             .field = "index[].name",
                             .what = "names are unique"};
    }
    first = last;
  }
  return {};
}

std::string_view Index::name(std::size_t i) const noexcept {
  const std::byte* start = bytes_.data() + starts_[i];
  return {reinterpret_cast<const char*>(start) + 2, hurray::detail::load<std::uint16_t>(start)};
}

Entry Index::entry(std::size_t i) const noexcept {
  Present<false> io(bytes_.data() + starts_[i]);
  Entry entry;
  fields(entry, io, i, header_);
  return entry;
}

std::size_t Index::place(std::size_t i) const noexcept {
  if (by_offset_.empty()) return i;
  const auto found =
      std::ranges::lower_bound(by_offset_, entry(i).descriptor_offset, {},
                               [&](std::uint32_t other) { return entry(other).descriptor_offset; });
  return static_cast<std::size_t>(found - by_offset_.begin());
}

std::optional<std::size_t> Index::find(std::string_view wanted) const noexcept {
  if (ascending_) {
    const auto all = std::views::iota(std::size_t{0}, size());
    const auto found =
        std::ranges::lower_bound(all, wanted, {}, [&](std::size_t i) { return name(i); });
    if (found == all.end() || name(*found) != wanted) return std::nullopt;
    return *found;
  }
  const std::uint32_t key = hash(wanted);
  const auto found = std::ranges::lower_bound(
      by_name_, std::pair(key, wanted), std::less<>{}, [&](std::uint64_t slot) {
        // A name is only looked at where the hash leaves the order open.
        return std::pair(hash_of(slot), hash_of(slot) == key ? name(entry_of(slot)) : wanted);
      });
  if (found == by_name_.end() || hash_of(*found) != key || name(entry_of(*found)) != wanted)
    return std::nullopt;
  return entry_of(*found);
}

}  // namespace hurray::io
