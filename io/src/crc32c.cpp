#include "hurray/io/crc32c.hpp"

#include "crc32c.hpp"

#include <array>
#include <bit>
#include <cstring>

#include "hurray/cursor.hpp"

#if defined(__GNUC__) && defined(__x86_64__)
#define HURRAY_CRC32C_SSE42 1
#include <immintrin.h>
#elif defined(__GNUC__) && defined(__aarch64__)
#define HURRAY_CRC32C_ARMV8 1
#include <arm_acle.h>

#include "system.hpp"
#endif

namespace hurray::io {
namespace {

// Polynomials over GF(2) are held reflected: bit 31 is the coefficient of x^0. A CRC register of
// the bytes before n more is multiplied by x^(8n) and added (xor) to the register of those n alone.
constexpr std::uint32_t polynomial = 0x82F63B78;
constexpr std::uint32_t one = 0x80000000;

constexpr std::uint32_t times_x(std::uint32_t a) noexcept {
  return (a >> 1) ^ ((a & 1) != 0 ? polynomial : 0);
}

constexpr std::uint32_t product(std::uint32_t a, std::uint32_t b) noexcept {
  std::uint32_t sum = 0;
  for (std::uint32_t bit = one; bit != 0; bit >>= 1) {
    if ((a & bit) != 0) sum ^= b;
    b = times_x(b);
  }
  return sum;
}

/// x^(8 bytes) modulo the polynomial.
constexpr std::uint32_t power(std::uint64_t bytes) noexcept {
  std::uint32_t result = one;
  std::uint32_t square = one >> 8;
  for (; bytes != 0; bytes >>= 1) {
    if ((bytes & 1) != 0) result = product(result, square);
    square = product(square, square);
  }
  return result;
}

/// Row k multiplies byte k of a register by a fixed polynomial; the four results add up.
template <std::size_t Rows>
using Table = std::array<std::array<std::uint32_t, 256>, Rows>;

/// Row k: a byte that 7 - k more bytes follow (slice-by-8).
constexpr Table<8> make_slices() noexcept {
  Table<8> table{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    std::uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = times_x(crc);
    table[7][byte] = crc;
  }
  for (std::size_t row = 7; row-- > 0;)
    for (std::size_t byte = 0; byte < 256; ++byte) {
      const std::uint32_t crc = table[row + 1][byte];
      table[row][byte] = (crc >> 8) ^ table[7][crc & 0xFF];
    }
  return table;
}
constexpr Table<8> slices = make_slices();

inline std::uint64_t load_word(const std::byte* p) noexcept {
  if constexpr (std::endian::native == std::endian::little) {
    std::uint64_t word = 0;
    std::memcpy(&word, p, sizeof word);
    return word;
  } else {
    return hurray::detail::load<std::uint64_t>(p);
  }
}

std::uint32_t with_tables(std::span<const std::byte> bytes, std::uint32_t crc) noexcept {
  const std::byte* p = bytes.data();
  std::size_t left = bytes.size();
  crc = ~crc;
  for (; left >= 8; p += 8, left -= 8) {
    const std::uint64_t word = load_word(p) ^ crc;
    crc = 0;
    for (unsigned k = 0; k < 8; ++k) crc ^= slices[k][(word >> (8 * k)) & 0xFF];
  }
  for (; left != 0; ++p, --left)
    crc = (crc >> 8) ^ slices[7][(crc ^ static_cast<std::uint32_t>(*p)) & 0xFF];
  return ~crc;
}

#if defined(HURRAY_CRC32C_SSE42) || defined(HURRAY_CRC32C_ARMV8)

constexpr Table<4> make_shift(std::size_t bytes) noexcept {
  Table<4> table{};
  const std::uint32_t factor = power(bytes);
  for (std::size_t row = 0; row < 4; ++row)
    for (std::size_t bit = 0; bit < 8; ++bit) {
      const std::size_t step = std::size_t{1} << bit;
      const auto value = product(static_cast<std::uint32_t>(step << (8 * row)), factor);
      for (std::size_t byte = 0; byte < step; ++byte)
        table[row][step + byte] = table[row][byte] ^ value;
    }
  return table;
}

// The CPU's instruction takes 8 bytes each cycle but answers after three: three neighbouring blocks
// are in the works at any time. Large blocks make the joining cheap, small ones serve short inputs.
template <std::size_t Block>
constexpr Table<4> shift = make_shift(Block);

template <std::size_t Block>
std::uint32_t shifted(std::uint32_t crc) noexcept {
  return shift<Block>[0][crc & 0xFF] ^ shift<Block>[1][(crc >> 8) & 0xFF] ^
         shift<Block>[2][(crc >> 16) & 0xFF] ^ shift<Block>[3][crc >> 24];
}

constexpr std::size_t large_block = 8192;
constexpr std::size_t small_block = 256;

#if defined(HURRAY_CRC32C_SSE42)
#define HURRAY_CRC32C_TARGET __attribute__((target("sse4.2")))
#define HURRAY_CRC32C_WORD(crc, word) _mm_crc32_u64(crc, word)
#define HURRAY_CRC32C_BYTE(crc, byte) _mm_crc32_u8(static_cast<std::uint32_t>(crc), byte)
#else
#if defined(__clang__)
#define HURRAY_CRC32C_TARGET __attribute__((target("crc")))
#else
#define HURRAY_CRC32C_TARGET __attribute__((target("+crc")))
#endif
#define HURRAY_CRC32C_WORD(crc, word) __crc32cd(static_cast<std::uint32_t>(crc), word)
#define HURRAY_CRC32C_BYTE(crc, byte) __crc32cb(static_cast<std::uint32_t>(crc), byte)
#endif

template <std::size_t Block>
HURRAY_CRC32C_TARGET std::uint64_t three_blocks(const std::byte*& p, std::size_t& left,
                                                std::uint64_t a) noexcept {
  for (; left >= 3 * Block; p += 3 * Block, left -= 3 * Block) {
    std::uint64_t b = 0;
    std::uint64_t c = 0;
    for (const std::byte *at = p, *end = p + Block; at != end; at += 8) {
      a = HURRAY_CRC32C_WORD(a, load_word(at));
      b = HURRAY_CRC32C_WORD(b, load_word(at + Block));
      c = HURRAY_CRC32C_WORD(c, load_word(at + 2 * Block));
    }
    b ^= shifted<Block>(static_cast<std::uint32_t>(a));
    a = c ^ shifted<Block>(static_cast<std::uint32_t>(b));
  }
  return a;
}

HURRAY_CRC32C_TARGET std::uint32_t with_instructions(std::span<const std::byte> bytes,
                                                     std::uint32_t crc) noexcept {
  const std::byte* p = bytes.data();
  std::size_t left = bytes.size();
  std::uint64_t a = ~crc;
  a = three_blocks<large_block>(p, left, a);
  a = three_blocks<small_block>(p, left, a);
  for (; left >= 8; p += 8, left -= 8) a = HURRAY_CRC32C_WORD(a, load_word(p));
  for (; left != 0; ++p, --left) a = HURRAY_CRC32C_BYTE(a, static_cast<std::uint8_t>(*p));
  return ~static_cast<std::uint32_t>(a);
}

#endif

#if defined(HURRAY_CRC32C_SSE42)

#define HURRAY_CRC32C_FOLDING __attribute__((target("sse4.2,avx2,pclmul,vpclmulqdq")))

constexpr std::size_t folded_bytes = 128;

HURRAY_CRC32C_FOLDING inline __m256i load(const std::byte* p) noexcept {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
}

/// Both halves of each 16 bytes of `sum`, moved on by `folded_bytes`, added to `next`.
HURRAY_CRC32C_FOLDING inline __m256i fold(__m256i sum, __m256i next, __m256i factors) noexcept {
  const __m256i first = _mm256_clmulepi64_epi128(sum, factors, 0x00);
  const __m256i second = _mm256_clmulepi64_epi128(sum, factors, 0x11);
  return _mm256_xor_si256(_mm256_xor_si256(first, second), next);
}

/// 128 bytes that stand for all before them.
struct Folded {
  __m256i parts[4];
};

HURRAY_CRC32C_FOLDING inline Folded begin(const std::byte* p, std::uint32_t crc) noexcept {
  const __m256i start = _mm256_set_epi64x(0, 0, 0, static_cast<long long>(crc));
  return {{_mm256_xor_si256(load(p), start), load(p + 32), load(p + 64), load(p + 96)}};
}

HURRAY_CRC32C_FOLDING inline void fold(Folded& sum, const std::byte* p) noexcept {
  // The product of two reflected factors is one bit short of its place.
  constexpr auto near = static_cast<long long>(std::uint64_t{power(folded_bytes - 4)} << 1);
  constexpr auto far = static_cast<long long>(std::uint64_t{power(folded_bytes + 4)} << 1);
  const __m256i factors = _mm256_set_epi64x(near, far, near, far);
  for (__m256i& part : sum.parts) {
    part = fold(part, load(p), factors);
    p += sizeof part;
  }
}

/// The register after all bytes that `sum` stands for.
HURRAY_CRC32C_FOLDING std::uint64_t end(const Folded& sum) noexcept {
  std::array<std::byte, folded_bytes> bytes;
  std::byte* p = bytes.data();
  for (const __m256i& part : sum.parts) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), part);
    p += sizeof part;
  }
  std::uint64_t crc = 0;
  for (p = bytes.data(); p != bytes.data() + bytes.size(); p += 8)
    crc = HURRAY_CRC32C_WORD(crc, load_word(p));
  return crc;
}

