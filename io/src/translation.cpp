#include "translation.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "hurray/checked.hpp"
#include "hurray/io/crc32c.hpp"

namespace hurray::io {

namespace {

constexpr FileHeader header_of(std::uint64_t entries) noexcept {
  FileHeader header;
  header.flags = bit(FileFlag::has_kv_metadata) | bit(FileFlag::has_index_crc32c);
  header.data_buffer_alignment = min_data_alignment;
  header.tensor_count_hint = entries;
  return header;
}

Error too_large(std::string_view name) {
  return Error({.code = Errc::overflow,
                .origin = Origin::file,
                .field = "data_offset",
                .what = "beyond the largest file"},
               {}, std::string(name));
}

}  // namespace

std::string_view Translation::format() const noexcept { return state_->format; }
std::uint64_t Translation::size() const noexcept { return state_->size; }

std::vector<Translation::State::Part>::const_iterator Translation::State::part_at(
    std::uint64_t offset) const noexcept {
  return std::ranges::upper_bound(parts, offset, {}, &Part::end);
}

std::optional<std::uint64_t> Translation::State::direct(std::uint64_t offset,
                                                        std::uint64_t length) const noexcept {
  const auto part = part_at(offset);
  if (part == parts.end() || part->start > offset || !part->direct() ||
      length > part->end() - offset)
    return std::nullopt;
  return part->at + (offset - part->start);
}

Translation::Builder::Builder(std::string_view format) : state_(std::make_unique<State>()) {
  state_->format = format;
  state_->size = header_bytes;
}
Translation::Builder::Builder(Builder&&) noexcept = default;
Translation::Builder& Translation::Builder::operator=(Builder&&) noexcept = default;
Translation::Builder::~Builder() = default;

Result<void> Translation::Builder::add(std::string_view name, const Descriptor& descriptor,
                                       std::span<const StoredBuffer> buffers) {
  return contain(Origin::file, [&]() -> Result<void> {
    State& state = *state_;
    if (name.empty() || name.size() > max_name_bytes || !is_utf8(name))
      return Error({.code = Errc::invalid_value,
                    .origin = Origin::file,
                    .expect = Expect::as_said,
                    .field = "name",
                    .what = "1 to 65535 bytes of UTF-8",
                    .found = name.size()},
                   {}, std::string(name));
    const auto bytes = encode(descriptor);
    if (!bytes) return Error(bytes.error(), {}, std::string(name));
    const std::uint64_t start = state.size;
    const auto data_start = checked_align_up<std::uint64_t>(
        start + bytes->size(), buffers.empty() ? part_alignment : min_data_alignment);
    if (!data_start) return too_large(name);
    const auto placement = place(descriptor.buffers, *data_start, min_data_alignment);
    if (!placement) return Error(placement.error(), {}, std::string(name));
    state.parts.push_back({.start = start, .size = bytes->size(), .at = state.made.size()});
    state.made.insert(state.made.end(), bytes->begin(), bytes->end());
    for (std::size_t i = 0; i < buffers.size(); ++i)
      if (const std::uint64_t size = descriptor.buffers[i].byte_size; size != 0)
        state.parts.push_back({.start = placement->buffers[i],
                               .size = size,
                               .at = buffers[i].offset,
                               .stored = buffers[i].size,
                               .conversion = buffers[i].conversion});
    const Entry entry{.name = name,
                      .descriptor_offset = start,
                      .descriptor_length = static_cast<std::uint32_t>(bytes->size()),
                      .data_offset = placement->data_offset,
                      .data_length = placement->data_length};
    const Bytes row = encoded([&](auto& io) { fields(entry, io, state.entries, header_of(0)); });
    state.index.insert(state.index.end(), row.begin(), row.end());
    ++state.entries;
    const auto next = checked_align_up<std::uint64_t>(placement->data_end(), part_alignment);
    if (!next || *next > max_file_bytes) return too_large(name);
    state.size = *next;
    return {};
  });
}

Result<Translation> Translation::Builder::finish(const KeyValues& kv) {
  return contain(Origin::file, [&]() -> Result<Translation> {
    State& state = *state_;
    const auto section = encode_kv(kv);
    if (!section) return section.error();
    const auto add = [&](std::uint64_t start, std::span<const std::byte> bytes) {
      state.parts.push_back({.start = start, .size = bytes.size(), .at = state.made.size()});
      state.made.insert(state.made.end(), bytes.begin(), bytes.end());
    };
    FileTrailer trailer;
    trailer.kv_offset = state.size;
    trailer.kv_length = static_cast<std::uint32_t>(section->size());
    add(trailer.kv_offset, *section);
    const auto index_offset =
        checked_align_up<std::uint64_t>(trailer.kv_offset + section->size(), part_alignment);
    const Bytes count = encoded([&](auto& io) { io("index_entry_count", state.entries); });
    trailer.index_offset = *index_offset;
    trailer.index_length = count.size() + state.index.size();
    trailer.index_crc32c = crc32c(state.index, crc32c(count));
    add(trailer.index_offset, count);
    add(trailer.index_offset + count.size(), std::exchange(state.index, {}));
    const FileHeader header = header_of(state.entries);
    const std::uint64_t end = trailer.index_offset + trailer.index_length;
    add(end, encoded([&](auto& io) { fields(trailer, io, header, end); }));
    state.size = end + trailer_bytes;
    add(0, encoded([&](auto& io) { fields(header, io); }));
    std::rotate(state.parts.begin(), state.parts.end() - 1, state.parts.end());
    std::erase_if(state.parts, [](const State::Part& part) { return part.size == 0; });
    return Translation(std::shared_ptr<const State>(std::move(state_)));
  });
}

}  // namespace hurray::io
