#include "hurray/io/file_writer.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "buffer_source.hpp"
#include "checksums.hpp"
#include "container.hpp"
#include "hurray/io/crc32c.hpp"
#include "items.hpp"
#include "output.hpp"
#include "patience.hpp"

namespace hurray::io {

namespace {

/// What one call of the operating system takes at the most while sums are made: they read the bytes
/// just after the system copied them, while they are in the cache. Calls end at multiples of it in
/// the file: the system then keeps the file in large pieces, which are quicker to map.
constexpr std::size_t bytes_per_call = std::size_t{2} << 20;

constexpr std::array<std::byte, 4 * min_data_alignment> zeros{};

hurray::Error invalid(std::string_view field, std::string_view what) noexcept {
  return {.code = Errc::invalid_value, .origin = Origin::file, .field = field, .what = what};
}

hurray::Error unnamed() noexcept {
  return invalid("member_names", "are one for each tensor below the head, or none");
}

hurray::Error taken_name() noexcept {
  return {.code = Errc::duplicate,
          .origin = Origin::file,
          .field = "name",
          .what = "another tensor of this file has this name"};
}

/// The name of the tensor at `path` below the head `name` (D21).
std::string name_at(std::string_view name, std::span<const std::size_t> path) {
  std::string own(name);
  for (const std::size_t i : path) own += "." + std::to_string(i);
  return own;
}

/// What is known of a tensor before its first byte is written.
struct Plan {
  std::string name;
  std::span<const BufferSource> buffers;
  std::vector<std::byte> descriptor;
  Placement placement;
  std::uint64_t next = 0;  ///< Where the next part starts.
};

}  // namespace

struct FileWriter::State {
  enum class Phase : std::uint8_t { open, failed, complete, finished };

  State(Output output_, const WriteOptions& options_)
      : output(std::move(output_)),
        options(options_),
        patience(options_.interrupted),
        question(patience.question()) {
    header.flags = bit(FileFlag::has_index_crc32c);
    if (options.key_values) header.flags |= bit(FileFlag::has_kv_metadata);
    if (options.sorted_index) header.flags |= bit(FileFlag::sorted_index);
    header.data_buffer_alignment = options.alignment;
    header.tensor_count_hint = options.tensor_count.value_or(unknown_count);
    const Bytes bytes = encoded([&](auto& io) { fields(header, io); });
    std::ranges::copy(bytes, header_image.begin());
    if (options.checksums) checksums.emplace(header_image);
  }

  Output output;
  WriteOptions options;
  Patience patience;
  system::Interrupted question;
  FileHeader header;
  std::array<std::byte, header_bytes> header_image{};
  std::optional<Checksums> checksums;
  Phase phase = Phase::open;
  std::string failure = {};  ///< What the first one said.
  std::uint32_t index_crc32c = 0;
  std::uint32_t kv_crc32c = 0;
  std::uint64_t position = 0;
  std::vector<Entry> entries;  ///< In the order of writing; their names are those of `names`.
  std::set<std::string, std::less<>> names;
  CompositeChecker checker{{.writing = true}};
  Scratch scratch;

  std::array<std::span<const std::byte>, 64> parts;  ///< On their way out.
  std::array<bool, 64> part_is_data{};               ///< Under a sum of its tensor.
  std::size_t part_count = 0;
  std::size_t part_bytes = 0;

  /// Small parts of a file that nobody sees yet, on their way out together.
  static constexpr std::size_t batch_bytes = std::size_t{1} << 20;
  Buffer batch;
  std::size_t batched = 0;

  Error about(const hurray::Error& error, std::string_view tensor = {},
              std::string detail = {}) const {
    return {error, output.path(), std::string(tensor), std::move(detail)};
  }

  std::size_t left_of_call() const noexcept {
    return bytes_per_call - static_cast<std::size_t>(position % bytes_per_call);
  }

  Result<void> usable() const;
  Result<void> write_batch();
  /// False where they are too many, or there is no room for them now.
  bool take_into_batch(std::span<const std::span<const std::byte>> pieces, std::size_t bytes);
  /// One more tensor after those that are written and `planned`.
  Result<Plan> plan(std::string_view name, const Descriptor& descriptor,
                    std::span<const BufferSource> buffers, std::span<const Plan> planned) const;
  /// All tensors of an item, and what the writer's rules become with them.
  struct ItemPlan {
    CompositeChecker checker;
    std::vector<std::vector<BufferSource>> buffers = {};
    std::vector<Plan> plans = {};
  };
  Result<void> plan_item(std::string_view name, const Item& item,
                         std::span<const std::string> given, ItemPlan& all) const;
  Error in_composite(const hurray::Error& error, const CompositeChecker& judge,
                     std::string_view name) const {
    Error result = inside(error, judge);
    result.path = output.path();
    result.tensor = name;
    return result;
  }
  /// Takes the memory for the bookkeeping of all of `plans`, or nothing.
  Result<void> prepare(std::span<const Plan> plans);
  Result<void> put_planned(std::span<const Plan> plans);

