#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "command.hpp"
#include "hurray/formats/formats.hpp"
#include "hurray/io/file.hpp"
#include "hurray/io/file_writer.hpp"
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

struct Converted {
  std::size_t tensors = 0;
  std::uint64_t bytes = 0;
};

/// A tensor of a file that has sums, compared with them; of others the bytes as they come.
struct Source {
  Descriptor descriptor;
  std::optional<Tensor> tensor;  ///< Holds what `buffers` speak of.
  std::vector<io::BufferSource> buffers;
};

io::Result<Source> source_of(const io::File& file, std::size_t i) {
  Source source;
  if (!file.has_checksums()) {
    auto descriptor = file.descriptor(i);
    if (!descriptor) return std::move(descriptor).error();
    auto buffers = file.sources(i);
    if (!buffers) return std::move(buffers).error();
    source.descriptor = *std::move(descriptor);
    source.buffers = *std::move(buffers);
    return source;
  }
  auto tensor = file.tensor(i);
  if (!tensor) return std::move(tensor).error();
  source.tensor = *std::move(tensor);
  source.descriptor = source.tensor->wire_descriptor();
  auto buffers = io::sources_of(*source.tensor);
  if (!buffers) return io::Error(buffers.error(), file.path(), std::string(file.name(i)));
  source.buffers = *std::move(buffers);
  return source;
}

/// The same bytes, which the progress sees pass.
std::vector<io::BufferSource> watched(const std::vector<io::BufferSource>& buffers,
                                      Progress& progress) {
  std::vector<io::BufferSource> all;
  for (const io::BufferSource& buffer : buffers) {
    if (!buffer.converted()) {
      progress.add(buffer.size());
      all.push_back(buffer);
      continue;
    }
    all.emplace_back(buffer.size(),
                     [&progress, &buffer](std::uint64_t offset, std::span<std::byte> out) {
                       auto filled = buffer.fill(offset, out);
                       progress.add(out.size());
                       return filled;
                     });
  }
  return all;
}

/// A file anew, tensor by tensor as it stands, with the sums of this release. Where old sums are
/// the file's, they are compared.
io::Result<Converted> convert_file(const ConvertRequest& request) {
  io::OpenOptions open;
  open.mode = io::Mode::memory;
  open.agreed.all = true;
  open.foreign = formats::reader();
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
  source->will_read_all();
  Progress progress(options.expected_bytes);
  Converted converted;
  for (const std::size_t i : order) {
    const auto tensor = source_of(*source, i);
    if (!tensor) return tensor.error();
    for (const io::BufferSource& buffer : tensor->buffers) converted.bytes += buffer.size();
    const auto buffers = watched(tensor->buffers, progress);
    if (auto written = writer->write(source->name(i), tensor->descriptor, buffers); !written)
      return written.error();
    ++converted.tensors;
  }
  progress.wait("waiting for the disk");
  if (auto finished = writer->finish(source->kv()); !finished) return finished.error();
  return converted;
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
