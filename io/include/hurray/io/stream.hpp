#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "hurray/composite.hpp"
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
  /// Tensors inside one outermost composite, judged by what its heads declare.
  std::uint64_t max_item_members = 1u << 20;
  std::uint32_t max_composite_depth = default_composite_depth;  ///< 1 to 64.
  /// A composite counts as one.
  std::optional<std::uint64_t> expected_items = {};
  /// None: on for IPv4 and IPv6 sockets, off for everything else (05-stream.md S3).
  std::optional<bool> cross_machine = {};
  /// The longest wait for the next bytes of a descriptor; exceeded, the read ends as a `system`
  /// error with ETIMEDOUT.
  std::optional<std::chrono::milliseconds> read_timeout = {};
  bool permissive = false;  ///< As in `DecodeOptions`.
  Agreed agreed = {};       ///< As in `DecodeOptions`; its lists live as long as the reader.
  /// Asked at least once a second while waiting for bytes; true ends the read as a `system` error
  /// with EINTR. For signals.
  std::function<bool()> interrupted = {};
};

/// Reads tensors or whole items one after the other (05-stream.md sections 2 to 4). Every buffer is
/// received into own memory on 64 that grows with the bytes that arrived. A member's rules are
/// judged before its data is waited for, those of a composite at its last member, whichever way it
/// is read. After a failure or the end the reader is exhausted. Move-only; one thread at a time.
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

  /// The next tensor; none at the clean end, and again after it. Composite heads come as tensors
  /// without buffers, before their members.
  Result<std::optional<Tensor>> next();
  /// The next item: a composite comes with all of its members. After `next` returned a head, the
  /// items are its members. In permissive mode the complete members of a torn composite come one by
  /// one, and `torn` says so.
  Result<std::optional<Item>> next_item();
  /// The input ended inside a composite, as permissive mode lets it: the error that is raised
  /// otherwise, with the declared (`expected`) and received (`found`) members of the innermost
  /// head.
  const std::optional<Error>& torn() const noexcept;
  /// Bytes of the frames read so far: where the next one starts, from where reading began.
  std::uint64_t position() const noexcept;
  /// Gives the descriptor back; the reader is exhausted, not broken.
  void close() noexcept;

 private:
  struct State;
  static Result<StreamReader> made(Result<std::unique_ptr<State>> state);
  explicit StreamReader(std::unique_ptr<State> state) noexcept;
  std::unique_ptr<State> state_;
};

struct StreamWriteOptions {
  std::optional<bool> cross_machine = {};  ///< As in `StreamReadOptions`.
  bool sync = true;                        ///< Over a path: wait for the disk at `finish`.
  /// The longest wait until a socket, or a descriptor that does not block, takes the next bytes;
  /// exceeded, the write ends as a `system` error with ETIMEDOUT.
  std::optional<std::chrono::milliseconds> write_timeout = {};
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

  /// A refusal (descriptor, sizes, cross-machine rule, a composite's rules) writes nothing and
  /// leaves the writer usable. What follows a composite head is its members.
  Result<void> write(const Descriptor& descriptor, std::span<const BufferSource> buffers);
  /// A plain tensor, or a head with all of its members; the whole tree is judged before the first
  /// byte. Descriptors are written in their wire form (`Tensor::wire_descriptor`). Fails as
  /// `unsupported` for memory that is not the host's.
  Result<void> write_item(const Item& item);
  /// Idempotent; afterwards `write` fails as `invalid_state`. So does this while a composite waits
  /// for members, after which they can still be written.
  Result<void> finish();
  /// What has been written in memory so far; empty over a destination.
  std::span<const std::byte> bytes() const noexcept;

 private:
  struct State;
  explicit StreamWriter(std::unique_ptr<State> state) noexcept;
  std::unique_ptr<State> state_;
};

}  // namespace hurray::io
