#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <numeric>
#include <utility>
#include <vector>

#include "command.hpp"
#include "hurray/buffer.hpp"
#include "hurray/gather.hpp"
#include "hurray/io/file.hpp"
#include "hurray/io/file_writer.hpp"
#include "safetensors.hpp"
#include "system.hpp"
#include "text.hpp"

namespace hurray::cli {
namespace {

/// How far it is, for whoever watches; nothing in the first second, and nothing into files.
class Progress {
 public:
  explicit Progress(std::uint64_t total) : total_(total), shown_(errors_go_to_a_terminal()) {}
  ~Progress() {
    if (drawn_) std::fputs("\r\x1b[K", stderr);
  }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void add(std::uint64_t bytes) {
    done_ += bytes;
    const auto now = Clock::now();
    if (!shown_ || now < next_) return;
    next_ = now + std::chrono::milliseconds(200);
    const double seconds = std::chrono::duration<double>(now - start_).count();
    draw(fmt::format("{:3}%  {} of {}, {}/s", done_ * 100 / std::max<std::uint64_t>(total_, 1),
                     human(done_), human(total_),
                     human(static_cast<std::uint64_t>(static_cast<double>(done_) / seconds))));
  }
  void wait(std::string_view what) {
    if (drawn_) draw(what);
  }

 private:
  using Clock = std::chrono::steady_clock;

  void draw(std::string_view line) {
    drawn_ = true;
    fmt::print(stderr, "\r\x1b[K{}", line);
    std::fflush(stderr);
  }

  Clock::time_point start_ = Clock::now();
  Clock::time_point next_ = start_ + std::chrono::seconds(1);
  std::uint64_t total_;
  std::uint64_t done_ = 0;
  bool shown_;
  bool drawn_ = false;
};

/// One byte per truth value in the source, one bit here: read and packed through a bounded scratch.
class BoolReader {
 public:
  static constexpr std::size_t chunk_elements = std::size_t{1} << 20;

  BoolReader(const SourceFile& source, std::uint64_t start, std::uint64_t count)
      : source_(source), start_(start), count_(count) {}

  io::Result<void> operator()(std::uint64_t offset, std::span<std::byte> out) {
    scratch_.resize(static_cast<std::size_t>(std::min<std::uint64_t>(count_, chunk_elements)));
    std::uint64_t element = offset * 8;
    while (!out.empty()) {
      const auto elements =
          static_cast<std::size_t>(std::min<std::uint64_t>(count_ - element, scratch_.size()));
      const auto bytes = std::span(scratch_).first(elements);
      if (auto read = source_.read(start_ + element, bytes); !read) return read;
      const ArraySource array{.origin = bytes.data(),
                              .shape = Shape{elements},
                              .strides = Strides{1},
                              .dtype = DType::bool_,
                              .transcode = Transcode::pack_bool};
      const auto packed = std::min(out.size(), (elements + 7) / 8);
      gather(array, 0, out.first(packed));
      out = out.subspan(packed);
      element += elements;
    }
    return {};
  }

