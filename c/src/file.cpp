#include "hurray/io/file.hpp"

#include <algorithm>
#include <string>

#include "handles.hpp"
#include "hurray/io/verify.hpp"
#include "key_values.hpp"
#include "options.hpp"

namespace hurray::c {

/// `callbacks` stays where it is: the file's functions point to it.
struct FileState {
  FileState(std::unique_ptr<Callbacks> asked, std::function<bool()> ask, io::File opened)
      : callbacks(std::move(asked)),
        interrupted(std::move(ask)),
        file(std::move(opened)),
        kv(file.kv()) {}

  std::unique_ptr<Callbacks> callbacks;
  std::function<bool()> interrupted;
  io::File file;
  KvViews kv;
};

}  // namespace hurray::c

struct HurrayFile : hurray::c::Handle<hurray::c::FileState, HURRAY_KIND_FILE> {};

using namespace hurray;
using namespace hurray::c;

namespace {

HurrayStatus convert(const HurrayFileOptions* given, Callbacks& callbacks, io::OpenOptions& out) {
  HurrayFileOptions o;
  HurrayStatus status = read_options(given, o);
  if (status == HURRAY_OK) status = check_switch(o.verify, "verify");
  if (status == HURRAY_OK) status = check_depth(o.max_composite_depth);
  if (status != HURRAY_OK) return status;
  const auto mode = static_cast<io::Mode>(o.mode);
  if (find_row(io::modes, mode) == nullptr)
    return fail(HURRAY_ERR_INVALID_ARGUMENT,
                "mode: expected one of HURRAY_MODE_..., found " + std::to_string(o.mode));
  out.mode = mode;
  out.verify = to_optional(o.verify);
  out.max_index_bytes = or_default(o.max_index_bytes, out.max_index_bytes);
  out.max_tensors = or_default(o.max_tensors, out.max_tensors);
  out.max_kv_bytes = or_default(o.max_kv_bytes, out.max_kv_bytes);
  out.max_tensor_bytes = limit(o.max_tensor_bytes);
  out.max_spool_bytes = or_default(o.max_spool_bytes, out.max_spool_bytes);
  out.max_descriptor_bytes = or_default(o.max_descriptor_bytes, out.max_descriptor_bytes);
  out.max_composite_depth = or_default(o.max_composite_depth, out.max_composite_depth);
  out.permissive = o.permissive != 0;
  out.agreed.all = o.private_values != 0;
  out.interrupted = callbacks.interrupted(o.interrupted, o.interrupted_context);
  return HURRAY_OK;
}

template <class Open>
HurrayStatus open_file(const HurrayFileOptions* given, HurrayFile** out, Open&& open) noexcept {
  return contained(Codes::added, [&] {
    auto callbacks = std::make_unique<Callbacks>();
    io::OpenOptions options;
    const HurrayStatus status = convert(given, *callbacks, options);
    if (status != HURRAY_OK) return status;
    auto opened = open(options);
    if (!opened && opened.error().code == Errc::unsupported && opened.error().field == "alignment")
      return fail(HURRAY_ERR_UNSUPPORTED,
                  "bytes: tensors are to share this memory, which measures " +
                      std::to_string(opened.error().found) + ", not 64; HURRAY_MODE_MEMORY copies");
    if (!opened) return callbacks->ended(fail(Codes::added, opened.error()));
    *out =
        make<HurrayFile>(std::move(callbacks), std::move(options.interrupted), *std::move(opened));
    return HurrayStatus{HURRAY_OK};
  });
}

/// Calls `read(state, i)` for an entry that is there.
template <class Read>
HurrayStatus with_entry(const HurrayFile* file, std::uint64_t i, Read&& read) noexcept {
  const HurrayStatus status = own(file, "file");
  if (status != HURRAY_OK) return status;
  return contained(Codes::added, [&]() -> HurrayStatus {
    const FileState& s = state(*file);
    if (i >= s.file.size())
      return fail(HURRAY_ERR_INDEX_OUT_OF_BOUNDS, "i: the file has " +
                                                      std::to_string(s.file.size()) +
                                                      " tensors, found " + std::to_string(i));
    return s.callbacks->ended(read(s, static_cast<std::size_t>(i)));
  });
}

}  // namespace

HurrayStatus hurray_file_open(const char* path, uint64_t path_length,
                              const HurrayFileOptions* options, HurrayFile** out) {
  if (path == nullptr) return null_pointer("path");
  if (out == nullptr) return null_pointer("out");
  const Path name(path, path_length);
  if (name.status != HURRAY_OK) return name.status;
  return open_file(options, out,
                   [&](const io::OpenOptions& o) { return io::File::open(name.text, o); });
}

