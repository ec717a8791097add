#pragma once

#include <charconv>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

#include "stretto/memory/microbatch_window.hpp"
#include "stretto/memory/offload_window.hpp"

namespace stretto::memory {

namespace detail {

//! A whole number from `least`, all of the text.
inline std::optional<int> read_count(std::string_view text, int least) {
  int made = 0;
  const char* const end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, made);
  if (read.ec != std::errc() || read.ptr != end || made < least) return {};
  return made;
}

}  // namespace detail

//! Which micro-batches, as command lines say it: "none", "all", or "2/3", two of every three.
//! @return nothing for any other text
inline std::optional<microbatch_window> read_window(std::string_view text) {
  if (text == "none") return microbatch_window{};
  if (text == "all") return microbatch_window{1, 1};
  const std::size_t slash = text.find('/');
  if (slash == std::string_view::npos) return {};
  const auto count = detail::read_count(text.substr(0, slash), 1);
  const auto period = detail::read_count(text.substr(slash + 1), 1);
  if (!count || !period || *count > *period) return {};
  return microbatch_window{*period, *count};
}

//! What is offloaded and when: the same, and behind it ",lag=1" and ",prefetch=2", once, or
//! neither.
//! @return nothing for any other text
inline std::optional<offload_window> read_offload(std::string_view text) {
  offload_window made;
  bool given[2]{};
  std::size_t comma = text.find(',');
  const auto which = read_window(text.substr(0, comma));
  if (!which) return {};
  made.which = *which;
  while (comma != std::string_view::npos) {
    text.remove_prefix(comma + 1);
    comma = text.find(',');
    const std::string_view part = text.substr(0, comma);
    const bool lag = part.substr(0, 4) == "lag=";
    if (!lag && part.substr(0, 9) != "prefetch=") return {};
    const auto jobs = detail::read_count(part.substr(lag ? 4 : 9), 0);
    if (!jobs || given[lag ? 0 : 1]) return {};
    (lag ? made.lag : made.prefetch) = *jobs;
    given[lag ? 0 : 1] = true;
  }
  return made;
}

//! "none", "all", "2/3".
inline std::string window_text(const microbatch_window& window) {
  if (!window.any()) return "none";
  return window.all() ? "all" : std::to_string(window.count) + "/" + std::to_string(window.period);
}
//! "all,lag=1,prefetch=2".
inline std::string window_text(const offload_window& window) {
  std::string text = window_text(window.which);
  if (window.any())
    text += ",lag=" + std::to_string(window.lag) + ",prefetch=" + std::to_string(window.prefetch);
  return text;
}

}  // namespace stretto::memory
