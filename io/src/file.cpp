#include "hurray/io/file.hpp"

#include <algorithm>
#include <cerrno>
#include <mutex>
#include <utility>
#include <vector>

#include "container.hpp"
#include "hurray/checked.hpp"
#include "index.hpp"
#include "items.hpp"
#include "source.hpp"
#include "system.hpp"

namespace hurray::io {

namespace {

/// Of `layout_tag` in a descriptor (01-descriptor.md section 3.2), in bytes.
constexpr std::size_t layout_tag_offset = 15;

/// One private mapping of a whole file, shared by its tensors.
class MappedFile final : public Owner {
 public:
  explicit MappedFile(system::Mapping mapping) noexcept : mapping_(std::move(mapping)) {}

  std::span<std::byte> bytes() const noexcept { return mapping_.bytes(); }

  /// Safe from any thread. The system limits how many pieces a mapping may fall into: beyond
  /// `max_ranges` different ones, all of it becomes writable at once.
  hurray::Result<void> make_writable(std::span<std::byte> part) override {
    return contain(Origin::buffer, [&]() -> hurray::Result<void> {
      const std::scoped_lock lock(mutex_);
      if (part.empty() || all_writable_) return {};
      const std::byte* start = part.data();
      const auto at = std::ranges::lower_bound(writable_, start, {}, &std::span<std::byte>::data);
      if (at != writable_.end() && at->data() == start && at->size() >= part.size()) return {};
      const bool all = writable_.size() >= max_ranges;
      const auto entry = all ? at : writable_.insert(at, part);
      const auto made = mapping_.make_writable(all ? bytes() : part);
      if (!made) {
        if (!all) writable_.erase(entry);
        return hurray::Error{
            .code = made.error().number == ENOMEM ? Errc::out_of_memory : Errc::system,
            .origin = Origin::buffer,
            .what =
                "the system refuses to make the pages of this tensor writable; "
                "mode=\"map\" does without"};
      }
      all_writable_ = all;
      return {};
    });
  }

 private:
  static constexpr std::size_t max_ranges = 4096;

  system::Mapping mapping_;
  std::mutex mutex_;
  std::vector<std::span<std::byte>> writable_;  ///< Sorted by address.
  bool all_writable_ = false;
};

Result<std::shared_ptr<MappedFile>> map(const Source& source) {
  const auto size = to_size(source.size());
  if (!size)
    return source.about({.code = Errc::unsupported,
                         .origin = Origin::file,
                         .what = "larger than what this machine can map"},
                        {}, "open it with mode=\"memory\"");
  auto mapping = system::Mapping::map(source.descriptor(), *size);
  if (!mapping) {
    Error error = system::to_error(mapping.error(), Origin::file, source.path());
    error.detail = "open it with mode=\"memory\"";
    return error;
  }
  return std::make_shared<MappedFile>(*std::move(mapping));
}

}  // namespace

struct File::State {
  Source source;
  OpenOptions options;
  Ends ends;
  Index index;
  KvContents kv;
  std::shared_ptr<MappedFile> mapping;

  Error about(const hurray::Error& error, const Entry& entry, std::string detail = {}) const {
    return source.about(error, entry.name, std::move(detail));
  }

  Result<Bytes> descriptor_bytes(const Entry& entry) const;
  Result<Descriptor> decoded(const Entry& entry, std::span<const std::byte> bytes) const;
  /// A descriptor and where its buffers lie: rows 23 to 26 of 04-file.md section 12.
  struct Described {
    Descriptor descriptor;
    Placement placement;
  };
  Result<Described> describe(const Entry& entry) const;
  Result<Buffer> buffer(const Entry& entry, std::uint64_t offset, std::uint64_t size) const;
  Result<Tensor> tensor(const Entry& entry, Described described) const;

