#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "errors.hpp"

namespace stretto::tool {

//! A value as an error quotes it: what nests could be of any length and depth.
inline std::string in_words(const nlohmann::json& value) {
  return value.is_array() ? "a list" : value.is_object() ? "an object" : value.dump();
}

//! A JSON file that an option names, with errors that say where in it.
struct json_file {
  std::string option;
  std::string path;

  //! @throws bad_input always
  [[noreturn]] void fail(const std::string& rule) const { throw bad_option(option, path, rule); }
  //! @throws bad_input for what is no JSON, and for a key that stands twice in one object
  nlohmann::json parse() const;
  //! The integer at `place`, from `least` to `greatest`.
  //! @throws bad_input
  std::int64_t integer(const nlohmann::json& value, const std::string& place, std::int64_t least,
                       std::int64_t greatest) const;
};

}  // namespace stretto::tool
