// Files that keep their place: nothing can be put there instead, as where one is mounted by itself.
#include <doctest/doctest.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <iterator>
#include <string>

#include "../../tool/whole_file.hpp"
#include "support/run_program.hpp"

namespace {

namespace fs = std::filesystem;
using stretto::tool::write_whole;
using test_support::contents;

int why_not_renamed = 0;

}  // namespace

// In the C library's place.
extern "C" int rename(const char*, const char*) noexcept {
  errno = why_not_renamed;
  return -1;
}

TEST_CASE("what keeps its place is written where it is, once all of it is there") {
  const test_support::temporary folder("mounted");
  fs::create_directories(folder.path());
  const std::string path = folder.path() + "/file";
  const auto written = [&](int why, const std::string& text) {
    why_not_renamed = why;
    return write_whole(path, [&](std::ostream& to) {
      CHECK(contents(path) == "what was there before, and is longer");
      to << text;
    });
  };
  for (const int why : {EBUSY, EXDEV})
    for (const std::string text : {"new", ""}) {
      std::ofstream(path) << "what was there before, and is longer";
      fs::permissions(path, fs::perms::owner_read | fs::perms::owner_write);
      CHECK(written(why, text).empty());
      CHECK(contents(path) == text);
      CHECK(fs::status(path).permissions() == (fs::perms::owner_read | fs::perms::owner_write));
    }
  std::ofstream(path) << "what was there before, and is longer";
  CHECK(written(EIO, "new") == std::strerror(EIO));
  CHECK(contents(path) == "what was there before, and is longer");
  CHECK(std::distance(fs::directory_iterator(folder.path()), fs::directory_iterator()) == 1);
}
