#include <iostream>

#include "hurray/io/file.hpp"

int main(int argc, char** argv) {
  const auto file = hurray::io::File::open(argc > 1 ? argv[1] : "weights.hrry");
  if (!file) return std::cerr << to_string(file.error()) << '\n', 1;
  for (std::size_t i = 0; i < file->size(); ++i)
    if (const auto tensor = file->tensor(i))
      std::cout << file->entry(i).name << ": " << name(tensor->descriptor().dtype) << ", "
                << tensor->buffer(0).size() << " bytes, aligned to "
                << tensor->buffer(0).alignment() << '\n';
}