  Result<void> flush();
  /// Bytes that are on their way until the next `flush`; `data` where they are of a data region.
  Result<void> put(std::span<const std::byte> bytes, bool data = false);
  Result<void> put_zeros_up_to(std::uint64_t end, bool data = false);
  Result<void> put_tensor(const Plan& plan);
  Result<void> put_end(std::span<const std::byte> kv, std::span<const std::byte> index,
                       const FileTrailer& trailer);

  /// `result` of writing: its failure ends everything.
  Result<void> settle(Result<void> result);
};

Result<void> FileWriter::State::usable() const {
  if (phase == Phase::open) return {};
  return about(
      {.code = Errc::invalid_state,
       .origin = Origin::file,
       .what = phase == Phase::finished   ? "this writer is finished"
               : phase == Phase::complete ? "this writer is complete, and can be finished"
                                          : "an earlier write failed, and nothing was saved"},
      {}, failure);
}

Result<Plan> FileWriter::State::plan(std::string_view name, const Descriptor& descriptor,
                                     std::span<const BufferSource> buffers,
                                     std::span<const Plan> planned) const {
  if (auto open = usable(); !open) return open.error();
  if (name.empty() || name.size() > max_name_bytes)
    return about({.code = Errc::invalid_value,
                  .origin = Origin::file,
                  .expect = Expect::as_said,
                  .field = "name",
                  .what = "1 to 65535 bytes of UTF-8",
                  .found = name.size()});
  if (!is_utf8(name)) return about(invalid("name", "must be valid UTF-8"), name);
  if (names.contains(name)) return about(taken_name(), name);
  const std::size_t before = entries.size() + planned.size();
  if (options.tensor_count && before >= *options.tensor_count)
    return about({.code = Errc::inconsistent,
                  .origin = Origin::file,
                  .expect = Expect::at_most,
                  .field = "tensor_count",
                  .what = "tensors, as announced",
                  .expected = *options.tensor_count,
                  .found = before + 1},
                 name);
  if (buffers.size() != descriptor.buffers.size())
    return about({.code = Errc::inconsistent,
                  .origin = Origin::buffer,
                  .expect = Expect::exactly,
                  .field = "buffer_count",
                  .what = "buffers, as the descriptor says",
                  .expected = descriptor.buffers.size(),
                  .found = buffers.size()},
                 name);
  for (std::size_t i = 0; i < buffers.size(); ++i)
    if (buffers[i].size() != descriptor.buffers[i].byte_size)
      return about({.code = Errc::inconsistent,
                    .origin = Origin::buffer,
                    .expect = Expect::exactly,
                    .index = static_cast<std::uint32_t>(i),
                    .field = "buffers[].byte_size",
                    .what = "bytes, as the descriptor says",
                    .expected = descriptor.buffers[i].byte_size,
                    .found = buffers[i].size()},
                   name);

  auto bytes = encode(descriptor);
  if (!bytes) return about(bytes.error(), name);
  Plan plan;
  plan.name = name;
  plan.buffers = buffers;
  plan.descriptor = *std::move(bytes);
  const std::uint64_t start_of_this = planned.empty() ? position : planned.back().next;
  const std::uint64_t behind = start_of_this + plan.descriptor.size();
  const auto start =
      checked_align_up<std::uint64_t>(behind, buffers.empty() ? part_alignment : options.alignment);
  if (!start) return about(invalid("data_offset", "beyond the largest file"), name);
  auto placement = place(descriptor.buffers, *start, options.alignment);
  if (!placement) return about(placement.error(), name);
  plan.placement = *std::move(placement);
  plan.next = *checked_align_up<std::uint64_t>(plan.placement.data_end(), part_alignment);
  return plan;
}

Result<void> FileWriter::State::write_batch() {
  const std::span<const std::byte> bytes = batch.bytes().first(std::exchange(batched, 0));
  return bytes.empty() ? Result<void>() : output.write({&bytes, 1}, question);
}

bool FileWriter::State::take_into_batch(std::span<const std::span<const std::byte>> pieces,
                                        std::size_t bytes) {
  if (bytes > batch_bytes / 8 || !output.replaces()) return false;
  if (batch.size() == 0) {
    auto memory = Buffer::allocate(batch_bytes);
    if (!memory) return false;
    batch = *std::move(memory);
  }
  if (bytes > batch.size() - batched) return false;
  for (const auto piece : pieces) {
    std::ranges::copy(piece, batch.bytes().begin() + static_cast<std::ptrdiff_t>(batched));
    batched += piece.size();
  }
  return true;
}

Result<void> FileWriter::State::flush() {
  const std::size_t count = std::exchange(part_count, 0);
  const std::size_t bytes = std::exchange(part_bytes, 0);
  const auto pieces = std::span(parts).first(count);
  if (!take_into_batch(pieces, bytes)) {
    if (auto written = write_batch(); !written) return written;
    if (!take_into_batch(pieces, bytes))
      if (auto written = output.write(pieces, question); !written) return written;
  }
  if (checksums)
    for (std::size_t i = 0; i < count; ++i)
      if (part_is_data[i]) checksums->add(parts[i]);
  if (patience.ended()) return system::to_error(system::stopped(), Origin::file, output.path());
  return {};
}

Result<void> FileWriter::State::put(std::span<const std::byte> bytes, bool data) {
  while (!bytes.empty()) {
    const std::size_t size =
        data && checksums ? std::min(bytes.size(), left_of_call()) : bytes.size();
    parts[part_count] = bytes.first(size);
    part_is_data[part_count++] = data;
    part_bytes += size;
    position += size;
    bytes = bytes.subspan(size);
    if (part_count == parts.size() || part_bytes >= bytes_per_call ||
        left_of_call() == bytes_per_call)
      if (auto done = flush(); !done) return done;
  }
  return {};
}

Result<void> FileWriter::State::put_zeros_up_to(std::uint64_t end, bool data) {
  while (position < end) {
    const auto size = std::min<std::uint64_t>(end - position, zeros.size());
    if (auto done = put(std::span(zeros).first(static_cast<std::size_t>(size)), data); !done)
      return done;
  }
  return {};
}

Result<void> FileWriter::State::put_tensor(const Plan& plan) {
  const auto buffers = plan.buffers;
  if (auto done = put(plan.descriptor); !done) return done;
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    if (auto done = put_zeros_up_to(plan.placement.buffers[i], i != 0); !done) return done;
    auto done = scratch.for_each_piece(buffers[i], [&](std::span<const std::byte> piece) {
      auto taken = put(piece, true);
      // A converted piece makes room for the next one.
      if (taken && buffers[i].converted() && part_count != 0) taken = flush();
      return taken;
    });
    if (!done) return done;
  }
  if (auto done = put_zeros_up_to(plan.next); !done) return done;
  if (auto done = flush(); !done) return done;
  if (checksums) checksums->end();
  return {};
}

