#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "hurray/gather.hpp"
#include "hurray/io/error.hpp"
#include "hurray/result.hpp"
#include "hurray/tensor.hpp"

namespace hurray::io {

/// The bytes of one buffer on their way out: memory that is written from where it is, or an array
/// or a reading function whose bytes pass through a bounded scratch. A view: the caller keeps the
/// memory (and what the function needs) alive and unchanged while it is written.
class BufferSource {
 public:
  /// Puts the bytes `[offset, offset + out.size())` of the buffer into `out`. Called for one piece
  /// after the other, in order, each byte once; an error ends the write.
  using Read = std::function<Result<void>(std::uint64_t offset, std::span<std::byte> out)>;

  BufferSource() = default;
  BufferSource(std::span<const std::byte> bytes) : bytes_(bytes), size_(bytes.size()) {}
  explicit BufferSource(hurray::ArraySource array)
      : array_(std::move(array)), size_(array_.packed_size()), converted_(true) {}
  BufferSource(std::uint64_t size, Read read)
      : read_(std::move(read)), size_(size), converted_(true) {}

  std::uint64_t size() const noexcept { return size_; }
  bool converted() const noexcept { return converted_; }
  std::span<const std::byte> bytes() const noexcept { return bytes_; }
  /// The next piece of a converted source. `offset` and `out.size()` are as `gather` wants them.
  Result<void> fill(std::uint64_t offset, std::span<std::byte> out) const {
    if (read_) return read_(offset, out);
    gather(array_, offset, out);
    return {};
  }

 private:
  std::span<const std::byte> bytes_;
  hurray::ArraySource array_;
  Read read_;
  std::uint64_t size_ = 0;
  bool converted_ = false;
};

/// The bytes of a tensor's buffers where they are. Fails as `unsupported` outside host memory.
inline hurray::Result<std::vector<BufferSource>> sources_of(const Tensor& tensor) {
  if (tensor.memory_device() != Device::cpu && !tensor.buffers().empty())
    return hurray::Error{.code = Errc::unsupported,
                         .origin = Origin::buffer,
                         .what = "the memory is not the host's: bring it there first"};
  std::vector<BufferSource> sources;
  sources.reserve(tensor.buffers().size());
  for (const Buffer& buffer : tensor.buffers()) sources.emplace_back(buffer.bytes());
  return sources;
}

/// The most memory that converting takes, in bytes, whatever the array's size.
inline constexpr std::size_t max_scratch_bytes = 16u << 20;

}  // namespace hurray::io