  /// One tensor of a composite.
  struct Part {
    std::size_t entry;
    Described described;
  };
  /// The head `i` and all that it binds, in emission order: row 28.
  Result<std::vector<Part>> composite(std::size_t i, Described head) const;
  /// Members that the head `i` announces; none for a plain tensor or one that is not understood.
  Result<std::optional<std::uint32_t>> member_count(std::size_t i) const;
};

Result<Bytes> File::State::descriptor_bytes(const Entry& entry) const {
  if (entry.descriptor_length > options.max_descriptor_bytes)
    return about({.code = Errc::limit_exceeded,
                  .origin = Origin::file,
                  .expect = Expect::at_most,
                  .field = "max_descriptor_bytes",
                  .what = "bytes",
                  .offset = entry.descriptor_offset,
                  .expected = options.max_descriptor_bytes,
                  .found = entry.descriptor_length},
                 entry);
  // Two lengths must agree before a large one is believed.
  Bytes bytes(std::min<std::size_t>(entry.descriptor_length, 4096));
  const auto read = [&](std::span<std::byte> into, std::size_t at) -> Result<void> {
    auto done = source.read("descriptor", into, entry.descriptor_offset + at);
    if (done) return {};
    Error error = std::move(done).error();
    error.tensor = entry.name;
    return error;
  };
  if (auto ok = read(bytes, 0); !ok) return ok.error();
  const DecodeOptions limits{.max_descriptor_bytes = options.max_descriptor_bytes};
  const auto length = descriptor_length(bytes, limits);
  if (!length) return about(length.error(), entry);
  if (*length != entry.descriptor_length)
    return about({.code = Errc::length_mismatch,
                  .origin = Origin::file,
                  .expect = Expect::exactly,
                  .field = "index[].descriptor_length",
                  .what = "bytes, as the descriptor says",
                  .offset = entry.descriptor_offset + 6,
                  .expected = *length,
                  .found = entry.descriptor_length},
                 entry);
  if (bytes.size() < entry.descriptor_length) {
    const std::size_t start = bytes.size();
    bytes.resize(entry.descriptor_length);
    if (auto ok = read(std::span(bytes).subspan(start), start); !ok) return ok.error();
  }
  return bytes;
}

Result<Descriptor> File::State::decoded(const Entry& entry,
                                        std::span<const std::byte> bytes) const {
  auto descriptor = decode(bytes, {.max_descriptor_bytes = options.max_descriptor_bytes,
                                   .permissive = options.permissive,
                                   .agreed = options.agreed});
  if (!descriptor) return about(descriptor.error(), entry);
  return *std::move(descriptor);
}

Result<File::State::Described> File::State::describe(const Entry& entry) const {
  const auto bytes = descriptor_bytes(entry);
  if (!bytes) return bytes.error();
  auto descriptor = decoded(entry, *bytes);
  if (!descriptor) return std::move(descriptor).error();
  if (std::holds_alternative<UnknownLayout>(descriptor->layout))
    return Described{*std::move(descriptor), {}};
  auto placement = place(descriptor->buffers, entry.data_offset, ends.header.data_buffer_alignment);
  if (!placement) return about(placement.error(), entry);
  if (placement->data_length != entry.data_length)
    return about({.code = Errc::length_mismatch,
                  .origin = Origin::file,
                  .expect = Expect::exactly,
                  .field = "index[].data_length",
                  .what = "bytes, as the buffer table gives",
                  .expected = placement->data_length,
                  .found = entry.data_length},
                 entry);
  return Described{*std::move(descriptor), *std::move(placement)};
}

Result<Buffer> File::State::buffer(const Entry& entry, std::uint64_t offset,
                                   std::uint64_t size) const {
  if (mapping) {
    if (offset > source.size() || size > source.size() - offset)
      return about({.code = Errc::out_of_bounds, .origin = Origin::file}, entry);
    return Buffer::borrow(mapping->bytes().data() + offset, size, mapping,
                          options.mode == Mode::map);
  }
  auto read = source.read_in_steps("data", offset, size,
                                   [](std::span<const std::byte>) { return Result<void>(); });
  if (!read) {
    Error error = std::move(read).error();
    error.tensor = entry.name;
    return error;
  }
  return read->view(0, size);  // measured, like all that was loaded
}

Result<Tensor> File::State::tensor(const Entry& entry, Described described) const {
  auto& [descriptor, placement] = described;
  const auto limit = options.max_tensor_bytes;
  if (limit && entry.data_length > *limit)
    return about({.code = Errc::limit_exceeded,
                  .origin = Origin::file,
                  .expect = Expect::at_most,
                  .field = "max_tensor_bytes",
                  .what = "bytes",
                  .offset = entry.data_offset,
                  .expected = *limit,
                  .found = entry.data_length},
                 entry);
  std::vector<Buffer> buffers;
  buffers.reserve(descriptor.buffers.size());
  for (std::size_t k = 0; k < descriptor.buffers.size(); ++k) {
    auto memory = buffer(entry, placement.buffers[k], descriptor.buffers[k].byte_size);
    if (!memory) return std::move(memory).error();
    buffers.push_back(*std::move(memory));
  }
  auto tensor = bind(std::move(descriptor), std::move(buffers),
                     {.provenance = Provenance::outside, .permissive = options.permissive});
  if (!tensor) return about(tensor.error(), entry);
  return *std::move(tensor);
}

Result<std::vector<File::State::Part>> File::State::composite(std::size_t i, Described head) const {
  CompositeChecker checker(
      {.max_depth = options.max_composite_depth, .permissive = options.permissive});
  std::vector<Part> parts;
  std::vector<std::size_t> heads;  ///< Entries of those that are open.
  const auto refuse = [&](const hurray::Error& error) {
    const std::size_t at = checker.fault_depth();
    return about(error, index.entry(at != 0 ? heads[at - 1] : i));
  };
  parts.push_back({i, std::move(head)});
  for (std::size_t k = index.place(i);; ++k) {
    const Descriptor& descriptor = parts.back().described.descriptor;
    if (auto fits = checker.arrive(descriptor); !fits) return refuse(fits.error());
    if (std::holds_alternative<CompositeHead>(descriptor.layout)) {
      heads.push_back(parts.back().entry);
      if (const std::uint64_t behind = index.size() - 1 - k; checker.owed() > behind)
        return about({.code = Errc::truncated,
                      .origin = Origin::file,
                      .expect = Expect::at_least,
                      .field = "layout.member_count",
                      .what = "tensors behind the head (torn composite)",
                      .expected = checker.owed(),
                      .found = behind},
                     index.entry(heads.back()), "its members can be read one by one");
    }
    if (auto whole = checker.complete(); !whole) return refuse(whole.error());
    heads.resize(checker.depth());
    if (!checker.open()) return parts;
    const std::size_t next = index.by_offset(k + 1);  // there, since one is owed
    auto described = describe(index.entry(next));
    if (!described) return std::move(described).error();
    parts.push_back({next, *std::move(described)});
  }
}

Result<std::optional<std::uint32_t>> File::State::member_count(std::size_t i) const {
  const auto none = std::optional<std::uint32_t>();
  const Entry entry = index.entry(i);
  const auto bytes = descriptor_bytes(entry);
  if (!bytes) {
    const Errc code = bytes.error().code;
    if (code == Errc::system || code == Errc::out_of_memory) return bytes.error();
    return none;
  }
  if ((*bytes)[layout_tag_offset] != static_cast<std::byte>(LayoutTag::composite)) return none;
  const auto descriptor = decoded(entry, *bytes);
  if (!descriptor) return none;
  return std::optional(std::get<CompositeHead>(descriptor->layout).member_count);
}

File::File(std::shared_ptr<const State> state) noexcept : state_(std::move(state)) {}

Result<File> File::open(std::string path, const OpenOptions& options) {
  return contain(Origin::file, [&]() -> Result<File> {
    auto source = Source::open(std::move(path), options);
    if (!source) return std::move(source).error();
    auto ends = read_ends(*source, options);
    if (!ends) return std::move(ends).error();
    auto index = Index::read(*source, *ends, options);
    if (!index) return std::move(index).error();
    auto kv = read_kv(*source, *ends);
    if (!kv) return std::move(kv).error();
    std::shared_ptr<MappedFile> mapping;
    if (options.mode != Mode::memory) {
      auto mapped = map(*source);
      if (!mapped) return std::move(mapped).error();
      mapping = *std::move(mapped);
    }
    return File(std::make_shared<const State>(State{*std::move(source), options, *std::move(ends),
                                                    *std::move(index), *std::move(kv),
                                                    std::move(mapping)}));
  });
}

bool is_local_file(const std::string& path) noexcept {
  const auto status = system::status(path);
  return status && *status && (*status)->kind == system::Kind::regular &&
         system::is_local_volume(path);
}

const std::string& File::path() const noexcept { return state_->source.path(); }
Mode File::mode() const noexcept { return state_->options.mode; }
std::uint64_t File::size_bytes() const noexcept { return state_->source.size(); }
const FileHeader& File::header() const noexcept { return state_->ends.header; }
const FileTrailer& File::trailer() const noexcept { return state_->ends.trailer; }
const KeyValues& File::kv() const noexcept { return state_->kv.entries; }
bool File::has_checksums() const noexcept { return state_->kv.has_checksums; }
std::size_t File::size() const noexcept { return state_->index.size(); }
Entry File::entry(std::size_t i) const noexcept { return state_->index.entry(i); }
std::optional<std::size_t> File::find(std::string_view name) const noexcept {
  return state_->index.find(name);
}
std::shared_ptr<Owner> File::mapping() const noexcept { return state_->mapping; }

Result<Descriptor> File::descriptor(std::size_t i) const {
  return contain(Origin::file, [&]() -> Result<Descriptor> {
    auto described = state_->describe(entry(i));
    if (!described) return std::move(described).error();
    return std::move(described->descriptor);
  });
}

Result<Bytes> File::descriptor_bytes(std::size_t i) const {
  return contain(Origin::file,
                 [&]() -> Result<Bytes> { return state_->descriptor_bytes(entry(i)); });
}

Result<Tensor> File::tensor(std::size_t i) const {
  return contain(Origin::file, [&]() -> Result<Tensor> {
    const Entry entry = state_->index.entry(i);
    auto described = state_->describe(entry);
    if (!described) return std::move(described).error();
    return state_->tensor(entry, *std::move(described));
  });
}

Result<Buffer> File::raw_bytes(std::size_t i) const {
  return contain(Origin::file, [&] {
    const Entry entry = state_->index.entry(i);
    return state_->buffer(entry, entry.data_offset, entry.data_length);
  });
}

Result<Item> File::item(std::size_t i) const {
  return contain(Origin::file, [&]() -> Result<Item> {
    const State& state = *state_;
    auto described = state.describe(entry(i));
    if (!described) return std::move(described).error();
    auto parts = state.composite(i, *std::move(described));
    if (!parts) return std::move(parts).error();
    ItemBuilder builder;
    std::optional<Item> item;
    for (State::Part& part : *parts) {
      auto tensor = state.tensor(entry(part.entry), std::move(part.described));
      if (!tensor) return std::move(tensor).error();
      item = builder.add(*std::move(tensor));
    }
    return *std::move(item);
  });
}

Result<Item> File::item(std::string_view name) const {
  return contain(Origin::file, [&]() -> Result<Item> {
    if (const auto i = find(name)) return item(*i);
    return state_->source.about({.code = Errc::not_found,
                                 .origin = Origin::file,
                                 .what = "this file has no tensor of this name"},
                                name);
  });
}

Result<std::vector<std::optional<std::size_t>>> File::owners() const {
  using Owners = std::vector<std::optional<std::size_t>>;
  return contain(Origin::file, [&]() -> Result<Owners> {
    struct Head {
      std::size_t entry;
      std::uint32_t left;
    };
    const Index& index = state_->index;
    Owners owners(index.size());
    std::vector<Head> heads;
    for (std::size_t k = 0; k < index.size(); ++k) {
      const std::size_t i = index.by_offset(k);
      if (!heads.empty()) owners[i] = heads.back().entry;
      const auto members = state_->member_count(i);
      if (!members) return members.error();
      if (*members)
        heads.push_back({i, **members});
      else if (!heads.empty())
        --heads.back().left;
      while (!heads.empty() && heads.back().left == 0) {
        heads.pop_back();
        if (!heads.empty()) --heads.back().left;
      }
    }
    if (!state_->options.permissive || heads.empty()) return owners;
    std::vector<bool> torn(index.size());
    for (const Head& head : heads) torn[head.entry] = true;
    for (auto& owner : owners)
      if (owner && torn[*owner]) owner.reset();
    return owners;
  });
}

Result<KeyValues> load_kv(const std::string& path, const OpenOptions& options) {
  return contain(Origin::file, [&]() -> Result<KeyValues> {
    const auto source = Source::open(path, options);
    if (!source) return source.error();
    const auto ends = read_ends(*source, options);
    if (!ends) return ends.error();
    auto kv = read_kv(*source, *ends);
    if (!kv) return std::move(kv).error();
    return std::move(kv->entries);
  });
}

}  // namespace hurray::io
