#include <algorithm>
#include <cctype>
#include <exception>
#include <iostream>
#include <new>
#include <string>
#include <vector>

#include "command.hpp"
#include "errors.hpp"
#include "range_words.hpp"
#include "stretto/base/version.hpp"

namespace stretto::tool {

namespace {

//! An empty value is mostly a variable of a script that is not set.
void refuse_empty_values(CLI::App& app) {
  const CLI::Validator filled(
      [](const std::string& value) {
        return std::string(value.empty() ? "its value is empty" : "");
      },
      "", "");
  for (CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; }))
    for (CLI::Option* option : command->get_options())
      if (option->get_items_expected() > 0) option->check(filled);
}

//! Numbers are decimal, whatever they begin with: to CLI11 010 is 8, and 0x10 is 16.
void read_decimal_numbers(CLI::App& app) {
  const CLI::Validator decimal(
      [](std::string& value) {
        const std::size_t first = value.starts_with('-') || value.starts_with('+') ? 1 : 0;
        const auto second = [&] {
          const bool there = value.size() > first + 1 && value[first] == '0';
          return static_cast<unsigned char>(there ? value[first + 1] : '\0');
        };
        while (std::isdigit(second()) != 0) value.erase(first, 1);
        const bool other = std::isalpha(second()) != 0;
        return std::string(other ? "Value " + value + " is no decimal number" : "");
      },
      "", "");
  for (CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; }))
    for (CLI::Option* option : command->get_options())
      if (option->get_type_name().starts_with("INT") || option->get_type_name().starts_with("UINT"))
        option->transform(decimal);
}

//! Words about an option begin with its name: of several, those that the user knows it by.
//! @param typed  the arguments behind the program's name
std::string as_typed(const CLI::App& app, const std::vector<std::string>& typed,
                     const std::string& words) {
  const std::string first = words.substr(0, words.find_first_of(" :"));
  const auto asked = [&](const CLI::App* one) {
    return !typed.empty() && one->get_name() == typed.front();
  };
  const CLI::Option* option = nullptr;
  for (const CLI::App* command : app.get_subcommands(asked))
    if (first.starts_with("-")) option = command->get_option_no_throw(first);
  if (option == nullptr) return words;
  for (const std::string& word : typed) {
    for (const std::string& name : option->get_lnames())
      if (word == "--" + name || word.starts_with("--" + name + "="))
        return "--" + name + words.substr(first.size());
    for (const std::string& name : option->get_snames())
      if (word.starts_with("-" + name)) return "-" + name + words.substr(first.size());
  }
  return words;
}

//! Says of an option which values it lacks, or has too many of.
std::string miscounted(const CLI::App& app, const std::vector<std::string>& typed,
                       const std::string& words) {
  const std::string name = words.substr(0, words.find(':'));
  if (words.ends_with(" missing")) return name + ": takes a value";
  const std::string too_many = ": At Most 1 required but received ";
  if (!words.starts_with(name + too_many)) return words;
  std::string same;
  for (const CLI::App* command : app.get_subcommands())
    if (const CLI::Option* option = command->get_option_no_throw(name); option != nullptr)
      for (const std::string& other : option->get_lnames())
        if (std::find(typed.begin(), typed.end(), "--" + other) != typed.end())
          same += (same.empty() ? "" : " and ") + ("--" + other);
  return name + ": takes one value, not " + words.substr(name.size() + too_many.size()) +
         (same.find(' ') == std::string::npos ? "" : "; " + same + " are one option");
}

//! Says which option takes no value, and was given what no other takes, or a number, which is no
//! name. Empty: none.
std::string takes_no_value(const CLI::App& command, const std::vector<std::string>& typed,
                           const std::vector<std::string>& left) {
  for (std::size_t at = 1; at < typed.size(); ++at) {
    const CLI::Option* option =
        typed[at - 1].starts_with("-") ? command.get_option_no_throw(typed[at - 1]) : nullptr;
    if (option != nullptr && option->get_items_expected_max() == 0 && !typed[at].starts_with("-") &&
        (std::find(left.begin(), left.end(), typed[at]) != left.end() ||
         typed[at].find_first_not_of("0123456789") == std::string::npos))
      return typed[at - 1] + " " + typed[at] + ": takes no value in " + command.get_name() +
             "; see stretto " + command.get_name() + " --help";
  }
  return {};
}

