// Any bytes: a stream's tensors are written again as they came, up to the first that is refused.
#include <algorithm>
#include <cstdlib>

#include "hurray/io/stream.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace hurray::io;
  const std::span bytes(reinterpret_cast<const std::byte*>(data), size);
  auto reader = StreamReader::over(bytes);
  auto writer = StreamWriter::in_memory();
  if (!reader || !writer) std::abort();
  for (;;) {
    const std::uint64_t start = reader->position();
    const auto item = reader->next();
    if (!item) {
      if (to_string(item.error()).empty() || reader->position() != start) std::abort();
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
    if (static_cast<bool>(written) != ((*item)->descriptor().version.minor == 0)) std::abort();
    if (!written) continue;
    const auto copy = writer->bytes().subspan(before);
    if (copy.size() != reader->position() - start) std::abort();
    if ((*item)->unsynced_buffer() && !std::ranges::equal(copy, bytes.subspan(start, copy.size())))
      std::abort();
  }
  const auto once = writer->bytes();
  auto again = StreamReader::over(once);
  if (!again) std::abort();
  for (auto item = again->next();; item = again->next()) {
    if (!item) std::abort();
    if (!*item) break;
  }
  if (again->position() != once.size()) std::abort();
  return 0;
}
