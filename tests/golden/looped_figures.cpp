// Makespans against those of the authors' generators, under the same costs and limits: none worse.
#include <doctest/doctest.h>

#include <map>
#include <string>
#include <utility>

#include "figures.hpp"

TEST_CASE("no makespan is longer than the authors', no peak above their limit") {
  struct score {
    golden::tally makespan, span, peak;
  };
  std::map<std::string, score> scores;
  auto figures = golden::read_figures(STRETTO_GOLDEN_DIR "/looped_figures.txt");
  for (const char* file :
       {STRETTO_GOLDEN_DIR "/sliced_figures.txt", STRETTO_GOLDEN_DIR "/v_figures.txt"})
    for (golden::figure& more : golden::read_figures(file)) figures.push_back(std::move(more));
  for (const golden::figure& theirs : figures) {
    INFO(theirs.text);
    CHECK(golden::with_schedule(theirs, [&](auto schedule) {
      const golden::outcome ours = golden::run(schedule, theirs);
      REQUIRE(ours.answer == stretto::verdict{});
      score& of = scores[theirs.schedule];
      of.makespan.count(ours.makespan, theirs.makespan);
      CHECK(ours.makespan <= theirs.makespan);
      CHECK(ours.peak <= (theirs.limit > 0 ? theirs.limit : theirs.peak));
      of.peak.count(ours.peak, theirs.peak);
      std::int64_t span = ours.span;
      if constexpr (requires { schedule.objective; }) {
        schedule.objective = stretto::schedule::objective_kind::span;
        span = golden::run(schedule, theirs).span;
        CHECK(span <= theirs.span);
      }
      of.span.count(span, theirs.span);
    }));
  }
  for (const auto& [name, of] : scores)
    MESSAGE(name, ": makespan ", of.makespan.equal, " equal, ", of.makespan.better, " better, ",
            of.makespan.worse, " worse; span ", of.span.equal, " ", of.span.better, " ",
            of.span.worse, "; peak ", of.peak.equal, " ", of.peak.better, " ", of.peak.worse);
  const auto cells = [&](const char* name) {
    const golden::tally& of = scores[name].makespan;
    return of.equal + of.better;
  };
  CHECK(cells("1f1b") == 60);
  CHECK(cells("interleaved") == 210);
  CHECK(cells("grouped") == 315);
  CHECK(cells("zb_h1") == 60);
  CHECK(cells("zb_h1_light") == 60);
  CHECK(cells("zb_h2") == 48);
  CHECK(cells("zb_auto") == 360);
  CHECK(cells("seq_1f1b") == 120);
  CHECK(cells("v_1f1b") == 105);
  CHECK(cells("v_half") == 105);
  CHECK(cells("v_min") == 105);
  CHECK(cells("v_auto") == 196);
}
