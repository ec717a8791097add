// Sizes whose jobs could no longer be counted in an int are refused before anything is sized by
// them.
#include <doctest/doctest.h>

#include <string>

#include "stretto/plan/pipeline.hpp"
#include "stretto/schedule/one_f_one_b.hpp"
#include "support/schedules.hpp"

namespace {

using stretto::reason;
using stretto::shape;

// 2^30 micro-batches make 2^31 jobs; and of a pipeline the type alone is sized by them.
using too_long = stretto::pipeline<shape{.microbatches = 1 << 30}, stretto::schedule::one_f_one_b>;
static_assert(too_long::checked.why == reason::shape_too_large);
using too_wide = stretto::pipeline<shape{.ranks = 1 << 16, .microbatches = 1 << 16},
                                   stretto::schedule::one_f_one_b>;
static_assert(too_wide::checked.why == reason::shape_too_large);

}  // namespace

TEST_CASE("no schedule serves a shape with more jobs than can be counted") {
  for (const stretto::schedule::any& schedule : support::schedules()) {
    CAPTURE(std::string(schedule.name));
    int served = 0;
    for (const int chunks : {1, 2}) {
      if (!schedule.supports({.ranks = 2, .microbatches = 4, .chunks = chunks}).ok()) continue;
      ++served;
      for (const int microbatches : {1 << 23, 1 << 30, (1 << 30) + 1, 0x7fffffff})
        CHECK(schedule.supports({.ranks = 4, .microbatches = microbatches, .chunks = chunks}).why ==
              reason::shape_too_large);
      const shape largest{.ranks = 2, .microbatches = (1 << 23) / chunks, .chunks = chunks};
      CHECK(schedule.supports(largest).ok());
      CHECK(schedule.capacity(largest) > 0);
    }
    CHECK(served > 0);
  }
}

TEST_CASE("each size counts, and slices, which a job numbers in 16 bits, are fewer") {
  const auto why = [](const shape& sizes) { return stretto::positive(sizes); };
  const int half = 1 << 12;
  CHECK(why({half, half, 1, 1}) == reason::none);
  CHECK(why({half, half, 2, 1}) == reason::shape_too_large);
  CHECK(why({half, half, 1, 2}) == reason::shape_too_large);
  CHECK(why({half + 1, half, 1, 1}) == reason::shape_too_large);
  CHECK(why({0x7fffffff, 0x7fffffff, 0x7fffffff, 0x7fff}) == reason::shape_too_large);
  CHECK(why({1, 1, 1, 32767}) == reason::none);
  CHECK(why({1, 1, 1, 32768}) == reason::shape_too_large);
  CHECK(why({0, 0x7fffffff, 1, 1}) == reason::ranks_below_one);
}
