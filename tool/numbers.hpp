#pragma once

#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <system_error>
#include <vector>

#include "errors.hpp"
#include "files.hpp"

namespace stretto::tool {

//! The largest time or change of memory that an option may give: what is made of it for one job
//! stays in 64 bits. Sums over all jobs are looked at by themselves (make_costs).
inline constexpr std::int64_t most_cost = 10'000'000'000;
//! The largest limit or base, which are of a rank. Times what `compare` multiplies by lest parts be
//! rounded, at most 1000, still a number.
inline constexpr std::int64_t most_memory = 1'000'000'000'000'000;

//! The most entries of a job table, of all its classes together; some 200 MB.
inline constexpr std::int64_t most_entries = std::int64_t{1} << 23U;

//! Exactly `Count` integers between commas, each from `least` to most_cost.
//! @param form as the error spells what is expected: F,I,W
//! @throws bad_input naming option, value and rule
template <std::size_t Count>
std::array<std::int64_t, Count> read_numbers(const std::string& option, const std::string& text,
                                             const std::string& form, std::int64_t least) {
  std::array<std::int64_t, Count> all{};
  const char* at = text.data();
  const char* const end = at + text.size();
  for (std::size_t place = 0; place < Count; ++place) {
    const auto read = std::from_chars(at, end, all[place]);
    const bool last = place + 1 == Count;
    if (read.ec != std::errc{} || (last ? read.ptr != end : read.ptr == end || *read.ptr != ','))
      throw bad_option(option, text, "expected " + std::to_string(Count) + " integers, " + form);
    if (all[place] < least || all[place] > most_cost)
      throw bad_option(option, text,
                       "each number must be from " + std::to_string(least) + " to " +
                           std::to_string(most_cost));
    at = read.ptr + 1;
  }
  return all;
}

//! Any number of integers between commas, one at least.
//! @throws bad_input naming option, value and rule
inline std::vector<std::int64_t> read_list(const std::string& option, const std::string& text,
                                           std::int64_t least, std::int64_t most) {
  std::vector<std::int64_t> all;
  const char* at = text.data();
  const char* const end = at + text.size();
  for (;; ++at) {
    std::int64_t one = -1;
    const auto read = std::from_chars(at, end, one);
    at = read.ptr;
    if (read.ec != std::errc{} || one < least || one > most || (at != end && *at != ','))
      throw bad_option(option, text,
                       "expected integers from " + std::to_string(least) + " to " +
                           std::to_string(most) + " between commas");
    all.push_back(one);
    if (at == end) return all;
  }
}

//! A value as an error quotes it: what nests could be of any length and depth.
inline std::string in_words(const nlohmann::json& value) {
  return value.is_array() ? "a list" : value.is_object() ? "an object" : value.dump();
}

//! A JSON file that an option names, with errors that say where in it.
struct json_file {
  std::string option;
  std::string path;

  //! @throws bad_input
  [[noreturn]] void fail(const std::string& rule) const { throw bad_option(option, path, rule); }
  nlohmann::json parse() const {
    const std::string text = read_file(option, path);
    if (text.empty()) fail("the file is empty");
    // Of a key that stands twice the last would win without a word.
    std::vector<std::set<std::string>> keys;
    std::string twice;
    const auto watch = [&](int, nlohmann::json::parse_event_t event, nlohmann::json& value) {
      using what = nlohmann::json::parse_event_t;
      if (event == what::object_start) keys.emplace_back();
      if (event == what::object_end) keys.pop_back();
      if (event == what::key && !keys.back().insert(value.get<std::string>()).second)
        twice = value.dump();
      return true;
    };
    try {
      nlohmann::json all = nlohmann::json::parse(text, watch);
      if (!twice.empty()) fail("the key " + twice + " stands twice in one object");
      return all;
    } catch (const nlohmann::json::exception& wrong) {
      const std::string what = wrong.what();
      const auto name = what.find("] ");  // the exception's, for programmers
      fail("not JSON: " + (name == std::string::npos ? what : what.substr(name + 2)));
    }
  }
  //! The integer at `place`, from `least` to `greatest`.
  std::int64_t integer(const nlohmann::json& value, const std::string& place, std::int64_t least,
                       std::int64_t greatest) const {
    const bool fits = value.is_number_integer() &&
                      !(value.is_number_unsigned() &&
                        value.get<std::uint64_t>() > static_cast<std::uint64_t>(greatest));
    if (!fits || value.get<std::int64_t>() < least || value.get<std::int64_t>() > greatest)
      fail(place + " is " + in_words(value) + ", must be an integer from " + std::to_string(least) +
           " to " + std::to_string(greatest));
    return value.get<std::int64_t>();
  }
};

}  // namespace stretto::tool
