#define _FILE_OFFSET_BITS 64

#include "system.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <poll.h>
#include <signal.h>
#include <sys/auxv.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/uio.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstring>
#include <memory>
#include <new>

#include "hurray/memory.hpp"

namespace hurray::io::system {

namespace {

Failure failure(std::string_view call) noexcept { return {.number = errno, .call = call}; }

/// Makes a call again as long as signals break it off.
template <class Call>
auto again(Call call) noexcept {
  auto result = call();
  while (result < 0 && errno == EINTR) result = call();
  return result;
}

/// A path with a zero byte would be cut there.
bool is_path(const std::string& path) noexcept { return path.find('\0') == std::string::npos; }

constexpr std::size_t longest_transfer = 0x7ffff000;

Status to_status(const struct stat& raw) noexcept {
  Status status;
  status.kind = S_ISREG(raw.st_mode)    ? Kind::regular
                : S_ISDIR(raw.st_mode)  ? Kind::folder
                : S_ISFIFO(raw.st_mode) ? Kind::pipe
                : S_ISSOCK(raw.st_mode) ? Kind::socket
                                        : Kind::device;
  if (status.kind == Kind::regular) status.size = static_cast<std::uint64_t>(raw.st_size);
  status.permissions = raw.st_mode & 0777u;
  status.links = raw.st_nlink;
  status.volume = raw.st_dev;
  status.number = raw.st_ino;
  return status;
}

Result<Handle> open(int folder, const std::string& path, int flags, mode_t mode = 0,
                    const Interrupted& interrupted = {}) {
  if (!is_path(path)) return Failure{.number = EINVAL, .call = "open"};
  for (;;) {
    const int number = ::openat(folder, path.c_str(), flags | O_CLOEXEC, mode);
    if (number >= 0) return Handle(number);
    if (errno != EINTR) return failure("open");
    if (interrupted && interrupted()) return stopped();
  }
}

Result<std::optional<Status>> status_at(int folder, const std::string& path, int flags) {
  if (!is_path(path)) return Failure{.number = EINVAL, .call = "stat"};
  struct stat raw{};
  if (::fstatat(folder, path.c_str(), &raw, flags) == 0) return std::optional(to_status(raw));
  if (errno == ENOENT) return std::optional<Status>();
  return failure("stat");
}

/// Until `descriptor` is ready for `events`, or fails in a way that the next call on it will tell.
Result<void> wait(int descriptor, short events, const Interrupted& interrupted,
                  Deadline deadline = Deadline::max()) {
  using std::chrono::milliseconds;
  for (;;) {
    milliseconds longest(interrupted ? 500 : -1);
    if (deadline != Deadline::max()) {
      const auto left =
          std::chrono::ceil<milliseconds>(deadline - std::chrono::steady_clock::now());
      longest = std::clamp(left, milliseconds(0), milliseconds(500));
    }
    pollfd one{.fd = descriptor, .events = events, .revents = 0};
    const int ready = ::poll(&one, 1, static_cast<int>(longest.count()));
    if (ready > 0) return {};
    if (ready < 0 && errno != EINTR) return failure("poll");
    if (longest == milliseconds(0)) return timed_out();
    if (interrupted && interrupted()) return stopped();
  }
}

/// While this lives, a pipe without a reader is EPIPE for this thread and no signal.
class NoBrokenPipeSignal {
 public:
  explicit NoBrokenPipeSignal(bool wanted) noexcept {
    sigset_t pending;
    ::sigemptyset(&pending);
    if (!wanted || ::sigpending(&pending) != 0 || ::sigismember(&pending, SIGPIPE) != 0) return;
    ::sigemptyset(&broken_);
    ::sigaddset(&broken_, SIGPIPE);
    blocked_ = ::pthread_sigmask(SIG_BLOCK, &broken_, &before_) == 0;
  }
  NoBrokenPipeSignal(const NoBrokenPipeSignal&) = delete;
  NoBrokenPipeSignal& operator=(const NoBrokenPipeSignal&) = delete;
  ~NoBrokenPipeSignal() {
    if (!blocked_) return;
    const int kept = errno;
    const timespec no_time{};
    (void)again([&] { return ::sigtimedwait(&broken_, nullptr, &no_time); });
    ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
    errno = kept;
  }

