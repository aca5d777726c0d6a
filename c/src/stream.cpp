#include "hurray/io/stream.hpp"

#include <cerrno>
#include <string>

#include "handles.hpp"
#include "options.hpp"

namespace hurray::c {

/// `callbacks` stays where it is: the reader's functions point to it.
struct ReaderState {
  std::unique_ptr<Callbacks> callbacks;
  io::StreamReader reader;
  bool failed = false;
};
struct WriterState {
  std::unique_ptr<Callbacks> callbacks;
  io::StreamWriter writer;
};

}  // namespace hurray::c

struct HurrayReader : hurray::c::Handle<hurray::c::ReaderState, HURRAY_KIND_READER> {};
struct HurrayWriter : hurray::c::Handle<hurray::c::WriterState, HURRAY_KIND_WRITER> {};

using namespace hurray;
using namespace hurray::c;

namespace {

HurrayStatus convert(const HurrayStreamOptions* given, Callbacks& callbacks,
                     io::StreamReadOptions& out) {
  HurrayStreamOptions o;
  HurrayStatus status = read_options(given, o);
  if (status == HURRAY_OK) status = check_switch(o.cross_machine, "cross_machine");
  if (status == HURRAY_OK) status = check_depth(o.max_composite_depth);
  if (status != HURRAY_OK) return status;
  out.max_descriptor_bytes = or_default(o.max_descriptor_bytes, out.max_descriptor_bytes);
  out.max_buffer_bytes = limit(o.max_buffer_bytes);
  out.max_tensor_bytes = limit(o.max_tensor_bytes);
  out.max_item_members = or_default(o.max_item_members, out.max_item_members);
  out.max_composite_depth = or_default(o.max_composite_depth, out.max_composite_depth);
  if (o.has_expected_items != 0) out.expected_items = o.expected_items;
  out.cross_machine = to_optional(o.cross_machine);
  if (o.read_timeout_ms != 0) {
    constexpr std::uint64_t most = std::uint64_t{1} << 40;
    out.read_timeout = std::chrono::milliseconds(std::min(o.read_timeout_ms, most));
  }
  out.permissive = o.permissive != 0;
  out.agreed.all = o.private_values != 0;
  out.interrupted = callbacks.interrupted(o.interrupted, o.interrupted_context);
  return HURRAY_OK;
}

HurrayStatus convert(const HurrayStreamWriteOptions* given, Callbacks& callbacks,
                     io::StreamWriteOptions& out) {
  HurrayStreamWriteOptions o;
  HurrayStatus status = read_options(given, o);
  if (status == HURRAY_OK) status = check_switch(o.cross_machine, "cross_machine");
  if (status != HURRAY_OK) return status;
  out.cross_machine = to_optional(o.cross_machine);
  out.sync = o.no_sync == 0;
  out.interrupted = callbacks.interrupted(o.interrupted, o.interrupted_context);
  return HURRAY_OK;
}

/// A handle over what `open(options, callbacks)` gives.
template <class T, class Options, class Given, class Open>
HurrayStatus open_handle(const Given* given, T** out, Open&& open) noexcept {
  return contained(Codes::added, [&] {
    auto callbacks = std::make_unique<Callbacks>();
    Options options;
    const HurrayStatus status = convert(given, *callbacks, options);
    if (status != HURRAY_OK) return status;
    auto opened = open(options, *callbacks);
    if (!opened) return callbacks->ended(fail(Codes::added, opened.error()));
    *out = make<T>(typename T::state_type{std::move(callbacks), *std::move(opened)});
    return HurrayStatus{HURRAY_OK};
  });
}

template <class Open>
HurrayStatus open_reader(const HurrayStreamOptions* given, HurrayReader** out,
                         Open&& open) noexcept {
  return open_handle<HurrayReader, io::StreamReadOptions>(given, out, std::forward<Open>(open));
}
template <class Open>
HurrayStatus open_writer(const HurrayStreamWriteOptions* given, HurrayWriter** out,
                         Open&& open) noexcept {
  return open_handle<HurrayWriter, io::StreamWriteOptions>(given, out, std::forward<Open>(open));
}

io::Error callback_failed(std::int64_t returned, std::string_view what) {
  io::Error error(hurray::Error{.code = Errc::system, .origin = Origin::stream, .what = what});
  error.detail = "it returned " + std::to_string(returned);
  return error;
}

}  // namespace

