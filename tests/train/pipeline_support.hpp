// What the pipeline's tests share: a tiny model, a text, and a run beside the reference.
#pragma once

#include <doctest/doctest.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "model/corpus.hpp"
#include "model/random.hpp"
#include "model/reference.hpp"
#include "pipeline/compare.hpp"
#include "pipeline/footprint.hpp"
#include "pipeline/pipeline.hpp"
#include "stretto/memory/window_text.hpp"

namespace pipeline_test {

//! `layers` counts embedding and head.
inline train::config tiny(int layers, bool tied) {
  return {.layers = layers - 2,
          .width = 16,
          .heads = 2,
          .context = 8,
          .microbatch = 1,
          .vocabulary = 61,
          .expansion = 2,
          .tied = tied};
}

//! Bytes below the vocabulary of tiny(): each follows from the one before, but for one in five.
inline const train::corpus& text() {
  static const train::corpus bytes = [] {
    train::random_stream numbers(7);
    std::vector<std::uint8_t> made(3000);
    unsigned last = 0;
    for (auto& each : made) {
      last = static_cast<unsigned>(numbers.next() % 5 == 0 ? numbers.next() : last + 7) % 61;
      each = static_cast<std::uint8_t>(last);
    }
    return train::corpus(std::move(made), 8);
  }();
  return bytes;
}

//! A norm limit that the gradient passes, so that clipping does something.
inline train::learning_settings learning() {
  return {.seed = 3,
          .rate = {.peak = 1e-2, .floor = 1e-3, .warmup = 2, .steps = 10},
          .norm_limit = 0.5};
}

//! Every byte of a pipeline that is its own, as no step leaves it.
inline void paint_all(train::pipeline& of) {
  for (std::size_t worker = 0; worker < of.plans().size(); ++worker) {
    train::paint(of.engine().arena(worker));
    train::paint(of.engine().host_memory(worker));
  }
}

inline std::string name(const train::pipeline_settings& of, const train::config& model) {
  return of.schedule + ", ranks " + std::to_string(of.ranks) + ", chunks " +
         std::to_string(of.chunks) + ", micro-batches " + std::to_string(of.microbatches) +
         ", slices " + std::to_string(of.slices) + ", recompute " +
         stretto::memory::window_text(of.recompute) + ", offload " +
         stretto::memory::window_text(of.offload) + ", group " + std::to_string(of.group) +
         ", layers " + std::to_string(model.layer_count()) +
         (model.tied ? ", tied, " : ", untied, ") + of.overlap + ", capacity " +
         std::to_string(of.transport_capacity);
}

//! Trains both for some steps and compares all that they report and hold, to the bit.
//! @return what differs first, with the step; empty: nothing
inline std::string compare(train::pipeline& pipelined, train::reference& whole, int steps) {
  const train::learning_settings how = learning();
  const std::vector<train::layer_sums> order = pipelined.sums();
  for (int step = 1; step <= steps; ++step) {
    const train::step_result result = pipelined.step();
    const train::step_result expected =
        whole.step(step, order, how.rate.at(step), how.norm_limit, how.rule,
                   [&](int microbatch, auto tokens, auto targets) {
                     text().batch(how.seed, step, microbatch, tokens, targets);
                   });
    const std::string found = first_difference(pipelined, result, &whole, expected);
    if (!found.empty()) return "step " + std::to_string(step) + ": " + found;
  }
  return "";
}

//! The same from nothing, with an evaluation before and after.
inline std::string compare(const train::config& model, train::pipeline_settings settings,
                           int steps) {
  settings.evaluation_microbatches = 3;
  train::pipeline pipelined(model, text(), settings, learning());
  const auto math = train::make_host_math(pipelined.model(), settings.products);
  train::reference whole(pipelined.model(), learning().seed, *math);
  const auto differ = [&] {
    const double expected = whole.evaluate(3, [&](int microbatch, auto tokens, auto targets) {
      text().held_back_batch(microbatch, tokens, targets);
    });
    return pipelined.evaluate() != expected;
  };
  if (differ()) return "the first evaluation differs";
  std::string found = compare(pipelined, whole, steps);
  if (found.empty() && differ()) found = "the last evaluation differs";
  return found;
}

}  // namespace pipeline_test
