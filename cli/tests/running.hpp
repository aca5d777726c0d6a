#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <functional>
#include <span>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// Runs the command in a folder of its own.
namespace hurray::cli {

namespace fs = std::filesystem;

struct Ran {
  int code = -1;  ///< Of the exit, or minus the signal.
  std::string out;
  std::string err;
  long peak_kib = 0;
};

inline std::string contents(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream all;
  all << file.rdbuf();
  return all.str();
}

inline void put(const fs::path& path, std::string_view bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

class Command : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "hurray-cli-XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  void TearDown() override { fs::remove_all(folder_); }

  /// Runs in the test's folder. `before` is called in the child.
  Ran run(std::vector<std::string> arguments, const std::function<void()>& before = {},
          const std::string& output = {}) const {
    return wait(start(std::move(arguments), before, output));
  }

  pid_t start(std::vector<std::string> arguments, const std::function<void()>& before = {},
              const std::string& output = {}) const {
    const std::string out = output.empty() ? (folder_ / ".out").string() : output;
    const std::string err = (folder_ / ".err").string();
    const pid_t child = fork();
    if (child != 0) return child;
    const int o = ::open(out.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    const int e = ::open(err.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (chdir(folder_.c_str()) != 0 || dup2(o, 1) < 0 || dup2(e, 2) < 0) _exit(126);
    arguments.insert(arguments.begin(), HURRAY_COMMAND);
    std::vector<char*> argv;
    for (std::string& argument : arguments) argv.push_back(argument.data());
    argv.push_back(nullptr);
    if (before) before();
    execv(HURRAY_COMMAND, argv.data());
    _exit(127);
  }

  Ran wait(pid_t child) const {
    int status = 0;
    rusage usage{};
    EXPECT_EQ(wait4(child, &status, 0, &usage), child);
    Ran ran;
    ran.code = WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
    ran.out = contents(folder_ / ".out");
    ran.err = contents(folder_ / ".err");
    ran.peak_kib = usage.ru_maxrss;
    fs::remove(folder_ / ".out");
    fs::remove(folder_ / ".err");
    return ran;
  }

  fs::path at(std::string_view name) const { return folder_ / name; }

  std::vector<std::string> names() const {
    std::vector<std::string> all;
    for (const auto& entry : fs::directory_iterator(folder_))
      all.push_back(entry.path().filename().string());
    std::sort(all.begin(), all.end());
    return all;
  }

  fs::path folder_;
};

inline std::string text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace hurray::cli