HurrayStatus hurray_stream_open(int fd, const HurrayStreamOptions* options, HurrayReader** out) {
  if (out == nullptr) return null_pointer("out");
  return open_reader(options, out, [&](const io::StreamReadOptions& o, Callbacks&) {
    return io::StreamReader::over(fd, o);
  });
}

HurrayStatus hurray_stream_open_path(const char* path, uint64_t path_length,
                                     const HurrayStreamOptions* options, HurrayReader** out) {
  if (path == nullptr) return null_pointer("path");
  if (out == nullptr) return null_pointer("out");
  const Path name(path, path_length);
  if (name.status != HURRAY_OK) return name.status;
  return open_reader(options, out, [&](const io::StreamReadOptions& o, Callbacks&) {
    return io::StreamReader::open(name.text, o);
  });
}

HurrayStatus hurray_stream_open_memory(const uint8_t* bytes, uint64_t len,
                                       const HurrayStreamOptions* options, HurrayReader** out) {
  if (bytes == nullptr && len != 0) return null_pointer("bytes");
  if (out == nullptr) return null_pointer("out");
  const auto size = to_size(len);
  if (!size) return fail(HURRAY_ERR_INVALID_ARGUMENT, "len: more than this machine can address");
  return open_reader(options, out, [&](const io::StreamReadOptions& o, Callbacks&) {
    return io::StreamReader::over(std::as_bytes(std::span(bytes, *size)), o);
  });
}

HurrayStatus hurray_stream_open_callback(HurrayReadFn read, void* context,
                                         const HurrayStreamOptions* options, HurrayReader** out) {
  if (read == nullptr) return null_pointer("read");
  if (out == nullptr) return null_pointer("out");
  return open_reader(options, out, [&](const io::StreamReadOptions& o, Callbacks& callbacks) {
    io::ReadFunction function = [&callbacks, read,
                                 context](std::span<std::byte> into) -> io::Result<std::size_t> {
      const std::int64_t got = callbacks.call(std::int64_t{-1}, [&] {
        return read(context, reinterpret_cast<std::uint8_t*>(into.data()), into.size());
      });
      if (got < 0) return callback_failed(got, "the read function failed");
      if (static_cast<std::uint64_t>(got) > into.size())
        return callback_failed(got, "the read function claims more bytes than it was given room");
      return static_cast<std::size_t>(got);
    };
    return io::StreamReader::over(std::move(function), o);
  });
}

HurrayStatus hurray_reader_next(HurrayReader* reader, HurrayBufferList** out_list,
                                HurrayTensorContext** out_ctx) {
  if (reader == nullptr) return null_pointer("reader");
  if (out_list == nullptr) return null_pointer("out_list");
  if (out_ctx == nullptr) return null_pointer("out_ctx");
  const HurrayStatus status = own(reader, "reader");
  if (status != HURRAY_OK) return status;
  return contained(Codes::added, [&] {
    ReaderState& s = state(*reader);
    const Callbacks::Turn turn(*s.callbacks);
    if (!turn) return in_use();
    if (s.failed)
      return fail(HURRAY_ERR_INVALID_STATE, "an earlier read failed: the stream has not ended");
    s.failed = true;  // until it has not
    auto next = s.reader.next();
    if (!next) {
      const bool torn =
          next.error().code == Errc::truncated && next.error().field == "layout.member_count";
      const HurrayStatus failed = fail(Codes::added, next.error());
      return s.callbacks->ended(torn ? HURRAY_ERR_TORN_COMPOSITE : failed);
    }
    if (!*next) {
      s.failed = false;
      *out_list = nullptr;
      *out_ctx = nullptr;
      return HurrayStatus{HURRAY_OK};
    }
    auto pair = to_pair(**next, {.permissive = true});
    if (!pair) return fail(Codes::added, pair.error());
    s.failed = false;
    *out_list = pair->list.release();
    *out_ctx = pair->context.release();
    return HurrayStatus{HURRAY_OK};
  });
}

