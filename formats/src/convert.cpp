#include "hurray/formats/convert.hpp"

#include <algorithm>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "hurray/formats/safetensors.hpp"
#include "hurray/io/file_writer.hpp"

namespace hurray::formats {
namespace {

/// A tensor of a file that has sums: read as a whole, which compares them, when its first byte is
/// asked for, and let go after its last one.
struct Checked {
  io::File file;
  std::size_t entry;
  std::optional<Tensor> tensor = {};

  io::Result<void> fill(std::size_t buffer, std::uint64_t offset, std::span<std::byte> out) {
    if (!tensor) {
      auto read = file.tensor(entry);
      if (!read) return std::move(read).error();
      tensor = *std::move(read);
    }
    const Buffer& from = tensor->buffer(buffer);
    std::ranges::copy(from.bytes().subspan(static_cast<std::size_t>(offset), out.size()),
                      out.begin());
    if (buffer + 1 == tensor->buffers().size() && offset + out.size() == from.size())
      tensor.reset();
    return {};
  }
};

/// The buffers of entry `i`, which the progress sees pass. `options` outlive them.
io::Result<std::vector<io::BufferSource>> buffers_of(const io::File& file, std::size_t i,
                                                     const Descriptor& descriptor,
                                                     const ConvertOptions& options) {
  std::vector<io::BufferSource> stored;
  std::shared_ptr<Checked> checked;
  if (file.has_checksums()) {
    checked = std::make_shared<Checked>(Checked{file, i});
  } else {
    auto sources = file.sources(i);
    if (!sources) return std::move(sources).error();
    stored = *std::move(sources);
  }
  std::vector<io::BufferSource> all;
  for (std::size_t k = 0; k < descriptor.buffers.size(); ++k)
    all.emplace_back(descriptor.buffers[k].byte_size,
                     [&options, checked, k, from = checked ? io::BufferSource() : stored[k]](
                         std::uint64_t offset, std::span<std::byte> out) {
                       if (options.progress) options.progress(out.size());
                       return checked ? checked->fill(k, offset, out) : from.fill(offset, out);
                     });
  return all;
}

/// What is to be written, in the order in which it lies in the source.
struct Plan {
  struct Tensor {
    std::string_view name;
    Descriptor descriptor;
    const io::File* file;
    std::size_t entry;   ///< Of that file.
    std::size_t in_set;  ///< Of the set.
  };
  std::vector<Tensor> tensors;
  std::uint64_t bytes = 0;
};

io::Result<Plan> plan_of(const io::FileSet& source, const ConvertOptions& options) {
  const auto owners = source.owners();
  if (!owners) return owners.error();
  std::vector<bool> wanted(source.size(), !options.entries);
  if (options.entries)
    for (const std::size_t i : *options.entries) wanted[i] = true;
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < source.size(); ++i) {
    if ((*owners)[i] == i) continue;  // the set's index does not name it
    bool taken = wanted[i];
    for (auto owner = (*owners)[i]; owner && !taken; owner = (*owners)[*owner])
      taken = wanted[*owner];
    if (taken) order.push_back(i);
  }
  std::ranges::sort(order, {}, [&](std::size_t i) {
    const auto [file, entry] = source.place(i);
    return std::pair(file, file->entry(entry).descriptor_offset);
  });
  Plan plan;
  for (const std::size_t i : order) {
    const auto [file, entry] = source.place(i);
    auto descriptor = file->descriptor(entry);
    if (!descriptor) return std::move(descriptor).error();
    for (const BufferHandle& buffer : descriptor->buffers) plan.bytes += buffer.byte_size;
    plan.tensors.push_back({source.name(i), canonical(*std::move(descriptor)), file, entry, i});
  }
  return plan;
}

io::Result<void> write_described(const Plan::Tensor& tensor, const ConvertOptions& options,
                                 io::FileWriter& writer) {
  const auto read = tensor.file->tensor(tensor.entry);
  if (!read) return read.error();
  const auto buffers = io::sources_of(*read);
  if (!buffers) return io::Error(buffers.error(), tensor.file->path(), std::string(tensor.name));
  const auto descriptor = options.describe(tensor.in_set, *read);
  if (!descriptor) return descriptor.error();
  if (auto done = writer.write(tensor.name, *descriptor, *buffers); !done) return done;
  if (options.progress)
    for (const io::BufferSource& buffer : *buffers) options.progress(buffer.size());
  return {};
}

io::Result<void> to_hrry(const io::FileSet& source, std::string target, const Plan& plan,
                         const io::KeyValues& kv, const ConvertOptions& options) {
  const io::FileHeader& header = source.files().front().header();
  io::WriteOptions write;
  write.alignment = header.data_buffer_alignment;
  write.checksums = options.checksums;
  write.sync = options.sync;
  write.sorted_index = (header.flags & static_cast<std::uint32_t>(io::FileFlag::sorted_index)) != 0;
  write.tensor_count = plan.tensors.size();
  write.interrupted = options.interrupted;
  write.expected_bytes = plan.bytes;
  if (const auto encoded = io::encode_kv(kv); !encoded) return encoded.error();
  auto writer = io::FileWriter::create(std::move(target), write);
  if (!writer) return std::move(writer).error();
  for (const Plan::Tensor& tensor : plan.tensors) {
    if (options.describe) {
      if (auto done = write_described(tensor, options, *writer); !done) return done;
      continue;
    }
    const auto buffers = buffers_of(*tensor.file, tensor.entry, tensor.descriptor, options);
    if (!buffers) return buffers.error();
    if (auto done = writer->write(tensor.name, tensor.descriptor, *buffers); !done) return done;
  }
  return writer->finish(kv);
}

io::Result<void> to_safetensors(std::string target, const Plan& plan, const io::KeyValues& kv,
                                const ConvertOptions& options) {
  std::vector<SafetensorsItem> items;
  for (const Plan::Tensor& tensor : plan.tensors) {
    auto buffers = buffers_of(*tensor.file, tensor.entry, tensor.descriptor, options);
    if (!buffers) return std::move(buffers).error();
    items.push_back({std::string(tensor.name), tensor.descriptor, *std::move(buffers)});
  }
  return write_safetensors(std::move(target), items, kv,
                           {.sync = options.sync, .interrupted = options.interrupted});
}

}  // namespace

io::Result<Converted> convert(const io::FileSet& source, std::string target,
                              const ConvertOptions& options) {
  return contain(Origin::file, [&]() -> io::Result<Converted> {
    const auto plan = plan_of(source, options);
    if (!plan) return plan.error();
    const auto kv = options.kv ? source.kv() : io::Result<io::KeyValues>(io::KeyValues());
    if (!kv) return kv.error();
    if (options.total) options.total(plan->bytes);
    source.will_read_all();
    auto done = target.ends_with(".safetensors")
                    ? to_safetensors(std::move(target), *plan, *kv, options)
                    : to_hrry(source, std::move(target), *plan, *kv, options);
    if (!done) return std::move(done).error();
    return Converted{plan->tensors.size(), plan->bytes};
  });
}

}  // namespace hurray::formats
