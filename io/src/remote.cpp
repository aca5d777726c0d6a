#include "remote.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <system_error>

#include "system.hpp"

namespace hurray::io {

namespace {

/// How long others are waited for before somebody is asked whether to go on.
constexpr std::chrono::milliseconds patience{200};

/// This thread's request, for as long as it takes.
class Asking {
 public:
  explicit Asking(std::atomic<std::thread::id>& asker) noexcept : asker_(asker) {
    asker_ = std::this_thread::get_id();
  }
  Asking(const Asking&) = delete;
  Asking& operator=(const Asking&) = delete;
  ~Asking() { asker_ = std::thread::id(); }

 private:
  std::atomic<std::thread::id>& asker_;
};

}  // namespace

Result<std::shared_ptr<Remote>> Remote::open(PositionedSource source,
                                             std::function<bool()> interrupted) {
  const std::shared_ptr<Remote> made(new Remote(std::move(source), std::move(interrupted)));
  const std::uint64_t start = made->size() - std::min(made->size(), tail_bytes);
  auto tail = made->fetch_held(start, made->size() - start);
  if (!tail) return std::move(tail).error();
  made->tail_ = *std::move(tail);
  if (start != 0) {
    auto head = made->fetch_held(0, std::min(start, head_bytes));
    if (!head) return std::move(head).error();
    made->head_ = *std::move(head);
  }
  return made;
}

Result<std::size_t> Remote::fetch(std::span<std::byte> into, std::uint64_t offset) {
  if (asker_.load() == std::this_thread::get_id())
    return system::to_error({.number = EDEADLK, .call = "read"}, Origin::file, name());
  std::unique_lock lock(asking_, std::defer_lock);
  while (!lock.try_lock_for(patience))
    if (interrupted_ && interrupted_()) return stopped();
  const Asking asking(asker_);
  std::size_t done = 0;
  while (done < into.size()) {
    const auto rest = into.subspan(done);
    requests_.fetch_add(1, std::memory_order_relaxed);
    auto count = contain(Origin::file, [&] { return source_.read_at(rest, offset + done); });
    if (!count) return count;
    if (*count > rest.size())
      return Error({.code = Errc::invalid_value,
                    .origin = Origin::file,
                    .expect = Expect::at_most,
                    .field = "read_at",
                    .what = "bytes, as many as there is room for",
                    .expected = rest.size(),
                    .found = *count},
                   name());
    if (*count == 0) break;
    bytes_read_.fetch_add(*count, std::memory_order_relaxed);
    done += *count;
  }
  return done;
}

Result<Remote::Held> Remote::fetch_held(std::uint64_t offset, std::uint64_t size) {
  auto memory = Buffer::allocate(size);
  if (!memory) return Error(memory.error(), name());
  const auto count = fetch(memory->bytes(), offset);
  if (!count) return count.error();
  return Held{offset, memory->view(0, *count)};
}

Error Remote::stopped() const { return system::to_error(system::stopped(), Origin::file, name()); }

Result<Remote::Found> Remote::find(std::uint64_t at, std::uint64_t wanted) {
  std::unique_lock lock(mutex_);
  std::uint64_t free = size() - at;
  for (const Held* held : {&head_, &tail_, &kept_, &window_}) {
    if (held->has(at)) return Found{*held, 0};
    if (held->bytes.size() != 0 && held->offset > at) free = std::min(free, held->offset - at);
  }
  const std::shared_ptr<Plan> plan = plan_;
  if (plan == nullptr) return Found{std::nullopt, free};
  for (Coming& coming : plan->ranges) {
    const ByteRange& range = coming.range;
    if (at < range.offset || at - range.offset >= range.size) {
      if (range.offset > at && !coming.done) free = std::min(free, range.offset - at);
      continue;
    }
    while (!arrived_.wait_for(lock, patience, [&] { return coming.done || plan->ended; })) {
      lock.unlock();
      if (interrupted_ && interrupted_()) return stopped();
      lock.lock();
    }
    if (!coming.held.has(at)) break;  // it failed: whoever asks finds out why
    Held held = coming.held;
    coming.taken += std::min(wanted, coming.held.offset + coming.held.bytes.size() - at);
    if (coming.taken >= range.size) coming.held = {};
    return Found{std::move(held), 0};
  }
  return Found{std::nullopt, free};
}

Result<std::size_t> Remote::read(std::span<std::byte> into, std::uint64_t offset,
                                 std::uint64_t ahead) {
  std::size_t done = 0;
  while (done < into.size()) {
    const std::uint64_t at = offset + done;
    if (at >= size()) break;
    const auto rest = into.subspan(done);
    auto found = find(at, rest.size());
    if (!found) return std::move(found).error();
    auto& [held, free] = *found;
    if (!held) {
      const std::uint64_t wanted = std::min<std::uint64_t>(rest.size(), free);
      const std::uint64_t more = std::min({free, wanted + ahead, ahead_bytes});
      if (more <= wanted) {
        const auto count = fetch(rest.first(static_cast<std::size_t>(wanted)), at);
        if (!count) return count;
        if (*count == 0) break;
        done += *count;
        continue;
      }
      auto window = fetch_held(at, more);
      if (!window) return std::move(window).error();
      if (window->bytes.size() == 0) break;
      held = *std::move(window);
      const std::scoped_lock lock(mutex_);
      window_ = *held;
    }
    const auto bytes = held->bytes.bytes().subspan(static_cast<std::size_t>(at - held->offset));
    const std::size_t count = std::min(bytes.size(), rest.size());
    std::ranges::copy(bytes.first(count), rest.begin());
    done += count;
  }
  return done;
}

Result<void> Remote::keep_from(std::uint64_t offset) {
  std::uint64_t end = 0;
  {
    const std::scoped_lock lock(mutex_);
    end = tail_.offset;
  }
  if (offset >= end) return {};
  auto held = fetch_held(offset, end - offset);
  if (!held) return std::move(held).error();
  const std::scoped_lock lock(mutex_);
  kept_ = *std::move(held);
  return {};
}

void Remote::let_go() {
  const std::scoped_lock lock(mutex_);
  kept_ = {};
}

void Remote::prefetch(std::span<const ByteRange> ranges) {
  stop();
  if (ranges.empty()) return;
  const auto plan = std::make_shared<Plan>();
  for (const ByteRange& range : ranges)
    for (std::uint64_t at = 0; at < range.size; at += ahead_bytes)
      plan->ranges.push_back(
          {.range = {range.offset + at, std::min(range.size - at, ahead_bytes)}});
  {
    const std::scoped_lock lock(mutex_);
    plan_ = plan;
  }
  try {
    std::thread([self = shared_from_this(), plan] { self->run(plan); }).detach();
  } catch (const std::system_error&) {  // no thread to be had: it is read when it is asked for
    stop();
  }
}

void Remote::run(const std::shared_ptr<Plan>& plan) {
  for (Coming& coming : plan->ranges) {
    {
      const std::scoped_lock lock(mutex_);
      if (plan->ended) return;
    }
    auto held =
        contain(Origin::file, [&] { return fetch_held(coming.range.offset, coming.range.size); });
    const std::scoped_lock lock(mutex_);
    if (held && !plan->ended) coming.held = *std::move(held);
    coming.done = true;
    arrived_.notify_all();
  }
}

void Remote::stop() {
  const std::scoped_lock lock(mutex_);
  if (plan_ != nullptr) plan_->ended = true;
  plan_.reset();
  arrived_.notify_all();
}

}  // namespace hurray::io
