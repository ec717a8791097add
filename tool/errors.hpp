#pragma once

#include <stdexcept>
#include <string>
#include <vector>

namespace stretto::tool {

//! On one line, and nothing that a terminal would act upon or that ends a C string: a message may
//! quote a file.
std::string shown(const std::string& words);

//! Words, as shown() makes them, with the beginning alone of what is typed very long.
//! @param typed  the arguments, of which words may quote any or its value
std::string in_brief(std::string words, const std::vector<std::string>& typed);

//! As a shell reads it as one word, on one line.
std::string shell_word(const std::string& word);

//! A wrong option, file or shape: exit 2. The text names the option, its value and the rule.
struct bad_input : std::runtime_error {
  explicit bad_input(const std::string& words) : std::runtime_error(shown(words)) {}
};

//! A schedule that breaks a rule: exit 1. The text is the verdict's sentence.
struct broken_schedule : std::runtime_error {
  explicit broken_schedule(const std::string& words) : std::runtime_error(shown(words)) {}
};

//! `option` with its value as typed, a colon, the rule.
inline bad_input bad_option(const std::string& option, const std::string& value,
                            const std::string& rule) {
  return bad_input(option + " " + value + ": " + rule);
}

}  // namespace stretto::tool
