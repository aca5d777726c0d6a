// Writes weights.hrry straight from the program's own arrays, with typed metadata.
#include <array>
#include <cstdint>
#include <iostream>
#include <numeric>
#include <span>
#include <string>

#include "hurray/io/file_writer.hpp"

using namespace hurray;

namespace {

io::Result<void> save(const std::string& path) {
  std::array<float, 12> weights;
  std::iota(weights.begin(), weights.end(), 0.0f);

  Descriptor d;
  d.dtype = DType::float32;
  d.shape = Shape{3, 4};
  d.buffers = BufferTable{{.byte_size = sizeof weights, .alignment = min_buffer_alignment}};

  auto writer = io::FileWriter::create(path);
  if (!writer) return writer.error();
  const io::BufferSource source(std::as_bytes(std::span(weights)));
  if (auto written = writer->write("w", d, {&source, 1}); !written) return written;

  d.shape = Shape{0, 4};  // no elements: no bytes, alignment 1
  d.buffers = BufferTable{{.byte_size = 0, .alignment = 1}};
  const io::BufferSource nothing;
  if (auto written = writer->write("empty", d, {&nothing, 1}); !written) return written;

  // A head without buffers, and the tensor that it binds.
  d.layout = CompositeHead{.member_count = 1, .rule = CompositionRule::group};
  d.buffers = {};
  if (auto written = writer->write("group", d, {}); !written) return written;
  d.layout = RowMajor{};
  d.buffers = BufferTable{{.byte_size = 0, .alignment = 1}};
  if (auto written = writer->write("group.0", d, {&nothing, 1}); !written) return written;

  return writer->finish({{"framework", std::string("none")}, {"epoch", std::int64_t{3}}});
}

}  // namespace

int main() {
  if (auto saved = save("weights.hrry"); !saved) {
    std::cerr << to_string(saved.error()) << '\n';
    return 1;
  }
  std::cout << "wrote weights.hrry\n";
}
