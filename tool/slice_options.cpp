#include "slice_options.hpp"

#include <CLI/CLI.hpp>
#include <stdexcept>

#include "errors.hpp"
#include "stretto/model/slice_text.hpp"

namespace stretto::tool {

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
  if (slices == 1 && lengths == "balanced") return {model};
  std::vector<transformer> made;
  for (const sequence_part& part : parts(model)) {
    made.push_back(model);
    if (slices == 1) break;  // that is the sequence
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
  try {
    return read_slices(lengths, model, slices);
  } catch (const std::invalid_argument& wrong) {
    throw bad_option("--slice-lengths", lengths, wrong.what());
  }
}

}  // namespace stretto::tool
