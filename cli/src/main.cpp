#include <CLI/CLI.hpp>
#include <cerrno>
#include <new>
#include <string>

#include "command.hpp"
#include "hurray/version.hpp"
#include "system.hpp"
#include "text.hpp"

namespace {

using namespace hurray;

constexpr int wrong_usage = 2;

io::Error system_error(Errc code, int number, std::string path) {
  io::Error error({.code = code, .origin = Origin::file}, std::move(path));
  error.system_errno = number;
  return error;
}

CLI::App* add_ls(CLI::App& app, cli::LsRequest& ls, cli::Session& session) {
  auto* command = app.add_subcommand("ls", "List tensors, and count what they take.");
  command->add_option("FILE", ls.path, "A .hrry file")->required();
  command->add_option("GLOB", ls.patterns, "Names to list, with * ? [...]");
  command->add_flag("--group", ls.group,
                    "One line for layers that differ by numbers in their names alone");
  command->add_flag("--json", session.json, "One JSON object with a version");
  command->footer("Example: hurray ls model.hrry '*.weight' --group");
  return command;
}

CLI::App* add_cat(CLI::App& app, cli::CatRequest& cat, cli::Session& session) {
  auto* command = app.add_subcommand("cat", "Show the values of a tensor, or write its bytes.");
  command->add_option("FILE", cat.path, "A .hrry file")->required();
  command->add_option("NAME", cat.name, "A tensor")->required();
  auto* index = command->add_option("INDEX", cat.index, "A part of it, as in NumPy: 0:3,:,-1");
  auto* all = command->add_flag("--all", cat.all, "Every element, however many there are");
  auto* json = command->add_flag("--json", session.json, "One JSON object with a version");
  auto* raw = command->add_flag("--raw", cat.raw, "The stored bytes of a buffer, as they are");
  raw->excludes(index)->excludes(all)->excludes(json);
  command->add_option("--buffer", cat.buffer, "Which buffer --raw writes, from 0 up")->needs(raw);
  command->footer("Example: hurray cat model.hrry encoder.layer.0.weight 0:3,:5");
  return command;
}

CLI::App* add_diff(CLI::App& app, cli::DiffRequest& diff, cli::Session& session) {
  auto* command =
      app.add_subcommand("diff", "Compare two files tensor by tensor, and their key-values.");
  command->add_option("A", diff.a, "A .hrry file")->required();
  command->add_option("B", diff.b, "Another one")->required();
  command
      ->add_option("--rtol", diff.relative, "Numbers are equal up to ATOL + RTOL * |number of B|")
      ->check(CLI::NonNegativeNumber);
  command->add_option("--atol", diff.absolute, "The same")->check(CLI::NonNegativeNumber);
  command->add_flag("--json", session.json, "One JSON object with a version");
  command->footer(
      "Exit codes: 0 equal, 1 different or bad input, 2 wrong usage, 3 system error.\n"
      "Example: hurray diff before.hrry after.hrry --atol 1e-6");
  return command;
}

CLI::App* add_extract(CLI::App& app, cli::ExtractRequest& extract, cli::Session& session) {
  auto* command = app.add_subcommand(
      "extract", "Make a file of some tensors alone, or a .npy file of one; composites whole.");
  command->add_option("FILE", extract.path, "A .hrry file")->required();
  command->add_option("NAME", extract.patterns, "Names of tensors, with * ? [...]")->required();
  command->add_option("-o,--output", extract.target, "The file to write")->required();
  auto* npy = command->add_flag("--npy", extract.npy, "A NumPy file of one dense tensor");
  command->add_flag("!--no-kv", extract.kv, "Leave out the key-values")->excludes(npy);
  command->add_flag("!--no-checksums", extract.checksums, "Leave out the checksums of the data")
      ->excludes(npy);
  command->add_flag("!--no-sync", extract.sync, "Do not wait for the disk");
  command->add_flag("--json", session.json, "One JSON object with a version");
  command->footer(
      "The old target stays until the new one is whole.\n"
      "Example: hurray extract model.hrry 'encoder.*' -o encoder.hrry");
  return command;
}

CLI::App* add_stats(CLI::App& app, cli::StatsRequest& stats, cli::Session& session) {
  auto* command =
      app.add_subcommand("stats", "Compute statistics of tensors, and write them into a new file.");
  command->add_option("FILE", stats.path, "A .hrry file")->required();
  command->add_option("GLOB", stats.patterns, "Names of tensors, with * ? [...]");
  command->add_option("--write", stats.target,
                      "The file to make: all tensors, with the statistics of those that are named");
  command->add_flag("--json", session.json, "One JSON object with a version");
  command->footer("Example: hurray stats model.hrry '*.weight' --write model.hrry");
  return command;
}

struct KvRequests {
  cli::KvGetRequest get;
  cli::KvSetRequest set;
  cli::KvRmRequest rm;
};

struct KvCommands {
  CLI::App* get;
  CLI::App* set;
  CLI::App* rm;
};

KvCommands add_kv(CLI::App& app, KvRequests& requests, cli::Session& session) {
  auto* kv = app.add_subcommand("kv", "Show, set and remove the key-values of a file.");
  kv->require_subcommand(1);
  kv->footer("Example: hurray kv set model.hrry license MIT");

  auto* get = kv->add_subcommand("get", "Show all key-values, or the value of one.");
  get->add_option("FILE", requests.get.path, "A .hrry file")->required();
  get->add_option("KEY", requests.get.key, "One key, whose whole value is shown");
  get->add_flag("--json", session.json, "One JSON object with a version");
  get->footer("Example: hurray kv get model.hrry license");

  auto* set = kv->add_subcommand(
      "set", "Make the file anew with another value; the old one stays until it is whole.");
  set->add_option("FILE", requests.set.path, "A .hrry file")->required();
  set->add_option("KEY", requests.set.key, "The key, which need not be there")->required();
  set->add_option("VALUE", requests.set.value, "Its value; of a list a JSON array")->required();
  set->add_option("--type", requests.set.type,
                  "str, int, uint, float, bool, bytes (hexadecimal), or one of these with -list; "
                  "else that of the old value, or str")
      ->check(CLI::Validator(
          [](const std::string& word) {
            return cli::is_kv_type(word) ? std::string() : "there is no type " + word;
          },
          "TYPE"));
  set->add_option("--output", requests.set.output, "Another file to make, instead of this one");
  set->add_flag("--json", session.json, "One JSON object with a version");
  set->footer(
      "Data are shared with the old file where the volume can, else copied. Checksums stay valid.\n"
      "Example: hurray kv set model.hrry epoch 3 --type int");

  auto* rm = kv->add_subcommand(
      "rm", "Make the file anew without some keys; the old one stays until it is whole.");
  rm->add_option("FILE", requests.rm.path, "A .hrry file")->required();
  rm->add_option("KEY", requests.rm.keys, "Keys to remove")->required();
  rm->add_option("--output", requests.rm.output, "Another file to make, instead of this one");
  rm->add_flag("--json", session.json, "One JSON object with a version");
  rm->footer("Example: hurray kv rm model.hrry license");
  return {get, set, rm};
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
      "Make a .hrry file of a .safetensors, .gguf, .npy or .hrry file, or a .safetensors file of "
      "any of\n"
      "them, told by the target's name; the old target stays until the new one is whole.");
  convert_command->add_option("SOURCE", convert.source, "A .safetensors, .gguf, .npy or .hrry file")
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

