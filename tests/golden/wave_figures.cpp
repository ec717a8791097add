// Makespans and spans of V schedules against those of the systems that they come from, under the
// same costs and limits: none longer.
#include <doctest/doctest.h>

#include <map>
#include <string>

#include "figures.hpp"

namespace {

//! The span of ours when it is to be short.
template <class Schedule>
std::int64_t shortest_span(Schedule schedule, const golden::figure& asked) {
  if constexpr (requires { schedule.objective; })
    schedule.objective = stretto::schedule::objective_kind::span;
  return golden::run(schedule, asked).span;
}

}  // namespace

TEST_CASE("no V schedule takes longer than that of the system it comes from") {
  struct score {
    golden::tally makespan, span;
    int served = 0;   //!< the other system has no answer, ours has one
    int refused = 0;  //!< neither has
  };
  std::map<std::string, score> scores;
  for (const golden::figure& theirs :
       golden::read_figures(STRETTO_GOLDEN_DIR "/wave_figures.txt")) {
    INFO(theirs.text);
    CHECK(golden::with_schedule(theirs, [&](const auto& schedule) {
      score& of = scores[theirs.schedule + " " + theirs.system];
      const golden::outcome ours = golden::run(schedule, theirs);
      if (theirs.makespan < 0 && ours.answer.what == stretto::fault::over_limit) {
        ++of.refused;
        return;
      }
      REQUIRE(ours.answer == stretto::verdict{});
      if (theirs.limit > 0) CHECK(ours.peak <= theirs.limit);
      if (theirs.makespan < 0) {
        ++of.served;
        return;
      }
      CHECK(ours.makespan <= theirs.makespan);
      of.makespan.count(ours.makespan, theirs.makespan);
      if (theirs.span < 0) return;
      const std::int64_t span = shortest_span(schedule, theirs);
      CHECK(span <= theirs.span);
      if (schedule.name != stretto::schedule::v_auto::name)
        CHECK(shortest_span(stretto::schedule::v_auto{}, theirs) <= theirs.span);
      of.span.count(span, theirs.span);
    }));
  }
  for (const auto& [name, of] : scores)
    MESSAGE(name, ": ", of.makespan.equal, " equal, ", of.makespan.better, " better, ",
            of.makespan.worse, " worse; span ", of.span.equal, " ", of.span.better, " ",
            of.span.worse, "; ", of.served, " only ours serves, ", of.refused, " neither");
  const auto cells = [&](const char* name) {
    const golden::tally& of = scores[name].makespan;
    return of.equal + of.better;
  };
  CHECK(cells("zbv sail") == 105);
  CHECK(cells("zbv_greedy sail") == 315);
  CHECK(cells("zbv_greedy paddle_early") == 215);
  CHECK(cells("zbv_greedy paddle_final") == 420);
  CHECK(cells("zbv_greedy paddle_drawn") == 105);
  CHECK(cells("zbv_greedy paddle_early_drawn") == 36);
  CHECK(scores["zbv_greedy sail"].span.cells() == 315);
}
