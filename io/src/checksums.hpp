#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "container.hpp"
#include "hurray/buffer.hpp"
#include "hurray/export.hpp"
#include "hurray/io/error.hpp"
#include "hurray/io/file.hpp"
#include "hurray/io/key_values.hpp"
#include "hurray/io/verify.hpp"
#include "index.hpp"
#include "patience.hpp"
#include "source.hpp"

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

/// What the entry of an open file says, and what that is worth.
class ChecksumTable {
 public:
  /// Decides the state, in the order of section 16; without what the index says where it is null.
  static Result<ChecksumTable> read(const Source& source, const Ends& ends, const Index* index,
                                    const ChecksumPlace& place, Patience& patience,
                                    std::uint64_t* bytes_read = nullptr);

  ChecksumState state() const noexcept { return state_; }
  /// Why they are damaged, unknown or foreign; the first is the reason.
  const std::vector<Finding>& findings() const noexcept { return findings_; }

  /// What the entry says of the index; none where it says nothing that can be believed.
  std::optional<std::uint32_t> index_sum() const noexcept { return index_sum_; }
  /// There is a sum for everything in the index. So it is with `valid` ones, and with foreign ones
  /// whose header or KV section alone is another.
  bool fits_index() const noexcept { return !first_sums_.empty(); }
  /// Of tensor `k` by `descriptor_offset`. Precondition, here and below: `fits_index()`.
  std::uint32_t descriptor_sum(std::size_t k) const noexcept { return sum(first_sums_[k]); }
  std::uint32_t chunk_sum(std::size_t k, std::uint64_t chunk) const noexcept {
    return sum(first_sums_[k] + 1 + static_cast<std::size_t>(chunk));
  }
  std::uint64_t chunk_bytes() const noexcept { return std::uint64_t{1} << chunk_log2_; }
  /// Appends an entry with the same sums of tensors to a section of other entries; it goes with
  /// exactly this header and index. Precondition: the state is `valid`.
  Result<void> append_to(Bytes& kv_section, std::span<const std::byte> header,
                         std::span<const std::byte> index) const;

 private:
  std::uint32_t sum(std::size_t i) const noexcept {
    return hurray::detail::load<std::uint32_t>(payload_.data() + sums_offset_ + 4 * i);
  }

  ChecksumState state_ = ChecksumState::unprotected;
  std::vector<Finding> findings_;
  std::optional<std::uint32_t> index_sum_;
  Buffer payload_;
  std::size_t sums_offset_ = 0;
  std::vector<std::size_t> first_sums_;  ///< Of each tensor by `descriptor_offset`.
  unsigned chunk_log2_ = 0;
};

/// A sum that is not the stored one, as a finding with its sentence. The place is that of `about`.
Finding mismatch(const Source& source, std::string_view tensor, Finding about);

/// What is wrong with the descriptor of tensor `k`, whose bytes have the CRC-32C `found`.
std::optional<Finding> compare_descriptor(const Source& source, const ChecksumTable& table,
                                          std::size_t k, const Entry& entry, std::uint32_t found);

/// The data region of tensor `k` in chunks, each of which has a sum. Refers to what it was made
/// from; may be used from several threads.
class RegionSums {
 public:
  /// `placement`: null where it is not known.
  RegionSums(const ChecksumTable& table, std::size_t k, const Entry& entry,
             const Descriptor* descriptor, const Placement* placement) noexcept
      : table_(table), k_(k), entry_(entry), descriptor_(descriptor), placement_(placement) {}

  /// What is wrong with chunk `chunk`, whose bytes have the CRC-32C `found`.
  std::optional<Finding> compare(const Source& source, std::uint64_t chunk,
                                 std::uint32_t found) const;

 private:
  const ChecksumTable& table_;
  std::size_t k_;
  const Entry& entry_;
  const Descriptor* descriptor_;
  const Placement* placement_;
};

}  // namespace hurray::io
