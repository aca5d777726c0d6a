#include "hurray/io/verify.hpp"

#include <fmt/format.h>

#include "command.hpp"
#include "hurray/formats/formats.hpp"
#include "system.hpp"
#include "text.hpp"

namespace hurray::cli {

namespace {

void show(Json& json, const io::Finding& finding) {
  json.begin_object();
  json.member("part", find_row(io::file_parts, finding.part)->name);
  json.member("offset", finding.offset);
  json.member("size", finding.size);
  json.member("accepted", finding.accepted);
  if (finding.sums) {
    json.member("stored", finding.sums->stored);
    json.member("found", finding.sums->found);
  }
  error_members(json, finding.error);
  json.end_object();
}

std::string_view state_name(io::ChecksumState state) {
  return find_row(io::checksum_states, state)->name;
}

}  // namespace

int verify(const VerifyRequest& request, Session& session) {
  remember_signals();
  io::OpenOptions open;
  open.mode = io::Mode::memory;
  open.agreed.all = true;
  open.foreign = formats::reader();
  open.interrupted = signalled;
  Json json(session.output);
  if (session.json) {
    json.begin_document("verify");
    json.member("path", request.path);
    json.key("findings");
    json.begin_array();
  }
  int code = 0;
  const auto verified = io::verify(request.path, open,
                                   [&](const io::Finding& finding) {
                                     if (code == 0 && !finding.accepted)
                                       code = exit_code(finding.error);
                                     if (session.json)
                                       show(json, finding);
                                     else if (finding.accepted)
                                       session.output.write(to_string(finding.error) + "\n");
                                     else
                                       complain(to_string(finding.error));
                                     return true;
                                   },
                                   {.interrupted = signalled});
  if (!verified && signalled()) end_by_signal();
  if (session.json) {
    json.end_array();
    if (verified) {
      json.member("checksums", state_name(verified->state));
      json.member("sound", verified->sound());
      json.member("bytes_read", verified->bytes_read);
    } else {
      error_members(json, verified.error());
      complain(to_string(verified.error()));
      code = exit_code(verified.error());
    }
    json.end_document();
    return code;
  }
  if (!verified) return session.fail(verified.error());
  if (verified->findings != 0)
    complain(fmt::format("{}: {} {}", io::printable(request.path), verified->findings,
                         verified->findings == 1 ? "finding" : "findings"));
  else
    session.output.write(
        fmt::format("{}: sound; {} read; checksums: {}\n", io::printable(request.path),
                    human(verified->bytes_read),
                    verified->is_protected() ? "valid" : "none, the rules alone were judged"));
  return code;
}

}  // namespace hurray::cli
