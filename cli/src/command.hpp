#pragma once

#include <string>

#include "output.hpp"

/// What the command does, one function for each subcommand. They return the exit code.
namespace hurray::cli {

struct InspectRequest {
  std::string path;
  std::string name;  ///< Of a tensor, or the number of a frame; empty: the whole file.
};
int inspect(const InspectRequest& request, Session& session);

struct ConvertRequest {
  std::string source;
  std::string target;
  bool checksums = true;
  bool sync = true;
};
int convert(const ConvertRequest& request, Session& session);

struct VerifyRequest {
  std::string path;
};
int verify(const VerifyRequest& request, Session& session);

}  // namespace hurray::cli
