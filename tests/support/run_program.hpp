// Runs a built program as a shell does, and keeps what it says.
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

namespace test_support {

struct outcome {
  int exit = -1;  //!< -1: a signal ended it
  std::string out;
  std::string err;
};

inline std::string contents(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

//! A file or folder of this process's own, removed with the object.
class temporary {
 public:
  explicit temporary(const std::string& name)
      : path_(std::filesystem::temp_directory_path() /
              ("stretto_" + std::to_string(getpid()) + "_" + name)) {}
  ~temporary() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  temporary(const temporary&) = delete;
  temporary& operator=(const temporary&) = delete;

  std::string path() const { return path_.string(); }
  void write(const std::string& text) const { std::ofstream(path_, std::ios::binary) << text; }

 private:
  std::filesystem::path path_;
};

//! Runs the program with arguments as a shell reads them.
inline outcome run(const std::string& program, const std::string& arguments) {
  const temporary out("out");
  const temporary err("err");
  const std::string command =
      "\"" + program + "\" " + arguments + " >" + out.path() + " 2>" + err.path() + " </dev/null";
  const int status = std::system(command.c_str());
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, contents(out.path()), contents(err.path())};
}

}  // namespace test_support
