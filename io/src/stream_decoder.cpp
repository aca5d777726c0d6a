#include "hurray/io/stream_decoder.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <deque>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "growing.hpp"
#include "items.hpp"
#include "stream_rules.hpp"

namespace hurray::io {
namespace {

/// What begins with `prefix`, which no descriptor of ours does, in words for a person.
std::string describe_foreign_start(Errc code, std::span<const std::byte> prefix) {
  // Judged by the bytes that are always there, so that no other number of them says otherwise.
  constexpr std::string_view file_start = "HRRYF";
  const std::string_view text(reinterpret_cast<const char*>(prefix.data()), prefix.size());
  if (text.starts_with(file_start)) return "this is a .hrry file and no stream: open it as a file";
  if (code != Errc::invalid_magic) return {};
  return "this begins with \"" + printable(text.substr(0, magic.size())) +
         "\": no tensor begins so";
}

/// Room that an unfinished descriptor may take beyond what arrived of it.
constexpr std::size_t descriptor_step = 4096;

}  // namespace

struct StreamDecoder::State {
  /// What the next bytes are part of. Each part goes to `target`, in steps for those whose size
  /// nobody vouches for.
  enum class Part : std::uint8_t { prefix, descriptor, buffer };

  explicit State(const StreamReadOptions& read_options)
      : options(read_options),
        checker({.max_depth = read_options.max_composite_depth,
                 .max_members = read_options.max_item_members,
                 .permissive = read_options.permissive}) {}

  /// Where the descriptor is, for errors that count from its start.
  Error placed(Error error) const {
    error.detail = "this descriptor begins at byte " + std::to_string(frame) + " of the stream";
    return error;
  }

  /// What the rules of composites say against the frame being read.
  Error in_composite(hurray::Error error) const {
    if (error.code == Errc::limit_exceeded) error = at(frame, error);
    Error result = placed(error);
    if (const std::string where = checker.where(); !where.empty())
      result.detail += ", inside " + where;
    return result;
  }

  hurray::Error truncated(Field field, std::uint64_t wanted,
                          std::uint64_t received) const noexcept {
    return at(arrived, {.code = Errc::truncated,
                        .expect = Expect::exactly,
                        .index = field.index,
                        .field = field.name,
                        .what = "bytes",
                        .expected = wanted,
                        .found = received});
  }

  Error bad_prefix(const hurray::Error& error) const {
    if (error.code == Errc::truncated) return truncated(error.field, descriptor_prefix_bytes, have);
    return {at(frame + error.offset, error),
            {},
            {},
            describe_foreign_start(error.code, std::span(prefix).first(have))};
  }

  hurray::Result<std::uint32_t> length_so_far() const {
    constexpr DecodeOptions any_length{.max_descriptor_bytes = ~std::uint32_t{0}};
    return descriptor_length(std::span(prefix).first(have), any_length);
  }

  void begin_frame() noexcept {
    part = Part::prefix;
    have = 0;
    target = prefix;
  }

  /// Steps 1 to 4 (05-stream.md section 3). The magic is judged before more is waited for.
  Result<void> prefix_came() {
    if (have < magic.size()) return {};
    const auto length = length_so_far();
    if (!length) {
      if (length.error().code == Errc::truncated) return {};
      return bad_prefix(length.error());
    }
    if (*length > options.max_descriptor_bytes)
      return at(frame + 6, {.code = Errc::limit_exceeded,
                            .expect = Expect::at_most,
                            .field = "descriptor_length",
                            .what = "bytes (max_descriptor_bytes)",
                            .expected = options.max_descriptor_bytes,
                            .found = *length});
    descriptor_bytes = *length;
    encoded.assign(prefix.begin(), prefix.end());
    part = Part::descriptor;
    return descriptor_came();
  }

