#include <iostream>

#include "hurray/io/file.hpp"

int main(int argc, char** argv) {
  const auto file = hurray::io::File::open(argc > 1 ? argv[1] : "weights.hrry");
  if (!file) return std::cerr << to_string(file.error()) << '\n', 1;
  for (std::size_t i = 0; i < file->size(); ++i) {
    const auto tensor = file->tensor(i);
    if (!tensor) return std::cerr << to_string(tensor.error()) << '\n', 1;
    std::cout << file->entry(i).name << ": " << name(tensor->descriptor().dtype) << '\n';
    for (const hurray::Buffer& buffer : tensor->buffers())  // a composite head has none
      std::cout << "  " << buffer.size() << " bytes, aligned to " << buffer.alignment() << '\n';
  }
}