//! Says which argument a command has no use for: the first option, or what else is first. Empty: it
//! cannot be told.
std::string not_expected(const CLI::App& app, const std::vector<std::string>& typed) {
  for (const CLI::App* command : app.get_subcommands()) {
    const std::vector<std::string> left = command->remaining();
    const auto is_left = [&](const std::string& word) {
      return std::find(left.begin(), left.end(), word) != left.end();
    };
    // An option rather than its value, which another option may have, too.
    auto found = std::find_if(typed.begin(), typed.end(), [&](const std::string& word) {
      return word.starts_with("-") && is_left(word);
    });
    if (found == typed.end()) {
      if (const std::string words = takes_no_value(*command, typed, left); !words.empty())
        return words;
      found = std::find_if(typed.begin(), typed.end(), is_left);
    }
    if (found != typed.end())
      return *found + ": " + command->get_name() +
             (found->starts_with("-") ? " has no such option" : " takes no such argument") +
             "; see stretto " + command->get_name() + " --help";
  }
  return {};
}

}  // namespace

}  // namespace stretto::tool

int main(int argc, char** argv) {
  using namespace stretto::tool;
  CLI::App app{"Pipeline-parallel training schedules: print, check, simulate, draw.", "stretto"};
  app.require_subcommand(1);
  app.set_version_flag("--version", "stretto " + std::string(stretto::version),
                       "Print the version and exit");
  app.footer(exits);
  const auto complain = [&](const std::string& words, int exit) {
    std::string line = words;
    while (!line.empty() && line.back() == '\n') line.pop_back();
    line = as_typed(app, {argv + 1, argv + argc}, line);
    std::cerr << "stretto: " << in_brief(shown(line), {argv + 1, argv + argc}) << '\n';
    return exit;
  };
  const auto written = [&](int exit) {
    return std::cout.flush() ? exit : complain("standard output cannot be written", 2);
  };
  try {
    add_list(app);
    add_schedule(app);
    add_check(app);
    add_plan(app);
    add_simulate(app);
    add_compare(app);
    add_sweep(app);
    add_assign(app);
    add_memory(app);
    add_costs(app);
    add_overlap(app);
    add_calibrate(app);
    add_predict(app);
    add_measured(app);
    add_plot(app);
    add_trace(app);
    refuse_empty_values(app);
    read_decimal_numbers(app);
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
    if (argc > 1 && argv[1][0] == '-' && app.get_option_no_throw(argv[1]) == nullptr)
      throw bad_option("COMMAND", argv[1], "expected a command before any option");
    app.parse(argc, argv);
    return written(0);
  } catch (const CLI::Success& help) {
    return written(app.exit(help));
  } catch (const CLI::ExtrasError& wrong) {
    const std::string words = not_expected(app, {argv + 1, argv + argc});
    return complain(words.empty() ? wrong.what() : words, 2);
  } catch (const CLI::ArgumentMismatch& wrong) {
    return complain(miscounted(app, {argv + 1, argv + argc}, wrong.what()), 2);
  } catch (const CLI::ParseError& wrong) {
    // What is missing, or too much, is mostly so because of an option that is not known.
    const bool follows = dynamic_cast<const CLI::RequiredError*>(&wrong) != nullptr ||
                         dynamic_cast<const CLI::ExcludesError*>(&wrong) != nullptr;
    const std::string words = follows ? not_expected(app, {argv + 1, argv + argc}) : "";
    return complain(words.empty() ? range_words(wrong.what()) : words, 2);
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
