#include "transformer_ranks.hpp"

#include <algorithm>
#include <string_view>

#include "errors.hpp"
#include "stretto/lowering/requested.hpp"
#include "stretto/memory/all.hpp"
#include "stretto/model/transformer_chain.hpp"

namespace stretto::tool {

std::vector<std::int32_t> transformer_ranks::dealt(const placement& where) const {
  std::vector<layer_range> ranges(static_cast<std::size_t>(where.stages()));
  const std::string letters = how.letters();
  const auto counts = [&](std::size_t layer) {
    return letters.empty() || letters[layer] == 't' || letters[layer] == 'm';
  };
  // Balanced by multiply-adds of a token and feature, the head's with the last layer.
  const auto work = [&](int layer) {
    const std::int64_t one = of_model.model.layer_products() / of_model.model.hidden +
                             (layer + 1 == how.layers() ? of_model.model.vocabulary : 0);
    return unit_costs{.forward = one, .backward_input = one, .backward_weight = one};
  };
  const verdict answer = how.assign(where, ranges, work);
  if (!answer.ok()) throw bad_option("--layers", layers_text, how.explain(answer, where));
  if ((letters.starts_with('E') && ranges.front().count == 0) ||
      (letters.ends_with('L') && ranges.back().count == 0))
    throw bad_option("--layers", layers_text,
                     "has embedding or head on another than the first and the last stage, where "
                     "memory looks for them");
  std::vector<std::int32_t> held;
  for (const layer_range& range : ranges) {
    held.push_back(0);
    for (std::int32_t at = 0; at < range.count; ++at)
      held.back() += counts(static_cast<std::size_t>(range.first + at)) ? 1 : 0;
  }
  return held;
}

std::int64_t transformer_ranks::state_bytes(const placement& where, int rank,
                                            const std::vector<std::int32_t>& counts) const {
  std::int64_t sum = 0;
  for (int chunk = 0; chunk < where.chunks; ++chunk) {
    const int stage = where.stage_of(rank, chunk);
    const std::int32_t held = counts[static_cast<std::size_t>(stage)];
    const bool first = stage == 0;
    const bool last = stage + 1 == where.stages();
    sum += forward_only ? of_model.model.weight_bytes(held, first, last)
                        : of_model.model.state_bytes(held, first, last);
  }
  return sum;
}

program_chain transformer_ranks::chain_of(const placement& where, int rank,
                                          const std::vector<std::int32_t>& counts, bool split,
                                          bool again) const {
  constexpr std::string_view core[] = {"scores", "softmax", "attention dropout"};
  program_chain chain = transformer_chain(of_model.model, where, rank, counts, split);
  // Without backwards nothing outlives the last op of a forward that reads it.
  if (forward_only)
    std::erase_if(chain.programs, [](const program& job) { return job.kind != job_kind::forward; });
  if (again && recompute == "full") return memory::recompute(chain, memory::recompute_full{});
  if (again && recompute == "attention")
    return memory::recompute(chain, memory::recompute_ops{core});
  return chain;
}

chain_maker transformer_ranks::chains(const placement& where) const {
  return [this, where, counts = dealt(where)](int rank, bool split, bool again) {
    return chain_of(where, rank, counts, split, again);
  };
}

summed_gradients transformer_ranks::summed(const placement& where) const {
  summed_gradients made{.bytes = {}, .data_parallel = of_model.replicas > 1};
  int stage = 0;
  for (const std::int32_t held : dealt(where)) {
    const bool first = stage == 0, last = stage + 1 == where.stages();
    // Those of a stage on two ranks are all summed, by these.
    const std::int64_t weights =
        where.kind == placement_kind::bidirectional
            ? of_model.model.stage_weights(held, first, last)
            : of_model.model.summed_weights(held, first, last, of_model.replicas);
    made.bytes.push_back(sums(where) ? 4 * weights : 0);
    if (made.bytes.back() > lowering::most_bytes)
      throw bad_option("--layers", layers_text,
                       "the gradients of stage " + std::to_string(stage) + " take " +
                           std::to_string(made.bytes.back()) +
                           " bytes in single precision, in which replicas sum them, and may "
                           "take 2^40");
    ++stage;
  }
  return made;
}

bool transformer_ranks::sums(const placement& where) const {
  return !forward_only && (of_model.replicas > 1 || where.kind == placement_kind::bidirectional);
}

std::int64_t transformer_ranks::message() const {
  program_chain none_yet;
  return transformer_writer(of_model.model, none_yet).message_bytes();
}

void transformer_ranks::refuse_huge_jobs(const placement& where, int rank,
                                         const job_table& table) const {
  constexpr std::int64_t most = job_table_view::most_memory;
  const job_table_view costs = table.view();
  for (int chunk = 0; chunk < where.chunks; ++chunk)
    for (int kind = 0; kind < cost_kinds; ++kind) {
      const job_cost& cost = costs.at(rank, chunk, static_cast<job_kind>(kind));
      const std::int64_t needed = std::max({cost.peak, cost.change, -cost.change});
      if (needed > most)
        throw bad_option("--layers", layers_text,
                         "a job of stage " + std::to_string(where.stage_of(rank, chunk)) +
                             " takes " + std::to_string(needed) + " bytes, and may take 2^46");
    }
}

job_table transformer_ranks::job_costs(const placement& where, verdict& unsound, bool split,
                                       bool copies) const {
  const std::vector<std::int32_t> counts = dealt(where);
  job_table table(where.ranks, where.chunks);
  for (int rank = 0; rank < where.ranks; ++rank) {
    for (const bool halves : {false, true}) {
      const program_chain chain = chain_of(where, rank, counts, halves, true);
      of_model.refuse_huge(chain);
      const verdict answer = memory::estimate(chain, rank, table);
      if (!answer.ok()) unsound = answer;
    }
    for (int chunk = 0; chunk < where.chunks; ++chunk) {
      const int stage = where.stage_of(rank, chunk);
      table.at(rank, chunk, job_kind::unshard).change = of_model.model.gathered_bytes(
          counts[static_cast<std::size_t>(stage)], stage == 0, stage + 1 == where.stages());
    }
    refuse_huge_jobs(where, rank, table);
    table.base.push_back(state_bytes(where, rank, counts));
    if (!copies || !unsound.ok()) continue;
    const std::vector<std::int64_t> stashes =
        stash_by_chunk(where, rank, message(), chains(where), split);
    for (int chunk = 0; chunk < where.chunks; ++chunk) {
      const std::int64_t moved = stashes[static_cast<std::size_t>(chunk)];
      table.at(rank, chunk, job_kind::offload).change = -moved;
      table.at(rank, chunk, job_kind::reload).change = moved;
    }
  }
  return table;
}

}  // namespace stretto::tool
