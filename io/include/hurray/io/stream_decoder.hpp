#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "hurray/composite.hpp"
#include "hurray/io/error.hpp"
#include "hurray/io/stream.hpp"
#include "hurray/tensor.hpp"

namespace hurray::io {

/// Tensors and items out of a stream's bytes, whoever brings them and in whatever pieces
/// (05-stream.md sections 2 to 6). It does no I/O and never waits: for event loops, HTTP bodies and
/// connections of one's own. `StreamReader` is this with a descriptor in front.
///
///     while (decoder.finish() is still to come) {
///       n = recv(fd, decoder.wanted());      // straight to where the bytes stay
///       decoder.commit(n);
///       while (auto item = decoder.next_item()) use(*item);
///     }
///
/// Every buffer is own memory on 64 that grows with the bytes that arrived. The first failure
/// sticks: what was complete before it can still be taken, and every later call fails in the same
/// way. Move-only; one thread at a time.
class HURRAY_EXPORT StreamDecoder {
 public:
  /// Of `options`, `read_timeout` and `interrupted` mean nothing here, and without `cross_machine`
  /// the rule is off.
  static Result<StreamDecoder> create(const StreamReadOptions& options = {});

  StreamDecoder(StreamDecoder&&) noexcept;
  StreamDecoder& operator=(StreamDecoder&&) noexcept;
  ~StreamDecoder();

  /// Where the next bytes of the stream belong, at most to the end of the frame that they are part
  /// of; some of them can be brought now and the rest later. Valid until the next call. Empty only
  /// after a failure or `finish`.
  std::span<std::byte> wanted() const noexcept;
  /// The first `n` bytes of `wanted()` have been put there; more of them than there is room for
  /// are `out_of_bounds`.
  Result<void> commit(std::size_t n);
  /// Copies `bytes`, any number of them, to where they belong.
  Result<void> feed(std::span<const std::byte> bytes);
  /// The bytes end here: an error where a frame or a composite is cut, or where fewer items came
  /// than `expected_items`. Idempotent; afterwards `commit` and `feed` fail as `invalid_state`.
  Result<void> finish();

  /// The next complete tensor, in the order of the stream; none until more bytes come. Composite
  /// heads come as tensors without buffers, before their members.
  std::optional<Tensor> next();
  /// The next complete item: a composite comes with all of its members. After `next` returned a
  /// head, the items are its members; a composite begun by `next_item` is its own. In permissive
  /// mode the complete members of a torn composite come one by one after `finish`. Throws
  /// `std::bad_alloc`.
  std::optional<Item> next_item();
  /// As in `StreamReader`, after `finish`.
  const std::optional<Error>& torn() const noexcept;
  /// Bytes of the complete frames so far: where the next one starts.
  std::uint64_t position() const noexcept;

 private:
  struct State;
  explicit StreamDecoder(std::unique_ptr<State> state) noexcept;
  std::unique_ptr<State> state_;
};

}  // namespace hurray::io