  /// Steps 5 and 6.
  Result<void> descriptor_came() {
    if (have < descriptor_bytes) {
      if (have < encoded.size()) return {};
      encoded.resize(std::min<std::size_t>(descriptor_bytes, std::max(2 * have, descriptor_step)));
      target = std::span(encoded).subspan(have);
      return {};
    }
    auto decoded = decode(encoded, {.max_descriptor_bytes = options.max_descriptor_bytes,
                                    .permissive = options.permissive,
                                    .agreed = options.agreed});
    if (!decoded) return placed(std::move(decoded).error());
    if (const auto* unknown = std::get_if<UnknownLayout>(&decoded->layout)) {
      Error error = placed(hurray::Error{.code = Errc::invalid_tag,
                                         .expect = Expect::as_said,
                                         .field = "layout_tag",
                                         .what = "a known layout, whose buffers can be found",
                                         .found = static_cast<std::uint8_t>(unknown->tag)});
      error.detail += "; a stream cannot be read past it";
      return error;
    }
    if (options.cross_machine.value_or(false))
      if (const auto fault = cross_machine_fault(*decoded)) return at(frame, *fault);
    if (auto fits = check_limits(decoded->buffers); !fits) return fits;
    descriptor = *std::move(decoded);
    if (auto fits = checker.arrive(*descriptor); !fits) return in_composite(fits.error());
    buffers.clear();
    buffers.reserve(descriptor->buffers.size());
    part = Part::buffer;
    have = 0;
    return buffer_came();
  }

  Result<void> check_limits(const BufferTable& table) const {
    std::uint64_t sum = 0;  // at most 2^63 - 1, which decoding has checked
    for (std::size_t i = 0; i < table.size(); ++i) {
      if (options.max_buffer_bytes && table[i].byte_size > *options.max_buffer_bytes)
        return at(frame, {.code = Errc::limit_exceeded,
                          .expect = Expect::at_most,
                          .index = static_cast<std::uint32_t>(i),
                          .field = "buffers[].byte_size",
                          .what = "bytes (max_buffer_bytes)",
                          .expected = *options.max_buffer_bytes,
                          .found = table[i].byte_size});
      sum += table[i].byte_size;
    }
    if (options.max_tensor_bytes && sum > *options.max_tensor_bytes)
      return at(frame, {.code = Errc::limit_exceeded,
                        .expect = Expect::at_most,
                        .field = "buffers",
                        .what = "bytes in all buffers (max_tensor_bytes)",
                        .expected = *options.max_tensor_bytes,
                        .found = sum});
    return {};
  }

  std::uint64_t buffer_bytes() const noexcept {
    return descriptor->buffers[buffers.size()].byte_size;
  }

  /// Step 7. With r bytes there, the memory for them is at most max(64 MiB, 2 r), and never more
  /// than the buffer's size (05-stream.md section 5).
  Result<void> buffer_came() {
    while (buffers.size() < descriptor->buffers.size()) {
      const std::uint64_t size = buffer_bytes();
      if (have < size) {
        if (have < memory.capacity()) return {};
        const std::uint64_t room =
            std::min(size, std::max<std::uint64_t>(Growing::large, 2 * std::uint64_t{have}));
        if (auto grown = memory.grow(room, have); !grown) return grown;
        target = std::span(memory.data(), static_cast<std::size_t>(room)).subspan(have);
        return {};
      }
      buffers.push_back(Growing::share(std::exchange(memory, Growing()), size));
      have = 0;
    }
    return frame_came();
  }

  Result<void> frame_came() {
    auto tensor = bind(*std::exchange(descriptor, std::nullopt), std::move(buffers),
                       {.provenance = Provenance::outside, .permissive = options.permissive});
    if (!tensor) return std::move(tensor).error();
    if (auto whole = checker.complete(); !whole) return in_composite(whole.error());
    frame = arrived;
    if (!checker.open()) ++items;
    complete.push_back(*std::move(tensor));
    begin_frame();
    return {};
  }

  Result<void> commit(std::size_t n) {
    if (n > target.size())
      return at(arrived, {.code = Errc::out_of_bounds,
                          .expect = Expect::at_most,
                          .field = "stream",
                          .what = "bytes that were asked for",
                          .expected = target.size(),
                          .found = n});
    have += n;
    arrived += n;
    target = target.subspan(n);
    switch (part) {
      case Part::prefix:
        return prefix_came();
      case Part::descriptor:
        return descriptor_came();
      case Part::buffer:
        return buffer_came();
    }
    return {};
  }

  Result<void> feed(std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
      const std::size_t n = std::min(bytes.size(), target.size());
      std::memcpy(target.data(), bytes.data(), n);
      bytes = bytes.subspan(n);
      if (auto ok = commit(n); !ok) return ok;
    }
    return {};
  }

