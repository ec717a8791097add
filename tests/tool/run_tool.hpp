#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>

// STRETTO_TOOL_PATH: the built tool. STRETTO_CSV_DIR: the folder that holds csv/ and csv_invalid/.

namespace tool_tests {

struct outcome {
  int exit = -1;
  std::string out;
  std::string err;
};

inline std::string contents(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

//! A file of this process's own, removed with the object.
class temporary {
 public:
  explicit temporary(const std::string& name)
      : path_(std::filesystem::temp_directory_path() /
              ("stretto_" + std::to_string(getpid()) + "_" + name)) {}
  ~temporary() {
    std::error_code ignored;
    std::filesystem::remove(path_, ignored);
  }
  temporary(const temporary&) = delete;
  temporary& operator=(const temporary&) = delete;

  std::string path() const { return path_.string(); }
  void write(const std::string& text) const { std::ofstream(path_, std::ios::binary) << text; }

 private:
  std::filesystem::path path_;
};

//! Runs the tool with arguments as a shell reads them.
inline outcome run(const std::string& arguments) {
  const temporary out("out");
  const temporary err("err");
  const std::string command = std::string("\"" STRETTO_TOOL_PATH "\" ") + arguments + " >" +
                              out.path() + " 2>" + err.path() + " </dev/null";
  const int status = std::system(command.c_str());
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, contents(out.path()), contents(err.path())};
}

inline nlohmann::json run_json(const std::string& arguments) {
  const outcome ran = run(arguments);
  return ran.exit == 0 ? nlohmann::json::parse(ran.out) : nlohmann::json{{"failed", ran.err}};
}

}  // namespace tool_tests
