#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "hurray/io/error.hpp"
#include "hurray/result.hpp"

/// All that `hurray::io` asks of the operating system; system/<system>.cpp answers. Calls that a
/// signal broke off are made again, and every descriptor is closed on exec.
namespace hurray::io::system {

/// Which call failed, and why.
struct Failure {
  int number = 0;  ///< `errno`
  std::string_view call;
  friend bool operator==(const Failure&, const Failure&) = default;
};

template <class T>
using Result = hurray::Result<T, Failure>;

/// `failure` as an error of `io`: `out_of_memory` for a lack of memory, `system` for all else.
Error to_error(const Failure& failure, Origin origin, std::string path);

/// What an operation fails with that was asked to end.
Failure stopped() noexcept;
/// What an operation fails with that waited up to its deadline.
Failure timed_out() noexcept;

/// The system's words for an error number, whatever the other threads do.
std::string words(int number);

/// An open descriptor that is closed when this goes.
class Handle {
 public:
  Handle() = default;
  explicit Handle(int number) noexcept : number_(number) {}
  Handle(Handle&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Handle& operator=(Handle&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  ~Handle();

  int number() const noexcept { return number_; }
  /// Gives up the duty to close.
  void release() noexcept { number_ = -1; }
  explicit operator bool() const noexcept { return number_ >= 0; }

 private:
  int number_ = -1;
};

enum class Kind : std::uint8_t { regular, folder, pipe, socket, device };

struct Status {
  Kind kind = Kind::regular;
  std::uint64_t size = 0;         ///< Bytes; only for regular files.
  std::uint32_t permissions = 0;  ///< The nine bits.
  std::uint64_t links = 0;
  std::uint64_t volume = 0, number = 0;  ///< Together they tell files apart.

  bool same_file(const Status& other) const noexcept {
    return volume == other.volume && number == other.number;
  }
};

Result<Status> status(int descriptor);
/// Of what lies at `path`, links followed; none where nothing is.
Result<std::optional<Status>> status(const std::string& path);

Result<Handle> duplicate(int descriptor);
/// An empty file without a name, in memory, to write and read.
Result<Handle> anonymous_file();

/// The same, which can be sealed; ENOSYS where the system has no such thing. `name` is shown where
/// the system lists open files.
Result<Handle> sealable_memory(const std::string& name);
/// From now on nobody can write it, cut it or make it longer. It must not be mapped for writing.
Result<void> seal(int descriptor);
/// Whether nobody can cut or write memory without a name (or can do so only through mappings that
/// there are already); none for what is a file in some folder.
std::optional<bool> sealed(int descriptor) noexcept;

/// Fills `into` from `offset` on; fewer bytes only where the file ends.
Result<std::size_t> read_at(int descriptor, std::span<std::byte> into, std::uint64_t offset);

std::uint64_t page_bytes() noexcept;
/// For each page of a file from `offset` on, the start of one, whether it is in memory; empty where
/// that cannot be told.
std::vector<bool> resident_pages(int descriptor, std::uint64_t offset, std::uint64_t size);
/// Lets the system forget cached pages of a file that nobody maps or has changed. Whole pages.
void drop_cached(int descriptor, std::uint64_t offset, std::uint64_t size) noexcept;

/// Lets the system read this part of a file ahead, or all of it, faster, from its start to its end.
/// Hints: nothing fails, and nobody waits for the bytes.
void will_need(int descriptor, std::uint64_t offset, std::uint64_t size) noexcept;
void will_read_all(int descriptor) noexcept;

/// Asked twice a second while waiting, and after every signal; true ends the wait with EINTR.
using Interrupted = std::function<bool()>;

/// A pipe is waited for until somebody holds its other end; a signal asks `interrupted`.
Result<Handle> open_to_read(const std::string& path, const Interrupted& interrupted = {});
/// The same for what is written where it is; nothing is created or cut.
Result<Handle> open_to_write(const std::string& path, const Interrupted& interrupted = {});

using Deadline = std::chrono::steady_clock::time_point;
inline Deadline deadline_in(const std::optional<std::chrono::milliseconds>& time) {
  return time ? std::chrono::steady_clock::now() + *time : Deadline::max();
}

/// At least one byte unless the input ends (0), waiting for it on descriptors that do not block
/// too. No byte until `deadline` is `timed_out()`.
Result<std::size_t> read_some(int descriptor, std::span<std::byte> into,
                              const Interrupted& interrupted = {},
                              Deadline deadline = Deadline::max());

/// All bytes of all parts, in one pass, with as few calls as they take. A pipe or socket that
/// nobody reads any more is EPIPE, never a signal. Where the descriptor is a socket or does not
/// block, no room for the next bytes for `timeout` is `timed_out()`.
Result<void> write_all(int descriptor, std::span<const std::span<const std::byte>> parts,
                       const Interrupted& interrupted = {},
                       const std::optional<std::chrono::milliseconds>& timeout = {});

/// Puts `size` bytes of the file `from`, from `offset` on, where the file `to` is being written:
/// shared where the volume can and both are at a block's start, else copied without passing through
/// this program. How many bytes that were: fewer, and possibly none, where the system cannot, or
/// `from` ends. `to` is written on behind them.
Result<std::uint64_t> copy_range(int from, std::uint64_t offset, std::uint64_t size, int to,
                                 const Interrupted& interrupted = {});

/// Waits until the disk has the bytes. After a failure nothing is known: never call it again.
Result<void> sync(int descriptor);
/// Hands over what the system still holds back, as closing does, and tells how that went.
Result<void> flush(int descriptor);

/// Bytes that an ordinary user may still write to the volume.
Result<std::uint64_t> free_space(int descriptor);

/// A volume of this machine's own, of a kind known to keep a mapped file readable.
bool is_local_volume(const std::string& path) noexcept;

/// A socket between machines (IPv4 or IPv6).
bool is_internet_socket(int descriptor) noexcept;

/// Where the name `path` leads through symbolic links, the last of which may dangle.
Result<std::string> follow_links(const std::string& path);

/// A folder in which names are created, replaced and removed, wherever the process goes meanwhile.
class Folder {
 public:
  /// The folder that `path` names an entry of.
  static Result<Folder> of(const std::string& path);

  /// Bytes that a name may have.
  std::size_t longest_name() const noexcept;
  Result<std::optional<Status>> status(const std::string& name) const;
  /// An empty new file to write and read; EEXIST where the name is taken.
  Result<Handle> create(const std::string& name, std::uint32_t permissions) const;
  /// A regular file that is there, no link; for locking only.
  Result<Handle> open_entry(const std::string& name) const;
  Result<void> rename(const std::string& from, const std::string& to) const;
  Result<void> remove(const std::string& name) const;
  /// Waits until the disk has the names.
  Result<void> sync() const;
  /// Entries that begin with `prefix` and end with `suffix`; none where the folder may not be
  /// listed.
  std::vector<std::string> list(std::string_view prefix, std::string_view suffix) const;

 private:
  explicit Folder(Handle handle) noexcept : handle_(std::move(handle)) {}
  Handle handle_;
};

Result<void> set_permissions(int descriptor, std::uint32_t permissions);

enum class Lock : std::uint8_t { taken, held_elsewhere, unavailable };
/// The whole file, for this open descriptor alone, without waiting; it ends with the process.
Lock try_lock(int descriptor) noexcept;

std::uint64_t process_id() noexcept;
Result<void> random_bytes(std::span<std::byte> into);

/// A private view of a whole file, readable at first; unmapped when this goes.
class Mapping {
 public:
  static Result<Mapping> map(int descriptor, std::size_t size);
  Mapping(Mapping&& other) noexcept : bytes_(std::exchange(other.bytes_, {})) {}
  Mapping& operator=(Mapping&& other) noexcept {
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~Mapping();

  std::span<std::byte> bytes() const noexcept { return bytes_; }
  /// Lets this process write to the pages of `part`; the file never sees it.
  Result<void> make_writable(std::span<std::byte> part) const;

 private:
  explicit Mapping(std::span<std::byte> bytes) noexcept : bytes_(bytes) {}
  std::span<std::byte> bytes_;
};

/// Zero pages that take no memory before they are touched, and that grow without being copied.
class Pages {
 public:
  Pages() = default;
  Pages(Pages&& other) noexcept : bytes_(std::exchange(other.bytes_, {})) {}
  Pages& operator=(Pages&& other) noexcept {
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~Pages();

  std::span<std::byte> bytes() const noexcept { return bytes_; }
  /// Room for `size` bytes, more than before. The address changes, the bytes stay.
  Result<void> grow(std::size_t size);

 private:
  std::span<std::byte> bytes_;
};

/// The CPU has the CRC-32C instructions of ARMv8; false elsewhere.
bool has_armv8_crc() noexcept;

}  // namespace hurray::io::system