Result<void> FileWriter::State::prepare(std::span<const Plan> plans) {
  std::uint64_t data_bytes = 0;
  for (const Plan& plan : plans) {
    for (const BufferSource& buffer : plan.buffers)
      if (auto ready = scratch.prepare(buffer); !ready) return about(ready.error(), plan.name);
    data_bytes += plan.placement.data_length;  // below the largest file together
  }
  if (entries.capacity() - entries.size() < plans.size())
    entries.reserve(std::max({std::size_t{16}, 2 * entries.size(), entries.size() + plans.size()}));
  if (checksums) checksums->reserve(plans.size(), data_bytes);
  std::size_t kept = 0;
  try {
    for (; kept < plans.size(); ++kept) {
      if (names.emplace(plans[kept].name).second) continue;
      for (std::size_t i = 0; i < kept; ++i) names.erase(plans[i].name);
      return about(taken_name(), plans[kept].name);
    }
  } catch (const std::bad_alloc&) {
    for (std::size_t i = 0; i < kept; ++i) names.erase(plans[i].name);
    throw;
  }
  return {};
}

Result<void> FileWriter::State::put_planned(std::span<const Plan> plans) {
  for (const Plan& plan : plans) {
    if (checksums) checksums->begin(plan.descriptor, plan.placement.data_length);
    entries.push_back({*names.find(plan.name), position,
                       static_cast<std::uint32_t>(plan.descriptor.size()),
                       plan.placement.data_offset, plan.placement.data_length});
    auto written = settle(put_tensor(plan));
    if (!written) {
      Error error = std::move(written).error();
      error.tensor = plan.name;
      return error;
    }
  }
  return {};
}