 private:
  sigset_t broken_{};
  sigset_t before_{};
  bool blocked_ = false;
};

std::string_view folder_part(std::string_view path) noexcept {
  const auto slash = path.rfind('/');
  if (slash == std::string_view::npos) return ".";
  return path.substr(0, std::max<std::size_t>(slash, 1));
}

}  // namespace

Failure stopped() noexcept { return {.number = EINTR, .call = "wait"}; }
Failure timed_out() noexcept { return {.number = ETIMEDOUT, .call = "wait"}; }

std::string words(int number) {
  std::array<char, 256> buffer{};
  const auto text = [&](auto result) -> const char* {
    if constexpr (std::is_pointer_v<decltype(result)>)
      return result;  // GNU
    else
      return result == 0 ? buffer.data() : "";  // POSIX
  };
  return text(::strerror_r(number, buffer.data(), buffer.size()));
}

Error to_error(const Failure& failure, Origin origin, std::string path) {
  hurray::Error error;
  error.code = failure.number == ENOMEM ? Errc::out_of_memory : Errc::system;
  error.origin = origin;
  error.what = failure.call;
  Error result(error, std::move(path));
  result.system_errno = failure.number;
  return result;
}

Handle::~Handle() {
  if (number_ >= 0) ::close(number_);
}

Result<Status> status(int descriptor) {
  struct stat raw{};
  if (::fstat(descriptor, &raw) != 0) return failure("fstat");
  return to_status(raw);
}

Result<std::optional<Status>> status(const std::string& path) {
  return status_at(AT_FDCWD, path, 0);
}

Result<Handle> open_to_read(const std::string& path, const Interrupted& interrupted) {
  return open(AT_FDCWD, path, O_RDONLY, 0, interrupted);
}

Result<Handle> open_to_write(const std::string& path, const Interrupted& interrupted) {
  return open(AT_FDCWD, path, O_WRONLY, 0, interrupted);
}

Result<Handle> duplicate(int descriptor) {
  const int number = ::fcntl(descriptor, F_DUPFD_CLOEXEC, 0);
  if (number < 0) return failure("dup");
  return Handle(number);
}

Result<Handle> anonymous_file() {
  const int number = ::memfd_create("hurray", MFD_CLOEXEC);
  if (number < 0) return failure("memfd_create");
  return Handle(number);
}

Result<std::size_t> read_at(int descriptor, std::span<std::byte> into, std::uint64_t offset) {
  std::size_t done = 0;
  while (done < into.size()) {
    const std::size_t size = std::min(into.size() - done, longest_transfer);
    const auto count = again([&] {
      return ::pread(descriptor, into.data() + done, size, static_cast<off_t>(offset + done));
    });
    if (count < 0) return failure("pread");
    if (count == 0) break;
    done += static_cast<std::size_t>(count);
  }
  return done;
}

Result<Handle> sealable_memory(const std::string& name) {
  const int number = ::memfd_create(name.c_str(), MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (number < 0) return failure("memfd_create");
  return Handle(number);
}

Result<void> seal(int descriptor) {
  constexpr int all = F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE;
  if (::fcntl(descriptor, F_ADD_SEALS, all) != 0) return failure("fcntl(F_ADD_SEALS)");
  return {};
}

std::optional<bool> sealed(int descriptor) noexcept {
  struct stat status{};
  if (::fstat(descriptor, &status) != 0 || status.st_nlink != 0) return std::nullopt;
  const int seals = ::fcntl(descriptor, F_GET_SEALS);
  if (seals < 0) return std::nullopt;
#if defined(F_SEAL_FUTURE_WRITE)
  constexpr int unwritable = F_SEAL_WRITE | F_SEAL_FUTURE_WRITE;
#else
  constexpr int unwritable = F_SEAL_WRITE;
#endif
  return (seals & F_SEAL_SHRINK) != 0 && (seals & unwritable) != 0;
}

std::uint64_t page_bytes() noexcept { return static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE)); }

std::vector<bool> resident_pages(int descriptor, std::uint64_t offset, std::uint64_t size) {
  const auto length = to_size(size);
  if (!length || size == 0) return {};
  void* address = ::mmap(nullptr, *length, PROT_READ, MAP_SHARED | MAP_NORESERVE, descriptor,
                         static_cast<off_t>(offset));
  if (address == MAP_FAILED) return {};
  const std::uint64_t page = page_bytes();
  std::vector<unsigned char> states;
  bool told = false;
  try {
    states.resize(static_cast<std::size_t>((size + page - 1) / page));
    told = ::mincore(address, *length, states.data()) == 0;
  } catch (const std::bad_alloc&) {
  }
  ::munmap(address, *length);
  if (!told) return {};
  std::vector<bool> pages(states.size());
  for (std::size_t i = 0; i < states.size(); ++i) pages[i] = (states[i] & 1) != 0;
  return pages;
}

