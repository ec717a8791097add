// Schedules that keep a limit, with copies to the host put in between their jobs afterwards.
#include <doctest/doctest.h>

#include <cstdint>
#include <string>

#include "stretto/check/all.hpp"
#include "stretto/model/verdict_text.hpp"
#include "stretto/plan/emit_jobs.hpp"
#include "stretto/schedule/v_auto.hpp"
#include "stretto/schedule/zb_auto.hpp"
#include "stretto/schedule/zbv_greedy.hpp"

namespace {

namespace memory = stretto::memory;

constexpr memory::microbatch_window windows[] = {{1, 1}, {2, 1}, {1, 1, 1, 1}};

struct counts {
  int fitted = 0;
  int refused = 0;
};

//! A forward keeps 10, of which an offload moves `moved` in the time of a forward.
template <class Schedule>
void try_one(const Schedule& schedule, const stretto::shape& sizes, std::int64_t moved,
             std::int64_t limit, const memory::offload_window& window, counts& seen) {
  stretto::job_table table(sizes.ranks, sizes.chunks,
                           {.forward = 2,
                            .backward_input = 2,
                            .backward_weight = 2,
                            .memory_forward = 10,
                            .memory_backward_weight = -10,
                            .memory_recompute = 6,
                            .offload = 2,
                            .memory_offload = moved});
  table.limit.assign(static_cast<std::size_t>(sizes.ranks), limit);
  stretto::job_lists lists;
  const stretto::verdict answer =
      stretto::emit_jobs(schedule, sizes, {{}, window}, table.view(), lists);
  CAPTURE(sizes.ranks);
  CAPTURE(sizes.microbatches);
  CAPTURE(window.lag);
  CAPTURE(window.prefetch);
  CAPTURE(moved);
  CAPTURE(limit);
  if (!answer.ok()) {
    ++seen.refused;
    CHECK(answer.what == stretto::fault::over_limit);
    CHECK(answer.limit == limit);
    CHECK(answer.amount > limit);
    return;
  }
  ++seen.fitted;
  const stretto::verdict found =
      stretto::check::schedule({lists.rows(), stretto::place(schedule.placed(), sizes),
                                sizes.microbatches, sizes.slices, table.view(), false, {}});
  REQUIRE_MESSAGE(found.ok(), std::string(stretto::to_text(found).view()));
}

template <class Schedule>
void try_all(int chunks, counts& seen) {
  for (int ranks = 1; ranks <= 4; ++ranks)
    for (const int microbatches : {1, 6})
      for (int lag = 0; lag <= 2; ++lag)
        for (int prefetch = 0; prefetch <= 2; ++prefetch)
          for (const std::int64_t moved : {3, 8, 10})
            for (const std::int64_t limit : {9, 13, 20, 29, 45})
              for (const memory::microbatch_window& which : windows)
                try_one(Schedule{},
                        {.ranks = ranks, .microbatches = microbatches, .chunks = chunks}, moved,
                        limit, {which, lag, prefetch}, seen);
}

}  // namespace

TEST_CASE("what a schedule under a limit made of folded costs is within the limit") {
  counts seen;
  try_all<stretto::schedule::zb_auto>(1, seen);
  try_all<stretto::schedule::zbv_greedy>(2, seen);
  try_all<stretto::schedule::v_auto>(2, seen);
  CHECK(seen.fitted > 1000);
  CHECK(seen.refused > 1000);
}
