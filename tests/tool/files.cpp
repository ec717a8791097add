// What -o writes: the whole file or, where that fails, the one that was there before.
#include <doctest/doctest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "../../tool/whole_file.hpp"
#include "run_tool.hpp"

namespace {

namespace fs = std::filesystem;
using tool_tests::contents;
using tool_tests::outcome;
using tool_tests::run;
using tool_tests::temporary;

const std::string step = "schedule 1f1b --ranks 8 --microbatches 64 --format json ";

//! A folder, and a file in it that somebody would miss.
struct kept_file {
  kept_file() {
    fs::create_directories(folder.path());
    write("precious\n");
  }
  void write(const std::string& text) const { std::ofstream(path()) << text; }
  std::string path(const char* name = "file") const { return folder.path() + "/" + name; }
  std::ptrdiff_t count() const {
    return std::distance(fs::directory_iterator(folder.path()), fs::directory_iterator());
  }

  temporary folder{"kept"};
};

//! Where a file may have a few hundred bytes, as on a full disk.
outcome run_short_of_room(const std::string& arguments) {
  return test_support::run(
      "sh", "-c 'trap \"\" XFSZ; ulimit -f 1; \"" STRETTO_TOOL_PATH "\" " + arguments + "'");
}

TEST_CASE("what cannot be written leaves what was there before, and nothing else") {
  const kept_file here;
  const outcome over = run_short_of_room(step + "-o " + here.path());
  CHECK(over.exit == 2);
  CHECK(over.err == "stretto: -o " + here.path() + ": cannot be written: File too large\n");
  CHECK(contents(here.path()) == "precious\n");
  const outcome fresh = run_short_of_room(step + "-o " + here.path("none"));
  CHECK(fresh.err == "stretto: -o " + here.path("none") + ": cannot be written: File too large\n");
  CHECK(here.count() == 1);
  if (fs::exists("/dev/full"))
    CHECK(run(step + "-o /dev/full").err ==
          "stretto: -o /dev/full: cannot be written: No space left on device\n");
  CHECK(run(step + "-o " + here.path("none/file")).err.find("No such file") != std::string::npos);
  CHECK(run(step + "-o " + here.folder.path()).err.find("Is a directory") != std::string::npos);
}

TEST_CASE("what a process of the same number has left, or writes, stays, and is in nobody's way") {
  const kept_file here;
  const auto fresh = [&](int count) {
    return stretto::tool::fresh_name(here.path(), count).string();
  };
  const auto written = [&] {
    return stretto::tool::write_whole(here.path(), [](std::ostream& to) { to << "new\n"; });
  };
  CHECK(fresh(1) == here.path() + ".new-" + std::to_string(::getpid()));
  CHECK(fresh(2) == fresh(1) + "-2");
  for (const int count : {1, 2}) std::ofstream(fresh(count)) << "another's\n";
  CHECK(written().empty());
  CHECK(contents(here.path()) == "new\n");
  for (const int count : {1, 2}) CHECK(contents(fresh(count)) == "another's\n");
  CHECK(here.count() == 3);
  here.write("precious\n");
  for (int count = 3; count <= stretto::tool::most_fresh_names; ++count)
    std::ofstream(fresh(count)) << "another's\n";
  CHECK(written() == fresh(stretto::tool::most_fresh_names) + ": File exists");
  CHECK(contents(here.path()) == "precious\n");
}

TEST_CASE("what is written keeps its permissions, its other names and the links to it") {
  const kept_file here;
  const std::string text = run(step).out;
  const auto written = [&](const std::string& path) {
    CHECK(run(step + "-o " + path).err.empty());
    return contents(path) == text;
  };
  fs::permissions(here.path(), fs::perms::owner_read | fs::perms::owner_write);
  CHECK(written(here.path()));
  CHECK(fs::status(here.path()).permissions() == (fs::perms::owner_read | fs::perms::owner_write));

  fs::create_symlink("file", here.path("link"));
  fs::create_symlink("later", here.path("early"));
  for (const char* link : {"link", "early"}) {
    here.write("old\n");
    CHECK(written(here.path(link)));
    CHECK(fs::is_symlink(here.path(link)));
  }
  CHECK(contents(here.path("later")) == text);

  fs::create_hard_link(here.path(), here.path("other"));
  CHECK(written(here.path()));
  CHECK(contents(here.path("other")) == text);
  CHECK(here.count() == 5);
}

TEST_CASE("pipes, devices and standard output by a name are written as text comes") {
  const kept_file here;
  const std::string text = run(step).out;
  CHECK(run(step + "-o /dev/null").exit == 0);
  CHECK(fs::is_character_file("/dev/null"));
  // A file and a pipe.
  CHECK(run(step + "-o /dev/stdout").out == text);
  const auto shell = [&](const std::string& line) {
    return test_support::run("sh", "-c '" + line + "'");
  };
  const std::string tool = "\"" STRETTO_TOOL_PATH "\" " + step;
  CHECK(shell(tool + "-o /dev/stdout | cat").out == text);
  REQUIRE(::mkfifo(here.path("pipe").c_str(), 0600) == 0);
  CHECK(
      shell("cat " + here.path("pipe") + " & " + tool + "-o " + here.path("pipe") + "; wait").out ==
      text);
  CHECK(fs::is_fifo(here.path("pipe")));
  CHECK(shell("\"" STRETTO_TOOL_PATH "\" check - <&-").err ==
        "stretto: FILE.csv -: cannot be read: Bad file descriptor\n");
}

}  // namespace