void drop_cached(int descriptor, std::uint64_t offset, std::uint64_t size) noexcept {
  (void)::posix_fadvise(descriptor, static_cast<off_t>(offset), static_cast<off_t>(size),
                        POSIX_FADV_DONTNEED);
}

void will_need(int descriptor, std::uint64_t offset, std::uint64_t size) noexcept {
  (void)::posix_fadvise(descriptor, static_cast<off_t>(offset), static_cast<off_t>(size),
                        POSIX_FADV_WILLNEED);
}

void will_read_all(int descriptor) noexcept {
  (void)::posix_fadvise(descriptor, 0, 0, POSIX_FADV_SEQUENTIAL);
}

Result<std::size_t> read_some(int descriptor, std::span<std::byte> into,
                              const Interrupted& interrupted, Deadline deadline) {
  const std::size_t size = std::min(into.size(), longest_transfer);
  bool ready = !interrupted && deadline == Deadline::max();
  for (;;) {
    if (!ready) {
      if (auto waited = wait(descriptor, POLLIN, interrupted, deadline); !waited)
        return waited.error();
    }
    const auto count = ::read(descriptor, into.data(), size);
    if (count >= 0) return static_cast<std::size_t>(count);
    if (errno == EAGAIN || errno == EWOULDBLOCK)
      ready = false;
    else if (errno != EINTR)
      return failure("read");
    else if (interrupted && interrupted())
      return stopped();
  }
}

