#include "files.hpp"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "errors.hpp"

namespace stretto::tool {

namespace {

//! No file that the tool reads is larger; /dev/zero, say, has no end.
constexpr std::size_t most_bytes = std::size_t{1} << 30;

std::string read_anew(const std::string& option, const std::string& path) {
  if (path != "-" && std::filesystem::is_directory(path))
    throw bad_option(option, path, "is a folder");
  std::ifstream file;
  if (path != "-") file.open(path, std::ios::binary);
  std::istream& from = path == "-" ? std::cin : file;
  std::string text;
  std::vector<char> some(1 << 16);
  while (from && text.size() <= most_bytes) {
    from.read(some.data(), static_cast<std::streamsize>(some.size()));
    text.append(some.data(), static_cast<std::size_t>(from.gcount()));
  }
  if (text.size() > most_bytes) throw bad_option(option, path, "is larger than 1 GiB");
  if ((path != "-" && !file.is_open()) || from.bad())
    throw bad_option(option, path, "cannot be read: " + std::string(std::strerror(errno)));
  return text;
}

}  // namespace

std::string read_file(const std::string& option, const std::string& path) {
  // Once each: standard input and other pipes have nothing for those who ask again, as `compare`
  // does for every schedule, in threads of its own.
  static std::mutex alone;
  static std::map<std::string, std::string> known;
  const std::lock_guard<std::mutex> hold(alone);
  const auto found = known.find(path);
  return found != known.end() ? found->second : known[path] = read_anew(option, path);
}

void write_file(const std::string& option, const std::string& path, const std::string& text) {
  write_file(option, path, [&](std::ostream& to) { to << text; });
}

void write_file(const std::string& option, const std::string& path,
                const std::function<void(std::ostream&)>& print) {
  if (path == "-") return print(std::cout);
  std::ofstream file(path, std::ios::binary);
  if (file) print(file);
  file.flush();
  if (!file)
    throw bad_option(option, path, "cannot be written: " + std::string(std::strerror(errno)));
}

}  // namespace stretto::tool
