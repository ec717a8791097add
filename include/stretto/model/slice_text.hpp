#pragma once

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "stretto/model/slice_lengths.hpp"
#include "stretto/model/transformer.hpp"

namespace stretto {

namespace detail {

//! Whether all of the text is one number from 1 on.
inline bool read_length(std::string_view text, std::int64_t& length) {
  const auto read = std::from_chars(text.data(), text.data() + text.size(), length);
  return read.ec == std::errc{} && read.ptr == text.data() + text.size() && length > 0;
}

}  // namespace detail

//! Cuts a sequence as command lines say it: "equal"; "balanced" (see balanced_slices), in lengths
//! of which sequence parallelism can give each device its part; "balanced:128", in multiples of
//! that; or the tokens of each slice, first to last: "1536,1024,896,640".
//! @param model   whose own slices are not looked at
//! @param slices  how many, 1 or more
//! @return the slices in order
//! @throws std::invalid_argument with the rule that the text breaks
inline std::vector<sequence_part> read_slices(std::string_view text, const transformer& model,
                                              int slices) {
  const auto refuse = [](const std::string& why) { throw std::invalid_argument(why); };
  const std::string sequence = "a sequence of " + std::to_string(model.sequence) + " tokens";
  const auto words = [](std::size_t number) {
    return std::to_string(number) + (number == 1 ? " slice" : " slices");
  };
  const std::string count = words(static_cast<std::size_t>(slices));
  std::vector<sequence_part> made;
  if (text == "equal") {
    if (model.sequence % slices != 0) refuse(sequence + " makes no " + count + " of one length");
    const std::int64_t length = model.sequence / slices;
    for (int slice = 0; slice < slices; ++slice)
      made.push_back({slice * length, (slice + 1) * length});
    return made;
  }
  if (text.starts_with("balanced")) {
    const std::int64_t shards = model.sequence_parallel ? model.tensor_parallel : 1;
    const std::int64_t devices = model.context_parallel;
    // Each device has two parts of a slice, of which its ranks each have as many rows.
    std::int64_t multiple = devices == 1 ? shards : devices * std::lcm(std::int64_t{2}, shards);
    const std::string_view rest = text.substr(8);
    if (!rest.empty() && (rest.front() != ':' || !detail::read_length(rest.substr(1), multiple)))
      refuse("after balanced comes nothing, or :N, of which lengths are multiples");
    const std::int64_t lengths = model.sequence / multiple + (model.sequence % multiple > 0);
    if (lengths < slices)
      refuse(sequence + " has fewer multiples of " + std::to_string(multiple) + " than " + count);
    return balanced_slices(model, slices, multiple);
  }
  std::int64_t begin = 0;
  for (std::string_view rest = text;;) {
    const std::size_t comma = rest.find(',');
    std::int64_t length = 0;
    if (!detail::read_length(rest.substr(0, comma), length) || length > INT64_MAX - begin)
      refuse("expected balanced, balanced:N, equal, or the tokens of each slice");
    made.push_back({begin, begin + length});
    begin += length;
    if (comma == std::string_view::npos) break;
    rest.remove_prefix(comma + 1);
  }
  if (begin != model.sequence || made.size() != static_cast<std::size_t>(slices))
    refuse("these are " + words(made.size()) + " of " + std::to_string(begin) +
           " tokens, and wanted are " + count + " of " + sequence);
  return made;
}

}  // namespace stretto
