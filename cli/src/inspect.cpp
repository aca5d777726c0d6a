#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <concepts>
#include <functional>
#include <limits>
#include <optional>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "command.hpp"
#include "hurray/descriptor.hpp"
#include "hurray/formats/formats.hpp"
#include "hurray/io/file.hpp"
#include "key_values.hpp"
#include "members.hpp"
#include "system.hpp"
#include "text.hpp"

namespace hurray::cli {
namespace {

/// What is only shown counts as agreed on (08-python-api.md Y16).
constexpr Agreed everything{.all = true};
constexpr DecodeOptions strict{.agreed = everything};
constexpr DecodeOptions showing{.permissive = true, .agreed = everything};

constexpr std::uint64_t unknown_count = std::numeric_limits<std::uint64_t>::max();

std::string size_text(std::uint64_t bytes) {
  return bytes < 1024 ? human(bytes) : fmt::format("{} bytes ({})", bytes, human(bytes));
}

/// Positions of the buffers in the file, where they are known.
using Positions = std::vector<std::optional<std::uint64_t>>;

void buffer_members(Json& json, const Descriptor& descriptor, const Positions& positions) {
  json.key("buffers");
  if (!buffer_bytes(descriptor)) return json.null();
  json.begin_array();
  for (std::size_t i = 0; i < descriptor.buffers.size(); ++i) {
    const BufferHandle& buffer = descriptor.buffers[i];
    json.begin_object();
    json.member("role", role_text(descriptor, i));
    json.member("byte_size", buffer.byte_size);
    json.member("alignment", buffer.alignment);
    json.member("device", name(buffer.device));
    json.member("memory_class", name(buffer.memory_class));
    json.member("sync_mode", name(buffer.sync_mode));
    if (i < positions.size() && positions[i]) json.member("offset", *positions[i]);
    json.end_object();
  }
  json.end_array();
}

std::string buffers_text(const Descriptor& descriptor, const Positions& positions) {
  Table table({{"BUFFER"},
               {"OFFSET", true},
               {"BYTES", true},
               {"ALIGNMENT", true},
               {"DEVICE"},
               {"MEMORY"},
               {"SYNC"}});
  for (std::size_t i = 0; i < descriptor.buffers.size(); ++i) {
    const BufferHandle& buffer = descriptor.buffers[i];
    const std::string role = role_text(descriptor, i);
    table.add({role.empty() ? fmt::format("buffer {}", i) : role,
               i < positions.size() && positions[i] ? std::to_string(*positions[i]) : "",
               std::to_string(buffer.byte_size), std::to_string(buffer.alignment),
               std::string(name(buffer.device)), std::string(name(buffer.memory_class)),
               std::string(name(buffer.sync_mode))});
  }
  return table.text();
}

// --- One descriptor, byte by byte ---

/// An encoded descriptor that begins at byte `base` of the file.
struct Encoded {
  std::span<const std::byte> bytes;
  std::uint64_t base = 0;
};

std::span<const std::byte> part(const Encoded& encoded, const FieldRow& row) {
  const auto from = std::min<std::uint64_t>(row.offset, encoded.bytes.size());
  const auto size = std::min<std::uint64_t>(row.size, encoded.bytes.size() - from);
  return encoded.bytes.subspan(static_cast<std::size_t>(from), static_cast<std::size_t>(size));
}

void fields_members(Json& json, const Encoded& encoded, const std::vector<FieldRow>& rows) {
  json.key("fields");
  json.begin_array();
  for (const FieldRow& row : rows) {
    json.begin_object();
    json.member("offset", encoded.base + row.offset);
    json.member("size", row.size);
    json.member("hex", hex(part(encoded, row), encoded.bytes.size()));
    json.member("name", row.name);
    json.member("value", row.value);
    json.end_object();
  }
  json.end_array();
}

std::string fields_text(const Encoded& encoded, const std::vector<FieldRow>& rows) {
  Table table({{"OFFSET", true}, {"SIZE", true}, {"BYTES"}, {"FIELD"}, {"VALUE"}});
  for (const FieldRow& row : rows)
    table.add({std::to_string(encoded.base + row.offset), std::to_string(row.size),
               hex(part(encoded, row), 16), row.name, io::printable(row.value)});
  return table.text();
}

io::Result<std::vector<FieldRow>> rows_of(const Encoded& encoded) {
  std::vector<FieldRow> rows;
  if (auto described = describe(
          encoded.bytes, [&](const FieldRow& row) { rows.push_back(row); }, showing);
      !described)
    return described.error();
  return rows;
}

/// Why only permissive readers take this descriptor, whose encoding `bytes` returns; none where
/// all do.
template <class Bytes>
std::optional<hurray::Error> strict_fault(const Descriptor& descriptor, Bytes&& bytes) {
  // Decoding may have dropped statistics that break a rule: only the bytes still have them.
  if (descriptor.statistics() != nullptr) {
    const auto again = decode(bytes(), strict);
    if (!again) return again.error();
  }
  const auto valid = validate(descriptor);
  if (!valid) return valid.error();
  return std::nullopt;
}

void fault_members(Json& json, const std::optional<hurray::Error>& fault) {
  if (!fault) return;
  json.key("strict_error");
  json.begin_object();
  error_members(json, *fault);
  json.end_object();
}

std::string fault_text(const hurray::Error& fault) {
  return "strict readers reject it: " + reason(fault);
}

/// What there is to say of one descriptor besides its fields.
struct Subject {
  std::string title;  ///< For people.
  std::string_view kind;
  std::function<void(Json&)> members;
  Positions positions;
  std::optional<std::uint64_t> data_length;  ///< Where something else than the descriptor says it.
};

/// What stands under the tables of one descriptor.
std::string notes_text(const Descriptor& descriptor, const std::optional<hurray::Error>& fault) {
  std::string text;
  if (!buffer_bytes(descriptor)) text += "buffers: an unknown layout hides the buffer table\n";
  if (const auto why = opaque(descriptor))
    text += fmt::format("opaque: {}; elements cannot be addressed\n", why->what);
  if (fault) text += fault_text(*fault) + '\n';
  return text.empty() ? text : '\n' + text;
}

int show_descriptor(const io::Result<Descriptor>& descriptor, const Encoded& encoded,
                    const Subject& subject, Session& session) {
  std::vector<FieldRow> rows;
  std::optional<io::Error> error;
  std::optional<hurray::Error> fault;
  if (!descriptor) {
    error = descriptor.error();
  } else if (auto described = rows_of(encoded); !described) {
    error = described.error();
  } else {
    rows = *std::move(described);
    fault = strict_fault(*descriptor, [&] { return encoded.bytes; });
  }
  if (session.json) {
    Json json(session.output);
    json.begin_document(subject.kind);
    subject.members(json);
    json.member("descriptor_offset", encoded.base);
    json.member("descriptor_length", encoded.bytes.size());
    if (error) {
      json.key("error");
      json.begin_object();
      error_members(json, *error);
      json.end_object();
    } else {
      const auto bytes = buffer_bytes(*descriptor);
      descriptor_members(json, *descriptor, bytes ? bytes : subject.data_length);
      fault_members(json, fault);
      buffer_members(json, *descriptor, subject.positions);
      fields_members(json, encoded, rows);
    }
    json.end_document();
  } else {
    session.output.write(fmt::format("{}\n\n", subject.title));
    if (error) {
      session.output.write(hex(encoded.bytes, 256) + "\nbroken: " + reason(*error) + "\n");
    } else {
      session.output.write(fields_text(encoded, rows));
      if (!descriptor->buffers.empty())
        session.output.write('\n' + buffers_text(*descriptor, subject.positions));
      session.output.write(notes_text(*descriptor, fault));
    }
  }
  if (!error) return 0;
  complain(to_string(*error));
  return exit_code(*error);
}

// --- A .hrry file ---

void entry_members(Json& json, const io::Entry& entry) {
  json.member("name", entry.name);
  json.member("data_offset", entry.data_offset);
  json.member("data_length", entry.data_length);
}

std::vector<std::string_view> flag_names(const io::FileHeader& header) {
  std::vector<std::string_view> names;
  for (const io::FileFlagInfo& row : io::file_flags)
    if ((header.flags & static_cast<std::uint32_t>(row.tag)) != 0) names.push_back(row.name);
  return names;
}

void header_members(Json& json, const io::File& file) {
  const io::FileHeader& header = file.header();
  const io::FileTrailer& trailer = file.trailer();
  json.key("header");
  json.begin_object();
  json.member("container_version",
              fmt::format("{}.{}", header.version_major, header.version_minor));
  json.key("file_flags");
  json.begin_array();
  for (const std::string_view flag : flag_names(header)) json.value(flag);
  json.end_array();
  json.member("data_buffer_alignment", header.data_buffer_alignment);
  json.member("first_descriptor_offset", header.first_descriptor_offset);
  json.key("tensor_count_hint");
  if (header.tensor_count_hint == unknown_count)
    json.null();
  else
    json.value(header.tensor_count_hint);
  json.end_object();
  json.key("trailer");
  json.begin_object();
  json.member("index_offset", trailer.index_offset);
  json.member("index_length", trailer.index_length);
  json.member("kv_offset", trailer.kv_offset);
  json.member("kv_length", trailer.kv_length);
  json.member("index_crc32c", trailer.index_crc32c);
  json.end_object();
}

std::string header_text(const io::File& file) {
  const io::FileHeader& header = file.header();
  const io::FileTrailer& trailer = file.trailer();
  std::string text =
      fmt::format("{}: {}Hurray file {}.{}, {}\n", io::printable(file.path()),
                  file.format() == "hrry" ? "" : std::string(file.format()) + " file, seen as ",
                  header.version_major, header.version_minor, size_text(file.size_bytes()));
  text += fmt::format("  tensors    {}, first at {}, buffers on multiples of {}{}\n", file.size(),
                      header.first_descriptor_offset, header.data_buffer_alignment,
                      header.tensor_count_hint == unknown_count
                          ? ""
                          : fmt::format(", count in the header {}", header.tensor_count_hint));
  text += fmt::format("  flags      {}\n", fmt::join(flag_names(header), ", "));
  text +=
      fmt::format("  index      {} at {}, CRC-32C {:08x}\n", plural(trailer.index_length, "byte"),
                  trailer.index_offset, trailer.index_crc32c);
  text += trailer.kv_length == 0
              ? std::string("  key-values none\n")
              : fmt::format("  key-values {} at {}\n", plural(trailer.kv_length, "byte"),
                            trailer.kv_offset);
  text += fmt::format("  checksums  {}\n", file.has_checksums() ? "present" : "none");
  return text;
}

int list_file(const io::File& file, Session& session) {
  std::size_t broken = 0;
  std::uint64_t bytes = 0;
  /// What the tensor's data take, added to the sum.
  const auto count = [&](const io::Entry& entry, const io::Result<Descriptor>& descriptor) {
    if (!descriptor) ++broken;
    const auto own = descriptor ? buffer_bytes(*descriptor) : std::nullopt;
    const std::uint64_t taken = own.value_or(entry.data_length);
    bytes += taken;
    return taken;
  };
  const auto fault_of = [&](std::size_t i, const Descriptor& descriptor) {
    io::Bytes encoded;
    return strict_fault(descriptor, [&]() -> std::span<const std::byte> {
      if (auto read = file.descriptor_bytes(i)) encoded = *std::move(read);
      return encoded;
    });
  };
  if (session.json) {
    Json json(session.output);
    json.begin_document("file");
    json.member("path", file.path());
    json.member("format", file.format());
    json.member("size", file.size_bytes());
    header_members(json, file);
    json.member("checksums", file.has_checksums());
    key_value_members(json, file.kv());
    json.key("tensors");
    json.begin_array();
    for (std::size_t i = 0; i < file.size(); ++i) {
      const io::Entry entry = file.entry(i);
      const auto descriptor = file.descriptor(i);
      const std::uint64_t taken = count(entry, descriptor);
      json.begin_object();
      entry_members(json, entry);
      json.member("descriptor_offset", entry.descriptor_offset);
      json.member("descriptor_length", entry.descriptor_length);
      if (descriptor) {
        descriptor_members(json, *descriptor, taken);
        fault_members(json, fault_of(i, *descriptor));
      } else {
        json.key("error");
        json.begin_object();
        error_members(json, descriptor.error());
        json.end_object();
      }
      json.end_object();
    }
    json.end_array();
    json.member("bytes", bytes);
    json.end_document();
  } else {
    session.output.write(header_text(file) +
                         (file.kv().empty() ? std::string() : '\n' + key_values_table(file.kv())));
    Table table({{"NAME"},
                 {"DTYPE"},
                 {"SHAPE"},
                 {"LAYOUT"},
                 {"BYTES", true},
                 {"OFFSET", true},
                 {"REMARKS"},
                 {"PROBLEM"}});
    for (std::size_t i = 0; i < file.size(); ++i) {
      const io::Entry entry = file.entry(i);
      const auto descriptor = file.descriptor(i);
      const std::string taken = std::to_string(count(entry, descriptor));
      const std::string offset = std::to_string(entry.data_offset);
      if (!descriptor) {
        table.add({io::printable(entry.name), "?", "?", "?", taken, offset, "",
                   "broken: " + reason(descriptor.error())});
        continue;
      }
      const auto fault = fault_of(i, *descriptor);
      table.add({io::printable(entry.name), dtype_text(descriptor->dtype),
                 shape_text(descriptor->shape), layout_text(descriptor->layout), taken, offset,
                 remarks(*descriptor), fault ? fault_text(*fault) : ""});
    }
    if (file.size() != 0) session.output.write('\n' + table.text());
    session.output.write(
        fmt::format("\n{}, {} of data\n", plural(file.size(), "tensor"), size_text(bytes)));
  }
  if (broken == 0) return 0;
  complain(fmt::format("{}: {} cannot be read; see the list", io::printable(file.path()),
                       plural(broken, "tensor")));
  return 1;
}

/// Where the buffers of entry `i` lie: as far from the first as they are in memory.
Positions positions_of(const io::File& file, std::size_t i) {
  const auto tensor = file.tensor(i);
  if (!tensor) return {};
  Positions positions;
  const std::byte* first = nullptr;
  for (const Buffer& buffer : tensor->buffers()) {
    if (buffer.size() == 0) {
      positions.emplace_back();
      continue;
    }
    if (first == nullptr) first = buffer.data();
    positions.emplace_back(file.entry(i).data_offset +
                           static_cast<std::uint64_t>(buffer.data() - first));
  }
  return positions;
}

int show_tensor(const io::File& file, const std::string& tensor, Session& session) {
  const auto found = file.find(tensor);
  if (!found)
    return session.fail(
        {{.code = Errc::not_found,
          .origin = Origin::file,
          .what = "the file has no tensor of this name"},
         file.path(),
         tensor,
         fmt::format("`hurray inspect {}` lists the names", io::printable(file.path()))});
  const io::Entry entry = file.entry(*found);
  const auto bytes = file.descriptor_bytes(*found);
  if (!bytes) return session.fail(bytes.error());
  Subject subject;
  subject.kind = "tensor";
  subject.title = fmt::format("{}: tensor \"{}\": descriptor of {} at {}",
                              io::printable(file.path()), io::printable(entry.name),
                              plural(entry.descriptor_length, "byte"), entry.descriptor_offset);
  subject.members = [&](Json& json) {
    json.member("path", file.path());
    entry_members(json, entry);
  };
  subject.positions = positions_of(file, *found);
  subject.data_length = entry.data_length;
  return show_descriptor(file.descriptor(*found), {*bytes, entry.descriptor_offset}, subject,
                         session);
}

int inspect_file(const InspectRequest& request, Session& session) {
  io::OpenOptions options{.permissive = true, .agreed = everything};
  options.foreign = formats::reader();
  const auto file = io::File::open(request.path, options);
  if (!file) return session.fail(file.error());
  return request.name.empty() ? list_file(*file, session)
                              : show_tensor(*file, request.name, session);
}

// --- Descriptors and streams ---

/// One frame of a stream in a file.
struct Frame {
  std::uint64_t offset = 0;
  io::Bytes encoded;
  Descriptor descriptor;
  std::optional<std::uint64_t> bytes = std::nullopt;  ///< Of the data; none: nobody can tell.

