#include "checksums.hpp"

#include <algorithm>
#include <new>

#include "crc32c.hpp"
#include "hurray/cursor.hpp"
#include "hurray/io/crc32c.hpp"
#include "hurray/memory.hpp"
#include "key_values.hpp"

namespace hurray::io {

namespace {

constexpr std::uint8_t payload_version = 1;
constexpr std::size_t sum_bytes = 4;

struct Head {
  std::uint8_t chunk_log2 = Checksums::smallest_chunk_log2;
  std::uint32_t index_sum = 0;
  std::uint32_t header_sum = 0;
  std::uint32_t kv_sum = 0;
  std::uint64_t tensors = 0;
};

template <class Io>
void fields(const Head& self, Io& io) noexcept {
  io.literal("magic", std::as_bytes(std::span(checksums_magic)), Errc::invalid_magic);
  io("version", payload_version);
  io("chunk_log2", self.chunk_log2);
  io.reserved("reserved", 2);
  io("index_crc32c", self.index_sum);
  io("header_crc32c", self.header_sum);
  io("kv_crc32c", self.kv_sum);
  io("tensor_count", self.tensors);
}

}  // namespace

Checksums::Checksums(std::span<const std::byte> header, std::uint64_t payload_limit) noexcept
    : payload_limit_(payload_limit), header_sum_(crc32c(header)) {}

void Checksums::reserve(std::size_t tensors, std::uint64_t data_length) {
  // The descriptor's sum of each, and one more chunk that is not full.
  const auto more = to_size(2 * std::uint64_t{tensors} + (data_length >> smallest_chunk_log2));
  if (!more || *more > sums_.max_size() - sums_.size()) throw std::bad_alloc();
  if (*more > sums_.capacity() - sums_.size())
    sums_.reserve(std::max(sums_.size() + *more, 2 * sums_.size()));
  if (tensors > data_lengths_.capacity() - data_lengths_.size())
    data_lengths_.reserve(
        std::max({std::size_t{16}, 2 * data_lengths_.size(), data_lengths_.size() + tensors}));
}

void Checksums::begin(std::span<const std::byte> descriptor, std::uint64_t data_length) noexcept {
  data_lengths_.push_back(data_length);
  sums_.push_back(crc32c(descriptor));
}

void Checksums::add(std::span<const std::byte> bytes) noexcept {
  constexpr std::size_t chunk = std::size_t{1} << smallest_chunk_log2;
  while (!bytes.empty()) {
    const std::size_t size = std::min(bytes.size(), chunk - in_chunk_);
    chunk_sum_ = crc32c(bytes.first(size), chunk_sum_);
    in_chunk_ += size;
    if (in_chunk_ == chunk) end();
    bytes = bytes.subspan(size);
  }
}

void Checksums::end() noexcept {
  if (in_chunk_ == 0) return;
  sums_.push_back(chunk_sum_);
  chunk_sum_ = 0;
  in_chunk_ = 0;
}

Result<void> Checksums::append_to(Bytes& kv_section, std::span<const std::byte> index) const {
  return contain(Origin::file, [&]() -> Result<void> {
    Head head;
    head.index_sum = crc32c(index);
    head.header_sum = header_sum_;
    head.tensors = data_lengths_.size();
    Sizer sizer(Origin::file);
    fields(head, sizer);
    const std::uint64_t fixed = sizer.position() + sum_bytes;

    // Two neighbours of one tensor become one sum as often as it takes.
    std::vector<std::uint32_t> sums = sums_;
    while (fixed + sum_bytes * sums.size() > payload_limit_ &&
           head.chunk_log2 < largest_chunk_log2) {
      std::size_t from = 0;
      std::size_t to = 0;
      for (const std::uint64_t length : data_lengths_) {
        sums[to++] = sums[from++];
        std::uint64_t left = length;
        const std::uint64_t chunk = std::uint64_t{1} << head.chunk_log2;
        while (left != 0) {
          std::uint32_t sum = sums[from++];
          left -= std::min(left, chunk);
          if (left != 0) {
            const std::uint64_t second = std::min(left, chunk);
            sum = join_crc32c(sum, sums[from++], second);
            left -= second;
          }
          sums[to++] = sum;
        }
      }
      sums.resize(to);
      ++head.chunk_log2;
    }

    Bytes payload(static_cast<std::size_t>(fixed) + sum_bytes * sums.size());
    if (auto appended = append_checksums(kv_section, payload); !appended) return appended;
    const auto section = std::span<std::byte>(kv_section);
    const auto own = section.last(payload.size());
    head.kv_sum = crc32c(section.first(section.size() - own.size()));

    Writer writer(own, Origin::file);
    fields(head, writer);
    for (const std::uint32_t sum : sums) writer("sums[]", sum);
    writer("self_crc32c", crc32c(own.first(own.size() - sum_bytes)));
    return {};
  });
}

}  // namespace hurray::io