 private:
  const SourceFile& source_;
  std::uint64_t start_;
  std::uint64_t count_;
  std::vector<std::byte> scratch_;
};

/// A tensor of the source, as it will be written.
Result<Descriptor> descriptor_of(const SafetensorsTensor& tensor) {
  const auto size = packed_bytes(bits(tensor.dtype), tensor.shape.count());
  if (!size) return hurray::Error{.code = Errc::overflow, .origin = Origin::file, .field = "shape"};
  Descriptor descriptor;
  descriptor.dtype = tensor.dtype;
  descriptor.shape = tensor.shape;
  descriptor.buffers = {BufferHandle{.byte_size = *size}};
  return canonical(std::move(descriptor));
}

io::BufferSource elements_of(const SafetensorsTensor& tensor, const SourceFile& source,
                             std::uint64_t data_offset, std::uint64_t size) {
  const std::uint64_t start = data_offset + tensor.begin;
  if (tensor.dtype == DType::bool_) return {size, BoolReader(source, start, tensor.shape.count())};
  return {size, [&source, start](std::uint64_t offset, std::span<std::byte> out) {
            return source.read(start + offset, out);
          }};
}

bool is_hrry_file(std::span<const std::byte> head) {
  return std::string_view(reinterpret_cast<const char*>(head.data()), head.size())
      .starts_with("HRRYFILE");
}

std::string what_else(std::span<const std::byte> head, std::uint64_t size) {
  std::string words = io::describe_foreign_file(head, size);
  return words.empty() ? words : "this is " + words;
}

/// The header of a source that is a safetensors file, or what it is instead.
io::Result<SafetensorsHeader> read_header(const SourceFile& source) {
  std::array<std::byte, 512> first;
  const auto head =
      std::span(first).first(static_cast<std::size_t>(std::min<std::uint64_t>(512, source.size())));
  if (auto read = source.read(0, head); !read) return read.error();
  const auto length = safetensors_header_bytes(head, source.size());
  if (!length) {
    io::Error error = length.error();
    const bool is_other =
        error.code == Errc::invalid_magic || head.size() <= safetensors_prefix_bytes;
    if (std::string words = what_else(head, source.size()); is_other && !words.empty())
      error = io::Error(
          {.code = Errc::invalid_magic, .origin = Origin::file, .what = "not a safetensors file"},
          {}, {}, std::move(words));
    error.path = source.path();
    return error;
  }
  auto bytes = Buffer::allocate(safetensors_prefix_bytes + *length);
  if (!bytes) return io::Error(bytes.error(), source.path());
  if (auto read = source.read(0, bytes->bytes()); !read) return read.error();
  auto header = read_safetensors_header(bytes->bytes(), source.size());
  if (header) return header;
  io::Error error = std::move(header).error();
  error.path = source.path();
  return error;
}

struct Converted {
  std::size_t tensors = 0;
  std::uint64_t bytes = 0;
};

/// A .hrry file anew, tensor by tensor as it stands, with the sums of this release. Where the old
/// sums are the file's, they are compared.
io::Result<Converted> rewrite_file(const ConvertRequest& request) {
  io::OpenOptions open;
  open.mode = io::Mode::memory;
  open.agreed.all = true;
  const auto source = io::File::open(request.source, open);
  if (!source) return source.error();
  std::vector<std::size_t> order(source->size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::sort(order, {}, [&](std::size_t i) { return source->entry(i).descriptor_offset; });
  io::WriteOptions options;
  options.alignment = source->header().data_buffer_alignment;
  options.checksums = request.checksums;
  options.sync = request.sync;
  options.sorted_index =
      (source->header().flags & static_cast<std::uint32_t>(io::FileFlag::sorted_index)) != 0;
  options.tensor_count = source->size();
  options.interrupted = signalled;
  for (const std::size_t i : order) options.expected_bytes += source->entry(i).data_length;
  if (const auto kv = io::encode_kv(source->kv()); !kv) return kv.error();
  auto writer = io::FileWriter::create(request.target, options);
  if (!writer) return writer.error();
  Progress progress(options.expected_bytes);
  Converted converted;
  for (const std::size_t i : order) {
    const auto tensor = source->tensor(i);
    if (!tensor) return tensor.error();
    const auto buffers = io::sources_of(*tensor);
    const std::string_view name = source->name(i);
    if (!buffers) return io::Error(buffers.error(), request.source, std::string(name));
    if (auto written = writer->write(name, tensor->wire_descriptor(), *buffers); !written)
      return written.error();
    for (const io::BufferSource& buffer : *buffers) converted.bytes += buffer.size();
    progress.add(source->entry(i).data_length);
    ++converted.tensors;
  }
  progress.wait("waiting for the disk");
  if (auto finished = writer->finish(source->kv()); !finished) return finished.error();
  return converted;
}

io::Result<Converted> convert_file(const ConvertRequest& request) {
  auto source = SourceFile::open(request.source);
  if (!source) return source.error();
  std::array<std::byte, 8> first{};
  if (source->size() >= first.size()) {
    if (auto read = source->read(0, first); !read) return read.error();
    if (is_hrry_file(first)) return rewrite_file(request);
  }
  const auto header = read_header(*source);
  if (!header) return header.error();
  const auto in_source = [&](io::Error error, const std::string& tensor = {}) {
    error.path = request.source;
    error.tensor = tensor;
    return error;
  };

  io::WriteOptions options;
  options.checksums = request.checksums;
  options.sync = request.sync;
  options.tensor_count = header->tensors.size();
  options.interrupted = signalled;
  std::vector<Descriptor> descriptors;
  descriptors.reserve(header->tensors.size());
  for (const SafetensorsTensor& tensor : header->tensors) {
    auto descriptor = descriptor_of(tensor);
    if (!descriptor) return in_source(descriptor.error(), tensor.name);
    options.expected_bytes += descriptor->buffers[0].byte_size;
    descriptors.push_back(*std::move(descriptor));
  }

  // Whatever can be refused is refused before the first byte.
  if (const auto kv = io::encode_kv(header->metadata); !kv) return in_source(kv.error());
  auto writer = io::FileWriter::create(request.target, options);
  if (!writer) return writer.error();
  for (std::size_t i = 0; i < descriptors.size(); ++i) {
    const io::BufferSource sizes(descriptors[i].buffers[0].byte_size, {});
    if (auto fits = writer->check(header->tensors[i].name, descriptors[i], {&sizes, 1}); !fits)
      return in_source(fits.error(), header->tensors[i].name);
  }

  source->read_ahead();
  Progress progress(options.expected_bytes);
  for (std::size_t i = 0; i < descriptors.size(); ++i) {
    const SafetensorsTensor& tensor = header->tensors[i];
    const std::uint64_t size = descriptors[i].buffers[0].byte_size;
    const io::BufferSource elements(
        size, [&progress, from = elements_of(tensor, *source, header->data_offset, size)](
                  std::uint64_t offset, std::span<std::byte> out) {
          auto filled = from.fill(offset, out);
          progress.add(out.size());
          return filled;
        });
    if (auto written = writer->write(tensor.name, descriptors[i], {&elements, 1}); !written)
      return written.error();
  }
  progress.wait("waiting for the disk");
  if (auto finished = writer->finish(header->metadata); !finished) return finished.error();
  return Converted{descriptors.size(), options.expected_bytes};
}

}  // namespace

int convert(const ConvertRequest& request, Session& session) {
  const bool target_is_output = is_standard_output(request.target);
  remember_signals();
  const auto converted = convert_file(request);
  if (!converted) {
    if (signalled()) end_by_signal();
    return session.fail(converted.error());
  }
  if (target_is_output) return 0;
  if (session.json) {
    Json json(session.output);
    json.begin_document("convert");
    json.member("source", request.source);
    json.member("target", request.target);
    json.member("tensors", converted->tensors);
    json.member("bytes", converted->bytes);
    json.end_document();
    return 0;
  }
  session.output.write(
      fmt::format("{}: {} {}, {} ({})\n", io::printable(request.target), converted->tensors,
                  converted->tensors == 1 ? "tensor" : "tensors", human(converted->bytes),
                  "from " + io::printable(request.source)));
  return 0;
}

}  // namespace hurray::cli
