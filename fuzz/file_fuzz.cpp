// Any bytes as a file: opening refuses them or hands out tensors of which every byte can be read,
// the same in every mode, and whose elements and composites are used.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "hurray/cursor.hpp"
#include "hurray/io/crc32c.hpp"
#include "hurray/io/file.hpp"
#include "hurray/io/slice.hpp"
#include "hurray/materialize.hpp"
#include "use_tensor.hpp"

namespace {

using fuzz::require;
using hurray::io::File;
using hurray::io::Mode;

/// Every item and the tensors in it; a composite is found at its head, and only there.
void use_items(const File& file) {
  const auto owners = file.owners();
  if (!fuzz::explained(owners)) return;
  require(owners->size() == file.size());
  for (std::size_t i = 0; i < file.size(); ++i) {
    const auto item = file.item(i);
    if (!fuzz::explained(item)) continue;
    std::size_t members = 0;
    hurray::for_each_item(*item, [&](const hurray::Item& one, std::span<const std::size_t> path) {
      members += path.empty() ? 0 : 1;
      fuzz::use(one.tensor, 256);
      return true;
    });
    require(members < file.size());
    const hurray::Descriptor& d = item->tensor.descriptor();
    if (item->is_composite() && !d.shape.is_dynamic() && d.shape.count() <= 256)
      fuzz::explained(hurray::materialize(*item));
  }
}

/// The bytes as something that is read by position, in answers of any length.
hurray::io::PositionedSource far(std::span<const std::uint8_t> bytes, const std::string& name) {
  return {.size = bytes.size(),
          .read_at = [bytes](std::span<std::byte> into,
                             std::uint64_t offset) -> hurray::io::Result<std::size_t> {
            if (offset >= bytes.size()) return std::size_t{0};
            const auto rest = std::as_bytes(bytes).subspan(static_cast<std::size_t>(offset));
            const std::size_t count = std::min({rest.size(), into.size(), 1 + rest.size() / 2});
            std::ranges::copy(rest.first(count), into.begin());
            return count;
          },
          .name = name};
}

/// All of a tensor and a part of it, read by position: the same from both.
void use_part(const File& here, const File& there, std::size_t i) {
  hurray::Selection selection;
  for (int round = 0; round < 2; ++round) {
    const auto one = here.slice(i, selection);
    const auto other = there.slice(i, selection);
    require(one.has_value() == other.has_value());
    if (!fuzz::explained(one) || one->size_bytes() > (1u << 20)) return;
    const auto read = one->read({.share = false});
    const auto fetched = other->read();
    require(read.has_value() == fetched.has_value());
    if (!fuzz::explained(read)) return;
    require(std::ranges::equal(read->buffer(0).bytes(), fetched->buffer(0).bytes()));
    const hurray::Shape& shape = read->descriptor().shape;
    for (std::size_t k = 0; k < shape.rank(); ++k)
      selection.push_back({.start = shape[k] / 3, .stop = shape[k], .step = 1 + k % 2});
  }
}

/// A file with a name: memory without one is not mapped while it can be cut.
struct Scratch {
  std::string path = (std::filesystem::temp_directory_path() / "hurray-fuzz-XXXXXX").string();
  int descriptor = ::mkostemp(path.data(), O_CLOEXEC);
  ~Scratch() { ::unlink(path.c_str()); }
};

void run(std::span<const std::uint8_t> bytes) {
  static const Scratch scratch;
  const int descriptor = scratch.descriptor;
  const std::string& path = scratch.path;
  require(::ftruncate(descriptor, static_cast<off_t>(bytes.size())) == 0);
  require(::pwrite(descriptor, bytes.data(), bytes.size(), 0) ==
          static_cast<ssize_t>(bytes.size()));

  hurray::io::OpenOptions options;
  options.verify = false;  // else one mode compares sums, and the other does not
  options.mode = Mode::map;
  const auto mapped = File::open(path, options);
  options.mode = Mode::memory;
  const auto read = File::open(path, options);
  require(mapped.has_value() == read.has_value());
  if (!mapped) {
    const auto remote = File::over(far(bytes, path), options);
    require(!remote && to_string(remote.error()) == to_string(read.error()));
    require(to_string(mapped.error()) == to_string(read.error()));
    require(!to_string(mapped.error()).empty());
    return;
  }
  const auto remote = File::over(far(bytes, path), options);
  require(remote.has_value());
  const auto kv = hurray::io::load_kv(path);
  require(kv && kv->size() == mapped->kv().size());

  for (std::size_t i = 0; i < mapped->size(); ++i) {
    const auto entry = mapped->entry(i);
    require(mapped->find(entry.name) == i);
    const auto stored = mapped->descriptor(i);
    const auto view = mapped->tensor(i);
    const auto copy = read->tensor(i);
    const auto fetched = remote->tensor(i);
    require(fetched.has_value() == copy.has_value());
    use_part(*mapped, *remote, i);
    require(view.has_value() == copy.has_value());
    require(!view || stored);
    if (!view) {
      require(to_string(view.error()) == to_string(copy.error()));
      require(view.error().tensor == entry.name);
      continue;
    }
    require(view->buffers().size() == copy->buffers().size());
    require(fetched->buffers().size() == copy->buffers().size());
    for (std::size_t k = 0; k < view->buffers().size(); ++k) {
      const auto elements = view->buffer(k).bytes();
      require(std::ranges::equal(elements, copy->buffer(k).bytes()));
      require(std::ranges::equal(elements, fetched->buffer(k).bytes()));
      require(view->readonly() && !copy->readonly());
      if (elements.empty()) continue;
      require(reinterpret_cast<std::uintptr_t>(copy->buffer(k).data()) % 64 == 0);
      require(view->buffer(k).make_writable().has_value());
      *view->buffer(k).data() ^= std::byte{1};  // private: the next run finds the file as it was
    }
  }
  use_items(*read);
}

/// Makes the checksum of the index right where there is an index, so that what is behind it is
/// reached.
void repair(std::span<std::uint8_t> bytes) {
  if (bytes.size() < 112) return;
  const auto trailer = bytes.last(40);
  const auto number = [&](std::size_t at) {
    return hurray::detail::load<std::uint64_t>(std::as_bytes(trailer).data() + at);
  };
  const std::uint64_t end = bytes.size() - trailer.size();
  if (number(0) > end || number(8) > end - number(0)) return;
  const auto index =
      bytes.subspan(static_cast<std::size_t>(number(0)), static_cast<std::size_t>(number(8)));
  hurray::detail::store(std::as_writable_bytes(trailer).data() + 28,
                        hurray::io::crc32c(std::as_bytes(index)));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::vector<std::uint8_t> bytes(data, data + size);
  run(bytes);
  repair(bytes);
  run(bytes);
  return 0;
}
