#include <cerrno>
#include <cstring>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <map>
#include <mutex>
#include <new>
#include <sstream>
#include <string>

#include "command.hpp"
#include "stretto/base/version.hpp"

namespace stretto::tool {

namespace {

std::string read_anew(const std::string& option, const std::string& path) {
  if (path == "-") return {std::istreambuf_iterator<char>(std::cin), {}};
  if (std::filesystem::is_directory(path)) throw bad_option(option, path, "is a folder");
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  if (file && file.peek() != std::char_traits<char>::eof()) text << file.rdbuf();
  if (!file.is_open() || file.bad() || !text)
    throw bad_option(option, path, "cannot be read: " + std::string(std::strerror(errno)));
  return text.str();
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
  if (path == "-") {
    std::cout << text;
    return;
  }
  std::ofstream file(path, std::ios::binary);
  if (file) file << text << std::flush;
  if (!file)
    throw bad_option(option, path, "cannot be written: " + std::string(std::strerror(errno)));
}

}  // namespace stretto::tool

int main(int argc, char** argv) {
  using namespace stretto::tool;
  CLI::App app{"Pipeline-parallel training schedules: print, check, simulate, draw.", "stretto"};
  app.require_subcommand(1);
  app.set_version_flag("--version", "stretto " + std::string(stretto::version),
                       "Print the version and exit");
  app.footer(
      "Exit: 0 when all is well, 1 when a schedule breaks a rule, 2 for wrong input.\n"
      "Times are integers in any unit, per chunk job.");
  const auto complain = [](const std::string& words, int exit) {
    std::string line = words;
    while (!line.empty() && line.back() == '\n') line.pop_back();
    for (char& letter : line)
      if (letter == '\n') letter = ' ';
    std::cerr << "stretto: " << line << '\n';
    return exit;
  };
  try {
    add_list(app);
    add_schedule(app);
    add_check(app);
    add_simulate(app);
    add_compare(app);
    add_assign(app);
    add_memory(app);
    add_overlap(app);
    add_calibrate(app);
    add_predict(app);
    add_plot(app);
    add_trace(app);
    // CLI11 would say no more than that a subcommand is missing.
    if (argc == 1 || argv[1][0] != '-') {
      std::string names;
      bool known = false;
      for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
        known = known || (argc > 1 && command->get_name() == argv[1]);
        names += (names.empty() ? "" : ", ") + command->get_name();
      }
      if (argc == 1)
        throw bad_input("a subcommand is required; there are " + names +
                        "; --help says what they do");
      if (!known) throw bad_option("COMMAND", argv[1], "no such command; there are " + names);
    }
    app.parse(argc, argv);
    if (!std::cout.flush()) return complain("standard output cannot be written", 2);
    return 0;
  } catch (const CLI::Success& help) {
    return app.exit(help);
  } catch (const CLI::ParseError& wrong) {
    return complain(wrong.what(), 2);
  } catch (const bad_input& wrong) {
    return complain(wrong.what(), 2);
  } catch (const broken_schedule& broken) {
    return complain(broken.what(), 1);
  } catch (const std::bad_alloc&) {
    return complain("not enough memory for this shape", 2);
  } catch (const std::exception& wrong) {
    return complain(wrong.what(), 2);
  }
}
