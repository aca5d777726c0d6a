#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "hurray/io/error.hpp"

namespace hurray::cli {

/// The `version` of every object that `--json` prints. It grows when a member changes its meaning
/// or goes; new members may come at any time.
inline constexpr std::uint64_t json_version = 1;

/// Standard output. A failure is kept, and everything after it dropped.
class Output {
 public:
  void write(std::string_view text);
  /// Hands over what is buffered; the error number of the first failure, or 0.
  int finish();

 private:
  int failed_ = 0;
};

/// One JSON value in ASCII, written as it comes.
class Json {
 public:
  explicit Json(Output& output) : output_(output) {}

  /// The object that a command prints: begins with `version` and `kind`, ends with the line.
  void begin_document(std::string_view kind);
  void end_document();

  void begin_object() { open('{'); }
  void end_object() { close('}'); }
  void begin_array() { open('['); }
  void end_array() { close(']'); }
  void key(std::string_view name);

  void value(std::string_view text);
  void value(const char* text) { value(std::string_view(text)); }
  void value(const std::string& text) { value(std::string_view(text)); }
  void value(bool truth) { raw(truth ? "true" : "false"); }
  void value(std::integral auto number) { raw(std::to_string(number)); }
  /// NaN and the infinities, for which JSON has no numbers, come as the strings "nan", "inf",
  /// "-inf".
  void value(double number);
  void null() { raw("null"); }

  void member(std::string_view name, const auto& content) {
    key(name);
    value(content);
  }

 private:
  void open(char bracket);
  void close(char bracket);
  void raw(std::string_view text);
  void separate();

  Output& output_;
  bool first_ = true;
  bool after_key_ = false;
};

enum class Style : std::uint8_t { bold, red, green };

/// What a command runs with: where its results go, and how.
struct Session {
  Output output;
  bool json = false;
  bool colours = false;                     ///< Somebody watches who wants them.
  std::optional<std::size_t> columns = {};  ///< Of the terminal that results go to.

  /// `text` in a colour, where there are colours.
  std::string paint(Style style, std::string_view text) const;

  /// Says what went wrong, on standard error and in `--json`; returns the exit code.
  int fail(const io::Error& error);
};

/// "hurray: " and a line for a person, on standard error.
void complain(std::string_view line);

/// The sentence of `error` without the path and name that stand beside it.
std::string reason(io::Error error);

/// `code`, `message` and the place of `error`, as members of the object that is open.
void error_members(Json& json, const io::Error& error);

}  // namespace hurray::cli
