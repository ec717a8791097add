#include "shadow.hpp"

#include <algorithm>
#include <cstdio>
#include <stdexcept>
#include <vector>

#include "model/shards.hpp"
#include "pipeline/stage_ops.hpp"

namespace train {
namespace {

// Sums over shards are of single precision, and grouped otherwise than those over a whole row, and
// so are a GPU's and those of ops in pieces. With another last bit they may round to another number
// in bf16, and so may all that follows: a gradient that is small beside what it is the sum of is
// then little more than rounding.
rounding_bound bound(const options& with) {
  if (with.pipeline.products == precision::bf16) return {5e-2, 0.5};
  return 1e-4;
}

bool rounds(const pipeline& from, const options& with) {
  return from.model().shards > 1 || !from.on_host() || most_pieces(with.pipeline) > 1;
}

}  // namespace

shadow::shadow(const options& with, const pipeline& from, const corpus& text)
    : with_(with), text_(text) {
  if (from.leads()) {
    math_ = make_host_math(unsharded(from.model()), with.pipeline.products);
    whole_.emplace(unsharded(from.model()), with.learning.seed, *math_);
  }
  take(from);
}

void shadow::prepare(const pipeline& from) {
  if (!rounds(from, with_)) return;
  take(from);
  if (!whole_) return;
  before_.clear();
  const stage& of = whole_->stage();
  const auto copied = [](std::span<const float> values) {
    return std::vector<float>(values.begin(), values.end());
  };
  for (int layer = 0; layer < from.model().layer_count(); ++layer)
    before_.push_back(
        {copied(of.parameters(layer)), copied(of.mean(layer)), copied(of.square(layer))});
}

void shadow::compare(const pipeline& pipelined, long number, const step_result& result) {
  const step_result expected = !whole_ ? result :
      whole_->step(number, pipelined.sums(), with_.learning.rate.at(number),
                  with_.learning.norm_limit, with_.learning.rule,
                  [&](int microbatch, auto tokens, auto targets) {
                    text_.batch(with_.learning.seed, number, microbatch, tokens, targets);
                  });
  const reference* const whole = whole_ ? &*whole_ : nullptr;
  const bool rounded = rounds(pipelined, with_);
  std::string found = rounded
                          ? first_difference_above(bound(with_), pipelined, result, whole, expected)
                          : first_difference(pipelined, result, whole, expected);
  if (rounded && found.empty()) found = first_wrong_update(pipelined, result, before_);
  if (!found.empty())
    throw std::runtime_error("--check: after step " + std::to_string(number) + " " + found);
}

std::string shadow::praise(const pipeline& pipelined, const options& with) {
  if (!rounds(pipelined, with))
    return "equal to the unpipelined model after each step: loss, norm, gradients and "
           "parameters, to the bit\n";
  const rounding_bound apart = bound(with);
  char text[240];
  std::snprintf(text, sizeof text,
                "as the unpipelined model in each step: loss, norm and gradients, within %g "
                "(gradients: %g); parameters and moments as AdamW makes them of these gradients\n",
                apart.numbers, apart.gradients);
  return text;
}

void shadow::take(const pipeline& from) {
  const auto copy = [&](int layer, layer_part part, auto&& place) {
    const std::vector<float> all = from.gathered(layer, part);
    if (whole_) std::ranges::copy(all, place(whole_->stage()).begin());
  };
  for (int layer = 0; layer < from.model().layer_count(); ++layer) {
    copy(layer, layer_part::parameters, [&](stage& to) { return to.parameters(layer); });
    copy(layer, layer_part::mean, [&](stage& to) { return to.mean(layer); });
    copy(layer, layer_part::square, [&](stage& to) { return to.square(layer); });
  }
}

}  // namespace train
