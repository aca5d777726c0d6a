#include "hurray/formats/npy.hpp"

#include <algorithm>
#include <cstring>
#include <optional>
#include <string_view>
#include <utility>

#include "hurray/buffer.hpp"
#include "hurray/checked.hpp"
#include "hurray/io/replace_file.hpp"
#include "npy_types.hpp"

namespace hurray::formats {
namespace {

std::string npy_header(const NpyType& type, const Shape& shape) {
  std::string sizes;
  for (const std::uint64_t size : shape)
    sizes.append(sizes.empty() ? "" : ", ").append(std::to_string(size));
  if (shape.rank() == 1) sizes += ',';
  std::string header = "{'descr': '";
  header.append(bits(type.dtype) <= 8 ? "|" : "<").append(type.code);
  header.append("', 'fortran_order': False, 'shape': (").append(sizes).append("), }");
  constexpr std::size_t prefix = 10;
  constexpr std::size_t alignment = 64;
  const std::size_t whole = (prefix + header.size() + 1 + alignment - 1) / alignment * alignment;
  header.resize(whole - prefix - 1, ' ');  // 64 dimensions of 20 digits stay below 65536 bytes
  header += '\n';
  std::string bytes("\x93NUMPY\x01\x00", 8);
  bytes += static_cast<char>(header.size() & 0xFF);
  bytes += static_cast<char>(header.size() >> 8);
  return bytes + header;
}

/// Bits to bytes, in place: what is packed stands at the end of `bytes`, and is read before it is
/// written over.
void unpack(std::span<std::byte> bytes, std::uint64_t count) {
  const std::size_t packed = bytes.size() - static_cast<std::size_t>((count + 7) / 8);
  for (std::uint64_t i = 0; i < count; ++i) {
    const auto bit =
        bytes[packed + static_cast<std::size_t>(i / 8)] >> static_cast<unsigned>(i % 8);
    bytes[static_cast<std::size_t>(i)] = bit & std::byte{1};
  }
}

}  // namespace

io::Result<void> write_npy(const io::FileSet& set, std::size_t entry, const std::string& target,
                           bool sync) {
  const auto about = [&](const hurray::Error& error, std::string detail = {}) {
    return io::Error(error, set.path(), std::string(set.name(entry)), std::move(detail));
  };
  const auto descriptor = set.descriptor(entry);
  if (!descriptor) return descriptor.error();
  if (!is_dense(descriptor->layout))
    return about({.code = Errc::unsupported,
                  .origin = Origin::file,
                  .field = "layout_tag",
                  .what = ".npy files hold dense tensors"},
                 "this one is " + std::string(name(descriptor->layout)));
  if (descriptor->quantization() != nullptr)
    return about({.code = Errc::unsupported,
                  .origin = Origin::file,
                  .field = "quantization",
                  .what = ".npy files hold no quantized tensors"},
                 "`hurray cat --json` shows its values");
  const auto type = std::ranges::find(npy_types, descriptor->dtype, &NpyType::dtype);
  if (type == npy_types.end())
    return about({.code = Errc::unsupported,
                  .origin = Origin::file,
                  .field = "type_tag",
                  .what = "NumPy has no such type"},
                 "this one is " + std::string(name(descriptor->dtype)) +
                     "; `hurray cat --raw` writes its bytes");
  const auto slice = set.slice(entry, {});
  if (!slice) return slice.error();
  const std::string header = npy_header(*type, descriptor->shape);
  const bool is_bool = descriptor->dtype == DType::bool_;
  const std::uint64_t size = is_bool ? descriptor->shape.count() : slice->size_bytes();
  const auto whole = checked_add(size, std::uint64_t{header.size()});
  auto memory =
      whole ? Buffer::allocate(*whole) : Result<Buffer>(hurray::Error{.code = Errc::out_of_memory});
  if (!memory) return about(memory.error());
  const auto bytes = memory->bytes();
  std::memcpy(bytes.data(), header.data(), header.size());
  const auto data = bytes.subspan(header.size());
  const auto stored = data.last(static_cast<std::size_t>(slice->size_bytes()));
  if (auto read = slice->read_into(stored); !read) return read;
  if (is_bool) unpack(data, descriptor->shape.count());
  return io::replace_file(target, bytes, sync);
}

}  // namespace hurray::formats
