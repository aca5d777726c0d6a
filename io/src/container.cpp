#include "container.hpp"

#include <algorithm>

namespace hurray::io {

hurray::Result<Placement> place(const BufferTable& buffers, std::uint64_t data_offset,
                                std::uint32_t alignment) {
  Placement placement;
  placement.data_offset = data_offset;
  placement.buffers.reserve(buffers.size());
  std::uint64_t end = data_offset;
  const bool empty = std::ranges::all_of(buffers, &BufferHandle::is_empty);
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    const auto start =
        empty || i == 0 ? data_offset : checked_align_up<std::uint64_t>(end, alignment);
    const auto stop = start ? checked_add(*start, buffers[i].byte_size) : std::nullopt;
    if (!stop || *stop > max_file_bytes)
      return hurray::Error{.code = Errc::overflow,
                           .origin = Origin::file,
                           .expect = Expect::at_most,
                           .index = static_cast<std::uint32_t>(i),
                           .field = "buffers[].byte_size",
                           .what = "bytes up to the end of the largest file",
                           .expected = max_file_bytes - std::min(end, max_file_bytes),
                           .found = buffers[i].byte_size};
    placement.buffers.push_back(*start);
    end = *stop;
  }
  placement.data_length = end - data_offset;
  return placement;
}

}  // namespace hurray::io