HurrayStatus hurray_file_open_fd(int fd, const HurrayFileOptions* options, HurrayFile** out) {
  if (out == nullptr) return null_pointer("out");
  return open_file(options, out, [&](const io::OpenOptions& o) { return io::File::over(fd, o); });
}

HurrayStatus hurray_file_open_memory(const uint8_t* bytes, uint64_t len,
                                     const HurrayFileOptions* options, HurrayFile** out) {
  if (bytes == nullptr && len != 0) return null_pointer("bytes");
  if (out == nullptr) return null_pointer("out");
  if (!to_size(len))
    return fail(HURRAY_ERR_INVALID_ARGUMENT, "len: more than this machine can address");
  return open_file(options, out, [&](const io::OpenOptions& o) {
    auto* begin = reinterpret_cast<std::byte*>(const_cast<std::uint8_t*>(bytes));
    return io::File::over(Buffer::borrow(begin, len, std::shared_ptr<Owner>(), true), o);
  });
}

HurrayStatus hurray_file_count(const HurrayFile* file, uint64_t* out) {
  if (file == nullptr) return null_pointer("file");
  if (out == nullptr) return null_pointer("out");
  const HurrayStatus status = own(file, "file");
  if (status == HURRAY_OK) *out = state(*file).file.size();
  return status;
}

HurrayStatus hurray_file_name(const HurrayFile* file, uint64_t i, const char** out, uint64_t* len) {
  if (file == nullptr) return null_pointer("file");
  if (out == nullptr) return null_pointer("out");
  if (len == nullptr) return null_pointer("len");
  return with_entry(file, i, [&](const FileState& s, std::size_t at) {
    const std::string_view name = s.file.name(at);
    *out = name.data();
    *len = name.size();
    return HURRAY_OK;
  });
}

HurrayStatus hurray_file_find(const HurrayFile* file, const char* name, uint64_t len,
                              uint64_t* out) {
  if (file == nullptr) return null_pointer("file");
  if (name == nullptr) return null_pointer("name");
  if (out == nullptr) return null_pointer("out");
  const HurrayStatus status = own(file, "file");
  if (status != HURRAY_OK) return status;
  return contained(Codes::added, [&]() -> HurrayStatus {
    const auto size = to_size(len);
    const auto found = size ? state(*file).file.find({name, *size}) : std::nullopt;
    if (!found) return fail(HURRAY_ERR_NOT_FOUND, "name: the file has no tensor of this name");
    *out = *found;
    return HURRAY_OK;
  });
}

HurrayStatus hurray_file_entry(const HurrayFile* file, uint64_t i, HurrayFileEntry* out) {
  if (file == nullptr) return null_pointer("file");
  if (out == nullptr) return null_pointer("out");
  return with_entry(file, i, [&](const FileState& s, std::size_t at) {
    const io::Entry entry = s.file.entry(at);
    *out = {.name = entry.name.data(),
            .name_length = entry.name.size(),
            .descriptor_offset = entry.descriptor_offset,
            .data_offset = entry.data_offset,
            .data_length = entry.data_length,
            .descriptor_length = entry.descriptor_length,
            .reserved = 0};
    return HURRAY_OK;
  });
}

HurrayStatus hurray_file_descriptor(const HurrayFile* file, uint64_t i, HurrayDescriptor** out) {
  if (file == nullptr) return null_pointer("file");
  if (out == nullptr) return null_pointer("out");
  return with_entry(file, i, [&](const FileState& s, std::size_t at) -> HurrayStatus {
    auto descriptor = s.file.descriptor(at);
    if (!descriptor) return fail(Codes::added, descriptor.error());
    const auto bytes = s.file.descriptor_bytes(at);
    if (!bytes) return fail(Codes::added, bytes.error());
    *out = to_handle(*std::move(descriptor), *bytes).release();
    return HURRAY_OK;
  });
}

HurrayStatus hurray_file_read(const HurrayFile* file, uint64_t i, HurrayBufferList** out_list,
                              HurrayTensorContext** out_ctx) {
  if (file == nullptr) return null_pointer("file");
  if (out_list == nullptr) return null_pointer("out_list");
  if (out_ctx == nullptr) return null_pointer("out_ctx");
  return with_entry(file, i, [&](const FileState& s, std::size_t at) -> HurrayStatus {
    const auto tensor = s.file.tensor(at);
    if (!tensor) return fail(Codes::added, tensor.error());
    // Whoever has a pointer may write through it where the mode lets writes be.
    if (!tensor->readonly())
      for (const Buffer& buffer : tensor->buffers())
        if (const auto made = buffer.make_writable(); !made)
          return fail(Codes::added, made.error());
    auto pair = to_pair(*tensor, {.permissive = true});
    if (!pair) return fail(Codes::added, pair.error());
    *out_list = pair->list.release();
    *out_ctx = pair->context.release();
    return HURRAY_OK;
  });
}

