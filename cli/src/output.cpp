#include "output.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>

namespace hurray::cli {

void Output::write(std::string_view text) {
  if (failed_ != 0) return;
  errno = 0;
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size())
    failed_ = errno != 0 ? errno : EIO;
}

int Output::finish() {
  errno = 0;
  if (failed_ == 0 && std::fflush(stdout) != 0) failed_ = errno != 0 ? errno : EIO;
  return failed_;
}

void Json::begin_document(std::string_view kind) {
  begin_object();
  member("version", json_version);
  member("kind", kind);
}

void Json::end_document() {
  end_object();
  output_.write("\n");
}

void Json::key(std::string_view name) {
  value(name);
  output_.write(":");
  after_key_ = true;
}

void Json::value(std::string_view text) {
  using nlohmann::json;
  raw(json(text).dump(-1, ' ', true, json::error_handler_t::replace));
}

void Json::value(double number) {
  if (std::isfinite(number))
    raw(fmt::format("{}", number));
  else
    value(fmt::format("{}", std::isnan(number) ? std::abs(number) : number));
}

void Json::open(char bracket) {
  separate();
  output_.write({&bracket, 1});
  first_ = true;
}

void Json::close(char bracket) {
  output_.write({&bracket, 1});
  first_ = false;
}

void Json::raw(std::string_view text) {
  separate();
  output_.write(text);
}

void Json::separate() {
  if (!first_ && !after_key_) output_.write(",");
  first_ = false;
  after_key_ = false;
}

std::string Session::paint(Style style, std::string_view text) const {
  if (!colours) return std::string(text);
  const int code = style == Style::bold ? 1 : style == Style::red ? 31 : 32;
  return fmt::format("\x1b[{}m{}\x1b[0m", code, text);
}

int Session::fail(const io::Error& error) {
  complain(to_string(error));
  if (json) {
    Json document(output);
    document.begin_document("error");
    error_members(document, error);
    document.end_document();
  }
  return exit_code(error);
}

void complain(std::string_view line) {
  const std::string text = fmt::format("hurray: {}\n", line);
  std::fwrite(text.data(), 1, text.size(), stderr);
}

std::string reason(io::Error error) {
  error.path.clear();
  error.tensor.clear();
  return to_string(error);
}

void error_members(Json& json, const io::Error& error) {
  json.member("code", info(error.code).name);
  json.member("message", to_string(error));
  if (!error.field.empty()) json.member("field", field_name(error));
  if (error.offset != hurray::Error::no_offset) {
    json.member("origin", info(error.origin).name);
    json.member("offset", error.offset);
  }
}

}  // namespace hurray::cli