HurrayStatus hurray_reader_destroy(HurrayReader** reader) {
  return destroy_handle(reader, "reader", "*reader");
}

HurrayStatus hurray_stream_create(int fd, const HurrayStreamWriteOptions* options,
                                  HurrayWriter** out) {
  if (out == nullptr) return null_pointer("out");
  return open_writer(options, out, [&](const io::StreamWriteOptions& o, Callbacks&) {
    return io::StreamWriter::over(fd, o);
  });
}

HurrayStatus hurray_stream_create_path(const char* path, uint64_t path_length,
                                       const HurrayStreamWriteOptions* options,
                                       HurrayWriter** out) {
  if (path == nullptr) return null_pointer("path");
  if (out == nullptr) return null_pointer("out");
  const Path name(path, path_length);
  if (name.status != HURRAY_OK) return name.status;
  return open_writer(options, out, [&](const io::StreamWriteOptions& o, Callbacks&) {
    return io::StreamWriter::create(name.text, o);
  });
}

HurrayStatus hurray_stream_create_callback(HurrayWriteFn write, void* context,
                                           const HurrayStreamWriteOptions* options,
                                           HurrayWriter** out) {
  if (write == nullptr) return null_pointer("write");
  if (out == nullptr) return null_pointer("out");
  return open_writer(options, out, [&](const io::StreamWriteOptions& o, Callbacks& callbacks) {
    io::WriteFunction function = [&callbacks, write,
                                  context](std::span<const std::byte> bytes) -> io::Result<void> {
      while (!bytes.empty()) {
        const std::int64_t took = callbacks.call(std::int64_t{-1}, [&] {
          return write(context, reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
        });
        if (took <= 0) return callback_failed(took, "the write function failed");
        if (static_cast<std::uint64_t>(took) > bytes.size())
          return callback_failed(took, "the write function claims more bytes than it was given");
        bytes = bytes.subspan(static_cast<std::size_t>(took));
      }
      return {};
    };
    return io::StreamWriter::over(std::move(function), o);
  });
}

HurrayStatus hurray_writer_write(HurrayWriter* writer, const HurrayBufferList* list,
                                 const HurrayTensorContext* ctx) {
  if (writer == nullptr) return null_pointer("writer");
  if (list == nullptr) return null_pointer("list");
  if (ctx == nullptr) return null_pointer("ctx");
  HurrayStatus status = own(writer, "writer");
  if (status != HURRAY_OK) return status;
  return contained(Codes::added, [&] {
    const auto tensor = tensor_of(list, ctx, {}, status);
    if (!tensor) return status;
    WriterState& s = state(*writer);
    const Callbacks::Turn turn(*s.callbacks);
    if (!turn) return in_use();
    const auto sources = io::sources_of(*tensor);
    if (!sources) return fail(Codes::added, sources.error());
    const auto written = s.writer.write(tensor->wire_descriptor(), *sources);
    if (!written) return s.callbacks->ended(refuse(written.error()));
    return HurrayStatus{HURRAY_OK};
  });
}

HurrayStatus hurray_writer_finish(HurrayWriter* writer) {
  const HurrayStatus status = own(writer, "writer");
  if (status != HURRAY_OK) return status;
  return contained(Codes::added, [&] {
    WriterState& s = state(*writer);
    const Callbacks::Turn turn(*s.callbacks);
    if (!turn) return in_use();
    return finished(*s.callbacks, s.writer.finish());
  });
}

HurrayStatus hurray_writer_destroy(HurrayWriter** writer) {
  return destroy_handle(writer, "writer", "*writer");
}
