#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "hurray/export.hpp"
#include "hurray/io/error.hpp"
#include "hurray/io/key_values.hpp"

namespace hurray::io {

/// The sums of one file's bytes (04-file.md section 16), gathered in the pass that writes them.
class HURRAY_EXPORT Checksums {
 public:
  static constexpr unsigned smallest_chunk_log2 = 20;
  static constexpr unsigned largest_chunk_log2 = 30;
  static constexpr std::uint64_t default_payload_limit = 64u << 20;

  /// Chunks double until the payload has at most `payload_limit` bytes.
  explicit Checksums(std::span<const std::byte> header,
                     std::uint64_t payload_limit = default_payload_limit) noexcept;

  /// Takes the memory for so many more tensors with `data_length` bytes in their data regions
  /// together; or throws `std::bad_alloc`, and nothing has changed.
  void reserve(std::size_t tensors, std::uint64_t data_length);
  /// Starts the tensor that memory was taken for.
  void begin(std::span<const std::byte> descriptor, std::uint64_t data_length) noexcept;
  /// The next bytes of its data region.
  void add(std::span<const std::byte> bytes) noexcept;
  /// Ends a tensor.
  void end() noexcept;

  /// Appends the entry to a section of other entries; it goes with exactly these index bytes.
  Result<void> append_to(Bytes& kv_section, std::span<const std::byte> index) const;

 private:
  std::vector<std::uint32_t> sums_;
  std::vector<std::uint64_t> data_lengths_;
  std::uint64_t payload_limit_;
  std::size_t in_chunk_ = 0;
  std::uint32_t chunk_sum_ = 0;
  std::uint32_t header_sum_;
};

}  // namespace hurray::io
