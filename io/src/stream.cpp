#include "hurray/io/stream.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <deque>
#include <new>
#include <string_view>
#include <utility>

#include "buffer_source.hpp"
#include "growing.hpp"
#include "hurray/checked.hpp"
#include "items.hpp"
#include "output.hpp"
#include "patience.hpp"
#include "system.hpp"

namespace hurray::io {
namespace {

hurray::Error at(std::uint64_t offset, hurray::Error error) noexcept {
  error.origin = Origin::stream;
  error.offset = offset;
  return error;
}

hurray::Error at_nowhere(hurray::Error error) noexcept {
  return at(hurray::Error::no_offset, error);
}

/// Events and device streams mean nothing on another machine (05-stream.md section 6).
std::optional<hurray::Error> cross_machine_fault(const Descriptor& descriptor) noexcept {
  for (std::size_t i = 0; i < descriptor.buffers.size(); ++i) {
    const SyncMode mode = descriptor.buffers[i].sync_mode;
    if (mode != SyncMode::producer_synced)
      return hurray::Error{.code = Errc::inconsistent,
                           .expect = Expect::exactly,
                           .index = static_cast<std::uint32_t>(i),
                           .field = "buffers[].sync_mode",
                           .what = "(producer_synced) between machines",
                           .expected = static_cast<std::uint64_t>(SyncMode::producer_synced),
                           .found = static_cast<std::uint64_t>(mode)};
  }
  return std::nullopt;
}

// ------------------------------------------------------------------------------------------
// reading

/// What begins with `prefix`, which no descriptor of ours does, in words for a person.
std::string describe_foreign_start(Errc code, std::span<const std::byte> prefix) {
  constexpr std::string_view file_magic = "HRRYFILE";
  const std::string_view text(reinterpret_cast<const char*>(prefix.data()), prefix.size());
  if (text.size() > magic.size() && file_magic.starts_with(text.substr(0, file_magic.size())))
    return "this is a .hrry file and no stream: open it as a file";
  if (code != Errc::invalid_magic) return {};
  return "this begins with \"" + printable(text) + "\": no tensor begins so";
}

/// A descriptor that is read front to back, a function, or bytes.
class Source {
 public:
  Source() = default;
  explicit Source(system::Handle handle) noexcept : handle_(std::move(handle)) {}
  explicit Source(ReadFunction read) noexcept : read_(std::move(read)) {}
  explicit Source(std::span<const std::byte> bytes) noexcept : bytes_(bytes) {}

  /// At least one byte unless the input ends (0).
  Result<std::size_t> read_some(std::span<std::byte> into, const system::Interrupted& interrupted,
                                const std::optional<std::chrono::milliseconds>& timeout) {
    if (read_) return read_(into);
    if (handle_) {
      const auto deadline =
          timeout ? std::chrono::steady_clock::now() + *timeout : system::Deadline::max();
      auto count = system::read_some(handle_.number(), into, interrupted, deadline);
      if (count) return *count;
      const bool late = count.error() == system::timed_out();
      Error error = system::to_error(count.error(), late ? Origin::stream : Origin::file, {});
      if (late) error.detail = "no byte came within read_timeout";
      return error;
    }
    const std::size_t size = std::min(into.size(), bytes_.size());
    if (size != 0) std::memcpy(into.data(), bytes_.data(), size);
    bytes_ = bytes_.subspan(size);
    return size;
  }

 private:
  system::Handle handle_;
  ReadFunction read_;
  std::span<const std::byte> bytes_;
};

/// The most that one call asks for, so that somebody who waits is asked now and then.
constexpr std::size_t longest_read = 64u << 20;

/// Room that an unfinished descriptor may take beyond what arrived of it.
constexpr std::size_t descriptor_step = 4096;

}  // namespace

struct StreamReader::State {
  State(Source bytes, std::string source_path, const StreamReadOptions& read_options,
        bool between_machines)
      : source(std::move(bytes)),
        path(std::move(source_path)),
        options(read_options),
        cross_machine(read_options.cross_machine.value_or(between_machines)),
        checker({.max_depth = read_options.max_composite_depth,
                 .max_members = read_options.max_item_members,
                 .permissive = read_options.permissive}),
        patience(read_options.interrupted),
        question(patience.question()) {}

  void close() noexcept {
    exhausted = true;
    source = Source();
  }

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

