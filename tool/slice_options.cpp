#include "slice_options.hpp"

#include <CLI/CLI.hpp>
#include <charconv>
#include <cstdint>
#include <string_view>
#include <system_error>

#include "errors.hpp"
#include "stretto/model/slice_lengths.hpp"

namespace stretto::tool {

namespace {

//! Whether all of the text is one number from 1 on.
bool read_length(std::string_view text, std::int64_t& length) {
  const auto read = std::from_chars(text.data(), text.data() + text.size(), length);
  return read.ec == std::errc{} && read.ptr == text.data() + text.size() && length > 0;
}

}  // namespace

void slice_options::add(CLI::App& command) {
  auto* const count =
      command.add_option("--slices", slices, "Parts of every sequence, each a job of its own")
          ->check(CLI::Range(1, 256).description(""))
          ->capture_default_str();
  command
      .add_option(
          "--slice-lengths", lengths,
          "Their tokens: balanced, so that a layer computes as much for each; balanced:128, "
          "in multiples of that; equal; or a list, first to last: 1536,1024,896,640")
      ->capture_default_str()
      ->needs(count);
}

std::vector<transformer> slice_options::cut(const transformer& model) const {
  if (slices == 1) return {model};
  std::vector<transformer> made;
  for (const sequence_part& part : parts(model)) {
    made.push_back(model);
    made.back().slices = slices;
    made.back().slice = part;
    if (const transformer_rule broken = made.back().broken_rule(); broken != transformer_rule::none)
      throw bad_option("--slice-lengths", lengths,
                       "gives a slice " + std::to_string(part.end - part.begin) + " tokens, but " +
                           std::string(describe(broken)));
  }
  return made;
}

std::vector<sequence_part> slice_options::parts(const transformer& model) const {
  const auto refuse = [&](const std::string& why) {
    throw bad_option("--slice-lengths", lengths, why);
  };
  const std::string sequence = "--sequence " + std::to_string(model.sequence);
  std::vector<sequence_part> made;
  if (lengths == "equal") {
    if (model.sequence % slices != 0)
      refuse(sequence + " is no multiple of --slices " + std::to_string(slices));
    const std::int64_t length = model.sequence / slices;
    for (int slice = 0; slice < slices; ++slice)
      made.push_back({slice * length, (slice + 1) * length});
    return made;
  }
  if (lengths.starts_with("balanced")) {
    std::int64_t multiple = model.sequence_parallel ? model.tensor_parallel : 1;
    const std::string_view rest = std::string_view(lengths).substr(8);
    if (!rest.empty() && (rest.front() != ':' || !read_length(rest.substr(1), multiple)))
      refuse("after balanced comes nothing, or :N, of which lengths are multiples");
    if ((model.sequence + multiple - 1) / multiple < slices)
      refuse(sequence + " has fewer multiples of " + std::to_string(multiple) + " than --slices " +
             std::to_string(slices));
    return balanced_slices(model, slices, multiple);
  }
  std::int64_t begin = 0;
  for (std::string_view rest = lengths;;) {
    const std::size_t comma = rest.find(',');
    std::int64_t length = 0;
    if (!read_length(rest.substr(0, comma), length) || length > model.sequence - begin)
      refuse("expected balanced, balanced:N, equal, or tokens of each slice, which sum to " +
             sequence);
    made.push_back({begin, begin + length});
    begin += length;
    if (comma == std::string_view::npos) break;
    rest.remove_prefix(comma + 1);
  }
  if (begin != model.sequence || made.size() != static_cast<std::size_t>(slices))
    refuse("has " + std::to_string(made.size()) + " slices of " + std::to_string(begin) +
           " tokens; --slices is " + std::to_string(slices) + ", " + sequence);
  return made;
}

}  // namespace stretto::tool
