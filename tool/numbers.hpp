#pragma once

#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <string>
#include <system_error>
#include <vector>

#include "errors.hpp"

namespace stretto::tool {

//! The largest time or change of memory that an option may give: what is made of it for one job
//! stays in 64 bits. Sums over all jobs are looked at by themselves (make_costs).
inline constexpr std::int64_t most_cost = 10'000'000'000;
//! The most ranks that a node may be said to have.
inline constexpr int most_node_ranks = 1 << 20;
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

}  // namespace stretto::tool
