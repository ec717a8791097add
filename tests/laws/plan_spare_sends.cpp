// Rule spare: no job waits for a send of which a message that has come back says that it was taken,
// and no receive with a lead for another instruction than that which the lead names.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "laws/oracle_plans.hpp"
#include "laws/plan_judged.hpp"
#include "stretto/lowering/streams/all.hpp"
#include "stretto/schedule/interleaved.hpp"
#include "stretto/schedule/one_f_one_b.hpp"
#include "stretto/schedule/zb_h1.hpp"

namespace plan_spare_sends {
namespace {

using stretto::action;
using stretto::fault;
using stretto::shape;
using stretto::wait_reason;

template <class Schedule>
stretto::planned with_lead(const Schedule& schedule, const shape& sizes, int lead) {
  const stretto::job_table table(sizes.ranks, sizes.chunks);
  return {schedule, sizes, table.view(), stretto::overlap::with_receive_lead<>{{}, lead},
          stretto::plan_request{}};
}

//! A wait for each send that is only known to be taken, where its buffer is given back.
int wait_for_taken(const stretto::planned& made) {
  REQUIRE(made.answer().ok());
  laws::judged rules(made);
  const oracle::loose_plans sound(made.plans());
  int added = 0;
  for (std::size_t rank = 0; rank < sound.ranks.size(); ++rank)
    for (std::size_t sent = 0; sent < sound.ranks[rank].list.size(); ++sent) {
      const auto& send = sound.ranks[rank].list[sent];
      if (send.itself.act != action::send) continue;
      const auto release = static_cast<std::size_t>(
          sound.ranks[rank].buffers[static_cast<std::size_t>(send.uses[0].buffer)].release);
      if (release >= sound.ranks[rank].list.size()) continue;
      oracle::loose_plans more = sound;
      auto& plan = more.ranks[rank];
      auto& recorded = plan.list[sent].itself;
      auto& giver = plan.list[release];
      if (giver.itself.act != action::run) continue;
      if (recorded.record >= 0) continue;  // somebody waits for it
      recorded.record = plan.head.events++;
      giver.waits.push_back({recorded.record, wait_reason::data, false});
      const auto views = more.views();
      CAPTURE(rank);
      CAPTURE(sent);
      CAPTURE(release);
      REQUIRE(rules.race_free(views).ok());
      CHECK(rules.spare(views).what == fault::idle_event);
      ++added;
    }
  return added;
}

//! Each wait for a lead, made one for whatever stands between.
int wait_for_others(const stretto::planned& made) {
  REQUIRE(made.answer().ok());
  laws::judged rules(made);
  const oracle::loose_plans sound(made.plans());
  int changed = 0;
  for (std::size_t rank = 0; rank < sound.ranks.size(); ++rank)
    for (std::size_t later = 0; later < sound.ranks[rank].list.size(); ++later)
      for (std::size_t wait = 0; wait < sound.ranks[rank].list[later].waits.size(); ++wait) {
        const auto before = sound.ranks[rank].list[later].waits[wait];
        if (before.why != wait_reason::lead) continue;
        for (std::size_t other = 0; other < later; ++other) {
          oracle::loose_plans spoilt = sound;
          auto& plan = spoilt.ranks[rank];
          auto& recorded = plan.list[other].itself;
          if (recorded.record == before.event) continue;
          if (recorded.record < 0) recorded.record = plan.head.events++;
          plan.list[later].waits[wait].event = recorded.record;
          const auto views = spoilt.views();
          CAPTURE(rank);
          CAPTURE(later);
          CAPTURE(other);
          stretto::verdict answer = rules.race_free(views);
          if (answer.ok()) answer = rules.timely(views);
          if (answer.ok()) answer = rules.spare(views);
          CHECK_FALSE(answer.ok());
          ++changed;
        }
      }
  return changed;
}

}  // namespace

TEST_CASE("who knows that a message was taken does not wait for its send") {
  CHECK(wait_for_taken(
            with_lead(stretto::schedule::one_f_one_b{}, {.ranks = 3, .microbatches = 9}, -1)) > 5);
  CHECK(wait_for_taken(with_lead(stretto::schedule::zb_h1{}, {.ranks = 3, .microbatches = 9}, -1)) >
        5);
  CHECK(wait_for_taken(with_lead(stretto::schedule::interleaved{},
                                 {.ranks = 4, .microbatches = 8, .chunks = 2}, -1)) > 5);
}

TEST_CASE("a wait for the lead is for what the lead names") {
  CHECK(wait_for_others(
            with_lead(stretto::schedule::one_f_one_b{}, {.ranks = 3, .microbatches = 5}, 0)) > 20);
  CHECK(wait_for_others(with_lead(stretto::schedule::zb_h1{}, {.ranks = 3, .microbatches = 5}, 1)) >
        20);
}

}  // namespace plan_spare_sends
