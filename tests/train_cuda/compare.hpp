// Training in a pipeline on a GPU beside the same on the host.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "cuda/on_gpu.hpp"
#include "pipeline/pipeline.hpp"
#include "train/pipeline_support.hpp"

namespace train_cuda_test {

//! Of the largest of each tensor.
inline double relative_difference(const std::vector<float>& one, const std::vector<float>& other) {
  double largest = 0, apart = 0;
  for (std::size_t at = 0; at < one.size(); ++at) {
    largest = std::max(largest, std::abs(static_cast<double>(other[at])));
    const double here = static_cast<double>(one[at]) - static_cast<double>(other[at]);
    apart = std::isfinite(here) ? std::max(apart, std::abs(here)) : INFINITY;
  }
  return apart / largest;
}

//! A head of so many pieces; of a tiny model, whose vocabulary those of one do not divide.
inline train::config in_pieces(int head_pieces) {
  train::config model = pipeline_test::tiny(6, true);
  if (head_pieces > 1) model.vocabulary = 64;
  model.head_pieces = head_pieces;
  return model;
}

//! All workers on one GPU.
inline void on_one(train::pipeline_settings& settings) {
  train::cuda::run_on_gpus(settings, {0});
}

//! Losses, norms and gradients of two steps, from the same parameters each, and what may follow a
//! text. In bf16 a number that sums in another order have changed in its last bit may round to
//! another, and all that follows.
//! @param move  has the pipeline compute elsewhere than on the host
template <class Move>
void compare(train::pipeline_settings settings, Move move, int head_pieces = 1) {
  using pipeline_test::learning;
  using pipeline_test::text;
  using train::layer_part;
  CAPTURE(settings.schedule);
  CAPTURE(settings.tensor_parallel);
  CAPTURE(settings.data_parallel);
  const train::config model = in_pieces(head_pieces);
  const bool rounds = settings.products == train::precision::bf16;
  const double bound = rounds ? 1e-3 : 1e-5, of_gradients = rounds ? 5e-2 : 1e-4;
  settings.poison = true;
  settings.evaluation_microbatches = 4;
  train::pipeline here(model, text(), settings, learning());
  move(settings);
  train::pipeline there(model, text(), settings, learning());
  CHECK(there.evaluate() == doctest::Approx(here.evaluate()).epsilon(bound));
  for (int number = 1; number <= 2; ++number) {
    const train::step_result expected = here.step(), found = there.step();
    CHECK(found.loss == doctest::Approx(expected.loss).epsilon(bound));
    CHECK(found.gradient_norm == doctest::Approx(expected.gradient_norm).epsilon(of_gradients));
    for (int layer = 0; layer < model.layer_count(); ++layer) {
      CAPTURE(layer);
      CHECK(relative_difference(there.whole(layer, layer_part::gradients),
                                here.whole(layer, layer_part::gradients)) < of_gradients);
      for (const layer_part part : {layer_part::parameters, layer_part::mean, layer_part::square})
        here.set_whole(layer, part, there.whole(layer, part));  // AdamW magnifies small errors
    }
  }
  const auto logits_in = [](std::vector<float>& to) {
    return [&to](std::span<const float> logits) {
      to.assign(logits.begin(), logits.end());
      return std::uint8_t{7};
    };
  };
  const std::vector<std::uint8_t> begun{1, 8, 15};
  std::vector<float> expected, found;
  CHECK(here.next(begun, logits_in(expected)) == 7);
  CHECK(there.next(begun, logits_in(found)) == 7);
  if (settings.between == nullptr) CHECK_FALSE(found.empty());
  if (!found.empty())  // elsewhere in the process with the head
    CHECK(relative_difference(found, expected) < of_gradients);
}
inline void compare(const train::pipeline_settings& settings, int head_pieces = 1) {
  compare(settings, on_one, head_pieces);
}

//! Steps as a graph beside steps that are issued, both computed there: all they report and hold, to
//! the bit, with evaluations between them.
//! @param move  has the pipeline compute elsewhere than on the host
template <class Move>
void compare_graph(train::pipeline_settings settings, Move move, int head_pieces = 1) {
  using pipeline_test::learning;
  using train::layer_part;
  CAPTURE(settings.schedule);
  const train::config model = in_pieces(head_pieces);
  settings.poison = true;
  settings.evaluation_microbatches = 2;
  move(settings);
  train::pipeline issued(model, pipeline_test::text(), settings, learning());
  settings.graph = true;
  move(settings);
  train::pipeline replayed(model, pipeline_test::text(), settings, learning());
  std::vector<double> losses;
  for (int number = 1; number <= 4; ++number) {
    CAPTURE(number);
    CHECK(replayed.evaluate() == issued.evaluate());
    const train::step_result expected = issued.step(), found = replayed.step();
    CHECK(found == expected);
    losses.push_back(found.loss);
    for (int layer = 0; layer < model.layer_count(); ++layer)
      for (const layer_part part : {layer_part::gradients, layer_part::parameters, layer_part::mean,
                                    layer_part::square})
        CHECK(replayed.whole(layer, part) == issued.whole(layer, part));
  }
  // Every step had a batch and a learning rate of its own.
  std::sort(losses.begin(), losses.end());
  CHECK(std::adjacent_find(losses.begin(), losses.end()) == losses.end());
}

}  // namespace train_cuda_test
