// Any bytes: a stream's tensors are written again as they came, up to the first that is refused,
// and their elements and composites are used.
#include <algorithm>
#include <cstdlib>

#include "hurray/io/stream.hpp"
#include "hurray/materialize.hpp"
#include "use_tensor.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace hurray::io;
  const std::span bytes(reinterpret_cast<const std::byte*>(data), size);
  auto reader = StreamReader::over(bytes);
  auto writer = StreamWriter::in_memory();
  if (!reader || !writer) std::abort();
  bool refused = false;
  for (;;) {
    const std::uint64_t start = reader->position();
    const auto item = reader->next();
    if (!item) {
      if (to_string(item.error()).empty() || reader->position() != start) std::abort();
      refused = true;
      break;
    }
    if (!*item) {
      if (reader->position() != size) std::abort();
      break;
    }
    std::vector<BufferSource> sources;
    for (const hurray::Buffer& buffer : (*item)->buffers()) {
      if (buffer.size() != 0 && buffer.alignment() < hurray::min_buffer_alignment) std::abort();
      sources.emplace_back(buffer.bytes());
    }
    const std::size_t before = writer->bytes().size();
    const auto written = writer->write((*item)->wire_descriptor(), sources);
    const hurray::Descriptor& d = (*item)->descriptor();
    // Readers take members without elements, writers make none (02-layouts.md L21).
    const bool may_be_written = d.version.minor == 0;
    const bool may_be_refused = !may_be_written || (d.shard() != nullptr && d.shape.is_empty());
    if (written ? !may_be_written : !may_be_refused) std::abort();
    if (!written) {  // what follows may be members of what is not there
      refused = true;
      break;
    }
    const auto copy = writer->bytes().subspan(before);
    if (copy.size() != reader->position() - start) std::abort();
    if ((*item)->unsynced_buffer() && !std::ranges::equal(copy, bytes.subspan(start, copy.size())))
      std::abort();
  }
  const auto once = writer->bytes();
  auto again = StreamReader::over(once);
  if (!again) std::abort();
  for (auto item = again->next();; item = again->next()) {
    // What was refused may have left a composite without its last members.
    if (!item && (!refused || item.error().code != hurray::Errc::truncated)) std::abort();
    if (!item || !*item) break;
  }
  if (again->position() != once.size()) std::abort();

  auto items = StreamReader::over(bytes);
  for (auto item = items->next_item(); item && *item; item = items->next_item()) {
    hurray::for_each_item(**item, [](const hurray::Item& one, std::span<const std::size_t>) {
      fuzz::use(one.tensor, 1024);
      return true;
    });
    const hurray::Descriptor& d = (*item)->tensor.descriptor();
    if ((*item)->is_composite() && !d.shape.is_dynamic() && d.shape.count() <= 1024)
      fuzz::explained(hurray::materialize(**item));
  }
  return 0;
}
