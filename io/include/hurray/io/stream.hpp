#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "hurray/descriptor.hpp"
#include "hurray/io/buffer_source.hpp"
#include "hurray/io/error.hpp"
#include "hurray/io/key_values.hpp"
#include "hurray/tensor.hpp"

namespace hurray::io {

/// Bytes that come from a function instead of a descriptor (a TLS connection): puts some at the
/// front of `out` (never empty) and returns how many; 0 at the end of input. Waiting, signals and
/// time limits are its own affair; its errors are passed on.
using ReadFunction = std::function<Result<std::size_t>(std::span<std::byte> out)>;
/// Takes all of `bytes`.
using WriteFunction = std::function<Result<void>(std::span<const std::byte> bytes)>;

struct StreamReadOptions {
  std::uint32_t max_descriptor_bytes = 16u << 20;
  std::optional<std::uint64_t> max_buffer_bytes = {};
  std::optional<std::uint64_t> max_tensor_bytes = {};
  std::optional<std::uint64_t> expected_items = {};
  /// None: on for IPv4 and IPv6 sockets, off for everything else (05-stream.md S3).
  std::optional<bool> cross_machine = {};
  /// The longest wait for the next bytes of a descriptor; exceeded, the read ends as a `system`
  /// error with ETIMEDOUT.
  std::optional<std::chrono::milliseconds> read_timeout = {};
  bool private_memory_classes = false;  ///< As in `DecodeOptions`.
  /// Asked at least once a second while waiting for bytes; true ends the read as a `system` error
  /// with EINTR. For signals.
  std::function<bool()> interrupted = {};
};

/// Reads tensors one after the other (05-stream.md section 2). Every buffer is received into own
/// memory on 64 that grows with the bytes that arrived. After a failure or the end it is exhausted.
/// Move-only; one thread at a time.
class HURRAY_EXPORT StreamReader {
 public:
  /// Over a path, read from its start.
  static Result<StreamReader> open(std::string path, const StreamReadOptions& options = {});
  /// Over an open descriptor, which is duplicated and read from its position on; blocking or not.
  static Result<StreamReader> over(int descriptor, const StreamReadOptions& options = {});
  /// Over bytes that the caller keeps alive.
  static Result<StreamReader> over(std::span<const std::byte> bytes,
                                   const StreamReadOptions& options = {});
  static Result<StreamReader> over(ReadFunction read, const StreamReadOptions& options = {});

  StreamReader(StreamReader&&) noexcept;
  StreamReader& operator=(StreamReader&&) noexcept;
  ~StreamReader();

  /// The next tensor; none at the clean end, and again after it.
  Result<std::optional<Tensor>> next();
  /// Bytes of the frames read so far: where the next one starts, from where reading began.
  std::uint64_t position() const noexcept;
  /// Gives the descriptor back; the reader is exhausted, not broken.
  void close() noexcept;

 private:
  struct State;
  explicit StreamReader(std::unique_ptr<State> state) noexcept;
  std::unique_ptr<State> state_;
};

struct StreamWriteOptions {
  std::optional<bool> cross_machine = {};  ///< As in `StreamReadOptions`.
  bool sync = true;                        ///< Over a path: wait for the disk at `finish`.
  std::function<bool()> interrupted = {};  ///< As in `StreamReadOptions`.
};

/// Writes tensors one after the other, straight from the caller's memory. Over a path it behaves as
/// `FileWriter` does: the target is replaced at `finish`, and nothing appears without it.
/// Move-only; one thread at a time.
class HURRAY_EXPORT StreamWriter {
 public:
  static Result<StreamWriter> create(std::string path, const StreamWriteOptions& options = {});
  /// Over an open descriptor, which is duplicated.
  static Result<StreamWriter> over(int descriptor, const StreamWriteOptions& options = {});
  static Result<StreamWriter> over(WriteFunction write, const StreamWriteOptions& options = {});
  static Result<StreamWriter> in_memory(const StreamWriteOptions& options = {});

  StreamWriter(StreamWriter&&) noexcept;
  StreamWriter& operator=(StreamWriter&&) noexcept;
  ~StreamWriter();

  /// A refusal (descriptor, sizes, cross-machine rule) writes nothing and leaves the writer usable.
  Result<void> write(const Descriptor& descriptor, std::span<const BufferSource> buffers);
  /// Idempotent; afterwards `write` fails as `invalid_state`.
  Result<void> finish();
  /// What has been written in memory so far; empty over a destination.
  std::span<const std::byte> bytes() const noexcept;

 private:
  struct State;
  explicit StreamWriter(std::unique_ptr<State> state) noexcept;
  std::unique_ptr<State> state_;
};

}  // namespace hurray::io