Result<void> write_all(int descriptor, std::span<const std::span<const std::byte>> parts,
                       const Interrupted& interrupted,
                       const std::optional<std::chrono::milliseconds>& timeout) {
  const auto target = status(descriptor);
  if (!target) return target.error();
  const bool socket = target->kind == Kind::socket;
  const NoBrokenPipeSignal no_signal(target->kind == Kind::pipe);
  // A call may take all of its bytes before it returns: with somebody to ask, small calls.
  const std::size_t longest = !interrupted                    ? longest_transfer
                              : target->kind == Kind::regular ? std::size_t{64} << 20
                                                              : std::size_t{1} << 20;

  std::size_t next = 0;  // the first part with bytes left, and how many of it are gone
  std::size_t gone = 0;
  for (;;) {
    std::array<iovec, 64> pieces;
    std::size_t count = 0;
    std::size_t size = 0;
    for (std::size_t i = next, skip = gone; i < parts.size() && count < pieces.size(); ++i) {
      const auto rest = parts[i].subspan(std::exchange(skip, 0));
      if (rest.empty()) continue;
      const std::size_t length = std::min(rest.size(), longest - size);
      if (length == 0) break;
      pieces[count++] = {const_cast<std::byte*>(rest.data()), length};
      size += length;
    }
    if (count == 0) return {};

    ssize_t written = 0;
    if (socket) {
      msghdr message{};
      message.msg_iov = pieces.data();
      message.msg_iovlen = count;
      written = ::sendmsg(descriptor, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    } else {
      written = ::writev(descriptor, pieces.data(), static_cast<int>(count));
    }
    if (written < 0) {
      if (errno == EAGAIN || errno == EWOULDBLOCK) {
        auto waited = wait(descriptor, POLLOUT, interrupted, deadline_in(timeout));
        if (!waited) return waited.error();
      } else if (errno != EINTR) {
        return failure("write");
      } else if (interrupted && interrupted()) {
        return stopped();
      }
      continue;
    }
    for (auto left = static_cast<std::size_t>(written); next < parts.size();) {
      const std::size_t rest = parts[next].size() - gone;
      if (left < rest) {
        gone += left;
        break;
      }
      left -= rest;
      gone = 0;
      ++next;
    }
    if (interrupted && interrupted()) return stopped();
  }
}

Result<std::uint64_t> copy_range(int from, std::uint64_t offset, std::uint64_t size, int to,
                                 const Interrupted& interrupted) {
  constexpr std::uint64_t longest = std::uint64_t{64} << 20;
  std::uint64_t done = 0;
  const off_t start = ::lseek(to, 0, SEEK_CUR);
  struct stat target{};
  if (start < 0 || ::fstat(to, &target) != 0 || !S_ISREG(target.st_mode)) return done;
  const auto block = static_cast<std::uint64_t>(std::max<blksize_t>(target.st_blksize, 1));
  const std::uint64_t whole = size - size % block;
  const file_clone_range range{.src_fd = from,
                               .src_offset = offset,
                               .src_length = whole,
                               .dest_offset = static_cast<std::uint64_t>(start)};
  if (whole != 0 && ::ioctl(to, FICLONERANGE, &range) == 0) {
    if (::lseek(to, start + static_cast<off_t>(whole), SEEK_SET) < 0) return failure("lseek");
    done = whole;
  }
  while (done < size) {
    if (interrupted && interrupted()) return stopped();
    auto at = static_cast<off_t>(offset + done);
    const auto most = static_cast<std::size_t>(std::min(size - done, longest));
    const ssize_t copied = ::copy_file_range(from, &at, to, nullptr, most, 0);
    if (copied == 0) return done;
    if (copied > 0) {
      done += static_cast<std::uint64_t>(copied);
    } else if (errno == ENOSPC || errno == EFBIG || errno == EDQUOT || errno == EIO) {
      return failure("copy_file_range");
    } else if (errno != EINTR) {
      return done;
    }
  }
  return done;
}

Result<void> sync(int descriptor) {
  if (::fsync(descriptor) != 0) return failure("fsync");
  return {};
}

Result<void> flush(int descriptor) {
  const int copy = ::fcntl(descriptor, F_DUPFD_CLOEXEC, 0);
  if (copy < 0) return failure("dup");
  if (::close(copy) != 0 && errno != EINTR) return failure("close");
  return {};
}

Result<std::uint64_t> free_space(int descriptor) {
  struct statvfs raw{};
  if (again([&] { return ::fstatvfs(descriptor, &raw); }) != 0) return failure("fstatvfs");
  return static_cast<std::uint64_t>(raw.f_bavail) * static_cast<std::uint64_t>(raw.f_frsize);
}

bool is_local_volume(const std::string& path) noexcept {
  // f_type of file systems whose bytes come from elsewhere, or through a program (linux/magic.h and
  // the file systems' own sources).
  constexpr auto elsewhere = std::to_array<std::uint32_t>({
      0x0000'6969,  // NFS
      0x0000'517b,  // SMB
      0xff53'4d42,  // CIFS
      0xfe53'4d42,  // SMB2
      0x6573'5546,  // FUSE, virtiofs
      0x0102'1997,  // 9P
      0x00c3'6400,  // Ceph
      0x0bd0'0bd0,  // Lustre
      0x4750'4653,  // GPFS
      0x1983'0326,  // BeeGFS
      0xaad7'aaea,  // PanFS
      0x2003'0528,  // OrangeFS
      0x5346'414f,  // AFS
      0x6b41'4653,  // kAFS
      0x7375'7245,  // Coda
      0x7461'636f,  // OCFS2
      0x0116'1970,  // GFS2
      0x786f'4256,  // VirtualBox shared folders
  });
  struct statfs raw{};
  if (!is_path(path) || again([&] { return ::statfs(path.c_str(), &raw); }) != 0) return false;
  return std::ranges::find(elsewhere, static_cast<std::uint32_t>(raw.f_type)) == elsewhere.end();
}

bool is_internet_socket(int descriptor) noexcept {
  sockaddr_storage address{};
  socklen_t length = sizeof address;
  if (::getsockname(descriptor, reinterpret_cast<sockaddr*>(&address), &length) != 0) return false;
  return address.ss_family == AF_INET || address.ss_family == AF_INET6;
}

Result<std::string> follow_links(const std::string& path) {
  if (!is_path(path)) return Failure{.number = EINVAL, .call = "readlink"};
  std::string current = path;
  std::vector<char> text(PATH_MAX);
  for (int links = 0; links < 40; ++links) {
    const auto length = ::readlink(current.c_str(), text.data(), text.size());
    if (length < 0) {
      if (errno == EINVAL || errno == ENOENT) return current;  // no link; nothing there
      return failure("readlink");
    }
    std::string target(text.data(), static_cast<std::size_t>(length));
    if (!target.starts_with('/')) target = std::string(folder_part(current)) + '/' + target;
    current = std::move(target);
  }
  return Failure{.number = ELOOP, .call = "readlink"};
}

Result<Folder> Folder::of(const std::string& path) {
  const std::string folder(folder_part(path));
  auto handle = open(AT_FDCWD, folder, O_RDONLY | O_DIRECTORY);
  if (!handle && handle.error().number == EACCES)  // names can be made here, not listed
    handle = open(AT_FDCWD, folder, O_PATH | O_DIRECTORY);
  if (!handle) return handle.error();
  return Folder(*std::move(handle));
}

std::size_t Folder::longest_name() const noexcept {
  const long limit = ::fpathconf(handle_.number(), _PC_NAME_MAX);
  return limit > 0 ? static_cast<std::size_t>(limit) : NAME_MAX;
}

Result<std::optional<Status>> Folder::status(const std::string& name) const {
  return status_at(handle_.number(), name, AT_SYMLINK_NOFOLLOW);
}

Result<Handle> Folder::create(const std::string& name, std::uint32_t permissions) const {
  return open(handle_.number(), name, O_RDWR | O_CREAT | O_EXCL, static_cast<mode_t>(permissions));
}

Result<Handle> Folder::open_entry(const std::string& name) const {
  auto handle = open(handle_.number(), name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
  if (!handle) return handle;
  const auto found = system::status(handle->number());
  if (!found) return found.error();
  if (found->kind != Kind::regular) return Failure{.number = EINVAL, .call = "open"};
  return handle;
}

Result<void> Folder::rename(const std::string& from, const std::string& to) const {
  if (::renameat(handle_.number(), from.c_str(), handle_.number(), to.c_str()) != 0)
    return failure("rename");
  return {};
}

Result<void> Folder::remove(const std::string& name) const {
  if (::unlinkat(handle_.number(), name.c_str(), 0) != 0) return failure("unlink");
  return {};
}

Result<void> Folder::sync() const {
  // EBADF: a folder that may not be read. EINVAL: a file system that keeps no folders of its own.
  if (::fsync(handle_.number()) != 0 && errno != EBADF && errno != EINVAL) return failure("fsync");
  return {};
}

std::vector<std::string> Folder::list(std::string_view prefix, std::string_view suffix) const {
  std::vector<std::string> names;
  auto handle = open(handle_.number(), ".", O_RDONLY | O_DIRECTORY);
  if (!handle) return names;
  const auto close = [](DIR* stream) { ::closedir(stream); };
  const std::unique_ptr<DIR, decltype(close)> stream(::fdopendir(handle->number()), close);
  if (!stream) return names;
  handle->release();  // to the stream
  while (const dirent* entry = ::readdir(stream.get())) {
    const std::string_view name = entry->d_name;
    if (name.size() >= prefix.size() + suffix.size() && name.starts_with(prefix) &&
        name.ends_with(suffix))
      names.emplace_back(name);
  }
  return names;
}

Result<void> set_permissions(int descriptor, std::uint32_t permissions) {
  if (::fchmod(descriptor, static_cast<mode_t>(permissions)) != 0) return failure("chmod");
  return {};
}

Lock try_lock(int descriptor) noexcept {
  if (again([&] { return ::flock(descriptor, LOCK_EX | LOCK_NB); }) == 0) return Lock::taken;
  return errno == EWOULDBLOCK ? Lock::held_elsewhere : Lock::unavailable;
}

std::uint64_t process_id() noexcept { return static_cast<std::uint64_t>(::getpid()); }

Result<void> random_bytes(std::span<std::byte> into) {
  std::size_t done = 0;
  while (done < into.size()) {
    const auto count =
        again([&] { return ::getrandom(into.data() + done, into.size() - done, 0); });
    if (count < 0) return failure("getrandom");
    done += static_cast<std::size_t>(count);
  }
  return {};
}

Result<Mapping> Mapping::map(int descriptor, std::size_t size) {
  void* address = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE | MAP_NORESERVE, descriptor, 0);
  if (address == MAP_FAILED) return failure("mmap");
  return Mapping({static_cast<std::byte*>(address), size});
}

Mapping::~Mapping() {
  if (!bytes_.empty()) ::munmap(bytes_.data(), bytes_.size());
}

Result<void> Mapping::make_writable(std::span<std::byte> part) const {
  if (part.empty()) return {};
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  const auto offset = static_cast<std::size_t>(part.data() - bytes_.data());
  const std::size_t first = offset - offset % page;
  if (::mprotect(bytes_.data() + first, offset - first + part.size(), PROT_READ | PROT_WRITE) != 0)
    return failure("mprotect");
  return {};
}

Result<void> Pages::grow(std::size_t size) {
  void* address = bytes_.empty() ? ::mmap(nullptr, size, PROT_READ | PROT_WRITE,
                                          MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
                                 : ::mremap(bytes_.data(), bytes_.size(), size, MREMAP_MAYMOVE);
  if (address == MAP_FAILED) return failure(bytes_.empty() ? "mmap" : "mremap");
  (void)::madvise(address, size, MADV_HUGEPAGE);  // fewer faults where the system has them
  bytes_ = {static_cast<std::byte*>(address), size};
  return {};
}

Pages::~Pages() {
  if (!bytes_.empty()) ::munmap(bytes_.data(), bytes_.size());
}

bool has_armv8_crc() noexcept {
#if defined(__aarch64__)
  constexpr unsigned long crc32 = 1ul << 7;  // HWCAP_CRC32
  return (::getauxval(AT_HWCAP) & crc32) != 0;
#else
  return false;
#endif
}

}  // namespace hurray::io::system
