#pragma once

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "stretto/memory/liveness.hpp"
#include "stretto/memory/recompute.hpp"
#include "stretto/model/transformer/chain.hpp"

//! What tests of transformers ask of their chains.
namespace transformer_chains {

namespace memory = stretto::memory;
using stretto::job_cost;
using stretto::program_chain;
using stretto::transformer;

//! Nothing else takes time worth telling.
inline constexpr stretto::machine one_flop{"one flop a ns", 1, std::int64_t{1} << 40,
                                           std::int64_t{1} << 40};

//! DeepSeek-V3 (arXiv 2412.19437, section 4.2), without its prediction of a second token.
inline constexpr transformer deepseek_v3{.hidden = 7168,
                                         .heads = 128,
                                         .sequence = 4096,
                                         .vocabulary = 129280,
                                         .bytes = stretto::mixed_precision,
                                         .layers = stretto::architecture::llama,
                                         .attention = stretto::attention_kernel::fused,
                                         .head_width = 128,
                                         .latent = {512, 1536, 64, 128},
                                         .feed_forward = 2048,
                                         .experts = {.count = 256, .per_token = 8, .shared = 1},
                                         .dense_layers = 3};

//! Of the middle one of three ranks: neither embedding nor head.
inline program_chain chain_of(const transformer& model, int layers, bool split,
                              const stretto::machine& on = {}) {
  const std::vector<std::int32_t> counts(3, layers);
  return stretto::transformer_chain(model, {.ranks = 3, .chunks = 1}, 1,
                                    stretto::transformer_parts(counts), split, on);
}

//! That the model breaks this rule first, and is refused by it; or none, and makes a chain.
inline void check_rule(const transformer& model, stretto::transformer_rule rule) {
  CHECK(model.broken_rule() == rule);
  if (rule == stretto::transformer_rule::none) {
    CHECK(!chain_of(model, 1, true).programs.empty());
    return;
  }
  const std::string words = "stretto::transformer: " + std::string(describe(rule));
  CHECK_THROWS_WITH_AS(chain_of(model, 1, true), words.c_str(), std::invalid_argument);
}

inline std::vector<job_cost> measured_chain(const program_chain& chain) {
  std::vector<job_cost> made(chain.programs.size());
  const auto answer = memory::measure_chain(chain, made);
  REQUIRE(answer.ok());
  return made;
}

//! By how much the job's change grows with one more layer.
inline std::int64_t change_of_layer(const transformer& model, std::size_t job, bool split,
                                    bool again = false) {
  std::int64_t change[2];
  for (const int layers : {1, 2}) {
    program_chain chain = chain_of(model, layers, split);
    if (again) chain = memory::recompute(chain, memory::recompute_full{});
    change[layers - 1] = measured_chain(chain)[job].change;
  }
  return change[1] - change[0];
}

//! The times of a job's ops, by their names, those of one name together.
inline std::map<std::string, std::int64_t> times(const program_chain& chain, std::size_t job) {
  std::map<std::string, std::int64_t> made;
  for (const stretto::op& one : chain.ops_of(chain.programs[job]))
    made[std::string(one.name)] += one.time;
  return made;
}

//! What every op that makes gradients of weights reads: by the op that wrote it last, and the how
//! manieth of its name that was.
inline std::vector<std::string> read_by_weights(const program_chain& chain) {
  std::vector<std::string> made;
  std::map<std::int32_t, std::string> contents;
  std::map<std::string, int> count;
  for (const stretto::program& job : chain.programs)
    for (const stretto::op& one : chain.ops_of(job)) {
      const std::string name(one.name);
      std::string result = name + " " + std::to_string(++count[name]);
      for (const stretto::op_use& use : chain.uses_of(one)) {
        if (use.how != stretto::touch::reads) continue;
        const std::string& content = contents[chain.storage_of(use.buffer)];
        if (name.ends_with("weights")) made.push_back(name + ": " + content);
        if (name == "gather") result = content;
      }
      for (const stretto::op_use& use : chain.uses_of(one))
        if (use.how == stretto::touch::writes) contents[chain.storage_of(use.buffer)] = result;
    }
  return made;
}

}  // namespace transformer_chains
