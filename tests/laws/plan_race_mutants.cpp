// Rule 6, race-free, on plans that are spoilt in one place: it never accepts what the judge, who
// writes two steps out with full clocks, finds wrong, and it refuses nothing else but what it
// cannot know: what has come across ranks that are no neighbours.
#include <doctest/doctest.h>

#include <map>
#include <random>
#include <string>
#include <vector>

#include "laws/oracle_plans.hpp"
#include "laws/oracle_race.hpp"
#include "laws/grid/plan_grid.hpp"
#include "laws/plan_judged.hpp"
#include "stretto/model/verdict_text.hpp"

namespace {

using oracle::flaw;
using oracle::loose_plan;
using oracle::loose_plans;

class spoiler {
 public:
  explicit spoiler(unsigned seed) : random_(seed) {}

  //! Spoils one thing at random. @return what, or "" when there was nothing to spoil
  std::string spoil(loose_plans& plans) {
    loose_plan& plan = pick(plans.ranks);
    auto& one = pick(plan.list);
    auto& other = pick(plan.list);
    switch (random_() % 16) {
      case 0: return with_wait(plan, [](auto& waits, auto at) { waits.erase(at); }, "drop a wait");
      case 1:
        return with_wait(plan, [&](auto&, auto at) { at->event = event(plan); },
                         "wait for another event");
      case 2:
        return with_wait(plan, [](auto&, auto at) { at->previous_step = !at->previous_step; },
                         "wait for another step's event");
      case 3:
        if (one.itself.stream == other.itself.stream) return "";
        std::swap(one.itself.stream, other.itself.stream);
        return "swap streams";
      case 4:
        one.itself.stream = static_cast<std::uint8_t>(random_() % plan.head.streams.size());
        return "other stream";
      case 5: {
        auto& buffer = pick(plan.buffers);
        buffer.offset = pick(plan.buffers).offset;
        return "another buffer's bytes";
      }
      case 6: {
        auto& buffer = pick(plan.buffers);
        buffer.offset += random_() % 2 == 0 ? 32 : -32;
        return "shift a buffer";
      }
      case 7: pick(plan.buffers).bytes += 64; return "grow a buffer";
      case 8:
        --pick(plan.buffers).release;
        plans.settle_releases();
        return "release one instruction early";
      case 9: ++pick(plan.buffers).first; return "first use one instruction late";
      case 10:
        pick(plan.buffers).release += static_cast<int>(random_() % 4);
        plans.settle_releases();
        return "release late";
      case 11:
        if (one.itself.record < 0) return "";
        one.itself.record = random_() % 2 == 0 ? -1 : event(plan);
        return "drop or rename a record";
      case 12:
        if (one.uses.empty()) return "";
        pick(one.uses).buffer = static_cast<std::int32_t>(random_() % plan.buffers.size());
        return "use another buffer";
      case 13: {
        // A sent message: its bytes wait for nobody on this rank.
        auto& buffer = pick(plan.buffers);
        if (buffer.role != stretto::buffer_role::output &&
            buffer.role != stretto::buffer_role::input_gradient)
          return "";
        buffer.release -= 1 + static_cast<int>(random_() % 3);
        plans.settle_releases();
        return "release a message early";
      }
      case 14:
        if (one.released.empty()) return "";
        other.released.push_back(one.released.back());
        one.released.pop_back();
        return "release elsewhere than the life ends";
      default:
        if (one.uses.empty()) return "";
        pick(one.uses).mode = static_cast<stretto::access>(random_() % 3);
        return "read or write instead";
    }
  }

 private:
  template <class T>
  T& pick(std::vector<T>& from) {
    return from[random_() % from.size()];
  }
  std::int32_t event(const loose_plan& plan) {
    return static_cast<std::int32_t>(random_() % static_cast<unsigned>(plan.head.events));
  }
  template <class Change>
  std::string with_wait(loose_plan& plan, Change&& change, const char* what) {
    for (int tries = 0; tries < 20; ++tries) {
      auto& waits = pick(plan.list).waits;
      if (waits.empty()) continue;
      change(waits, waits.begin() + static_cast<std::ptrdiff_t>(random_() % waits.size()));
      return what;
    }
    return "";
  }

  std::minstd_rand random_;
};

}  // namespace

TEST_CASE("race_free refuses every spoilt plan that the judge refuses, and hardly any other") {
  struct counts {
    long caught = 0, harmless = 0, untold = 0;
  };
  std::map<std::string, counts> seen;
  long mutants = 0, caught = 0, harmless = 0, untold = 0;
  long sliced = 0, untold_of_slices = 0;
  unsigned seed = 0;
  laws::for_each_plan(5, 7, 3, 7, [&](const laws::grid_point& point, const auto& made) {
    REQUIRE(made.answer().ok());
    laws::judged rules(made);
    const loose_plans sound(made.plans());
    for (int times = 0; times < 20; ++times) {
      loose_plans spoilt = sound;
      const std::string what = spoiler(++seed).spoil(spoilt);
      if (what.empty()) continue;
      const auto views = spoilt.views();
      const oracle::finding found = oracle::two_steps(views).found();
      stretto::verdict answer = rules.race_free(views);
      if (answer.ok()) answer = rules.timely(views);
      INFO(point.words(), ", seed ", seed, ": ", what);
      INFO("judge: ", found.words());
      INFO("rule: ", std::string(stretto::to_text(answer).view()));
      const bool slices = point.sizes.slices > 1;
      ++mutants, sliced += slices ? 1 : 0;
      if (found.what != flaw::none) {
        REQUIRE_FALSE(answer.ok());
        ++seen[what].caught, ++caught;
      } else if (answer.ok()) {
        ++seen[what].harmless, ++harmless;
      } else {
        // Only who has heard of it across other ranks knows it is in order.
        REQUIRE(point.told_far);
        ++seen[what].untold, ++untold, untold_of_slices += slices ? 1 : 0;
      }
    }
  });
  for (const auto& [what, times] : seen) {
    MESSAGE(what, ": caught ", times.caught, ", harmless ", times.harmless,
            ", refused for want of knowledge ", times.untold);
    CHECK(times.caught > 100);
  }
  CHECK(mutants == caught + harmless + untold);
  CHECK(mutants > 30000);
  CHECK((untold - untold_of_slices) * 3000 < mutants - sliced);
  // Each slice's messages go their own way around: there is more to be heard from afar.
  CHECK(untold_of_slices * 1000 < sliced);
}

TEST_CASE("a plan that ends before its list does is refused where it ends") {
  laws::for_each_plan(3, 3, 2, 5, [&](const laws::grid_point& point, const auto& made) {
    REQUIRE(made.answer().ok());
    laws::judged rules(made);
    for (std::size_t rank = 0; rank < made.plans().size(); ++rank)
      for (std::size_t left = 0; left < made.plans()[rank].instructions.size(); ++left) {
        std::vector<stretto::plan_view> plans(made.plans().begin(), made.plans().end());
        plans[rank].instructions = plans[rank].instructions.first(left);
        const stretto::verdict answer = rules.race_free(plans);
        INFO(point.words(), ", rank ", rank, ", instructions ", left);
        REQUIRE(answer.what == stretto::fault::race);
        REQUIRE(answer.why == stretto::reason::missing);
        REQUIRE(answer.rank == static_cast<int>(rank));
        REQUIRE(answer.step == static_cast<int>(left));
      }
  });
}
