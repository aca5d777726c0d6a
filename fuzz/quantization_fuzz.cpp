// Any bytes as the quantization section of a small tensor: refused, or written back the same, and
// its parameters are judged before they are used.
#include <algorithm>
#include <cstring>

#include "use_tensor.hpp"

namespace {

using namespace hurray;

/// A valid tensor of `layout`, with two buffers beyond the layout's own, as bytes whose section is
/// missing.
std::vector<std::byte> unquantized(DType dtype, Layout layout, std::size_t own) {
  Descriptor d;
  d.dtype = dtype;
  d.shape = {4, 16};
  if (std::holds_alternative<BlockPaged>(layout)) d.shape = {4, 2, 8};
  d.layout = std::move(layout);
  d.buffers.resize(own);
  for (std::size_t i = 0; i < own; ++i) d.buffers[i].byte_size = 4096;
  for (BufferHandle& handle : d.buffers) handle.alignment = 64;
  auto bytes = *encode(d);
  constexpr std::size_t handle_bytes = 16;
  const std::size_t at_count = bytes.size() - own * handle_bytes - 1;
  const std::vector<std::byte> last(bytes.end() - handle_bytes, bytes.end());
  for (int i = 0; i < 2; ++i) bytes.insert(bytes.end(), last.begin(), last.end());
  bytes[at_count] = static_cast<std::byte>(own + 2);
  bytes[10] = std::byte{1};  // HAS_QUANTIZATION
  return bytes;
}

void run(std::vector<std::byte> bytes, std::size_t own, std::span<const std::byte> section,
         std::uint64_t scales, std::uint64_t zero_points) {
  const std::size_t handles = bytes.size() - (own + 2) * 16;
  detail::store(bytes.data() + handles + own * 16, scales);
  detail::store(bytes.data() + handles + (own + 1) * 16, zero_points);
  const auto append = [&](std::span<const std::byte> more) {
    bytes.insert(bytes.end(), more.begin(), more.end());
  };
  std::byte length[4];
  detail::store(length, static_cast<std::uint32_t>(section.size()));
  append(length);
  append(section);
  detail::store(bytes.data() + 6, static_cast<std::uint32_t>(bytes.size()));
  for (const bool permissive : {false, true}) {
    const auto d = decode(bytes, {.permissive = permissive, .agreed = {.all = permissive}});
    if (!fuzz::explained(d)) continue;
    fuzz::require(*encode(*d, {.permissive = permissive}) == bytes);
    std::vector<Buffer> buffers;
    for (const BufferHandle& handle : d->buffers) {
      auto buffer = Buffer::allocate(handle.byte_size, true);
      fuzz::require(buffer.has_value());
      // Parameters from the same input.
      std::copy_n(section.begin(), std::min<std::size_t>(section.size(), buffer->bytes().size()),
                  buffer->data());
      buffers.push_back(*std::move(buffer));
    }
    Descriptor copy = *d;
    const auto tensor = bind(std::move(copy), std::move(buffers), {.permissive = permissive});
    if (fuzz::explained(tensor)) fuzz::use(*tensor);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 4) return 0;
  const std::span section(reinterpret_cast<const std::byte*>(data) + 4, size - 4);
  constexpr DType types[] = {DType::int4,        DType::uint4,       DType::int8,
                             DType::uint8,       DType::int32,       DType::float8_e4m3,
                             DType::float4_e2m1, DType::float6_e2m3, DType::float32};
  const DType dtype = types[data[0] % std::size(types)];
  const std::uint64_t scales = data[1];
  const std::uint64_t zero_points = data[2];
  switch (data[3] % 4) {
    case 0:
      run(unquantized(dtype, RowMajor{}, 1), 1, section, scales, zero_points);
      break;
    case 1:
      run(unquantized(dtype, ColumnMajor{}, 1), 1, section, scales, zero_points);
      break;
    case 2:
      run(unquantized(dtype, Csr{.nnz = 3}, 3), 3, section, scales, zero_points);
      break;
    default:
      run(unquantized(dtype, BlockPaged{.num_pages = 4, .page_size = 2, .num_seqs = 1}, 3), 3,
          section, scales, zero_points);
      break;
  }
  return 0;
}
