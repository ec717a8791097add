#include "files.hpp"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <mutex>
#include <string>
#include <system_error>
#include <vector>

#include "errors.hpp"
#include "whole_file.hpp"

namespace stretto::tool {

namespace {

//! No file that the tool reads is larger; /dev/zero, say, has no end.
constexpr std::size_t most_bytes = std::size_t{1} << 30;

//! What was read, by its path, and which option asked for it first.
struct file_read {
  std::string option;
  std::string text;
};
std::map<std::string, file_read>& files_read() {
  static std::map<std::string, file_read> all;
  return all;
}

std::string read_anew(const std::string& option, const std::string& path) {
  std::error_code none;  // what else is wrong with the path, opening it tells
  if (path != "-" && std::filesystem::is_directory(path, none))
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
  // Of standard input that is closed, the stream knows its end alone.
  if (path == "-" ? std::ferror(stdin) != 0 : !file.is_open() || file.bad())
    throw bad_option(option, path, "cannot be read: " + std::string(std::strerror(errno)));
  return text;
}

}  // namespace

std::string read_file(const std::string& option, const std::string& path) {
  // Once each: standard input and other pipes have nothing for those who ask again, as `compare`
  // does for every schedule, in threads of its own.
  static std::mutex alone;
  const std::lock_guard<std::mutex> hold(alone);
  auto& known = files_read();
  const auto found = known.find(path);
  if (found == known.end()) return (known[path] = {option, read_anew(option, path)}).text;
  if (path == "-" && found->second.option != option)
    throw bad_option(option, path,
                     "standard input is read by " + found->second.option + " already");
  return found->second.text;
}

void write_file(const std::string& option, const std::string& path, const std::string& text) {
  write_file(option, path, [&](std::ostream& to) { to << text; });
}

void write_file(const std::string& option, const std::string& path,
                const std::function<void(std::ostream&)>& print) {
  if (path == "-") return print(std::cout);
  for (const auto& [other, read] : files_read()) {
    if (other != "-" && same_file(path, other))
      throw bad_option(option, path, "is read by " + read.option + ", and would be lost");
  }
  if (const std::string why = write_whole(path, print); !why.empty())
    throw bad_option(option, path, "cannot be written: " + why);
}

void write_svg(const std::string& option, const std::string& path, const std::string& svg) {
  for (const char* other : {".png", ".pdf", ".jpg", ".jpeg", ".gif", ".webp"})
    if (path.ends_with(other))
      throw bad_option(option, path,
                       std::string("pictures are SVG, and that is no ") + other +
                           ": name it .svg, of which rsvg-convert makes others");
  write_file(option, path, svg);
}

}  // namespace stretto::tool
