#include "hurray/io/file_writer.hpp"

#include <string>

#include "handles.hpp"
#include "key_values.hpp"
#include "options.hpp"

namespace hurray::c {

/// `callbacks` stays where it is: the writer's functions point to it.
struct FileWriterState {
  std::unique_ptr<Callbacks> callbacks;
  io::FileWriter writer;
  io::KeyValues kv;
  bool takes_kv = true;
  bool finished = false;
};

}  // namespace hurray::c

struct HurrayFileWriter : hurray::c::Handle<hurray::c::FileWriterState, HURRAY_KIND_FILE_WRITER> {};

using namespace hurray;
using namespace hurray::c;

namespace {

HurrayStatus convert(const HurrayFileWriteOptions* given, Callbacks& callbacks,
                     io::WriteOptions& out) {
  HurrayFileWriteOptions o;
  const HurrayStatus status = read_options(given, o);
  if (status != HURRAY_OK) return status;
  out.alignment = or_default(o.alignment, out.alignment);
  out.key_values = o.no_key_values == 0;
  out.checksums = o.no_checksums == 0 && o.no_key_values == 0;
  out.sorted_index = o.sorted_index != 0;
  out.sync = o.no_sync == 0;
  if (o.has_tensor_count != 0) out.tensor_count = o.tensor_count;
  out.expected_bytes = o.expected_bytes;
  out.interrupted = callbacks.interrupted(o.interrupted, o.interrupted_context);
  return HURRAY_OK;
}

}  // namespace

HurrayStatus hurray_file_create(const char* path, uint64_t path_length,
                                const HurrayFileWriteOptions* options, HurrayFileWriter** out) {
  if (path == nullptr) return null_pointer("path");
  if (out == nullptr) return null_pointer("out");
  return contained(Codes::added, [&] {
    const Path name(path, path_length);
    if (name.status != HURRAY_OK) return name.status;
    auto callbacks = std::make_unique<Callbacks>();
    io::WriteOptions converted;
    const HurrayStatus status = convert(options, *callbacks, converted);
    if (status != HURRAY_OK) return status;
    auto writer = io::FileWriter::create(name.text, converted);
    if (!writer) return callbacks->ended(refuse(writer.error()));
    *out = make<HurrayFileWriter>(
        FileWriterState{std::move(callbacks), *std::move(writer), {}, converted.key_values});
    return HurrayStatus{HURRAY_OK};
  });
}

HurrayStatus hurray_file_writer_write(HurrayFileWriter* writer, const char* name,
                                      uint64_t name_length, const HurrayBufferList* list,
                                      const HurrayTensorContext* ctx) {
  if (writer == nullptr) return null_pointer("writer");
  if (name == nullptr) return null_pointer("name");
  if (list == nullptr) return null_pointer("list");
  if (ctx == nullptr) return null_pointer("ctx");
  HurrayStatus status = own(writer, "writer");
  if (status != HURRAY_OK) return status;
  const auto length = to_size(name_length);
  if (!length) return fail(HURRAY_ERR_INVALID_ARGUMENT, "name_length: too large for this machine");
  return contained(Codes::added, [&] {
    const auto tensor = tensor_of(list, ctx, {}, status);
    if (!tensor) return status;
    const auto sources = io::sources_of(*tensor);
    if (!sources) return fail(Codes::added, sources.error());
    FileWriterState& s = state(*writer);
    const Callbacks::Turn turn(*s.callbacks);
    if (!turn) return in_use();
    const auto written = s.writer.write({name, *length}, tensor->wire_descriptor(), *sources);
    if (!written) return s.callbacks->ended(refuse(written.error()));
    return HurrayStatus{HURRAY_OK};
  });
}

HurrayStatus hurray_file_writer_put_kv(HurrayFileWriter* writer, const HurrayKvEntry* entry) {
  if (writer == nullptr) return null_pointer("writer");
  if (entry == nullptr) return null_pointer("entry");
  const HurrayStatus status = own(writer, "writer");
  if (status != HURRAY_OK) return status;
  return contained(Codes::added, [&] {
    FileWriterState& s = state(*writer);
    if (s.callbacks->busy()) return in_use();
    if (s.finished) return fail(HURRAY_ERR_INVALID_STATE, "the file is finished");
    if (!s.takes_kv)
      return fail(HURRAY_ERR_INVALID_ARGUMENT, "the writer was made with no_key_values");
    io::KeyValues one(1);
    const HurrayStatus copied = copy(*entry, one.front());
    if (copied != HURRAY_OK) return copied;
    if (const auto valid = io::encode_kv(one); !valid) return refuse(valid.error());
    io::KeyValues& kv = s.kv;
    if (io::find(kv, one.front().first) != nullptr)
      return fail(HURRAY_ERR_DUPLICATE,
                  "entry->key: " + io::printable(one.front().first) + " is there already");
    kv.push_back(std::move(one.front()));
    return HurrayStatus{HURRAY_OK};
  });
}

HurrayStatus hurray_file_writer_finish(HurrayFileWriter* writer) {
  const HurrayStatus status = own(writer, "writer");
  if (status != HURRAY_OK) return status;
  return contained(Codes::added, [&] {
    FileWriterState& s = state(*writer);
    const Callbacks::Turn turn(*s.callbacks);
    if (!turn) return in_use();
    const auto result = s.writer.finish(s.kv);
    s.finished = s.finished || result.has_value();
    return finished(*s.callbacks, result);
  });
}

HurrayStatus hurray_file_writer_destroy(HurrayFileWriter** writer) {
  return destroy_handle(writer, "writer", "*writer");
}
