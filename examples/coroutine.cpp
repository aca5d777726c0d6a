// Tensors from many connections on one thread: a coroutine for each, resumed when its socket has
// bytes. StreamDecoder does no I/O of its own; the bytes go straight to where they stay.
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <coroutine>
#include <cstdio>
#include <cstring>
#include <exception>
#include <thread>
#include <utility>
#include <vector>

#include "hurray/io/stream_decoder.hpp"

using namespace hurray;

namespace {

/// Waits for readable descriptors and resumes whoever waits for them.
class Loop {
 public:
  struct Readable {
    Loop& loop;
    int descriptor;
    bool await_ready() const noexcept { return false; }
    void await_suspend(std::coroutine_handle<> waiting) {
      loop.waiting_.emplace_back(descriptor, waiting);
    }
    void await_resume() const noexcept {}
  };
  Readable readable(int descriptor) { return {*this, descriptor}; }

  void run() {
    while (!waiting_.empty()) {
      std::vector<pollfd> asked;
      for (const auto& [descriptor, handle] : waiting_)
        asked.push_back({.fd = descriptor, .events = POLLIN, .revents = 0});
      if (::poll(asked.data(), asked.size(), -1) < 0 && errno != EINTR) return;
      const auto all = std::exchange(waiting_, {});
      for (std::size_t i = 0; i < all.size(); ++i) {
        if (asked[i].revents == 0)
          waiting_.push_back(all[i]);
        else
          all[i].second.resume();
      }
    }
  }

 private:
  std::vector<std::pair<int, std::coroutine_handle<>>> waiting_;
};

/// A coroutine that runs at once and ends by itself.
struct Task {
  struct promise_type {
    Task get_return_object() noexcept { return {}; }
    std::suspend_never initial_suspend() const noexcept { return {}; }
    std::suspend_never final_suspend() const noexcept { return {}; }
    void return_void() const noexcept {}
    void unhandled_exception() const noexcept { std::terminate(); }
  };
};

struct Connection {
  int descriptor = -1;
  std::uint64_t items = 0;
  std::uint64_t bytes = 0;
  bool clean = false;
};

Task receive(Loop& loop, Connection& connection) {
  auto decoder = io::StreamDecoder::create();
  if (!decoder) co_return;
  io::Result<void> ok;
  for (bool open = true; open && ok;) {
    co_await loop.readable(connection.descriptor);
    const auto room = decoder->wanted();
    const ssize_t n = ::recv(connection.descriptor, room.data(), room.size(), 0);
    if (n < 0 && errno != EAGAIN && errno != EINTR) break;
    open = n != 0;
    if (n > 0) ok = decoder->commit(static_cast<std::size_t>(n));
    while (const auto item = decoder->next_item()) {
      ++connection.items;
      for (const Buffer& buffer : item->tensor.buffers()) connection.bytes += buffer.size();
    }
  }
  if (ok) ok = decoder->finish();
  if (!ok) std::fprintf(stderr, "%s\n", to_string(ok.error()).c_str());
  connection.clean = ok.has_value();
  ::close(connection.descriptor);
}

void write_tensors(int descriptor, std::uint64_t count) {
  auto memory = Buffer::allocate(1'000'000, /*zeroed=*/true);
  auto writer = io::StreamWriter::over(descriptor);
  if (!memory || !writer) return;
  Descriptor plain;
  plain.dtype = DType::uint8;
  plain.shape = Shape{memory->size()};
  const auto tensor = bind(plain, {*memory});
  const auto sources = tensor ? io::sources_of(*tensor) : tensor.error();
  for (std::uint64_t i = 0; sources && i < count; ++i)
    if (!writer->write(tensor->descriptor(), *sources)) break;
  static_cast<void>(writer->finish());
  ::shutdown(descriptor, SHUT_WR);
}

}  // namespace

int main() {
  Loop loop;
  std::vector<Connection> connections(3);
  std::vector<std::thread> senders;
  std::vector<int> far_ends;
  for (std::size_t i = 0; i < connections.size(); ++i) {
    int ends[2];
    if (::socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0) return 1;
    if (::fcntl(ends[0], F_SETFL, O_NONBLOCK) != 0) return 1;
    connections[i].descriptor = ends[0];
    far_ends.push_back(ends[1]);
    senders.emplace_back(write_tensors, ends[1], i + 1);
  }
  for (Connection& connection : connections) receive(loop, connection);
  loop.run();
  for (std::thread& sender : senders) sender.join();
  for (const int end : far_ends) ::close(end);
  for (std::size_t i = 0; i < connections.size(); ++i) {
    const Connection& connection = connections[i];
    std::printf("%llu tensors, %llu bytes\n", static_cast<unsigned long long>(connection.items),
                static_cast<unsigned long long>(connection.bytes));
    if (!connection.clean || connection.items != i + 1 || connection.bytes != (i + 1) * 1'000'000)
      return 1;
  }
  return 0;
}
