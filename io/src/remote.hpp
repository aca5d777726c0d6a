#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include "hurray/buffer.hpp"
#include "hurray/io/error.hpp"
#include "hurray/io/file.hpp"
#include "hurray/io/positioned_source.hpp"

namespace hurray::io {

struct ByteRange {
  std::uint64_t offset;
  std::uint64_t size;
};

/// A `PositionedSource` with as few requests as reading needs (09-models-and-frameworks.md section
/// 2): the end of the file is read once and kept, what is read in order is read ahead, and ranges
/// that will be asked for can be read in the background. May be used from any thread.
class Remote : public std::enable_shared_from_this<Remote> {
 public:
  /// Of the end of a file, which is read when it is opened.
  static constexpr std::uint64_t tail_bytes = std::uint64_t{1} << 20;
  /// The most that is read ahead of what is asked for.
  static constexpr std::uint64_t ahead_bytes = std::uint64_t{8} << 20;
  /// Less between two wanted bytes costs less to read than another request.
  static constexpr std::uint64_t gap_bytes = std::uint64_t{1} << 20;

  /// Of its start, which is read then, too.
  static constexpr std::uint64_t head_bytes = 512;

  /// Reads the end of the file and its start.
  /// `interrupted` is asked while another thread's request is waited for; true ends the wait with
  /// EINTR.
  static Result<std::shared_ptr<Remote>> open(PositionedSource source,
                                              std::function<bool()> interrupted);

  std::uint64_t size() const noexcept { return source_.size; }
  const std::string& name() const noexcept { return source_.name; }

  /// Fills `into` from `offset` on; fewer bytes only where the file ends. Up to `ahead` more may be
  /// read at once, which will be asked for next.
  Result<std::size_t> read(std::span<std::byte> into, std::uint64_t offset, std::uint64_t ahead);

  /// Keeps all from `offset` to the end, until `let_go`. Precondition: somebody has judged how much
  /// that is.
  Result<void> keep_from(std::uint64_t offset);
  void let_go();

  /// Reads these ranges, in this order, in a thread that nobody waits for but who asks for them;
  /// they are held until they have been read once, or others are asked for.
  void prefetch(std::span<const ByteRange> ranges);
  /// Ends that.
  void stop();

  /// All that was read, and in how many requests.
  std::uint64_t bytes_read() const noexcept { return bytes_read_; }
  std::uint64_t requests() const noexcept { return requests_; }

 private:
  Remote(PositionedSource source, std::function<bool()> interrupted) noexcept
      : source_(std::move(source)), interrupted_(std::move(interrupted)) {}

  struct Held {
    std::uint64_t offset = 0;
    Buffer bytes = {};

    bool has(std::uint64_t at) const noexcept { return at >= offset && at - offset < bytes.size(); }
  };
  /// A range on its way.
  struct Coming {
    ByteRange range;
    Held held = {};
    std::uint64_t taken = 0;  ///< Bytes of it that were read.
    bool done = false;        ///< Read, failed or given up.
  };
  struct Plan {
    std::vector<Coming> ranges;
    bool ended = false;
  };

  /// From the source itself: as many bytes as there are.
  Result<std::size_t> fetch(std::span<std::byte> into, std::uint64_t offset);
  Result<Held> fetch_held(std::uint64_t offset, std::uint64_t size);
  /// What is there from `at` on, waited for where it is on its way; else how far it is to the next
  /// byte that is.
  struct Found {
    std::optional<Held> held = {};
    std::uint64_t free = 0;
  };
  Result<Found> find(std::uint64_t at, std::uint64_t wanted);
  Error stopped() const;
  void run(const std::shared_ptr<Plan>& plan);

  const PositionedSource source_;
  const std::function<bool()> interrupted_;
  std::atomic<std::uint64_t> bytes_read_ = 0;
  std::atomic<std::uint64_t> requests_ = 0;
  std::timed_mutex asking_;                  ///< One request at a time.
  std::atomic<std::thread::id> asker_ = {};  ///< Whose that is.

  std::mutex mutex_;  // of what follows; nothing is read under it
  std::condition_variable arrived_;
  Held head_;
  Held tail_;
  Held kept_;
  Held window_;
  std::shared_ptr<Plan> plan_;
};

/// Ends what goes on in the background once nobody reads any more.
class RemoteUse {
 public:
  RemoteUse() noexcept = default;
  explicit RemoteUse(std::shared_ptr<Remote> remote) noexcept : remote_(std::move(remote)) {}
  RemoteUse(RemoteUse&&) noexcept = default;
  RemoteUse& operator=(RemoteUse&&) noexcept = default;
  ~RemoteUse() {
    if (remote_ != nullptr) remote_->stop();
  }

  Remote* get() const noexcept { return remote_.get(); }

 private:
  std::shared_ptr<Remote> remote_;
};

}  // namespace hurray::io
