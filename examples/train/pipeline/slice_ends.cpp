#include "pipeline/slice_ends.hpp"

#include <algorithm>
#include <cstdint>
#include <stdexcept>

#include "stretto/model/slice_text.hpp"

namespace train {

std::vector<int> slice_ends(const config& model, int slices, const pipeline_settings& settings) {
  const std::string& lengths = settings.slice_lengths;
  if (slices < 1 || model.context < 1) return {};  // which config::check() refuses
  if (lengths == "equal") {
    if (model.context % slices == 0) return {};
    if (settings.order)
      throw bad_setting("csv", settings.schedule,
                        "the context, " + std::to_string(model.context) +
                            ", is no multiple of its " + std::to_string(slices) +
                            " slices, and --slice-lengths is equal");
    throw bad_setting("slices", std::to_string(slices),
                      "the context, " + std::to_string(model.context) +
                          ", is no multiple of it, and --slice-lengths is equal");
  }
  if (slices == 1)
    throw bad_setting("slice-lengths", lengths, "sequences are whole: there is one slice");
  const stretto::transformer sizes{.hidden = model.width,
                                   .heads = model.heads,
                                   .sequence = model.context,
                                   .feed_forward = std::int64_t{model.width} * model.expansion};
  std::vector<int> ends;
  try {
    for (const stretto::sequence_part& each : stretto::read_slices(lengths, sizes, slices))
      ends.push_back(static_cast<int>(each.end));
  } catch (const std::invalid_argument& wrong) {
    throw bad_setting("slice-lengths", lengths, wrong.what());
  }
  const auto equal = [&](const int& end) {
    return std::int64_t{end} * slices == (&end - ends.data() + 1) * std::int64_t{model.context};
  };
  if (std::ranges::all_of(ends, equal)) ends.clear();
  return ends;
}

std::string slice_words(const config& model) {
  constexpr std::size_t most = 8;
  const sequence_cut cut = model.cut();
  if (cut.slices == 1) return {};
  std::string made = " in " + std::to_string(cut.slices) + " slices";
  if (cut.ends.empty()) return made;
  std::size_t shortest = cut.context;
  for (std::size_t slice = 0; slice < cut.slices; ++slice)
    shortest = std::min(shortest, cut.length(slice));
  if (cut.slices > most)
    return made + " of " + std::to_string(shortest) + " to " + std::to_string(cut.longest());
  for (std::size_t slice = 0; slice < cut.slices; ++slice)
    made += (slice == 0 ? " of " : ", ") + std::to_string(cut.length(slice));
  return made;
}

}  // namespace train