  cli::LsRequest ls;
  const auto* ls_command = add_ls(app, ls, session);
  cli::CatRequest cat;
  const auto* cat_command = add_cat(app, cat, session);
  cli::DiffRequest diff;
  const auto* diff_command = add_diff(app, diff, session);
  cli::ExtractRequest extract;
  const auto* extract_command = add_extract(app, extract, session);
  cli::StatsRequest stats;
  const auto* stats_command = add_stats(app, stats, session);
  KvRequests kv;
  const KvCommands kv_commands = add_kv(app, kv, session);

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
  if (ls_command->parsed()) return cli::ls(ls, session);
  if (cat_command->parsed()) {
    if (cat.raw && cli::output_goes_to_a_terminal()) {
      cli::complain(
          "--raw writes bytes, which are not for a terminal; send them to a file or pipe");
      return wrong_usage;
    }
    return cli::cat(cat, session);
  }
  if (diff_command->parsed()) return cli::diff(diff, session);
  if (extract_command->parsed()) return cli::extract(extract, session);
  if (stats_command->parsed()) return cli::stats(stats, session);
  if (kv_commands.get->parsed()) return cli::kv_get(kv.get, session);
  if (kv_commands.set->parsed()) return cli::kv_set(kv.set, session);
  if (kv_commands.rm->parsed()) return cli::kv_rm(kv.rm, session);
  if (verify_command->parsed()) return cli::verify(verify, session);
  convert.checksums = !no_checksums;
  convert.sync = !no_sync;
  return cli::convert(convert, session);
}

}  // namespace

int main(int argc, char** argv) {
  cli::Session session;
  session.columns = cli::output_columns();
  session.colours = cli::output_has_colours();
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
