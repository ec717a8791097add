// Whose buffers instructions touch: whatever one touches otherwise than its job does is refused
// when jobs then compute with something else than they should. A judge follows what is in each
// buffer.
#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "laws/oracle_plans.hpp"
#include "laws/grid/plan_grid.hpp"
#include "laws/plan_judged.hpp"
#include "stretto/check/all.hpp"
#include "stretto/model/verdict_text.hpp"

namespace {

using oracle::loose_plan;
using stretto::buffer_role;
using stretto::job;
using stretto::job_kind;

//! What a buffer holds, as words: activations, gradients, what a forward saves.
std::string named(const char* what, int stage, const job& of, int slice) {
  return std::string(what) + std::to_string(stage) + ',' + std::to_string(of.microbatch) + ',' +
         std::to_string(slice);
}

//! Follows one rank's list. @return what is wrong first; empty: nothing
std::string judge(const loose_plan& plan) {
  bool gathers = false;
  for (const auto& group : plan.head.groups) gathers = gathers || group.weights >= 0;
  std::map<std::int32_t, std::string> held;  // by buffer
  std::set<std::string> summed;
  for (const auto& at : plan.list) {
    const job& work = at.itself.what;
    // What it finds under each role, and where it is to write.
    std::multimap<buffer_role, std::string> found;
    std::multimap<buffer_role, std::int32_t> written;
    for (const auto& use : at.uses) {
      if (use.mode != stretto::access::write) found.emplace(use.role, held[use.buffer]);
      if (use.mode == stretto::access::write) {
        written.emplace(use.role, use.buffer);
        held[use.buffer] = "nothing yet";
      }
    }
    const auto finds = [&](buffer_role role, const std::string& what) {
      for (auto [one, end] = found.equal_range(role); one != end; ++one)
        if (one->second == what) return true;
      return false;
    };
    // There is one place for it, or the stage would not know which.
    const auto writes = [&](buffer_role role, const std::string& what) {
      if (written.count(role) != 1) return false;
      held[written.find(role)->second] = what;
      return true;
    };
    const bool inner = work.stage + 1 < plan.head.stages;
    const std::string taken = named("A", work.stage - 1, work, work.slice);
    const std::string made = named("A", work.stage, work, work.slice);
    const std::string came = named("G", work.stage + 1, work, work.slice);
    const std::string left = named("G", work.stage, work, work.slice);
    const std::string saved = named("S", work.stage, work, work.slice);
    const std::string kept = named("K", work.stage, work, work.slice);
    const std::string apart = named("L", work.stage, work, work.slice);
    const auto sees_earlier = [&] {
      for (int slice = 0; slice < work.slice; ++slice)
        if (!finds(buffer_role::stash, named("S", work.stage, work, slice))) return false;
      return true;
    };
    const bool has_input = work.stage == 0 || finds(buffer_role::input, taken);
    const bool has_gradient = !inner || finds(buffer_role::output_gradient, came);
    const bool has_weights =
        !gathers || (stretto::is_compute(work.kind)
                         ? finds(buffer_role::weights, "all of " + std::to_string(work.stage))
                         : true);
    bool good = true;
    switch (work.kind) {
      case job_kind::forward:
        good = has_input && sees_earlier() && writes(buffer_role::stash, saved) &&
               (!inner || writes(buffer_role::output, made));
        if (good && written.count(buffer_role::kept) > 0) good = writes(buffer_role::kept, kept);
        break;
      case job_kind::recompute:
        good = has_input && writes(buffer_role::stash, saved);
        if (good && written.count(buffer_role::kept) > 0) good = writes(buffer_role::kept, kept);
        break;
      case job_kind::backward:
      case job_kind::backward_input:
        good = has_input && has_gradient && sees_earlier() && finds(buffer_role::stash, saved) &&
               (work.stage == 0 || writes(buffer_role::input_gradient, left));
        if (good && work.kind == job_kind::backward_input && written.count(buffer_role::left) > 0)
          good = writes(buffer_role::left, apart);
        break;
      case job_kind::backward_weight:
        good = has_input && has_gradient &&
               (finds(buffer_role::stash, saved) || finds(buffer_role::kept, kept)) &&
               (found.count(buffer_role::left) == 0 || finds(buffer_role::left, apart));
        break;
      case job_kind::send_forward: good = finds(buffer_role::output, made); break;
      case job_kind::send_backward: good = finds(buffer_role::input_gradient, left); break;
      case job_kind::receive_forward: good = writes(buffer_role::input, taken); break;
      case job_kind::receive_backward: good = writes(buffer_role::output_gradient, came); break;
      case job_kind::offload:
        good = finds(buffer_role::stash, saved) && writes(buffer_role::host, saved);
        break;
      case job_kind::reload:
        good = finds(buffer_role::host, saved) && writes(buffer_role::stash, saved);
        break;
      case job_kind::reduce_grad:
        good = writes(buffer_role::collective, "sum " + std::to_string(work.microbatch));
        break;
      case job_kind::all_reduce:
        good = finds(buffer_role::collective, "sum " + std::to_string(work.microbatch));
        break;
      case job_kind::unshard:
        good = writes(buffer_role::weights, "part of " + std::to_string(work.stage));
        break;
      case job_kind::all_gather: {
        good = finds(buffer_role::weights, "part of " + std::to_string(work.stage));
        for (const auto& use : at.uses)
          if (good && use.role == buffer_role::weights)
            held[use.buffer] = "all of " + std::to_string(work.stage);
        break;
      }
      default: break;
    }
    good = good && has_weights;
    if (!good) return "instruction " + std::to_string(&at - plan.list.data());
  }
  return {};
}

}  // namespace

