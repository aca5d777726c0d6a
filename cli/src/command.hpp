#pragma once

#include <cstddef>
#include <string>
#include <vector>

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

struct LsRequest {
  std::string path;
  std::vector<std::string> patterns;  ///< Of names; none: all.
  bool group = false;                 ///< Runs of numbers in names become one line.
};
int ls(const LsRequest& request, Session& session);

struct CatRequest {
  std::string path;
  std::string name;
  std::string index;  ///< As in NumPy; empty: all of the tensor.
  bool all = false;   ///< However many elements there are.
  bool raw = false;   ///< The stored bytes of `buffer`, nothing else.
  std::size_t buffer = 0;
};
int cat(const CatRequest& request, Session& session);

struct DiffRequest {
  std::string a;
  std::string b;
  double relative = 0;  ///< Elements are equal up to `absolute + relative * |b|`.
  double absolute = 0;
};
/// 1 also where something differs.
int diff(const DiffRequest& request, Session& session);

struct ExtractRequest {
  std::string path;
  std::vector<std::string> patterns;
  std::string target;
  bool npy = false;  ///< One tensor, as a .npy file.
  bool kv = true;
  bool checksums = true;
  bool sync = true;
};
int extract(const ExtractRequest& request, Session& session);

struct StatsRequest {
  std::string path;
  std::vector<std::string> patterns;
  std::string target;  ///< A file to make whose descriptors carry the statistics; empty: none.
};
int stats(const StatsRequest& request, Session& session);

struct KvGetRequest {
  std::string path;
  std::string key;  ///< Empty: all.
};
int kv_get(const KvGetRequest& request, Session& session);

struct KvSetRequest {
  std::string path;
  std::string key;
  std::string value;
  std::string type;    ///< Empty: that of the old value, else text.
  std::string output;  ///< Empty: the file itself.
};
/// A word that `KvSetRequest::type` may be.
bool is_kv_type(const std::string& word);
int kv_set(const KvSetRequest& request, Session& session);

struct KvRmRequest {
  std::string path;
  std::vector<std::string> keys;
  std::string output;  ///< Empty: the file itself.
};
int kv_rm(const KvRmRequest& request, Session& session);

}  // namespace hurray::cli
