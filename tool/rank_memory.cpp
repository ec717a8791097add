#include "rank_memory.hpp"

#include <algorithm>
#include <cstddef>
#include <map>
#include <string>
#include <utility>

#include "errors.hpp"
#include "stretto/lowering/streams/separate.hpp"
#include "stretto/memory/liveness.hpp"
#include "stretto/model/verdict_text.hpp"
#include "stretto/plan/arena_report.hpp"
#include "stretto/plan/planned.hpp"

namespace stretto::tool {

namespace {

//! Takes what plans count as messages out of a chain: what is sent, received, or handed to the next
//! stage on the same rank.
void take_messages_out(program_chain& chain) {
  std::vector<char> out(chain.buffers.size());
  for (const op& one : chain.ops)
    if (one.name == "receive" || one.name == "send" || one.name == "hand on")
      for (const op_use& use : chain.uses_of(one))
        out[static_cast<std::size_t>(chain.storage_of(use.buffer))] = 1;
  for (program_buffer& one : chain.buffers)
    if (out[static_cast<std::size_t>(one.storage)] != 0) one.persistent = true;
}

//! What the jobs of a stage take beside messages.
struct stage_need {
  job_cost of[cost_kinds];

  job_cost& at(job_kind kind) { return of[static_cast<int>(kind)]; }
};

std::vector<stage_need> needs_of(program_chain chain, const placement& where) {
  std::vector<job_cost> made(chain.programs.size());
  if (const verdict answer = memory::measure_chain(chain, made); !answer.ok())
    throw bad_input(std::string(memory::explain(answer, chain).view()));
  std::vector<stage_need> found(static_cast<std::size_t>(where.chunks));
  for (std::size_t at = 0; at < made.size(); ++at)
    found[static_cast<std::size_t>(chain.programs[at].chunk)].at(chain.programs[at].kind) =
        made[at];
  return found;
}

//! A stage's buffers, as a plan has them, and what jobs need beside.
struct stage_plan {
  std::int64_t stash = 0;    //!< from the forward, or the recompute, to the backward for the input,
  std::int64_t kept = 0;     //!< and to that for the weights,
  std::int64_t left = 0;     //!< from one of these to the other; see stage_bytes
  std::int64_t before = 0;   //!< from the start of a forward to its recompute
  std::int64_t passing = 0;  //!< what such a forward has besides, until it ends
  std::int64_t working[cost_kinds] = {};
};

stage_plan plan_of(stage_need plain, stage_need again, bool split) {
  const std::int64_t saved = plain.at(job_kind::forward).change;
  const job_cost half = plain.at(job_kind::backward_input);
  stage_plan made;
  // Between the halves of a backward more may be kept than before.
  if (split) made.kept = saved + std::min<std::int64_t>(half.change, 0);
  if (split) made.left = std::max<std::int64_t>(half.change, 0);
  made.stash = saved - made.kept;
  const job_cost first = again.at(job_kind::forward);
  made.before = first.change;
  const auto set = [&](job_kind kind, std::int64_t level, std::int64_t held) {
    made.working[static_cast<int>(kind)] = std::max<std::int64_t>(level - held, 0);
  };
  const std::int64_t both = made.stash + made.kept;
  set(job_kind::forward, plain.at(job_kind::forward).peak, both);
  // It drops as it goes what it does not keep, and needs no more than its peak.
  made.passing = std::max<std::int64_t>(
      first.peak - made.before - made.working[static_cast<int>(job_kind::forward)], 0);
  set(job_kind::recompute, made.before + again.at(job_kind::recompute).peak, both);
  // Of both halves at once where a step has both kinds: as much as of the first.
  set(job_kind::backward, saved + std::max(plain.at(job_kind::backward).peak, half.peak), both);
  set(job_kind::backward_input, saved + half.peak, both + made.left);
  const std::int64_t between = made.kept + made.left;
  set(job_kind::backward_weight, between + plain.at(job_kind::backward_weight).peak, between);
  return made;
}

//! The most saved at once, with what forwards keep for their recomputes.
std::int64_t most_saved(const plan_view& plan, const std::vector<stage_plan>& stages) {
  std::vector<std::int64_t> change(plan.instructions.size() + 2);
  std::map<std::pair<int, int>, std::size_t> forwards;
  for (const buffer& one : plan.buffers) {
    if (!is_saved(one.role)) continue;
    change[static_cast<std::size_t>(one.first)] += lowering::aligned(one.bytes);
    change[static_cast<std::size_t>(one.release)] -= lowering::aligned(one.bytes);
  }
  for (std::size_t at = 0; at < plan.instructions.size(); ++at) {
    const job& work = plan.instructions[at].what;
    if (work.kind == job_kind::forward) forwards[{work.stage, work.microbatch}] = at;
    if (work.kind != job_kind::recompute) continue;
    const std::int64_t before =
        lowering::aligned(stages[static_cast<std::size_t>(work.stage)].before);
    change[forwards.at({work.stage, work.microbatch})] += before;
    change[at] -= before;
  }
  std::int64_t level = 0;
  std::int64_t most = 0;
  for (const std::int64_t one : change) most = std::max(most, level += one);
  return most;
}

}  // namespace

std::vector<std::int64_t> stash_by_chunk(const placement& where, int rank,
                                         const chain_maker& chain, bool split) {
  program_chain made = chain(rank, split, false);
  take_messages_out(made);
  std::vector<std::int64_t> stashes;
  for (const stage_need& need : needs_of(std::move(made), where))
    stashes.push_back(plan_of(need, need, split).stash);
  return stashes;
}

std::vector<rank_memory> measure_plans(const replay_input& compute, std::int64_t message,
                                       const chain_maker& chain, const summed_gradients& summed) {
  const placement& where = compute.where;
  bool split = false;
  bool trains = false;
  for (int rank = 0; rank < compute.rows.ranks; ++rank)
    for (const job& work : compute.rows.row(rank)) {
      split = split || work.kind == job_kind::backward_weight;
      trains = trains || is_input_gradient(work.kind);
    }
  std::vector<stage_plan> stages(static_cast<std::size_t>(where.stages()));
  for (int rank = 0; rank < where.ranks; ++rank) {
    std::vector<stage_need> found[2];
    for (const bool again : {false, true}) {
      program_chain made = chain(rank, split, again);
      take_messages_out(made);
      found[again] = needs_of(std::move(made), where);
    }
    for (int chunk = 0; chunk < where.chunks; ++chunk)
      stages[static_cast<std::size_t>(where.stage_of(rank, chunk))] =
          plan_of(found[0][static_cast<std::size_t>(chunk)],
                  found[1][static_cast<std::size_t>(chunk)], split);
  }
  plan_request request;
  request.stages.clear();
  for (std::size_t stage = 0; stage < stages.size(); ++stage)
    request.stages.push_back({.output = message,
                              .stash = stages[stage].stash,
                              .gradients = summed.bytes[stage],
                              .kept = stages[stage].kept,
                              .passing = stages[stage].passing,
                              .left = stages[stage].left});
  if (summed.of_ends > 0) {
    request.groups = {{.first = 0, .count = 2, .elements = summed.of_ends / 4}};
    request.members = {where.rank_of(0, 0), where.rank_of(where.stages() - 1, 0)};
  }
  request.train = trains;
  request.data_parallel = summed.data_parallel;
  const planned made(compute, overlap::separate{}, request);
  if (!made.answer().ok()) throw broken_schedule(std::string(to_text(made.answer()).view()));

  std::vector<rank_memory> all;
  for (const plan_view& plan : made.plans()) {
    const arena_report use = measure_arena(plan);
    rank_memory need{.saved = most_saved(plan, stages), .messages = use.messages, .sums = use.sums};
    need.arena = plan.arena_bytes + need.saved - use.saved;
    need.host = plan.host_bytes;
    for (const job& work : compute.rows.row(plan.rank))
      need.working = std::max(
          need.working,
          stages[static_cast<std::size_t>(work.stage)].working[static_cast<int>(work.kind)]);
    all.push_back(need);
  }
  return all;
}

}  // namespace stretto::tool
