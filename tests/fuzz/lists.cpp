// Job lists of a small shape, spoilt anyhow: the rules take whatever there is, say which job they
// speak of, and agree with the judge of tests/support where that knows the lists' kinds.
#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "fuzz/support/fuzz.hpp"
#include "stretto/check/all.hpp"
#include "stretto/lowering/communication.hpp"
#include "stretto/model/verdict_text.hpp"
#include "stretto/plan/critical_path.hpp"
#include "stretto/plan/report.hpp"
#include "support/sample_lists.hpp"

namespace {

using fuzz::choices;
using fuzz::require;
using oracle::lists;
using stretto::job;
using stretto::job_kind;
using stretto::placement_kind;
using stretto::replay_input;
using stretto::verdict;
namespace check = stretto::check;

lists sound(choices& by) {
  const stretto::shape narrow{.ranks = by.from(1, 4), .microbatches = by.from(1, 6)};
  stretto::shape wide = narrow;
  wide.chunks = by.from(1, 3);
  const placement_kind kind = by.flip() ? placement_kind::looped : placement_kind::wave;
  lists made;
  switch (by.below(7)) {
    case 0:
      made = samples::emitted(stretto::schedule::gpipe{.placement = kind}, wide);
      break;
    case 1:
      made = samples::emitted(stretto::schedule::one_f_one_b{}, narrow);
      break;
    case 2:
      wide.microbatches = narrow.ranks * by.from(1, 2);
      made = samples::emitted(stretto::schedule::interleaved{}, wide);
      break;
    case 3:
      return samples::emitted(stretto::schedule::inference{}, wide);
    case 4:
      return samples::sliced(narrow.ranks, narrow.microbatches, by.from(1, 3));
    case 5:
      return samples::both_ways(2 * by.from(1, 2), narrow.microbatches);
    default:
      return samples::paired(narrow.ranks, narrow.microbatches);
  }
  if (by.flip()) made = samples::split(made, static_cast<std::size_t>(by.below(4)));
  if (by.flip())
    made = samples::recomputed(made);
  else if (by.flip())
    made = samples::offloaded(made);
  return made;
}

lists with_messages(const lists& made) {
  const oracle::packed rows(made);
  const replay_input input = rows.input();
  stretto::job_lists storage(input.rows.ranks, stretto::lowering::with_messages(input.rows.stride));
  stretto::job_sink sink = storage.sink();
  require(stretto::lowering::add_messages(input, sink).ok(), "sound lists get messages");
  lists with = samples::with_rows(made, storage.rows());
  with.messages = true;
  return with;
}

//! What nobody has looked at: any number.
void put_anything(choices& by, job& work) {
  const std::int64_t number = by.number();
  switch (by.below(5)) {
    case 0:
      work.stage = static_cast<std::int32_t>(number);
      break;
    case 1:
      work.microbatch = static_cast<std::int32_t>(number);
      break;
    case 2:
      work.slice = static_cast<std::int16_t>(number);
      break;
    case 3:
      work.kind = static_cast<job_kind>(by.below(stretto::job_kind_count));
      break;
    default:
      work.paired = !work.paired;
  }
}

void spoil(choices& by, lists& made) {
  auto& row = by.one_of(made.ranks);
  auto& other = by.one_of(made.ranks);
  if (row.empty()) return;
  const auto one = row.begin() + by.below(row.size());
  switch (by.below(6)) {
    case 0:
      std::iter_swap(one, row.begin() + by.below(row.size()));
      break;
    case 1:
      row.erase(one);
      break;
    case 2: {
      const job twice = *one;
      other.insert(other.begin() + by.below(other.size() + 1), twice);
      break;
    }
    case 3:
      one->microbatch = by.below(static_cast<std::size_t>(made.where.microbatches));
      break;
    case 4:
      one->stage = by.below(static_cast<std::size_t>(made.where.stages()));
      break;
    default:
      put_anything(by, *one);
  }
}

void fill(choices& by, stretto::job_table& costs) {
  for (stretto::job_cost& one : costs.entries) {
    const std::int64_t most = by.flip() ? 8 : stretto::job_table_view::most_memory;
    one.time = std::abs(by.number() % (most + 1));
    one.change = by.number() % (most + 1);
    one.peak = std::abs(by.number() % (most + 1));
  }
  costs.communication = std::abs(by.number() % (stretto::job_table_view::most_time + 1));
  costs.pair_hides = by.from(0, 100);
  costs.node_ranks = by.from(0, 3);
  costs.between_nodes = std::abs(by.number() % (stretto::job_table_view::most_time + 1));
  costs.serial_links = by.flip();
}

//! A verdict stands where it says that it stands.
void held(const lists& made, const verdict& found) {
  require(!to_text(found).view().empty(), "a sentence");
  if (found.ok() || found.step < 0) return;
  require(found.rank >= 0 && static_cast<std::size_t>(found.rank) < made.ranks.size(), "a rank");
  const auto& row = made.ranks[static_cast<std::size_t>(found.rank)];
  require(static_cast<std::size_t>(found.step) < row.size(), "a step");
  // A reduction that is missing has the step of the backward that asks for it.
  require(found.where == row[static_cast<std::size_t>(found.step)] ||
              (found.what == stretto::fault::missharded && found.why == stretto::reason::missing),
          "the job that is there: " + std::string(to_text(found).view()));
}

//! That the judge knows: jobs that compute, and copies.
bool judged(const lists& made) {
  for (const auto& row : made.ranks)
    for (const job& work : row)
      if (!has_cost(work.kind)) return false;
  return true;
}

//! What is measured, and then its critical path: of lists that keep no rule none, or any.
std::pair<stretto::report, std::vector<stretto::critical_job>> traced(const replay_input& input) {
  const auto ranks = static_cast<std::size_t>(input.rows.ranks);
  std::vector<stretto::rank_report> reports(ranks);
  std::vector<stretto::job_time> timeline(ranks * static_cast<std::size_t>(input.rows.stride));
  const stretto::report all = stretto::measure(input, reports, timeline);
  if (!all.answer.ok()) return {all, {}};
  return {all, stretto::critical_path(input, timeline)};
}

void agree(const lists& made, const replay_input& input) {
  const bool complete = check::complete(input).ok();
  require(complete == oracle::complete(made), "complete");
  if (!complete) return;
  const bool ordered = check::ordered(input).ok();
  require(ordered == oracle::ordered(made), "ordered");
  const bool live = check::live(input).ok();
  require(live == oracle::live(made), "live");
  if (!ordered || !live) return;
  lists limited = made;
  for (std::size_t rank = 0; rank < made.ranks.size(); ++rank)
    limited.table.limit.push_back(oracle::highest(made, rank));
  const oracle::packed rows(limited);
  const verdict within = check::bounded(rows.input());
  require(within.ok() || within.why == stretto::reason::below_base, "within the highest");
  --limited.table.limit[0];
  const oracle::packed less(limited);
  require(!check::bounded(less.input()).ok(), "not within less");
  const auto [all, path] = traced(input);
  require(all.answer.ok() && all.makespan >= 0, "what keeps the rules is measured");
  std::int64_t now = 0;
  for (const stretto::critical_job& one : path) {
    require(one.when.start == now + one.waited, "a path that goes on");
    require(one.waited == 0 || one.messages > 0, "and waits for messages alone");
    now = one.when.end;
  }
  require(now == all.makespan, "up to the end");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  choices by(data, size);
  lists made = sound(by);
  const bool messages = by.flip();
  if (messages) made = with_messages(made);
  const std::vector<std::int32_t> members{0, static_cast<std::int32_t>(made.ranks.size()) - 1};
  if (messages && members[0] < members[1] && by.flip())
    made.groups = {{.members = members, .stage = by.from(-1, 1), .data_parallel = by.flip()}};
  fill(by, made.table);
  for (int times = 0; by.left() && times < 12; ++times) spoil(by, made);
  const oracle::packed rows(made);
  const replay_input input = rows.input();
  for (const check::lists_of of :
       {check::lists_of::anything, check::lists_of::forwards, check::lists_of::training}) {
    held(made, check::complete(input, of));
    held(made, check::schedule(input, of));
  }
  for (const verdict& found : {check::ordered(input), check::live(input), check::rendezvous(input),
                               check::bounded(input), check::sharded(input)})
    held(made, found);
  (void)traced(input);
  if (!messages && judged(made)) agree(made, input);
  return 0;
}
