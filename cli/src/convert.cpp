#include <fmt/format.h>

#include <utility>

#include "command.hpp"
#include "opened.hpp"
#include "system.hpp"
#include "text.hpp"
#include "written.hpp"

namespace hurray::cli {
namespace {

io::Result<formats::Converted> convert_file(const ConvertRequest& request) {
  const auto source = open_any(request.source);
  if (!source) return source.error();
  return write_file(*source, request.target,
                    {.checksums = request.checksums, .sync = request.sync});
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