  std::uint64_t data_offset() const { return offset + encoded.size(); }
};

/// The encoded descriptor at `offset`, as much of it as there is.
io::Result<io::Bytes> read_encoded(const SourceFile& source, std::uint64_t offset) {
  const std::uint64_t left = source.size() - offset;
  std::array<std::byte, descriptor_prefix_bytes> prefix{};
  const auto head = std::span(prefix).first(
      static_cast<std::size_t>(std::min<std::uint64_t>(prefix.size(), left)));
  if (auto read = source.read(offset, head); !read) return read.error();
  const auto length = descriptor_length(head);
  if (!length) return io::Error(length.error(), source.path());
  io::Bytes bytes(static_cast<std::size_t>(std::min<std::uint64_t>(*length, left)));
  if (auto read = source.read(offset, bytes); !read) return read.error();
  return bytes;
}

/// The frame at `offset`; its data must be there and is not read.
io::Result<Frame> read_frame(const SourceFile& source, std::uint64_t offset) {
  auto encoded = read_encoded(source, offset);
  if (!encoded) return encoded.error();
  auto descriptor = decode(*encoded, showing);
  if (!descriptor) return io::Error(descriptor.error(), source.path());
  Frame frame{offset, *std::move(encoded), *std::move(descriptor)};
  frame.bytes = buffer_bytes(frame.descriptor);
  if (frame.bytes.value_or(0) > source.size() - frame.data_offset())
    return io::Error({.code = Errc::truncated,
                      .origin = Origin::stream,
                      .expect = Expect::exactly,
                      .field = "buffers",
                      .what = "bytes",
                      .offset = frame.data_offset(),
                      .expected = *frame.bytes,
                      .found = source.size() - frame.data_offset()},
                     source.path());
  return frame;
}

/// Where the frame after this one begins. Behind an unknown layout nobody can tell (05-stream.md
/// section 4).
io::Result<std::uint64_t> end_of(const Frame& frame, const SourceFile& source) {
  if (frame.bytes) return frame.data_offset() + *frame.bytes;
  return io::Error({.code = Errc::unsupported,
                    .origin = Origin::stream,
                    .field = "layout_tag",
                    .what = "an unknown layout does not say where its data end",
                    .offset = frame.data_offset()},
                   source.path());
}

Positions positions_of(const Frame& frame) {
  Positions positions;
  std::uint64_t at = frame.data_offset();
  for (const BufferHandle& buffer : frame.descriptor.buffers) {
    positions.push_back(buffer.is_empty() ? std::nullopt : std::optional(at));
    at += buffer.byte_size;
  }
  return positions;
}

io::Error in_frame(io::Error error, std::size_t number, std::uint64_t offset) {
  error.detail += fmt::format("{}frame {}, which begins at byte {}",
                              error.detail.empty() ? "in " : "; in ", number, offset);
  return error;
}

int show_frame(const SourceFile& source, const std::string& name, Session& session) {
  std::size_t wanted = 0;
  const auto parsed = std::from_chars(name.data(), name.data() + name.size(), wanted);
  if (parsed.ec != std::errc{} || parsed.ptr != name.data() + name.size())
    return session.fail(
        {{.code = Errc::not_found, .origin = Origin::stream, .what = "a stream has no names"},
         source.path(),
         name,
         "give the number of a frame, from 0 up"});
  std::uint64_t offset = 0;
  std::size_t number = 0;
  for (; offset < source.size(); ++number) {
    const auto frame = read_frame(source, offset);
    if (!frame) return session.fail(in_frame(frame.error(), number, offset));
    if (number != wanted) {
      const auto end = end_of(*frame, source);
      if (!end) return session.fail(in_frame(end.error(), number, offset));
      offset = *end;
      continue;
    }
    Subject subject;
    subject.kind = "frame";
    subject.title =
        fmt::format("{}: frame {}: descriptor of {} at {}", io::printable(source.path()), number,
                    plural(frame->encoded.size(), "byte"), frame->offset);
    subject.members = [&](Json& json) {
      json.member("path", source.path());
      json.member("number", number);
    };
    subject.positions = positions_of(*frame);
    return show_descriptor(frame->descriptor, {frame->encoded, frame->offset}, subject, session);
  }
  return session.fail({{.code = Errc::not_found,
                        .origin = Origin::stream,
                        .expect = Expect::at_most,
                        .what = "as number of a frame",
                        .expected = number - 1,
                        .found = wanted},
                       source.path()});
}

int list_stream(const SourceFile& source, Session& session) {
  Json json(session.output);
  Table table({{"FRAME", true},
               {"DTYPE"},
               {"SHAPE"},
               {"LAYOUT"},
               {"BYTES", true},
               {"OFFSET", true},
               {"REMARKS"},
               {"PROBLEM"}});
  if (session.json) {
    json.begin_document("stream");
    json.member("path", source.path());
    json.member("size", source.size());
    json.key("frames");
    json.begin_array();
  }
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
  std::size_t frames = 0;
  std::optional<io::Error> error;
  for (; offset < source.size(); ++frames) {
    const auto frame = read_frame(source, offset);
    if (!frame) {
      error = in_frame(frame.error(), frames, offset);
      break;
    }
    bytes += frame->bytes.value_or(0);
    const auto fault = strict_fault(frame->descriptor, [&] { return std::span(frame->encoded); });
    if (session.json) {
      json.begin_object();
      json.member("descriptor_offset", frame->offset);
      json.member("descriptor_length", frame->encoded.size());
      json.member("data_offset", frame->data_offset());
      descriptor_members(json, frame->descriptor, frame->bytes);
      fault_members(json, fault);
      json.end_object();
    } else {
      table.add({std::to_string(frames), dtype_text(frame->descriptor.dtype),
                 shape_text(frame->descriptor.shape), layout_text(frame->descriptor.layout),
                 frame->bytes ? std::to_string(*frame->bytes) : "?",
                 std::to_string(frame->data_offset()), remarks(frame->descriptor),
                 fault ? fault_text(*fault) : ""});
    }
    const auto end = end_of(*frame, source);
    if (!end) {
      error = in_frame(end.error(), frames++, offset);
      break;
    }
    offset = *end;
  }
  const bool is_unsupported = error && error->code == Errc::unsupported;
  if (session.json) {
    json.end_array();
    json.member("bytes", bytes);
    if (error) {
      json.key("error");
      json.begin_object();
      error_members(json, *error);
      json.end_object();
    }
    json.end_document();
  } else {
    session.output.write(
        fmt::format("{}: Hurray stream, {}\n\n", io::printable(source.path()),
                    size_text(source.size())) +
        table.text() +
        fmt::format("\n{}, {} of data\n", plural(frames, "frame"), size_text(bytes)));
    if (error)
      session.output.write(
          fmt::format("{}: {}\n", is_unsupported ? "unsupported" : "broken", reason(*error)));
  }
  if (!error || is_unsupported) return 0;
  complain(to_string(*error));
  return exit_code(*error);
}

int inspect_descriptors(const SourceFile& source, const std::string& name, Session& session) {
  const auto first = read_encoded(source, 0);
  if (!first) return session.fail(first.error());
  if (first->size() < source.size())
    return name.empty() ? list_stream(source, session) : show_frame(source, name, session);
  if (!name.empty())
    return session.fail({{.code = Errc::not_found,
                          .origin = Origin::descriptor,
                          .what = "this file is one descriptor and has no names"},
                         source.path(),
                         name,
                         "leave the name out"});
  io::Result<Descriptor> descriptor = io::Error();
  if (auto decoded = decode(*first, showing))
    descriptor = *std::move(decoded);
  else
    descriptor = io::Error(decoded.error(), source.path());
  Subject subject;
  subject.kind = "descriptor";
  subject.title = fmt::format("{}: descriptor of {}", io::printable(source.path()),
                              plural(first->size(), "byte"));
  subject.members = [&](Json& json) { json.member("path", source.path()); };
  return show_descriptor(descriptor, {*first, 0}, subject, session);
}

}  // namespace

int inspect(const InspectRequest& request, Session& session) {
  const auto source = SourceFile::open(request.path);
  if (!source) return session.fail(source.error());
  std::array<std::byte, magic.size() + 1> head{};
  const auto bytes = std::span(head).first(
      static_cast<std::size_t>(std::min<std::uint64_t>(head.size(), source->size())));
  if (auto read = source->read(0, bytes); !read) return session.fail(read.error());
  const bool is_descriptor = std::ranges::equal(std::span(head).first<magic.size()>(), magic) &&
                             head.back() != std::byte{'F'};
  return is_descriptor ? inspect_descriptors(*source, request.name, session)
                       : inspect_file(request, session);
}

}  // namespace hurray::cli
