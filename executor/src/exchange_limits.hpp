#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "stretto/executor/bootstrap.hpp"

namespace stretto::executor {

//! What every bootstrap takes, whatever it could carry: what one takes, all do.
inline constexpr std::size_t most_name = 256;
inline constexpr std::uint64_t most_part = std::uint64_t{64} << 20U;
inline constexpr int most_processes = 1 << 20;

//! @throws bootstrap_error where there is no room to remember who of so many has come.
inline void must_be_few(int processes) {
  if (processes > most_processes)
    throw bootstrap_error(std::to_string(processes) + " processes are more than the " +
                          std::to_string(most_processes) + " that can meet");
}

//! @throws bootstrap_error with what is wrong with the exchange's name, or with how much this
//!         process gives to it.
inline void must_be_small(std::string_view what, std::string_view mine) {
  const std::string exchange = "exchange '" + std::string(what.substr(0, most_name)) + "': ";
  if (what.size() > most_name)
    throw bootstrap_error(exchange + "its name has " + std::to_string(what.size()) +
                          " letters, and may have " + std::to_string(most_name));
  if (const auto at = what.find('\0'); at != what.npos)
    throw bootstrap_error("exchange '" + std::string(what.substr(0, at)) +
                          "': its name has more behind a letter that is 0");
  if (mine.size() > most_part)
    throw bootstrap_error(exchange + "this process gives " + std::to_string(mine.size()) +
                          " bytes, and may give " + std::to_string(most_part));
}

}  // namespace stretto::executor
