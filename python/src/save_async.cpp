#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "bindings.hpp"
#include "hurray/gather.hpp"
#include "hurray/io/file_writer.hpp"
#include "key_values.hpp"
#include "named_item.hpp"
#include "save_plan.hpp"
#include "waiting.hpp"

namespace hurray::python {
namespace {

/// One tensor of a save that goes on beside the program.
struct Kept {
  std::string name;
  hurray::Descriptor descriptor;
  std::vector<io::BufferSource> buffers;
  std::vector<std::shared_ptr<Owner>> owners;  ///< Of the memory; may go in any thread.
};

/// Whole elements of every type.
constexpr std::uint64_t piece_bytes =
    (std::uint64_t{16} << 20) / gather_granularity * gather_granularity;
/// Fresh memory is mostly waited for: from this size on a second thread is sooner done.
constexpr std::uint64_t bytes_per_thread = std::uint64_t{64} << 20;
constexpr std::uint64_t most_threads = 8;

/// Bytes that are to be copied, and where to.
struct Copying {
  const io::BufferSource* from;
  std::uint64_t offset;
  std::span<std::byte> to;

  void run() const {
    if (from->converted())
      (void)from->fill(offset, to);  // arrays cannot fail
    else  // not empty; this file is compiled for size, where an algorithm copies byte by byte
      std::memcpy(to.data(), from->bytes().data() + offset, to.size());
  }
};

/// False when a signal handler raised; the exception is set.
bool copy_all(const std::vector<Copying>& pieces, std::uint64_t bytes) {
  std::atomic<std::size_t> next = 0;
  std::atomic<bool> stopped = false;
  const auto take = [&](auto&& after_each) {
    for (;;) {
      const std::size_t k = next.fetch_add(1);
      if (k >= pieces.size() || stopped.load()) return;
      pieces[k].run();
      after_each();
    }
  };
  std::vector<std::jthread> helpers;
  const std::uint64_t threads =
      std::min<std::uint64_t>({std::max(1u, std::thread::hardware_concurrency()), most_threads,
                               bytes / bytes_per_thread + 1});
  try {
    for (std::uint64_t k = 1; k < threads; ++k) helpers.emplace_back([&] { take([] {}); });
  } catch (const std::system_error&) {  // then there are fewer
  }
  auto asked = std::chrono::steady_clock::now();
  take([&] {
    const auto now = std::chrono::steady_clock::now();
    if (now - asked < std::chrono::milliseconds(250)) return;
    asked = now;
    if (signal_raised()) stopped = true;
  });
  return !stopped.load();
}

/// A save that has been judged and waits for its thread.
class SaveJob {
 public:
  /// `items`: those of each part of `plan`.
  SaveJob(SavePlan plan, io::KeyValues kv, io::WriteOptions options,
          std::vector<std::vector<Kept>> items)
      : plan_(std::move(plan)),
        kv_(std::move(kv)),
        options_(std::move(options)),
        items_(std::move(items)) {}

  /// Call it once.
  void run() {
    unwrap_waited(without_gil([&] {
      auto result = write();
      items_.clear();
      return result;
    }));
  }

 private:
  io::Result<void> write() {
    auto writers = plan_.writers(options_);
    if (!writers) return std::move(writers).error();
    for (std::size_t k = 0; k < items_.size(); ++k)
      for (Kept& item : items_[k]) {
        auto done = (*writers)[k].write(item.name, item.descriptor, item.buffers);
        if (!done) return done;
        item.owners.clear();
      }
    return plan_.finish(*writers, kv_, options_.sync);
  }