Result<void> FileWriter::State::put_end(std::span<const std::byte> kv,
                                        std::span<const std::byte> index,
                                        const FileTrailer& trailer) {
  const Bytes end = encoded(
      [&](auto& io) { fields(trailer, io, header, trailer.index_offset + trailer.index_length); });
  if (auto done = put(kv); !done) return done;
  if (auto done = put_zeros_up_to(trailer.index_offset); !done) return done;
  if (auto done = put(index); !done) return done;
  if (auto done = put(end); !done) return done;
  if (auto done = flush(); !done) return done;
  return write_batch();
}

Result<void> FileWriter::State::settle(Result<void> result) {
  if (!result) {
    phase = Phase::failed;
    failure = "it was: " + to_string(result.error());
    output.abandon();
  }
  return result;
}

std::vector<std::string> member_names(std::string_view name, const Item& item) {
  std::vector<std::string> names;
  for_each_item(item, [&](const Item&, std::span<const std::size_t> path) {
    if (!path.empty()) names.push_back(name_at(name, path));
    return true;
  });
  return names;
}

FileWriter::FileWriter(std::unique_ptr<State> state) noexcept : state_(std::move(state)) {}
FileWriter::FileWriter(FileWriter&&) noexcept = default;
FileWriter& FileWriter::operator=(FileWriter&&) noexcept = default;
FileWriter::~FileWriter() = default;

template <class Open>
Result<FileWriter> FileWriter::start(const WriteOptions& options, std::string_view path,
                                     Open open) {
  return contain(Origin::file, [&]() -> Result<FileWriter> {
    const auto refuse = [&](const hurray::Error& error) { return Error(error, std::string(path)); };
    if (!is_data_alignment(options.alignment))
      return refuse({.code = Errc::invalid_value,
                     .origin = Origin::file,
                     .expect = Expect::as_said,
                     .field = "alignment",
                     .what = "a power of two from 4096 to 2097152",
                     .found = options.alignment});
    if (options.checksums && !options.key_values)
      return refuse(
          invalid("checksums", "are kept in the KV section; ask for both or for neither"));
    Result<Output> output = open();
    if (!output) return std::move(output).error();
    FileWriter writer(std::make_unique<State>(*std::move(output), options));
    // On its way with the first tensor: a refusal leaves nothing in a pipe.
    State& state = *writer.state_;
    if (auto begun = state.put(state.header_image); !begun) return std::move(begun).error();
    return writer;
  });
}

Result<FileWriter> FileWriter::create(std::string path, const WriteOptions& options) {
  return start(options, path, [&] {
    return Output::create(path, Origin::file, options.expected_bytes, options.interrupted);
  });
}

Result<FileWriter> FileWriter::over(int descriptor, const WriteOptions& options) {
  return start(options, {}, [&] { return Output::over(descriptor, Origin::file); });
}

Result<void> FileWriter::check(std::string_view name, const Descriptor& descriptor,
                               std::span<const BufferSource> buffers) const {
  return contain(Origin::file, [&]() -> Result<void> {
    const auto plan = state_->plan(name, descriptor, buffers, {});
    if (!plan) return plan.error();
    if (auto fits = state_->checker.check(descriptor); !fits)
      return state_->in_composite(fits.error(), state_->checker, name);
    return {};
  });
}

Result<void> FileWriter::write(std::string_view name, const Descriptor& descriptor,
                               std::span<const BufferSource> buffers) {
  return contain(Origin::file, [&]() -> Result<void> {
    State& state = *state_;
    const auto plan = state.plan(name, descriptor, buffers, {});
    if (!plan) return plan.error();
    // Whatever takes memory or may be refused comes before the first byte.
    if (auto ready = state.prepare({&*plan, 1}); !ready) return ready;
    if (auto fits = state.checker.add(descriptor); !fits) {
      state.names.erase(plan->name);
      return state.in_composite(fits.error(), state.checker, name);
    }
    return state.put_planned({&*plan, 1});
  });
}

