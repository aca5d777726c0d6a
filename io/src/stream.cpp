#include "hurray/io/stream.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <new>
#include <utility>

#include "buffer_source.hpp"
#include "growing.hpp"
#include "hurray/checked.hpp"
#include "hurray/io/stream_decoder.hpp"
#include "items.hpp"
#include "output.hpp"
#include "patience.hpp"
#include "stream_rules.hpp"
#include "system.hpp"

namespace hurray::io {
namespace {

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
      auto count =
          system::read_some(handle_.number(), into, interrupted, system::deadline_in(timeout));
      if (count) return *count;
      const bool late = count.error() == system::timed_out();
      Error error = system::to_error(count.error(), late ? Origin::stream : Origin::file, {});
      if (late)
        error.detail = "no byte came within the time limit (read_timeout, or the socket's own)";
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

}  // namespace

struct StreamReader::State {
  State(Source bytes, std::string source_path, StreamDecoder stream_decoder,
        const StreamReadOptions& read_options)
      : source(std::move(bytes)),
        path(std::move(source_path)),
        decoder(std::move(stream_decoder)),
        timeout(read_options.read_timeout),
        patience(read_options.interrupted),
        question(patience.question()) {}

  static Result<std::unique_ptr<State>> make(Source bytes, std::string source_path,
                                             StreamReadOptions options, bool between_machines) {
    options.cross_machine = options.cross_machine.value_or(between_machines);
    auto decoder = StreamDecoder::create(options);
    if (!decoder) return std::move(decoder).error();
    return std::make_unique<State>(std::move(bytes), std::move(source_path), *std::move(decoder),
                                   options);
  }

  void close() noexcept {
    exhausted = true;
    source = Source();
  }

  /// Brings bytes until `take` finds something in the decoder; none at the clean end.
  template <class Take>
  auto read_until(Take take) -> Result<decltype(take(std::declval<StreamDecoder&>()))> {
    for (;;) {
      if (auto taken = take(decoder)) return taken;
      if (exhausted) return decltype(take(decoder))();
      const auto room = decoder.wanted();
      const auto count =
          source.read_some(room.first(std::min(room.size(), longest_read)), question, timeout);
      if (!count) return count.error();
      if (auto ok = *count != 0 ? decoder.commit(*count) : decoder.finish(); !ok)
        return std::move(ok).error();
      if (*count == 0)
        close();
      else if (patience.ended())
        return system::to_error(system::stopped(), Origin::file, {});
    }
  }

  /// What `read_until` returns; a failure is the end of reading.
  template <class Take>
  auto next(Take take) {
    auto result = contain(Origin::stream, [&] {
      auto done = read_until(take);
      if (done) return done;
      Error error = std::move(done).error();
      error.path = path;
      return decltype(done)(std::move(error));
    });
    if (!result) {
      close();
      failed = true;
    }
    return result;
  }

  Source source;
  std::string path;
  StreamDecoder decoder;
  std::optional<std::chrono::milliseconds> timeout;
  bool exhausted = false;
  bool failed = false;  ///< Or closed: nothing that is left is given out.
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
    return made(State::make(Source(*std::move(handle)), std::move(path), options, false));
  });
}

Result<StreamReader> StreamReader::over(int descriptor, const StreamReadOptions& options) {
  return contain(Origin::file, [&]() -> Result<StreamReader> {
    auto handle = system::duplicate(descriptor);
    if (!handle) return system::to_error(handle.error(), Origin::file, {});
    return made(State::make(Source(*std::move(handle)), {}, options,
                            system::is_internet_socket(descriptor)));
  });
}

Result<StreamReader> StreamReader::over(std::span<const std::byte> bytes,
                                        const StreamReadOptions& options) {
  return contain(Origin::stream,
                 [&] { return made(State::make(Source(bytes), {}, options, false)); });
}

Result<StreamReader> StreamReader::over(ReadFunction read, const StreamReadOptions& options) {
  return contain(Origin::stream,
                 [&] { return made(State::make(Source(std::move(read)), {}, options, false)); });
}

Result<StreamReader> StreamReader::made(Result<std::unique_ptr<State>> state) {
  if (!state) return std::move(state).error();
  return StreamReader(*std::move(state));
}

Result<std::optional<Tensor>> StreamReader::next() {
  if (state_->failed) return std::optional<Tensor>();
  return state_->next([](StreamDecoder& decoder) { return decoder.next(); });
}

Result<std::optional<Item>> StreamReader::next_item() {
  if (state_->failed) return std::optional<Item>();
  return state_->next([](StreamDecoder& decoder) { return decoder.next_item(); });
}

const std::optional<Error>& StreamReader::torn() const noexcept { return state_->decoder.torn(); }

std::uint64_t StreamReader::position() const noexcept { return state_->decoder.position(); }

void StreamReader::close() noexcept {
  state_->close();
  state_->failed = true;
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
        timeout(write_options.write_timeout),
        patience(write_options.interrupted),
        question(patience.question()) {}

  Result<void> usable() const {
    if (phase == Phase::open) return {};
    Error error = at_nowhere(
        {.code = Errc::invalid_state,
         .field = "stream",
         .what = phase == Phase::finished ? "the writer is finished" : "an earlier write failed"});
    error.detail = failure;
    return error;
  }

  /// `result` of writing: a failure in the middle of it ends everything.
  Result<void> settled(Result<void> result) {
    if (!result && phase == Phase::failed && failure.empty()) {
      failure = "it was: " + to_string(result.error());
      output.reset();
    }
    return result;
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
      if (auto written = output->write(parts, question, timeout); !written) return written;
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
  std::optional<std::chrono::milliseconds> timeout;
  Phase phase = Phase::open;
  std::string failure = {};  ///< What the first one said.
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
  return state_->settled(
      contain(Origin::stream, [&] { return state_->write(descriptor, buffers); }));
}

Result<void> StreamWriter::write_item(const Item& item) {
  return state_->settled(contain(Origin::stream, [&] { return state_->write_item(item); }));
}

Result<void> StreamWriter::finish() {
  return state_->settled(contain(Origin::stream, [&] { return state_->finish(); }));
}

std::span<const std::byte> StreamWriter::bytes() const noexcept {
  return {state_->memory.data(), static_cast<std::size_t>(state_->size)};
}

}  // namespace hurray::io
