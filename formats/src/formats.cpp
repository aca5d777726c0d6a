#include "hurray/formats/formats.hpp"

#include <array>
#include <vector>

#include "format.hpp"

namespace hurray::formats {
namespace {

struct Format {
  bool (*is)(std::span<const std::byte> head, std::uint64_t size) noexcept;
  io::Result<io::Translation> (*see)(const io::ForeignSource& source);
};

constexpr auto all = std::to_array<Format>({
    {is_npy, see_npy},
    {is_gguf, see_gguf},
    {is_safetensors, see_safetensors},
});

std::string_view pack(const std::byte* stored, std::byte* out, std::size_t units) {
  for (std::size_t k = 0; k < units; ++k, stored += 8) {
    std::uint32_t bits = 0;
    for (unsigned i = 0; i < 8; ++i) bits |= (stored[i] != std::byte{0} ? 1u : 0u) << i;
    out[k] = static_cast<std::byte>(bits);
  }
  return {};
}

template <std::size_t width>
std::string_view swap(const std::byte* stored, std::byte* out, std::size_t units) {
  for (std::size_t k = 0; k < units; ++k)
    std::reverse_copy(stored + k * width, stored + (k + 1) * width, out + k * width);
  return {};
}

template <std::size_t width>
constexpr io::Conversion swapped{.stored_bytes = width, .bytes = width, .run = swap<width>};

}  // namespace

constinit const io::Conversion pack_bools{.stored_bytes = 8, .bytes = 1, .run = pack};

const io::Conversion* swap_bytes(std::size_t width) noexcept {
  switch (width) {
    case 2:
      return &swapped<2>;
    case 4:
      return &swapped<4>;
    case 8:
      return &swapped<8>;
    default:
      return nullptr;
  }
}

io::ForeignReader reader() {
  return [](const io::ForeignSource& source) -> io::Result<std::optional<io::Translation>> {
    std::array<std::byte, head_bytes> start;
    const auto head = std::span(start).first(
        static_cast<std::size_t>(std::min<std::uint64_t>(source.size, start.size())));
    if (auto read = source.read(head, 0); !read) return read.error();
    for (const Format& format : all) {
      if (!format.is(head, source.size)) continue;
      auto seen = contain(Origin::file, [&] { return format.see(source); });
      if (!seen) return std::move(seen).error();
      return std::optional(*std::move(seen));
    }
    return std::optional<io::Translation>();
  };
}

}  // namespace hurray::formats
