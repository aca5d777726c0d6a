// Writes a file, damages one byte of it, and finds that byte: by verifying, and by reading.
#include <array>
#include <cstdint>
#include <fstream>
#include <iostream>
#include <span>
#include <string>

#include "hurray/builder.hpp"
#include "hurray/io/file.hpp"
#include "hurray/io/file_writer.hpp"
#include "hurray/io/verify.hpp"

using namespace hurray;

namespace {

int fail(const std::string& why) { return std::cerr << why << '\n', 1; }

io::Result<void> save(const std::string& path) {
  const std::array<std::int16_t, 3> values{1, -2, 300};
  const auto descriptor = DescriptorBuilder::row_major(DType::int16, {3}).build();
  if (!descriptor) return descriptor.error();
  auto writer = io::FileWriter::create(path);
  if (!writer) return writer.error();
  const io::BufferSource source(std::as_bytes(std::span(values)));
  if (auto written = writer->write("t", *descriptor, {&source, 1}); !written) return written;
  return writer->finish();
}

}  // namespace

int main() {
  const std::string path = "verified.hrry";
  if (auto saved = save(path); !saved) return fail(to_string(saved.error()));

  const auto file = io::File::open(path);
  if (!file) return fail(to_string(file.error()));
  const auto sound = io::verify(*file);
  if (!sound) return fail(to_string(sound.error()));
  std::cout << sound->bytes_read << " bytes read, "
            << (sound->is_protected() ? "every sum is right\n" : "there are no sums\n");

  std::fstream(path, std::ios::in | std::ios::out | std::ios::binary).seekp(4096).put('?');

  const auto damaged = io::verify(path, {}, [](const io::Finding& finding) {
    std::cout << "bytes " << finding.offset << " to " << finding.offset + finding.size - 1 << ": "
              << to_string(finding.error) << '\n';
    return true;  // go on
  });
  if (!damaged) return fail(to_string(damaged.error()));
  if (damaged->findings != 1) return fail("one byte makes one finding");

  const auto again = io::File::open(path, {.mode = io::Mode::memory});
  if (!again) return fail(to_string(again.error()));
  const auto tensor = again->tensor("t");  // compared while it is copied
  if (tensor || tensor.error().code != Errc::checksum_mismatch) return fail("not noticed");
}
