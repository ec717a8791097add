#include "transformer_ranks.hpp"

#include <algorithm>
#include <string_view>

#include "errors.hpp"
#include "stretto/lowering/requested.hpp"
#include "stretto/memory/all.hpp"
#include "stretto/model/transformer/chain.hpp"

namespace stretto::tool {

std::vector<transformer_part> transformer_ranks::dealt(const placement& where) const {
  const transformer& model = of_model.model;
  const std::string letters = how.letters();
  const auto letter = [&](int layer) {
    return letters.empty() ? 't' : letters[static_cast<std::size_t>(layer)];
  };
  // Behind these are pieces of the head, unless it is one that --layers does not count.
  const bool counted = model.head_pieces > 1 || letters.ends_with('L');
  const int pieces_from = how.layers() - (counted ? model.head_pieces : 0);
  if (model.head_pieces > 1 && pieces_from < 1)
    throw bad_option("--layers", layers_text,
                     "leaves no layer before the " + std::to_string(model.head_pieces) +
                         " of --head-pieces");
  for (int layer = pieces_from; layer < how.layers(); ++layer)
    if (letter(layer) == 'm' || letter(layer) == 'E')
      throw bad_option("--layers", layers_text,
                       std::string("has ") + letter(layer) + " among the last " +
                           std::to_string(model.head_pieces) +
                           ", which are the pieces of --head-pieces");
  if (model.further_tokens > 0 && letters.find('m') != std::string::npos)
    throw bad_option("--layers", layers_text,
                     "has m, a layer that foretells a further token: those of --further-tokens are "
                     "with the head");
  const int embeddings = letters.starts_with('E') ? 1 : 0;
  of_model.refuse_dense(pieces_from - embeddings);
  // Balanced by multiply-adds of a token and feature.
  const auto work = [&](int layer) {
    const bool head = layer >= pieces_from || (!counted && layer + 1 == how.layers());
    const auto products = [&](int number) {
      return model.layer_products(model.kind_of(number)) / model.hidden;
    };
    std::int64_t one = (layer < pieces_from ? products(layer - embeddings) : 0) +
                       (head ? model.vocabulary / model.head_pieces : 0);
    for (int ahead = 0; head && ahead < model.further_tokens; ++ahead)
      one += products(pieces_from - embeddings + ahead) + 2 * model.hidden + model.vocabulary;
    return unit_costs{.forward = one, .backward_input = one, .backward_weight = one};
  };
  std::vector<layer_range> ranges(static_cast<std::size_t>(where.stages()));
  const verdict answer = how.assign(where, ranges, work);
  if (!answer.ok()) throw bad_option("--layers", layers_text, how.explain(answer, where));
  if ((embeddings > 0 && ranges.front().count == 0) ||
      (counted && ranges.back().count == 0))
    throw bad_option("--layers", layers_text,
                     "has embedding or head on another than the first and the last stage, where "
                     "memory looks for them");
  std::vector<transformer_part> parts;
  for (const layer_range& range : ranges) {
    const std::int64_t first = parts.empty() ? 0 : parts.back().first + parts.back().layers;
    transformer_part& part = parts.emplace_back();
    part.first = first;
    part.embedding = parts.size() == 1;
    for (int layer = range.first; layer < range.first + range.count; ++layer) {
      part.head_norm = part.head_norm || layer == pieces_from;
      part.head_pieces += layer >= pieces_from ? 1 : 0;
      part.layers += layer < pieces_from && letter(layer) != 'E' ? 1 : 0;
    }
  }
  if (!counted) parts.back().head_pieces = 1, parts.back().head_norm = true;
  parts.back().beside_embedding = parts.size() > 1 && where.ends_meet();
  return parts;
}

std::int64_t transformer_ranks::state_bytes(const placement& where, int rank,
                                            const std::vector<transformer_part>& parts) const {
  std::int64_t sum = 0;
  for (int chunk = 0; chunk < where.chunks; ++chunk) {
    const transformer_part& part = parts[static_cast<std::size_t>(where.stage_of(rank, chunk))];
    sum += forward_only ? of_model.model.weight_bytes(part) : of_model.model.state_bytes(part);
  }
  return sum;
}

program_chain transformer_ranks::chain_of(const placement& where, int rank,
                                          const std::vector<transformer_part>& parts, bool split,
                                          bool again) const {
  program_chain chain = transformer_chain(of_model.model, where, rank, parts, split, {},
                                          recompute.again());
  // Without backwards nothing outlives the last op of a forward that reads it.
  if (forward_only)
    std::erase_if(chain.programs, [](const program& job) { return job.kind != job_kind::forward; });
  return again || !recompute.apart() ? recompute.of(chain) : chain;
}

chain_maker transformer_ranks::chains(const placement& where) const {
  return [this, where, parts = dealt(where)](int rank, bool split, bool again) {
    return chain_of(where, rank, parts, split, again);
  };
}

summed_gradients transformer_ranks::summed(const placement& where) const {
  summed_gradients made{.bytes = {}, .data_parallel = of_model.replicas > 1};
  if (!copies_sums(where)) {
    made.bytes.assign(static_cast<std::size_t>(where.stages()), 0);
    return made;
  }
  const auto refuse_large = [&](std::int64_t bytes, const std::string& of, const char* who) {
    if (bytes > lowering::most_bytes)
      throw bad_option("--layers", layers_text,
                       "the gradients of " + of + " take " + std::to_string(bytes) +
                           " bytes in single precision, in which " + who +
                           " sum them, and may take 2^40");
  };
  if (sums_ends(where)) made.of_ends = 4 * of_model.model.table_weights();
  refuse_large(made.of_ends, of_model.model.tied_head ? "the tied head" : "the embedding",
               "both ends");
  int stage = 0;
  for (const transformer_part& part : dealt(where)) {
    // Those of a stage on two ranks are all summed, by these.
    const std::int64_t weights = where.kind == placement_kind::bidirectional
                                     ? of_model.model.stage_weights(part)
                                     : of_model.model.summed_weights(part, of_model.replicas);
    made.bytes.push_back(sums_stages(where) ? 4 * weights : 0);
    refuse_large(made.bytes.back(), "stage " + std::to_string(stage++), "replicas");
  }
  return made;
}

bool transformer_ranks::copies_sums(const placement& where) const {
  return of_model.model.bytes.gradient != 4 && (sums_stages(where) || sums_ends(where));
}
bool transformer_ranks::sums_stages(const placement& where) const {
  return !forward_only && (of_model.replicas > 1 || where.kind == placement_kind::bidirectional);
}
bool transformer_ranks::sums_ends(const placement& where) const {
  const transformer& model = of_model.model;
  return !forward_only && (model.tied_head || model.further_tokens > 0) && !where.ends_meet();
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
  const std::vector<transformer_part> parts = dealt(where);
  job_table table(where.ranks, where.chunks);
  for (int rank = 0; rank < where.ranks; ++rank) {
    for (const bool halves : {false, true}) {
      const program_chain chain = chain_of(where, rank, parts, halves, true);
      of_model.refuse_huge(chain);
      const verdict answer = memory::estimate(chain, rank, table);
      if (!answer.ok()) unsound = answer;
    }
    for (int chunk = 0; chunk < where.chunks; ++chunk) {
      const int stage = where.stage_of(rank, chunk);
      table.at(rank, chunk, job_kind::unshard).change = of_model.model.gathered_bytes(
          parts[static_cast<std::size_t>(stage)]);
    }
    refuse_huge_jobs(where, rank, table);
    table.base.push_back(state_bytes(where, rank, parts));
    if (!copies || !unsound.ok()) continue;
    const std::vector<std::int64_t> stashes =
        stash_by_chunk(where, rank, chains(where), split);
    for (int chunk = 0; chunk < where.chunks; ++chunk) {
      const std::int64_t moved = stashes[static_cast<std::size_t>(chunk)];
      table.at(rank, chunk, job_kind::offload).change = -moved;
      table.at(rank, chunk, job_kind::reload).change = moved;
    }
  }
  return table;
}

}  // namespace stretto::tool
