// Any bytes as a file of another format: opening refuses them, or what is seen is a .hrry file
// whose descriptors can be read, and whose tensors can be read and used, or say why not.
#include <cstdlib>
#include <cstring>
#include <span>

#include "hurray/buffer.hpp"
#include "hurray/formats/formats.hpp"
#include "hurray/io/file.hpp"
#include "use_tensor.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  auto image = hurray::Buffer::allocate(size);
  fuzz::require(image.has_value());
  if (size != 0) std::memcpy(image->data(), data, size);
  hurray::io::OpenOptions options;
  options.mode = hurray::io::Mode::memory;
  options.max_index_bytes = 1u << 20;
  options.max_tensor_bytes = 1u << 20;
  options.foreign = hurray::formats::reader();
  const auto file = hurray::io::File::over(*std::move(image), options);
  if (!fuzz::explained(file)) return 0;
  for (std::size_t i = 0; i < file->size(); ++i) {
    fuzz::require(file->descriptor(i).has_value() || file->format() == "hrry");
    const auto tensor = file->tensor(i);
    if (fuzz::explained(tensor)) fuzz::use(*tensor, 256);
  }
  return 0;
}
