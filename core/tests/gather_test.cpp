#include "hurray/gather.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "support.hpp"

namespace hurray::testing {
namespace {

/// The slow way: one element after the other, bits set one by one.
Bytes oracle(const ArraySource& s) {
  Bytes out(s.packed_size());
  std::vector<std::uint64_t> index(s.shape.rank());
  for (std::uint64_t e = 0; e < s.shape.count(); ++e) {
    std::uint64_t rest = e;
    std::int64_t at = 0;
    for (std::size_t k = s.shape.rank(); k-- > 0;) {
      at += static_cast<std::int64_t>(rest % s.shape[k]) * s.strides[k];
      rest /= s.shape[k];
    }
    const std::byte* item = s.origin + at;
    if (s.transcode == Transcode::copy || s.transcode == Transcode::swap) {
      for (std::size_t b = 0; b < s.item_bytes; ++b) {
        const std::size_t unit = b / s.unit_bytes * s.unit_bytes;
        const std::size_t from =
            s.transcode == Transcode::copy ? b : unit + (s.unit_bytes - 1 - (b - unit));
        out[e * s.item_bytes + b] = item[from];
      }
    } else {
      const unsigned width = bits(s.dtype);
      const unsigned value = s.transcode == Transcode::pack_bool
                                 ? unsigned{*item != std::byte{0}}
                                 : static_cast<unsigned>(*item) & ((1u << width) - 1);
      for (unsigned b = 0; b < width; ++b)
        if ((value >> b & 1) != 0)
          out[(e * width + b) / 8] |= static_cast<std::byte>(1u << (e * width + b) % 8);
    }
  }
  return out;
}

TEST(Gather, AgreesWithTheSlowWayForRandomArrays) {
  const auto seed = std::random_device{}();
  SCOPED_TRACE(::testing::Message() << "seed " << seed);
  std::mt19937 random(seed);
  const auto below = [&](std::uint64_t n) { return random() % n; };
  Bytes memory(1 << 16);
  for (std::byte& b : memory) b = static_cast<std::byte>(random());
  for (int round = 0; round < 3000; ++round) {
    ArraySource s;
    static constexpr std::size_t items[] = {1, 2, 4, 8, 16};
    static constexpr DType packed[] = {DType::bool_, DType::int2, DType::uint4, DType::float6_e2m3};
    s.transcode = static_cast<Transcode>(below(4));
    const bool packs = s.transcode == Transcode::pack_bool || s.transcode == Transcode::pack_low;
    s.item_bytes = packs ? 1 : items[below(5)];
    s.unit_bytes = s.transcode == Transcode::swap && s.item_bytes > 1 && below(2) != 0
                       ? s.item_bytes / 2
                       : s.item_bytes;
    if (packs) s.dtype = s.transcode == Transcode::pack_bool ? DType::bool_ : packed[below(4)];
    const std::size_t rank = below(5);
    s.shape.resize(rank);
    s.strides.resize(rank);
    std::int64_t room = 1500;
    for (std::size_t k = 0; k < rank; ++k) {
      s.shape[k] = below(9) == 0 ? 0 : 1 + below(9);
      s.strides[k] = static_cast<std::int64_t>(below(61)) - 30;
      if (below(3) == 0) s.strides[k] = static_cast<std::int64_t>(s.item_bytes);
    }
    s.origin = memory.data() + memory.size() / 2 + room;
    const Bytes want = oracle(s);
    Bytes got(want.size());
    std::uint64_t at = 0;
    while (at < got.size()) {
      const std::uint64_t n =
          std::min<std::uint64_t>(got.size() - at, gather_granularity * (1 + below(5)));
      Bytes piece(n);
      gather(s, at, piece);
      std::ranges::copy(piece, got.begin() + static_cast<std::ptrdiff_t>(at));
      at += n;
    }
    ASSERT_EQ(got, want) << "round " << round << " transcode " << int(s.transcode);
    if (packs && !want.empty()) {
      Bytes elements(s.shape.count());
      unpack(got.data(), bits(s.dtype), 0, elements);
      ArraySource back{.origin = elements.data(),
                       .shape = Shape{elements.size()},
                       .strides = Strides{1},
                       .dtype = s.dtype,
                       .transcode = Transcode::pack_low};
      Bytes again(got.size());
      gather(back, 0, again);
      ASSERT_EQ(again, got);
    }
  }
}

TEST(Gather, PacksTheFormatsExamples) {
  const auto pack = [](DType dtype, Transcode how, const Bytes& in) {
    ArraySource s{.origin = in.data(),
                  .shape = Shape{in.size()},
                  .strides = Strides{1},
                  .dtype = dtype,
                  .transcode = how};
    Bytes out(s.packed_size());
    gather(s, 0, out);
    return out;
  };
  EXPECT_EQ(pack(DType::bool_, Transcode::pack_bool, hex("00 01 FF 00 00 00 01 00 02 01")),
            hex("46 03"));
  EXPECT_EQ(pack(DType::int4, Transcode::pack_low, hex("FD 07 F8 01 02")), hex("7D 18 02"));
  EXPECT_EQ(pack(DType::uint2, Transcode::pack_low, hex("02 00 03 01 01")), hex("72 01"));
  EXPECT_EQ(pack(DType::int2, Transcode::pack_low, hex("FE FF 00 01 FF")), hex("4E 03"));
  EXPECT_EQ(pack(DType::float6_e3m2, Transcode::pack_low, hex("2D 13 38 06 21")),
            hex("ED 84 1B 21 00 00"));
}

}  // namespace
}  // namespace hurray::testing