HurrayStatus hurray_file_members(const HurrayFile* file, uint64_t i, uint64_t* indices,
                                 uint64_t* n) {
  if (file == nullptr) return null_pointer("file");
  if (n == nullptr) return null_pointer("n");
  return with_entry(file, i, [&](const FileState& s, std::size_t at) -> HurrayStatus {
    const auto owners = s.file.owners();
    if (!owners) return fail(Codes::added, owners.error());
    std::vector<std::size_t> members;
    for (std::size_t k = 0; k < owners->size(); ++k)
      if ((*owners)[k] == at) members.push_back(k);
    std::ranges::sort(members, {},
                      [&](std::size_t k) { return s.file.entry(k).descriptor_offset; });
    const HurrayStatus status = fits(indices, n, members.size());
    if (status == HURRAY_OK) std::ranges::copy(members, indices);
    return status;
  });
}

HurrayStatus hurray_file_kv_count(const HurrayFile* file, uint64_t* out) {
  if (file == nullptr) return null_pointer("file");
  if (out == nullptr) return null_pointer("out");
  const HurrayStatus status = own(file, "file");
  if (status == HURRAY_OK) *out = state(*file).kv.entries().size();
  return status;
}

HurrayStatus hurray_file_kv_entry(const HurrayFile* file, uint64_t i, HurrayKvEntry* out) {
  if (file == nullptr) return null_pointer("file");
  if (out == nullptr) return null_pointer("out");
  const HurrayStatus status = own(file, "file");
  if (status != HURRAY_OK) return status;
  const auto& entries = state(*file).kv.entries();
  if (i >= entries.size())
    return fail(HURRAY_ERR_INDEX_OUT_OF_BOUNDS,
                "i: the file has fewer keys; hurray_file_kv_count tells how many");
  *out = entries[static_cast<std::size_t>(i)];
  return HURRAY_OK;
}

HurrayStatus hurray_file_kv_find(const HurrayFile* file, const char* key, uint64_t key_length,
                                 HurrayKvEntry* out) {
  if (file == nullptr) return null_pointer("file");
  if (key == nullptr) return null_pointer("key");
  if (out == nullptr) return null_pointer("out");
  const HurrayStatus status = own(file, "file");
  if (status != HURRAY_OK) return status;
  for (const HurrayKvEntry& entry : state(*file).kv.entries())
    if (entry.key_length == key_length &&
        std::string_view(entry.key, static_cast<std::size_t>(entry.key_length)) ==
            std::string_view(key, static_cast<std::size_t>(key_length))) {
      *out = entry;
      return HURRAY_OK;
    }
  return fail(HURRAY_ERR_NOT_FOUND, "key: the file has no such key");
}

HurrayStatus hurray_file_verify(const HurrayFile* file, HurrayFindingFn report, void* context) {
  const HurrayStatus status = own(file, "file");
  if (status != HURRAY_OK) return status;
  return contained(Codes::added, [&]() -> HurrayStatus {
    const FileState& s = state(*file);
    const Callbacks::Turn turn(*s.callbacks);
    if (!turn) return in_use();
    std::optional<io::Error> first;
    const auto verified =
        io::verify(s.file,
                   [&](const io::Finding& finding) {
                     if (!finding.accepted && !first) first = finding.error;
                     if (report == nullptr) return !first;
                     const std::string message = io::to_string(finding.error);
                     const std::string_view part =
                         finding.error.tensor.empty() ? find_row(io::file_parts, finding.part)->name
                                                      : std::string_view(finding.error.tensor);
                     const HurrayFinding shown = {
                         .message = message.c_str(),
                         .part = part.data(),
                         .part_length = part.size(),
                         .offset = finding.offset,
                         .length = finding.size,
                         .status = finding.accepted ? HURRAY_OK : hurray::status(finding.error),
                         .reserved = 0};
                     return s.callbacks->call(1, [&] { return report(context, &shown); }) == 0;
                   },
                   {.interrupted = s.interrupted});
    if (!verified) return s.callbacks->ended(fail(Codes::added, verified.error()));
    return s.callbacks->ended(first ? fail(Codes::added, *first) : HURRAY_OK);
  });
}

HurrayStatus hurray_file_destroy(HurrayFile** file) {
  return destroy_handle(file, "file", "*file");
}