/// Products without carries, on 32 bytes at once, keep other parts of the CPU busy than its
/// instruction: of long inputs both take their share at the same time, a folded block and three
/// plain ones behind it.
HURRAY_CRC32C_FOLDING std::uint32_t with_folding(std::span<const std::byte> bytes,
                                                 std::uint32_t crc) noexcept {
  constexpr std::size_t rounds = 128;
  constexpr std::size_t words = 5;  // of each plain block for 128 folded bytes
  constexpr std::size_t folded_block = (rounds + 1) * folded_bytes;
  constexpr std::size_t plain_block = rounds * words * 8;

  const std::byte* p = bytes.data();
  std::size_t left = bytes.size();
  std::uint64_t sum = ~crc;
  while (left >= folded_block + 3 * plain_block) {
    const std::byte* plain = p + folded_block;
    Folded folded = begin(p, static_cast<std::uint32_t>(sum));
    std::uint64_t a = 0;
    std::uint64_t b = 0;
    std::uint64_t c = 0;
    for (std::size_t round = 0; round < rounds; ++round) {
      p += folded_bytes;
      fold(folded, p);
      for (std::size_t word = 0; word < words; ++word, plain += 8) {
        a = HURRAY_CRC32C_WORD(a, load_word(plain));
        b = HURRAY_CRC32C_WORD(b, load_word(plain + plain_block));
        c = HURRAY_CRC32C_WORD(c, load_word(plain + 2 * plain_block));
      }
    }
    a ^= shifted<plain_block>(static_cast<std::uint32_t>(end(folded)));
    b ^= shifted<plain_block>(static_cast<std::uint32_t>(a));
    sum = c ^ shifted<plain_block>(static_cast<std::uint32_t>(b));
    p += folded_bytes + 3 * plain_block;
    left -= folded_block + 3 * plain_block;
  }
  if (left >= 4 * folded_bytes) {
    Folded folded = begin(p, static_cast<std::uint32_t>(sum));
    for (p += folded_bytes, left -= folded_bytes; left >= folded_bytes;
         p += folded_bytes, left -= folded_bytes)
      fold(folded, p);
    sum = end(folded);
  }
  return with_instructions({p, left}, ~static_cast<std::uint32_t>(sum));
}

