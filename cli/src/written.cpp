#include "written.hpp"

#include <algorithm>
#include <utility>

#include "hurray/io/file_writer.hpp"
#include "progress.hpp"
#include "system.hpp"

namespace hurray::cli {
namespace {

/// `entries` and all that their heads bind, in the order in which they lie in the files: a head
/// before its members.
io::Result<std::vector<std::size_t>> with_members(const io::FileSet& set,
                                                  const std::vector<std::size_t>& entries) {
  const auto owners = set.owners();
  if (!owners) return owners.error();
  std::vector<bool> wanted(set.size());
  for (const std::size_t i : entries) wanted[i] = true;
  struct Lying {
    const io::File* file;
    std::uint64_t offset;
    std::size_t entry;
  };
  std::vector<Lying> all;
  for (std::size_t i = 0; i < set.size(); ++i) {
    bool taken = wanted[i];
    for (auto owner = (*owners)[i]; owner && !taken; owner = (*owners)[*owner])
      taken = wanted[*owner];
    if (!taken) continue;
    const auto [file, entry] = set.place(i);
    all.push_back({file, file->entry(entry).descriptor_offset, i});
  }
  std::ranges::sort(all, [](const Lying& a, const Lying& b) {
    return a.file != b.file ? std::less<>()(a.file, b.file) : a.offset < b.offset;
  });
  std::vector<std::size_t> order;
  order.reserve(all.size());
  for (const Lying& one : all) order.push_back(one.entry);
  return order;
}

}  // namespace

io::Result<Written> write_entries(const io::FileSet& set, const std::vector<std::size_t>& entries,
                                  const WriteRequest& request, const Describe& describe) {
  const auto order = with_members(set, entries);
  if (!order) return order.error();
  io::KeyValues kv;
  if (request.kv) {
    auto all = set.kv();
    if (!all) return std::move(all).error();
    kv = *std::move(all);
  }
  const io::FileHeader& header = set.files().front().header();
  io::WriteOptions options;
  options.alignment = header.data_buffer_alignment;
  options.checksums = request.checksums;
  options.sync = request.sync;
  options.sorted_index =
      (header.flags & static_cast<std::uint32_t>(io::FileFlag::sorted_index)) != 0;
  options.tensor_count = order->size();
  options.interrupted = signalled;
  for (const std::size_t i : *order) {
    const auto [file, entry] = set.place(i);
    options.expected_bytes += file->entry(entry).data_length;
  }
  auto writer = io::FileWriter::create(request.target, options);
  if (!writer) return writer.error();
  Progress progress(options.expected_bytes);
  Written written;
  for (const std::size_t i : *order) {
    const auto [file, entry] = set.place(i);
    const std::string_view name = set.name(i);
    const auto tensor = file->tensor(entry);
    if (!tensor) return tensor.error();
    const auto buffers = io::sources_of(*tensor);
    if (!buffers) return io::Error(buffers.error(), file->path(), std::string(name));
    auto descriptor =
        describe ? describe(i, *tensor) : io::Result<Descriptor>(tensor->wire_descriptor());
    if (!descriptor) return std::move(descriptor).error();
    if (auto done = writer->write(name, *descriptor, *buffers); !done)
      return std::move(done).error();
    for (const io::BufferSource& buffer : *buffers) written.bytes += buffer.size();
    progress.add(file->entry(entry).data_length);
    ++written.tensors;
  }
  progress.wait("waiting for the disk");
  if (auto finished = writer->finish(kv); !finished) return std::move(finished).error();
  return written;
}

}  // namespace hurray::cli
