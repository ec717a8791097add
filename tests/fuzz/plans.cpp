// Written plans, spoilt anyhow: the rules never accept what the judge, who writes two steps out
// with full clocks, finds wrong.
#include "fuzz/support/spoilt_plans.hpp"
#include "laws/oracle_race.hpp"
#include "laws/plan_judged.hpp"
#include "stretto/model/verdict_text.hpp"

namespace {

using fuzz::require;
using stretto::verdict;

//! What nobody touches any more takes no bytes: of its life the rules say nothing.
void drop_unused(oracle::loose_plan& plan) {
  std::vector<bool> used(plan.buffers.size());
  for (const auto& one : plan.list)
    for (const stretto::buffer_use& use : one.uses)
      used[static_cast<std::size_t>(use.buffer)] = true;
  for (std::size_t id = 0; id < used.size(); ++id)
    if (!used[id]) plan.buffers[id].offset = plan.buffers[id].bytes = 0;
}

void never_wrong(const stretto::planned& made, std::span<const stretto::plan_view> views) {
  laws::judged rules(made);
  verdict found = rules.race_free(views);
  if (found.ok()) found = rules.timely(views);
  require(!to_text(found).view().empty(), "a sentence");
  if (found.ok()) {
    for (const auto how : {oracle::carried::rendezvous, oracle::carried::buffered}) {
      const oracle::finding wrong = oracle::two_steps(views, how).found();
      require(wrong.what == oracle::flaw::none, "accepted: " + wrong.words());
    }
    found = rules.spare(views);
  }
  if (found.ok()) found = stretto::check::as_listed(views, made.issued());
  if (found.ok()) found = stretto::check::own_buffers(views);
  require(!to_text(found).view().empty(), "a sentence");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::choices by(data, size);
  const stretto::planned* const made = fuzz::plans_of(by);
  if (made == nullptr) return 0;
  oracle::loose_plans plans(made->plans());
  for (int times = 0; by.left() && times < 6; ++times) fuzz::spoil(by, plans);
  for (oracle::loose_plan& plan : plans.ranks) drop_unused(plan);
  never_wrong(*made, plans.views());
  return 0;
}