#endif

/// How many of `paths`, from the first on, this CPU cannot run.
std::size_t missing_paths() noexcept {
#if defined(HURRAY_CRC32C_SSE42)
  __builtin_cpu_init();
  if (__builtin_cpu_supports("sse4.2") == 0) return 2;
  const bool folds = __builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("pclmul") != 0 &&
                     __builtin_cpu_supports("vpclmulqdq") != 0;
  return folds ? 0 : 1;
#elif defined(HURRAY_CRC32C_ARMV8)
  return system::has_armv8_crc() ? 0 : 1;
#else
  return 0;
#endif
}

constexpr auto paths = std::to_array<Crc32cPath>({
#if defined(HURRAY_CRC32C_SSE42)
    {"vpclmulqdq", with_folding},
    {"sse4.2", with_instructions},
#elif defined(HURRAY_CRC32C_ARMV8)
    {"armv8", with_instructions},
#endif
    {"tables", with_tables},
});

}  // namespace

std::span<const Crc32cPath> crc32c_paths() noexcept {
  static const std::size_t missing = missing_paths();
  return std::span(paths).subspan(missing);
}

std::uint32_t crc32c(std::span<const std::byte> bytes, std::uint32_t crc) noexcept {
  return crc32c_paths().front().crc32c(bytes, crc);
}

std::uint32_t join_crc32c(std::uint32_t first, std::uint32_t second,
                          std::uint64_t length) noexcept {
  return product(first, power(length)) ^ second;
}

}  // namespace hurray::io
