#include "faults.hpp"

#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstring>
#include <mutex>

namespace {

std::mutex mutex;
std::atomic<bool> armed = false;
long calls = 0;
long chosen = 0;
HurrayFault fault = HURRAY_FAULT_NONE;
int error_number = 0;
const char* hit = "";
char trace[1 << 16];
std::size_t traced = 0;

/// What is to happen now.
HurrayFault ask(const char* name) noexcept {
  if (!armed.load()) return HURRAY_FAULT_NONE;
  const std::scoped_lock lock(mutex);
  const std::size_t length = std::strlen(name);
  if (traced + length + 2 < sizeof trace) {
    std::memcpy(trace + traced, name, length);
    traced += length;
    trace[traced++] = ' ';
    trace[traced] = '\0';
  }
  if (++calls != chosen) return HURRAY_FAULT_NONE;
  hit = name;
  if (fault == HURRAY_FAULT_KILL) {
    ::kill(::getpid(), SIGKILL);
    for (;;) ::pause();
  }
  if (fault == HURRAY_FAULT_ERROR) errno = error_number;
  return fault;
}

bool fails(const char* name) noexcept { return ask(name) == HURRAY_FAULT_ERROR; }

template <class Function>
Function* next(const char* name) noexcept {
  return reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name));
}

std::size_t half(std::size_t size) noexcept { return std::max<std::size_t>(size / 2, size != 0); }

}  // namespace

void hurray_faults_arm(long at, HurrayFault what, int number) {
  const std::scoped_lock lock(mutex);
  calls = 0;
  chosen = at;
  fault = what;
  error_number = number;
  hit = "";
  traced = 0;
  trace[0] = '\0';
  armed = true;
}

long hurray_faults_disarm() {
  armed = false;
  const std::scoped_lock lock(mutex);
  return calls;
}

const char* hurray_faults_hit() { return hit; }
const char* hurray_faults_trace() { return trace; }