  Result<void> end() {
    switch (part) {
      case Part::prefix:
        if (have != 0) return bad_prefix(length_so_far().error());
        break;
      case Part::descriptor:
        return truncated("descriptor_length", descriptor_bytes, have);
      case Part::buffer:
        return truncated({"buffers[].byte_size", buffers.size()}, buffer_bytes(), have);
    }
    if (checker.open()) {
      Error error(at(arrived, checker.torn()));
      if (const std::string where = checker.where(); !where.empty())
        error.detail = "inside " + where;
      if (!options.permissive) return error;
      torn = std::move(error);
    }
    if (options.expected_items && items < *options.expected_items)
      return at(arrived, {.code = Errc::truncated,
                          .expect = Expect::exactly,
                          .field = "expected_items",
                          .what = "tensors",
                          .expected = *options.expected_items,
                          .found = items});
    return {};
  }

  /// What `work` returns; the first failure ends all.
  template <class Work>
  Result<void> sticking(Work work) {
    const bool closed = ended;
    auto done = contain(Origin::stream, [&]() -> Result<void> {
      if (failure) return *failure;
      if (closed)
        return at(
            arrived,
            {.code = Errc::invalid_state, .field = "stream", .what = "the decoder is finished"});
      auto worked = contain(Origin::stream, work);
      if (!worked) failure = worked.error();
      return worked;
    });
    if (!done && !closed) {
      if (!failure) failure.emplace(hurray::Error{.code = Errc::out_of_memory});
      target = {};
    }
    return done;
  }

  StreamReadOptions options;
  CompositeChecker checker;

  Part part = Part::prefix;
  std::size_t have = 0;  ///< Bytes of the part that are there.
  std::array<std::byte, descriptor_prefix_bytes> prefix{};
  std::span<std::byte> target = prefix;
  Bytes encoded;
  std::uint32_t descriptor_bytes = 0;
  std::optional<Descriptor> descriptor;
  std::vector<Buffer> buffers;
  Growing memory;

  std::uint64_t arrived = 0;  ///< Bytes so far.
  std::uint64_t frame = 0;    ///< Where the frame being read begins.
  std::uint64_t items = 0;    ///< Complete items.
  std::deque<Tensor> complete;
  ItemBuilder builder;
  std::deque<Item> left_over;  ///< Complete members of a torn composite.
  std::optional<Error> torn;
  std::optional<Error> failure;
  bool ended = false;
};

StreamDecoder::StreamDecoder(std::unique_ptr<State> state) noexcept : state_(std::move(state)) {}
StreamDecoder::StreamDecoder(StreamDecoder&&) noexcept = default;
StreamDecoder& StreamDecoder::operator=(StreamDecoder&&) noexcept = default;
StreamDecoder::~StreamDecoder() = default;

Result<StreamDecoder> StreamDecoder::create(const StreamReadOptions& options) {
  return contain(Origin::stream, [&]() -> Result<StreamDecoder> {
    return StreamDecoder(std::make_unique<State>(options));
  });
}

std::span<std::byte> StreamDecoder::wanted() const noexcept { return state_->target; }

Result<void> StreamDecoder::commit(std::size_t n) {
  return state_->sticking([&] { return state_->commit(n); });
}

Result<void> StreamDecoder::feed(std::span<const std::byte> bytes) {
  return state_->sticking([&] { return state_->feed(bytes); });
}

Result<void> StreamDecoder::finish() {
  if (state_->ended) return {};
  auto done = state_->sticking([&] { return state_->end(); });
  if (done) {
    state_->ended = true;
    state_->target = {};
  }
  return done;
}

std::optional<Tensor> StreamDecoder::next() {
  if (state_->complete.empty()) return std::nullopt;
  std::optional<Tensor> tensor(std::move(state_->complete.front()));
  state_->complete.pop_front();
  return tensor;
}

std::optional<Item> StreamDecoder::next_item() {
  while (auto tensor = next())
    if (auto item = state_->builder.add(*std::move(tensor))) return item;
  if (!state_->ended) return std::nullopt;
  std::deque<Item>& left_over = state_->left_over;
  for (Item& head : state_->builder.waiting())
    for (Item& member : head.members) left_over.push_back(std::move(member));
  state_->builder.waiting().clear();
  if (left_over.empty()) return std::nullopt;
  std::optional<Item> item(std::move(left_over.front()));
  left_over.pop_front();
  return item;
}

const std::optional<Error>& StreamDecoder::torn() const noexcept { return state_->torn; }

std::uint64_t StreamDecoder::position() const noexcept { return state_->frame; }

}  // namespace hurray::io
