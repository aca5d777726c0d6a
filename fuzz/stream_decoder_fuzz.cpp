// Any bytes in any pieces: the first half of the input says how the rest is cut. What comes out is
// what a reader gets from the whole.
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "hurray/io/stream_decoder.hpp"

namespace {

using namespace hurray;

std::string shown(const Item& item) {
  std::string text = std::to_string(item.tensor.buffers().size());
  for (const Buffer& buffer : item.tensor.buffers())
    text.append(reinterpret_cast<const char*>(buffer.data()),
                static_cast<std::size_t>(buffer.size()));
  for (const Item& member : item.members) text += '(' + shown(member) + ')';
  return text;
}

struct Outcome {
  std::vector<std::string> items;
  std::string error;
  friend bool operator==(const Outcome&, const Outcome&) = default;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::span all(reinterpret_cast<const std::byte*>(data), size);
  const auto cuts = all.first(std::min<std::size_t>(size / 2, 64));
  const auto bytes = all.subspan(cuts.size());
  io::StreamReadOptions options;
  options.max_buffer_bytes = 1 << 20;
  options.permissive = !cuts.empty() && (cuts[0] & std::byte{1}) != std::byte{0};

  Outcome whole;
  auto reader = io::StreamReader::over(bytes, options);
  if (!reader) std::abort();
  for (;;) {
    const auto item = reader->next_item();
    if (!item) whole.error = to_string(item.error());
    if (!item || !*item) break;
    whole.items.push_back(shown(**item));
  }

  Outcome pieces;
  auto decoder = io::StreamDecoder::create(options);
  if (!decoder) std::abort();
  io::Result<void> ok;
  std::size_t at = 0;
  for (std::size_t i = 0; at < bytes.size() && ok; ++i) {
    const std::size_t cut = i < cuts.size() ? std::to_integer<std::size_t>(cuts[i]) : bytes.size();
    if (i % 2 == 0) {
      const auto piece = bytes.subspan(at, std::min(cut, bytes.size() - at));
      ok = decoder->feed(piece);
      at += piece.size();
    } else {
      const auto room = decoder->wanted();
      const auto piece = bytes.subspan(at, std::min({cut, room.size(), bytes.size() - at}));
      if (!piece.empty()) std::memcpy(room.data(), piece.data(), piece.size());
      ok = decoder->commit(piece.size());
      at += piece.size();
    }
    while (const auto item = decoder->next_item()) pieces.items.push_back(shown(*item));
  }
  if (ok) ok = decoder->finish();
  while (const auto item = decoder->next_item()) pieces.items.push_back(shown(*item));
  if (!ok) pieces.error = to_string(ok.error());
  if (pieces != whole) std::abort();
  return 0;
}