Result<void> FileWriter::State::plan_item(std::string_view name, const Item& item,
                                          std::span<const std::string> given, ItemPlan& all) const {
  Result<void> valid;
  const auto add = [&](const Item& part, std::span<const std::size_t> path) -> Result<void> {
    const bool is_given = !path.empty() && !given.empty();
    if (is_given && all.plans.size() > given.size()) return about(unnamed(), name);
    const std::string own = is_given ? given[all.plans.size() - 1] : name_at(name, path);
    if (auto fits = all.checker.add(part, path); !fits)
      return in_composite(fits.error(), all.checker, own);
    auto sources = sources_of(part.tensor);
    if (!sources) return about(sources.error(), own);
    all.buffers.push_back(*std::move(sources));
    auto plan = this->plan(own, part.tensor.wire_descriptor(), all.buffers.back(), all.plans);
    if (!plan) return std::move(plan).error();
    all.plans.push_back(*std::move(plan));
    return {};
  };
  for_each_item(item, [&](const Item& part, std::span<const std::size_t> path) {
    valid = add(part, path);
    return valid.has_value();
  });
  if (!valid) return valid;
  if (given.empty()) return {};  // derived names differ from each other
  if (given.size() != all.plans.size() - 1) return about(unnamed(), name);
  std::set<std::string_view> own;
  for (const Plan& plan : all.plans)
    if (!own.insert(plan.name).second) return about(taken_name(), plan.name);
  return {};
}

Result<void> FileWriter::check_item(std::string_view name, const Item& item,
                                    std::span<const std::string> names) const {
  return contain(Origin::file, [&] {
    State::ItemPlan all{state_->checker.trial()};
    return state_->plan_item(name, item, names, all);
  });
}

Result<void> FileWriter::write_item(std::string_view name, const Item& item,
                                    std::span<const std::string> names) {
  return contain(Origin::file, [&]() -> Result<void> {
    State& state = *state_;
    State::ItemPlan all{state.checker.trial()};
    if (auto valid = state.plan_item(name, item, names, all); !valid) return valid;
    if (auto ready = state.prepare(all.plans); !ready) return ready;
    state.checker.adopt(std::move(all.checker));
    return state.put_planned(all.plans);
  });
}

Result<void> FileWriter::complete(const KeyValues& kv) {
  return contain(Origin::file, [&]() -> Result<void> {
    State& state = *state_;
    if (auto open = state.usable(); !open) return open;
    if (state.checker.open()) {
      Error error = unfinished(state.checker, Origin::file);
      error.path = state.output.path();
      return error;
    }
    const auto& options = state.options;
    if (options.tensor_count && *options.tensor_count != state.entries.size())
      return state.about({.code = Errc::inconsistent,
                          .origin = Origin::file,
                          .expect = Expect::exactly,
                          .field = "tensor_count",
                          .what = "tensors, as announced",
                          .expected = *options.tensor_count,
                          .found = state.entries.size()});
    if (!options.key_values && !kv.empty())
      return state.about(invalid("kv", "this writer was opened without a KV section"));

    std::vector<Entry> entries = state.entries;
    if (options.sorted_index) std::ranges::sort(entries, {}, &Entry::name);
    const Bytes index = encoded([&](auto& io) {
      io("index_entry_count", static_cast<std::uint64_t>(entries.size()));
      for (std::size_t i = 0; i < entries.size(); ++i) fields(entries[i], io, i, state.header);
    });

    Bytes section;
    FileTrailer trailer;
    trailer.index_offset = state.position;
    if (options.key_values) {
      auto encoded_kv = encode_kv(kv);
      if (!encoded_kv) {
        Error error = std::move(encoded_kv).error();
        error.path = state.output.path();
        return error;
      }
      section = *std::move(encoded_kv);
      if (state.checksums)
        if (auto added = state.checksums->append_to(section, index); !added) return added;
      trailer.kv_offset = state.position;
      trailer.kv_length = static_cast<std::uint32_t>(section.size());
      trailer.index_offset =
          *checked_align_up<std::uint64_t>(state.position + section.size(), part_alignment);
    }
    trailer.index_length = index.size();
    trailer.index_crc32c = crc32c(index);

    auto written = state.settle(state.put_end(section, index, trailer));
    if (!written) return written;
    written = state.settle(state.output.settle(options.sync));
    if (!written) return written;
    state.index_crc32c = trailer.index_crc32c;
    state.kv_crc32c = crc32c(without_self(section));
    state.phase = State::Phase::complete;
    return written;
  });
}

Result<void> FileWriter::finish(const KeyValues& kv) {
  return contain(Origin::file, [&]() -> Result<void> {
    State& state = *state_;
    if (state.phase != State::Phase::complete)
      if (auto done = complete(kv); !done) return done;
    auto written = state.settle(state.output.commit(state.options.sync));
    if (written) state.phase = State::Phase::finished;
    return written;
  });
}

std::uint32_t FileWriter::index_crc32c() const noexcept { return state_->index_crc32c; }
std::uint32_t FileWriter::kv_crc32c() const noexcept { return state_->kv_crc32c; }

}  // namespace hurray::io