// Calls that move bytes.
#define HURRAY_MOVES(name, parameters, pass, shorter)         \
  extern "C" ssize_t name parameters {                        \
    static const auto real = next<ssize_t parameters>(#name); \
    switch (ask(#name)) {                                     \
      case HURRAY_FAULT_ERROR:                                \
        return -1;                                            \
      case HURRAY_FAULT_SHORT:                                \
        return real shorter;                                  \
      default:                                                \
        return real pass;                                     \
    }                                                         \
  }

HURRAY_MOVES(read, (int fd, void* to, size_t size), (fd, to, size), (fd, to, half(size)))
HURRAY_MOVES(pread, (int fd, void* to, size_t size, off_t at), (fd, to, size, at),
             (fd, to, half(size), at))
HURRAY_MOVES(pread64, (int fd, void* to, size_t size, off64_t at), (fd, to, size, at),
             (fd, to, half(size), at))
HURRAY_MOVES(write, (int fd, const void* from, size_t size), (fd, from, size),
             (fd, from, half(size)))
HURRAY_MOVES(pwrite, (int fd, const void* from, size_t size, off_t at), (fd, from, size, at),
             (fd, from, half(size), at))
HURRAY_MOVES(pwrite64, (int fd, const void* from, size_t size, off64_t at), (fd, from, size, at),
             (fd, from, half(size), at))
HURRAY_MOVES(getrandom, (void* to, size_t size, unsigned flags), (to, size, flags),
             (to, half(size), flags))

extern "C" ssize_t writev(int fd, const iovec* parts, int count) {
  static const auto real = next<ssize_t(int, const iovec*, int)>("writev");
  switch (ask("writev")) {
    case HURRAY_FAULT_ERROR:
      return -1;
    case HURRAY_FAULT_SHORT: {  // ends within a part, not between two
      iovec first = parts[0];
      first.iov_len = half(first.iov_len);
      return real(fd, &first, 1);
    }
    default:
      return real(fd, parts, count);
  }
}

// Calls that fail as a whole.
#define HURRAY_FAILS(name, result, specifier, parameters, pass) \
  extern "C" result name parameters specifier {                 \
    static const auto real = next<result parameters>(#name);    \
    if (fails(#name)) return static_cast<result>(-1);           \
    return real pass;                                           \
  }

HURRAY_FAILS(fsync, int, , (int fd), (fd))
HURRAY_FAILS(fdatasync, int, , (int fd), (fd))
HURRAY_FAILS(renameat, int, noexcept, (int from, const char* a, int to, const char* b),
             (from, a, to, b))
HURRAY_FAILS(unlinkat, int, noexcept, (int fd, const char* path, int flags), (fd, path, flags))
HURRAY_FAILS(ftruncate, int, noexcept, (int fd, off_t size), (fd, size))
HURRAY_FAILS(ftruncate64, int, noexcept, (int fd, off64_t size), (fd, size))
HURRAY_FAILS(fallocate, int, , (int fd, int mode, off_t at, off_t size), (fd, mode, at, size))
HURRAY_FAILS(fallocate64, int, , (int fd, int mode, off64_t at, off64_t size), (fd, mode, at, size))
HURRAY_FAILS(fchmod, int, noexcept, (int fd, mode_t mode), (fd, mode))
HURRAY_FAILS(flock, int, noexcept, (int fd, int what), (fd, what))
HURRAY_FAILS(fstat, int, noexcept, (int fd, struct stat* to), (fd, to))
HURRAY_FAILS(fstat64, int, noexcept, (int fd, struct stat64* to), (fd, to))
HURRAY_FAILS(fstatat, int, noexcept, (int fd, const char* path, struct stat* to, int flags),
             (fd, path, to, flags))
HURRAY_FAILS(fstatat64, int, noexcept, (int fd, const char* path, struct stat64* to, int flags),
             (fd, path, to, flags))
HURRAY_FAILS(fstatvfs, int, noexcept, (int fd, struct statvfs* to), (fd, to))
HURRAY_FAILS(fstatvfs64, int, noexcept, (int fd, struct statvfs64* to), (fd, to))
HURRAY_FAILS(readlink, ssize_t, noexcept, (const char* path, char* to, size_t size),
             (path, to, size))

extern "C" int close(int fd) {
  static const auto real = next<int(int)>("close");
  const bool failed = fails("close");
  const int number = errno;
  const int result = real(fd);  // what is closed with an error is closed
  if (!failed) return result;
  errno = number;
  return -1;
}

#define HURRAY_OPENS(name)                                                 \
  extern "C" int name(int folder, const char* path, int flags, ...) {      \
    static const auto real = next<int(int, const char*, int, ...)>(#name); \
    va_list rest;                                                          \
    va_start(rest, flags);                                                 \
    const auto mode = static_cast<mode_t>(va_arg(rest, unsigned));         \
    va_end(rest);                                                          \
    if (fails(#name)) return -1;                                           \
    return real(folder, path, flags, mode);                                \
  }
HURRAY_OPENS(openat)
HURRAY_OPENS(openat64)

#define HURRAY_CONTROLS(name)                                 \
  extern "C" int name(int fd, int command, ...) {             \
    static const auto real = next<int(int, int, ...)>(#name); \
    va_list rest;                                             \
    va_start(rest, command);                                  \
    void* argument = va_arg(rest, void*);                     \
    va_end(rest);                                             \
    if (fails(#name)) return -1;                              \
    return real(fd, command, argument);                       \
  }
HURRAY_CONTROLS(fcntl)
HURRAY_CONTROLS(fcntl64)

#define HURRAY_MAPS(name, offset)                                                      \
  extern "C" void* name(void* at, size_t size, int protection, int flags, int fd,      \
                        offset from) noexcept {                                        \
    static const auto real = next<void*(void*, size_t, int, int, int, offset)>(#name); \
    if (fd >= 0 && fails(#name)) return MAP_FAILED;                                    \
    return real(at, size, protection, flags, fd, from);                                \
  }
HURRAY_MAPS(mmap, off_t)
HURRAY_MAPS(mmap64, off64_t)