  /// Fills `into`; fewer bytes only where the input ends.
  Result<std::size_t> read(std::span<std::byte> into) {
    std::size_t done = 0;
    while (done < into.size()) {
      const auto room = into.subspan(done, std::min(into.size() - done, longest_read));
      const auto count = source.read_some(room, question, options.read_timeout);
      if (!count) return count.error();
      if (*count == 0) break;
      done += *count;
      arrived += *count;
      if (patience.ended()) return system::to_error(system::stopped(), Origin::file, {});
    }
    return done;
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

  /// Steps 1 to 4: the length of a descriptor whose first bytes go to `prefix`; none at the clean
  /// end. The magic is judged before more is waited for.
  Result<std::optional<std::uint32_t>> read_length(std::span<std::byte> prefix) {
    constexpr DecodeOptions any_length{.max_descriptor_bytes = ~std::uint32_t{0}};
    const auto first = read(prefix.first(magic.size()));
    if (!first) return first.error();
    if (*first == 0) return std::optional<std::uint32_t>();
    std::size_t size = *first;
    auto length = descriptor_length(prefix.first(size), any_length);
    if (size == magic.size() && !length && length.error().code == Errc::truncated) {
      const auto rest = read(prefix.subspan(size));
      if (!rest) return rest.error();
      size += *rest;
      length = descriptor_length(prefix.first(size), any_length);
    }
    if (!length) return bad_prefix(length.error(), prefix.first(size));
    if (*length > options.max_descriptor_bytes)
      return at(frame + 6, {.code = Errc::limit_exceeded,
                            .expect = Expect::at_most,
                            .field = "descriptor_length",
                            .what = "bytes (max_descriptor_bytes)",
                            .expected = options.max_descriptor_bytes,
                            .found = *length});
    return std::optional(*length);
  }

  Error bad_prefix(const hurray::Error& error, std::span<const std::byte> prefix) const {
    if (error.code == Errc::truncated)
      return truncated(error.field, descriptor_prefix_bytes, prefix.size());
    return {at(frame + error.offset, error), {}, {}, describe_foreign_start(error.code, prefix)};
  }

  /// Steps 1 to 6; none at the clean end.
  Result<std::optional<Descriptor>> read_descriptor() {
    Bytes encoded(descriptor_prefix_bytes);
    const auto length = read_length(encoded);
    if (!length) return length.error();
    if (!*length) return std::optional<Descriptor>();
    for (std::size_t have = encoded.size(); have < **length; have = encoded.size()) {
      encoded.resize(std::min<std::size_t>(**length, std::max(2 * have, descriptor_step)));
      const auto count = read(std::span(encoded).subspan(have));
      if (!count) return count.error();
      if (have + *count < encoded.size())
        return truncated("descriptor_length", **length, have + *count);
    }
    auto descriptor = decode(encoded, {.max_descriptor_bytes = options.max_descriptor_bytes,
                                       .permissive = options.permissive,
                                       .agreed = options.agreed});
    if (!descriptor) return placed(std::move(descriptor).error());
    if (const auto* unknown = std::get_if<UnknownLayout>(&descriptor->layout)) {
      Error error = placed(hurray::Error{.code = Errc::invalid_tag,
                                         .expect = Expect::as_said,
                                         .field = "layout_tag",
                                         .what = "a known layout, whose buffers can be found",
                                         .found = static_cast<std::uint8_t>(unknown->tag)});
      error.detail += "; a stream cannot be read past it";
      return error;
    }
    if (cross_machine)
      if (const auto fault = cross_machine_fault(*descriptor)) return at(frame, *fault);
    if (auto fits = check_limits(descriptor->buffers); !fits) return fits.error();
    return std::optional(*std::move(descriptor));
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

  /// Step 7. With r bytes there, the memory for them is at most max(64 MiB, 2 r), and never more
  /// than `size` (05-stream.md section 5).
  Result<Buffer> read_buffer(std::size_t i, std::uint64_t size) {
    Growing memory;
    for (std::uint64_t have = 0; have < size; have = memory.capacity()) {
      const std::uint64_t room = std::min(size, std::max(Growing::large, 2 * have));
      if (auto grown = memory.grow(room, have); !grown) return grown.error();
      const std::span<std::byte> all(memory.data(), static_cast<std::size_t>(room));
      const auto count = read(all.subspan(static_cast<std::size_t>(have)));
      if (!count) return count.error();
      if (have + *count < room) return truncated({"buffers[].byte_size", i}, size, have + *count);
    }
    return Growing::share(std::move(memory), size);
  }

  Result<std::optional<Tensor>> read_frame() {
    auto descriptor = read_descriptor();
    if (!descriptor) return std::move(descriptor).error();
    if (!*descriptor) {
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
      return std::optional<Tensor>();
    }
    if (auto fits = checker.arrive(**descriptor); !fits) return in_composite(fits.error());
    std::vector<Buffer> buffers;
    buffers.reserve((*descriptor)->buffers.size());
    for (std::size_t i = 0; i < (*descriptor)->buffers.size(); ++i) {
      auto buffer = read_buffer(i, (*descriptor)->buffers[i].byte_size);
      if (!buffer) return std::move(buffer).error();
      buffers.push_back(*std::move(buffer));
    }
    auto tensor = bind(**std::move(descriptor), std::move(buffers),
                       {.provenance = Provenance::outside, .permissive = options.permissive});
    if (!tensor) return std::move(tensor).error();
    if (auto whole = checker.complete(); !whole) return in_composite(whole.error());
    frame = arrived;
    if (!checker.open()) ++items;
    return std::optional(*std::move(tensor));
  }

  Result<std::optional<Item>> read_item() {
    ItemBuilder builder;
    for (;;) {
      auto tensor = read_frame();
      if (!tensor) return std::move(tensor).error();
      if (!*tensor) break;
      if (auto item = builder.add(**std::move(tensor))) return item;
    }
    for (Item& head : builder.waiting())
      for (Item& member : head.members) left_over.push_back(std::move(member));
    return std::optional<Item>();
  }

  std::optional<Item> next_left_over() noexcept {
    if (left_over.empty()) return std::nullopt;
    std::optional<Item> item(std::move(left_over.front()));
    left_over.pop_front();
    return item;
  }

  /// What `read` returns, and the end of reading where it returns nothing.
  template <class Read>
  auto end_with(Read read) {
    auto result = contain(Origin::stream, [&] {
      auto done = read();
      if (done) return done;
      Error error = std::move(done).error();
      error.path = path;
      return decltype(done)(std::move(error));
    });
    if (!result || !*result) close();
    return result;
  }

  Source source;
  std::string path;
  StreamReadOptions options;
  bool cross_machine;
  bool exhausted = false;
  std::uint64_t arrived = 0;  ///< Bytes read.
  std::uint64_t frame = 0;    ///< Where the frame being read begins.
  std::uint64_t items = 0;    ///< Complete items.
  CompositeChecker checker;
  std::deque<Item> left_over;  ///< Complete members of a torn composite.
  std::optional<Error> torn;
  Patience patience;
  system::Interrupted question;
};

StreamReader::StreamReader(std::unique_ptr<State> state) noexcept : state_(std::move(state)) {}
StreamReader::StreamReader(StreamReader&&) noexcept = default;
StreamReader& StreamReader::operator=(StreamReader&&) noexcept = default;
StreamReader::~StreamReader() = default;

Result<StreamReader> StreamReader::open(std::string path, const StreamReadOptions& options) {
  return contain(Origin::file, [&]() -> Result<StreamReader> {
    auto handle = system::open_to_read(path, options.interrupted);
    if (!handle) return system::to_error(handle.error(), Origin::file, std::move(path));
    const auto status = system::status(handle->number());
    if (!status) return system::to_error(status.error(), Origin::file, std::move(path));
    if (status->kind == system::Kind::folder)
      return system::to_error({.number = EISDIR, .call = "open"}, Origin::file, std::move(path));
    return StreamReader(
        std::make_unique<State>(Source(*std::move(handle)), std::move(path), options, false));
  });
}

Result<StreamReader> StreamReader::over(int descriptor, const StreamReadOptions& options) {
  return contain(Origin::file, [&]() -> Result<StreamReader> {
    auto handle = system::duplicate(descriptor);
    if (!handle) return system::to_error(handle.error(), Origin::file, {});
    const bool between_machines = system::is_internet_socket(descriptor);
    return StreamReader(std::make_unique<State>(Source(*std::move(handle)), std::string(), options,
                                                between_machines));
  });
}

Result<StreamReader> StreamReader::over(std::span<const std::byte> bytes,
                                        const StreamReadOptions& options) {
  return contain(Origin::stream, [&]() -> Result<StreamReader> {
    return StreamReader(std::make_unique<State>(Source(bytes), std::string(), options, false));
  });
}

Result<StreamReader> StreamReader::over(ReadFunction read, const StreamReadOptions& options) {
  return contain(Origin::stream, [&]() -> Result<StreamReader> {
    return StreamReader(
        std::make_unique<State>(Source(std::move(read)), std::string(), options, false));
  });
}

Result<std::optional<Tensor>> StreamReader::next() {
  if (state_->exhausted) return std::optional<Tensor>();
  return state_->end_with([&] { return state_->read_frame(); });
}

Result<std::optional<Item>> StreamReader::next_item() {
  if (state_->exhausted) return state_->next_left_over();
  auto item = state_->end_with([&] { return state_->read_item(); });
  if (item && !*item) return state_->next_left_over();
  return item;
}

const std::optional<Error>& StreamReader::torn() const noexcept { return state_->torn; }

std::uint64_t StreamReader::position() const noexcept { return state_->frame; }

void StreamReader::close() noexcept {
  state_->close();
  state_->left_over.clear();
}

// ------------------------------------------------------------------------------------------
// writing

struct StreamWriter::State {
  enum class Phase : std::uint8_t { open, finished, failed };

  State(std::optional<Output> destination, const StreamWriteOptions& write_options, bool in_place)
      : output(std::move(destination)),
        cross_machine(write_options.cross_machine.value_or(
            output && system::is_internet_socket(output->descriptor()))),
        sync(write_options.sync && !in_place),
        patience(write_options.interrupted),
        question(patience.question()) {}

  Result<void> usable() const {
    if (phase == Phase::open) return {};
    return at_nowhere(
        {.code = Errc::invalid_state,
         .field = "stream",
         .what = phase == Phase::finished ? "the writer is finished" : "an earlier write failed"});
  }

  Result<void> check(const Descriptor& descriptor, std::span<const BufferSource> buffers) const {
    if (buffers.size() != descriptor.buffers.size())
      return at_nowhere({.code = Errc::inconsistent,
                         .expect = Expect::exactly,
                         .field = "buffer_count",
                         .expected = descriptor.buffers.size(),
                         .found = buffers.size()});
    for (std::size_t i = 0; i < buffers.size(); ++i)
      if (buffers[i].size() != descriptor.buffers[i].byte_size)
        return at_nowhere({.code = Errc::length_mismatch,
                           .expect = Expect::exactly,
                           .index = static_cast<std::uint32_t>(i),
                           .field = "buffers[].byte_size",
                           .what = "bytes",
                           .expected = descriptor.buffers[i].byte_size,
                           .found = buffers[i].size()});
    if (cross_machine)
      if (const auto fault = cross_machine_fault(descriptor)) return at_nowhere(*fault);
    return {};
  }

  struct Frame {
    Bytes descriptor;
    std::span<const BufferSource> buffers;
  };

  Result<Frame> frame(const Descriptor& descriptor, std::span<const BufferSource> buffers) const {
    if (auto valid = check(descriptor, buffers); !valid) return valid.error();
    auto encoded = encode(descriptor);
    if (!encoded) return encoded.error();
    return Frame{*std::move(encoded), buffers};
  }

  /// Makes all of the frames' memory certain, so that a failure leaves nothing half-written.
  Result<void> prepare(std::span<const Frame> frames) {
    parts.clear();
    std::size_t count = 0;
    auto end = std::optional(size);
    for (const Frame& frame : frames) {
      count += 1 + frame.buffers.size();
      end = end ? checked_add<std::uint64_t>(*end, frame.descriptor.size()) : end;
      for (const BufferSource& buffer : frame.buffers) {
        if (auto ready = scratch.prepare(buffer); !ready) return ready.error();
        end = end ? checked_add(*end, buffer.size()) : end;
      }
    }
    parts.reserve(count);
    if (output || function) return {};
    if (!end) throw std::bad_alloc();
    if (*end <= memory.capacity()) return {};
    return memory.grow(std::max(*end, 2 * memory.capacity()), size);
  }

  Result<void> put(std::span<const std::byte> part, bool at_once) {
    parts.push_back(part);
    return at_once ? flush() : Result<void>();
  }

  Result<void> flush() {
    if (output) {
      if (auto written = output->write(parts, question); !written) return written;
    } else if (function) {
      for (const auto part : parts) {
        if (part.empty()) continue;
        if (auto written = function(part); !written) return written;
      }
    } else {
      for (const auto part : parts) {
        if (!part.empty()) std::memcpy(memory.data() + size, part.data(), part.size());
        size += part.size();
      }
    }
    parts.clear();
    return {};
  }

  Result<void> put(std::span<const Frame> frames) {
    phase = Phase::failed;  // unless all of it gets out
    for (const Frame& frame : frames) {
      if (auto written = put(frame.descriptor, false); !written) return written;
      for (const BufferSource& buffer : frame.buffers) {
        auto written = scratch.for_each_piece(buffer, [&](std::span<const std::byte> piece) {
          return put(piece, buffer.converted());
        });
        if (!written) return written;
      }
    }
    if (auto written = flush(); !written) return written;
    phase = Phase::open;
    return {};
  }

  Result<void> write(const Descriptor& descriptor, std::span<const BufferSource> buffers) {
    if (auto open = usable(); !open) return open;
    const auto encoded = frame(descriptor, buffers);
    if (!encoded) return encoded.error();
    if (auto ready = prepare({&*encoded, 1}); !ready) return ready;
    if (auto fits = checker.add(descriptor); !fits) return inside(fits.error(), checker);
    return put({&*encoded, 1});
  }

  Result<void> write_item(const Item& item) {
    if (auto open = usable(); !open) return open;
    CompositeChecker trial = checker.trial();
    std::vector<std::vector<BufferSource>> buffers;
    std::vector<Frame> frames;
    Result<void> valid;
    for_each_item(item, [&](const Item& part, std::span<const std::size_t> path) {
      valid = [&]() -> Result<void> {
        if (auto fits = trial.add(part, path); !fits) return inside(fits.error(), trial);
        auto sources = sources_of(part.tensor);
        if (!sources) return sources.error();
        buffers.push_back(*std::move(sources));
        auto encoded = frame(part.tensor.wire_descriptor(), buffers.back());
        if (!encoded) return encoded.error();
        frames.push_back(*std::move(encoded));
        return {};
      }();
      return valid.has_value();
    });
    if (!valid) return valid;
    if (auto ready = prepare(frames); !ready) return ready;
    checker.adopt(std::move(trial));
    return put(frames);
  }

  Result<void> finish() {
    if (phase == Phase::finished) return {};
    if (auto open = usable(); !open) return open;
    if (checker.open()) return unfinished(checker, Origin::stream);
    phase = Phase::failed;
    if (output)
      if (auto committed = output->commit(sync); !committed) return committed;
    phase = Phase::finished;
    return {};
  }

  std::optional<Output> output;
  WriteFunction function;
  Growing memory;          ///< Where there is neither.
  std::uint64_t size = 0;  ///< Bytes in `memory`.
  bool cross_machine;
  bool sync;
  Phase phase = Phase::open;
  CompositeChecker checker{{.writing = true}};
  std::vector<std::span<const std::byte>> parts;
  Scratch scratch;
  Patience patience;
  system::Interrupted question;
};

StreamWriter::StreamWriter(std::unique_ptr<State> state) noexcept : state_(std::move(state)) {}
StreamWriter::StreamWriter(StreamWriter&&) noexcept = default;
StreamWriter& StreamWriter::operator=(StreamWriter&&) noexcept = default;
StreamWriter::~StreamWriter() = default;

Result<StreamWriter> StreamWriter::create(std::string path, const StreamWriteOptions& options) {
  return contain(Origin::file, [&]() -> Result<StreamWriter> {
    auto output = Output::create(std::move(path), Origin::file, 0, options.interrupted);
    if (!output) return std::move(output).error();
    return StreamWriter(std::make_unique<State>(*std::move(output), options, false));
  });
}

Result<StreamWriter> StreamWriter::over(int descriptor, const StreamWriteOptions& options) {
  return contain(Origin::file, [&]() -> Result<StreamWriter> {
    auto output = Output::over(descriptor, Origin::file);
    if (!output) return std::move(output).error();
    return StreamWriter(std::make_unique<State>(*std::move(output), options, true));
  });
}

Result<StreamWriter> StreamWriter::over(WriteFunction write, const StreamWriteOptions& options) {
  return contain(Origin::stream, [&]() -> Result<StreamWriter> {
    auto state = std::make_unique<State>(std::nullopt, options, true);
    state->function = std::move(write);
    return StreamWriter(std::move(state));
  });
}

Result<StreamWriter> StreamWriter::in_memory(const StreamWriteOptions& options) {
  return contain(Origin::stream, [&]() -> Result<StreamWriter> {
    return StreamWriter(std::make_unique<State>(std::nullopt, options, true));
  });
}

Result<void> StreamWriter::write(const Descriptor& descriptor,
                                 std::span<const BufferSource> buffers) {
  auto written = contain(Origin::stream, [&] { return state_->write(descriptor, buffers); });
  if (state_->phase == State::Phase::failed) state_->output.reset();
  return written;
}

Result<void> StreamWriter::write_item(const Item& item) {
  auto written = contain(Origin::stream, [&] { return state_->write_item(item); });
  if (state_->phase == State::Phase::failed) state_->output.reset();
  return written;
}

Result<void> StreamWriter::finish() {
  return contain(Origin::stream, [&] { return state_->finish(); });
}

std::span<const std::byte> StreamWriter::bytes() const noexcept {
  return {state_->memory.data(), static_cast<std::size_t>(state_->size)};
}

}  // namespace hurray::io