  SavePlan plan_;
  io::KeyValues kv_;
  io::WriteOptions options_;
  std::vector<std::vector<Kept>> items_;
};

/// The tensors of `items` in the order of the file, over the callers' memory.
std::vector<Kept> tensors_of(std::span<NamedItem> items) {
  std::vector<Kept> all;
  for (NamedItem& item : items) {
    if (item.composite == nullptr) {
      const WritableSource& source = item.ready();
      all.push_back({item.name, source.descriptor, source.buffers, {}});
      if (source.owner) all.back().owners.push_back(source.owner);
      all.back().owners.push_back(hold(source.object));
      continue;
    }
    const std::vector<std::string> members = io::member_names(item.name, item.composite->item);
    const std::shared_ptr<Owner> owner = hold(item.value);
    std::size_t k = 0;
    for_each_item(item.composite->item, [&](const hurray::Item& part, auto path) {
      auto sources = unwrap(io::sources_of(part.tensor));
      all.push_back({path.empty() ? item.name : members[k++],
                     part.tensor.wire_descriptor(),
                     std::move(sources),
                     {owner}});
      return true;
    });
  }
  return all;
}

/// Copies the bytes of all of `tensors` into own memory.
void take_snapshot(std::vector<Kept>& tensors) {
  // What is read while it is copied must not move.
  std::vector<Kept> before = std::exchange(tensors, {});
  std::vector<Copying> pieces;
  std::uint64_t bytes = 0;
  for (const Kept& tensor : before) {
    Kept copy{tensor.name, tensor.descriptor, {}, {}};
    for (const io::BufferSource& buffer : tensor.buffers) {
      const Buffer memory = unwrap(Buffer::allocate(buffer.size()));
      for (std::uint64_t at = 0; at < buffer.size(); at += piece_bytes) {
        const auto size = static_cast<std::size_t>(std::min(piece_bytes, buffer.size() - at));
        pieces.push_back({&buffer, at, memory.bytes().subspan(static_cast<std::size_t>(at), size)});
      }
      bytes += buffer.size();
      copy.buffers.emplace_back(std::span<const std::byte>(memory.bytes()));
      if (memory.owner()) copy.owners.push_back(memory.owner());
    }
    tensors.push_back(std::move(copy));
  }
  if (!without_gil([&] { return copy_all(pieces, bytes); })) nb::raise_python_error();
}

nb::object save_async(nb::handle path, nb::handle tensors, nb::handle kv, bool checksums, bool sync,
                      bool snapshot, nb::handle max_shard_size) {
  const nb::module_ saving = nb::module_::import_("hurray._saving");
  const nb::object target = saving.attr("target")(path);
  const std::string file = path_argument(target);
  auto [items, key_values, count] = save_arguments(tensors, kv);
  io::WriteOptions options = write_options(checksums, sync);
  SavePlan plan(file, items, max_shard_size);
  {
    // Judged by a writer of its own, whose bytes go nowhere.
    const io::FileWriter judge = unwrap(io::FileWriter::create("/dev/null", options));
    for (NamedItem& item : items) unwrap(item.check(judge));
  }
  options.interrupted = {};  // signals are the main thread's
  std::vector<std::vector<Kept>> kept;
  for (const SavePart& part : plan.parts()) {
    kept.push_back(tensors_of(part.of(items)));
    if (snapshot) take_snapshot(kept.back());
  }
  items.clear();
  auto job = std::make_unique<SaveJob>(std::move(plan), std::move(key_values), std::move(options),
                                       std::move(kept));
  return saving.attr("submit")(target, nb::cast(std::move(job)));
}

}  // namespace

void bind_save_async(nb::module_& m) {
  nb::class_<SaveJob>(m, "_SaveJob", "A save that waits for its thread.")
      .def("run", &SaveJob::run, "Write the file; once.");
  m.def(
      "save_async", save_async, nb::arg("path"), nb::arg("tensors"), nb::kw_only(),
      nb::arg("kv").none() = nb::none(), nb::arg("checksums") = true, nb::arg("sync") = true,
      nb::arg("snapshot") = true, nb::arg("max_shard_size") = nb::none(),
      nb::sig("def save_async(path: str | os.PathLike[str], tensors: collections.abc.Mapping[str, "
              "typing.Any], *, kv: collections.abc.Mapping[str, typing.Any] | None = None, "
              "checksums: bool = True, sync: bool = True, snapshot: bool = True, "
              "max_shard_size: int | str | None = None) -> concurrent.futures.Future[None]"),
      "`save` beside the program: returns a future once everything is copied.\n\n"
      "With `snapshot` all bytes are in own memory when this returns, and the originals may "
      "change;\n"
      "each copy goes when it is written. Without, the caller promises not to change the arrays\n"
      "until the future is done, and nothing is copied. One thread writes the file, without the\n"
      "GIL. Saves to one path come one after the other, in the order of the calls, and the\n"
      "interpreter's end waits for all of them. A save that waits for another one can be "
      "cancelled\n"
      "(`cancel()`), one that has begun cannot.\n\n"
      "Raises as `save` for names, values and `kv`, and MemoryError; what the system refuses "
      "comes\n"
      "through the future.");
}

}  // namespace hurray::python
