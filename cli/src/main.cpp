#include <CLI/CLI.hpp>
#include <cerrno>
#include <new>
#include <string>

#include "command.hpp"
#include "hurray/version.hpp"
#include "text.hpp"

namespace {

using namespace hurray;

constexpr int wrong_usage = 2;

io::Error system_error(Errc code, int number, std::string path) {
  io::Error error({.code = code, .origin = Origin::file}, std::move(path));
  error.system_errno = number;
  return error;
}

int run(int argc, char** argv, cli::Session& session) {
  CLI::App app("Looks into Hurray tensor files, and makes them.", "hurray");
  app.require_subcommand(1);
  app.set_version_flag("--version", "hurray " + std::string(version));
  app.footer(
      "Exit codes: 0 done, 1 bad input, 2 wrong usage, 3 system error.\n"
      "Example: hurray convert model.safetensors model.hrry && hurray inspect model.hrry");

  cli::InspectRequest inspect;
  auto* inspect_command = app.add_subcommand(
      "inspect", "Show what is in a .hrry file, a descriptor or a stream; no data is read.");
  inspect_command
      ->add_option("FILE", inspect.path, "A .hrry file, an encoded descriptor or a stream")
      ->required();
  inspect_command->add_option(
      "NAME", inspect.name,
      "One tensor (of a stream: the number of its frame), its descriptor byte by byte");
  inspect_command->add_flag("--json", session.json, "One JSON object with a version");
  inspect_command->footer(
      "Examples: hurray inspect model.hrry\n"
      "          hurray inspect model.hrry encoder.layer.0.weight\n"
      "          hurray inspect --json model.hrry | jq '.tensors[].name'");

  cli::ConvertRequest convert;
  bool no_checksums = false;
  bool no_sync = false;
  auto* convert_command = app.add_subcommand(
      "convert",
      "Make a .hrry file of a .safetensors, .npy or .hrry file, or a .safetensors file of any of\n"
      "them, told by the target's name; the old target stays until the new one is whole.");
  convert_command->add_option("SOURCE", convert.source, "A .safetensors, .npy or .hrry file")
      ->required();
  convert_command->add_option("TARGET", convert.target, "The .hrry or .safetensors file to write")
      ->required();
  convert_command->add_flag("--no-checksums", no_checksums, "Leave out the checksums of the data");
  convert_command->add_flag("--no-sync", no_sync, "Do not wait for the disk");
  convert_command->add_flag("--json", session.json, "One JSON object with a version");
  convert_command->footer(
      "Examples: hurray convert model.safetensors model.hrry\n"
      "          hurray convert model.hrry model.safetensors");

  cli::VerifyRequest verify;
  auto* verify_command = app.add_subcommand(
      "verify", "Compare every checksum and every rule of a .hrry file with all of its bytes.");
  verify_command->add_option("FILE", verify.path, "A .hrry file")->required();
  verify_command->add_flag("--json", session.json, "One JSON object with a version");
  verify_command->footer(
      "What is found is named with its part or tensor and its bytes, one line each; exit code 1.\n"
      "Example: hurray verify model.hrry");

  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForVersion& asked) {
    session.output.write(std::string(asked.what()) + "\n");
    return 0;
  } catch (const CLI::Success&) {
    session.output.write(app.help());
    return 0;
  } catch (const CLI::ParseError& wrong) {
    const auto commands = app.get_subcommands();
    std::string what = wrong.what();
    if (commands.empty() && argc > 1 && argv[1][0] != '-')
      what = "there is no command " + std::string(argv[1]);
    cli::complain(io::printable(what) + "; see hurray " +
                  (commands.empty() ? "" : commands.front()->get_name() + " ") + "--help");
    return wrong_usage;
  }
  if (inspect_command->parsed()) return cli::inspect(inspect, session);
  if (verify_command->parsed()) return cli::verify(verify, session);
  convert.checksums = !no_checksums;
  convert.sync = !no_sync;
  return cli::convert(convert, session);
}

}  // namespace

int main(int argc, char** argv) {
  cli::Session session;
  int code = 0;
  try {
    code = run(argc, argv, session);
  } catch (const std::bad_alloc&) {
    code = session.fail(system_error(Errc::out_of_memory, 0, {}));
  }
  const int failed = session.output.finish();
  if (failed == 0) return code;
  // Whoever closed the pipe has seen enough.
  const io::Error error = system_error(Errc::system, failed, "standard output");
  if (failed != EPIPE) cli::complain(to_string(error));
  return exit_code(error);
}
