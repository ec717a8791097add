#include "default_text.hpp"

#include <algorithm>
#include <array>
#include <stdexcept>
#include <string>
#include <system_error>

namespace train {

namespace files = std::filesystem;

namespace {

// Sources, not what is built or generated; documents come with the folders at the top.
constexpr std::array folders{"docs", "examples", "executor", "include", "tests", "tool"};
constexpr std::array endings{".hpp", ".cpp", ".cu", ".cuh", ".md"};

void add(const files::path& file, std::vector<files::path>& found) {
  if (files::is_regular_file(file) && std::ranges::count(endings, file.extension().string()) > 0)
    found.push_back(file);
}

}  // namespace

std::vector<files::path> repository_text() {
  const files::path root(STRETTO_SOURCE_DIR);
  std::vector<files::path> found;
  try {
    for (const auto& entry : files::directory_iterator(root)) add(entry.path(), found);
    for (const char* folder : folders)
      if (files::is_directory(root / folder))
        for (const auto& entry : files::recursive_directory_iterator(root / folder))
          add(entry.path(), found);
  } catch (const files::filesystem_error& failed) {
    throw std::runtime_error(failed.path1().string() +
                             " cannot be read: " + failed.code().message());
  }
  if (found.empty())
    throw std::runtime_error("there is no text in " + root.string() +
                             ", where this program was built: name files to train on");
  std::ranges::sort(found);
  return found;
}

}  // namespace train
