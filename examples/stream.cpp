// Three tensors behind the head that binds them, one after the other through bytes; over a pipe or
// socket it is the same, with a descriptor.
#include <cstdint>
#include <cstring>
#include <iostream>
#include <string_view>

#include "hurray/buffer.hpp"
#include "hurray/builder.hpp"
#include "hurray/io/stream.hpp"
#include "hurray/tensor.hpp"

using namespace hurray;

namespace {

Result<Tensor> counted(std::uint64_t rows) {
  auto memory = Buffer::allocate(rows * 8, /*zeroed=*/true);
  if (!memory) return memory.error();
  for (std::uint64_t i = 0; i < rows; ++i) std::memcpy(memory->data() + 8 * i, &i, sizeof i);
  Descriptor d;
  d.dtype = DType::uint64;
  d.shape = Shape{rows};
  return bind(d, {*memory});
}

int fail(std::string_view why) {
  std::cerr << why << '\n';
  return 1;
}

}  // namespace

int main() {
  auto writer = io::StreamWriter::in_memory();
  if (!writer) return fail(to_string(writer.error()));
  const auto head = DescriptorBuilder::group(DType::uint64, {3}, 3).build();
  if (!head) return fail(to_string(head.error()));
  if (const auto written = writer->write(*head, {}); !written)
    return fail(to_string(written.error()));
  for (const std::uint64_t rows : {5u, 0u, 7u}) {
    const auto tensor = counted(rows);
    if (!tensor) return fail(to_string(tensor.error()));
    const io::BufferSource source(tensor->buffer(0).bytes());
    const auto written = writer->write(tensor->wire_descriptor(), {&source, 1});
    if (!written) return fail(to_string(written.error()));
  }

  auto reader = io::StreamReader::over(writer->bytes());
  if (!reader) return fail(to_string(reader.error()));
  std::size_t count = 0;
  for (;; ++count) {
    const auto next = reader->next();
    if (!next) return fail(to_string(next.error()));
    if (!*next) break;  // the clean end

    // A composite head has no buffers.
    for (const BufferHandle& handle : (*next)->descriptor().buffers)
      std::cout << handle.byte_size << " bytes, aligned to " << handle.alignment << '\n';
  }

  // The same bytes, cut inside the last buffer.
  auto cut = io::StreamReader::over(writer->bytes().first(writer->bytes().size() - 1));
  if (!cut || !cut->next() || !cut->next() || !cut->next()) return 1;
  const auto torn = cut->next();
  if (torn) return fail("a torn stream was read");
  std::cout << to_string(torn.error()) << '\n';
  return count == 4 && torn.error().code == Errc::truncated ? 0 : 1;
}