TEST_CASE(
    "what would compute with another job's data is refused, whatever use of a plan is spoilt") {
  std::map<std::string, long> caught;
  long harmless = 0, refused = 0;
  std::minstd_rand random(1);
  laws::for_each_plan(4, 5, 3, 11, [&](const laws::grid_point& point, const auto& made) {
    REQUIRE(made.answer().ok());
    laws::judged rules(made);
    oracle::loose_plans plans(made.plans());
    for (const loose_plan& plan : plans.ranks) REQUIRE(judge(plan).empty());
    for (int times = 0; times < 60; ++times) {
      const std::size_t rank = random() % plans.ranks.size();
      loose_plan& plan = plans.ranks[rank];
      auto& uses = plan.list[random() % plan.list.size()].uses;
      if (uses.empty()) continue;
      const auto before = uses;
      auto& one = uses[random() % uses.size()];
      std::string what;
      switch (random() % 5) {
        case 0:
          one.buffer = static_cast<std::int32_t>(random() % plan.buffers.size());
          what = "another buffer";
          break;
        case 1:
          one.role = static_cast<buffer_role>(random() % stretto::buffer_role_count);
          what = "another role";
          break;
        case 2:
          one.mode = static_cast<stretto::access>(random() % 3);
          what = "otherwise";
          break;
        case 3:
          uses.erase(uses.begin() + (&one - uses.data()));
          what = "one less";
          break;
        default:
          uses.push_back(one);
          uses.back().buffer = static_cast<std::int32_t>(random() % plan.buffers.size());
          what = "one more";
      }
      const std::string wrong = judge(plan);
      const auto views = plans.views();
      stretto::verdict answer = stretto::check::own_buffers(views);
      const bool by_owner = !answer.ok();
      if (answer.ok()) answer = rules.race_free(views);
      INFO(point.words(), ", rank ", rank, ": ", what);
      INFO("judge: ", wrong);
      INFO("rule: ", std::string(stretto::to_text(answer).view()));
      if (!wrong.empty()) {
        REQUIRE_FALSE(answer.ok());
        if (by_owner) ++caught[what];
      } else if (answer.ok()) {
        ++harmless;
      } else {
        ++refused;
      }
      uses = before;
    }
  });
  for (const auto& [what, times] : caught) {
    MESSAGE(what, ": ", times);
    CHECK(times > 1000);
  }
  CHECK(caught.size() == 5);
  MESSAGE("harmless ", harmless, ", refused all the same ", refused);
}
