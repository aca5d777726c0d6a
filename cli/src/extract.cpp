#include <fmt/format.h>

#include <utility>

#include "command.hpp"
#include "hurray/formats/npy.hpp"
#include "hurray/io/file_set.hpp"
#include "opened.hpp"
#include "system.hpp"
#include "text.hpp"
#include "written.hpp"

namespace hurray::cli {
namespace {

io::Result<formats::Converted> extract_npy(const io::FileSet& set,
                                           const std::vector<std::size_t>& entries,
                                           const ExtractRequest& request) {
  if (entries.size() != 1)
    return io::Error({.code = Errc::invalid_value,
                      .origin = Origin::file,
                      .expect = Expect::exactly,
                      .field = "NAME",
                      .what = "tensor in a .npy file",
                      .expected = 1,
                      .found = entries.size()},
                     set.path(), {}, "name one, or leave --npy out");
  if (auto done = formats::write_npy(set, entries.front(), request.target, request.sync); !done)
    return std::move(done).error();
  const auto descriptor = set.descriptor(entries.front());
  if (!descriptor) return descriptor.error();
  return formats::Converted{1, descriptor->buffers[0].byte_size};
}

}  // namespace

int extract(const ExtractRequest& request, Session& session) {
  remember_signals();
  const auto set = open_any(request.path);
  if (!set) return session.fail(set.error());
  const auto entries = chosen(*set, request.patterns);
  if (!entries) return session.fail(entries.error());
  const bool target_is_output = is_standard_output(request.target);
  const auto written = request.npy ? extract_npy(*set, *entries, request)
                                   : write_file(*set, request.target,
                                                {.entries = *entries,
                                                 .kv = request.kv,
                                                 .checksums = request.checksums,
                                                 .sync = request.sync});
  if (!written) {
    if (signalled()) end_by_signal();
    return session.fail(written.error());
  }
  if (target_is_output) return 0;
  if (session.json) {
    Json json(session.output);
    json.begin_document("extract");
    json.member("path", set->path());
    json.member("target", request.target);
    json.member("tensors", written->tensors);
    json.member("bytes", written->bytes);
    json.end_document();
    return 0;
  }
  session.output.write(fmt::format("{}: {}, {} (from {})\n", io::printable(request.target),
                                   plural(written->tensors, "tensor"), human(written->bytes),
                                   io::printable(set->path())));
  return 0;
}

}  // namespace hurray::cli
