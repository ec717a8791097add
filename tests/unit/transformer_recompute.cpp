// What runs again of a transformer: of a stage before its backward, or of each layer in it.
#include <doctest/doctest.h>

#include <cstdint>
#include <string_view>
#include <vector>

#include "stretto/memory/recompute.hpp"
#include "stretto/model/program_sound.hpp"
#include "stretto/model/transformer/chain.hpp"
#include "unit/transformer_chains.hpp"

namespace {

using stretto::program_chain;
using stretto::transformer;
using transformer_chains::chain_of;
using transformer_chains::change_of_layer;
using transformer_chains::measured_chain;
using transformer_chains::one_flop;
namespace memory = stretto::memory;

TEST_CASE("full recomputation keeps a layer's input, a selective one all but the scores") {
  const transformer model{
      .hidden = 512, .heads = 8, .sequence = 256, .bytes = stretto::mixed_precision};
  const std::int64_t sbh = model.tokens() * model.hidden;
  CHECK(change_of_layer(model, 0, false, true) == 0);
  const program_chain chain = chain_of(model, 2, false);
  CHECK(measured_chain(memory::recompute(chain, memory::recompute_full{}))[0].change == 2 * sbh);
  constexpr std::string_view core[] = {"scores", "softmax", "attention dropout"};
  CHECK(measured_chain(memory::recompute(chain, memory::recompute_ops{core}))[0].change ==
        2 * 34 * sbh);
}

TEST_CASE("where backwards run layers again, one is there at a time, of which its input is kept") {
  using stretto::layers_again;
  const auto chain = [](const transformer& model, int layers, bool split, layers_again again,
                        const stretto::machine& on = {}) {
    const std::vector<std::int32_t> counts(3, layers);
    return stretto::transformer_chain(model, {.ranks = 3, .chunks = 1}, 1,
                                      stretto::transformer_parts(counts), split, on, again);
  };
  const auto times = [](const program_chain& of) {
    std::vector<std::int64_t> made;
    for (const stretto::program& job : of.programs) {
      made.push_back(0);
      for (const stretto::op& one : of.ops_of(job)) made.back() += one.time;
    }
    return made;
  };
  std::vector<transformer> models;
  for (const stretto::architecture made_of :
       {stretto::architecture::gpt, stretto::architecture::llama})
    for (const std::int64_t experts : {0, 8})
      for (const int t : {1, 4})
        models.push_back({.hidden = 512,
                          .heads = 8,
                          .sequence = 256,
                          .tensor_parallel = t,
                          .sequence_parallel = t > 1,
                          .bytes = stretto::mixed_precision,
                          .layers = made_of,
                          .experts = {.count = experts, .parallel = experts > 0 ? t : 1},
                          .dense_layers = experts > 0 ? 2 : 0});
  for (const transformer& model : models)
    for (const bool split : {false, true}) {
      CAPTURE(model.tensor_parallel);
      const std::int64_t input = model.tokens() * 512 * 2 / model.tensor_parallel;
      const auto once = measured_chain(chain(model, 6, split, layers_again::none));
      const program_chain again = chain(model, 6, split, layers_again::each);
      CHECK(stretto::sound_program(again).ok());
      const auto each = measured_chain(again);
      const auto full = measured_chain(memory::recompute(chain(model, 6, split, layers_again::none),
                                                         memory::recompute_full{}));
      CHECK(each[0].change == 6 * input);
      CHECK(full[0].change == input);
      // Each layer keeps what it needs for its weights' gradients, if these are made apart.
      CHECK(each[1].change + (split ? each[2].change : 0) == -6 * input);
      if (split) CHECK(each[2].change == once[2].change);
      if (!split) CHECK(each[1].peak < once[0].change / 2);
      const program_chain timed = chain(model, 6, split, layers_again::each, one_flop);
      const auto plain = times(chain(model, 6, split, layers_again::none, one_flop));
      CHECK(times(timed)[0] == plain[0]);
      CHECK(times(timed)[1] == plain[0] + plain[1]);
      if (split) CHECK(times(timed)[2] == plain[2]);
    }
}

}  // namespace
