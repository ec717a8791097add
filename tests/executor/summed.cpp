// Which collective holds which stage's sum, stages ask for by the stage: of data-parallel replicas,
// of both directions, of both, beside groups of the user's, and for workers in several shards.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <span>
#include <vector>

#include "stretto/executor/engine.hpp"
#include "stretto/lowering/streams/separate.hpp"
#include "stretto/plan/planned.hpp"
#include "stretto/plan/shared.hpp"
#include "stretto/schedule/bitpipe.hpp"
#include "stretto/schedule/dualpipe.hpp"
#include "stretto/schedule/interleaved.hpp"

using namespace stretto;

namespace {

constexpr int stage_count = 4, shards = 2;

//! Each worker has a number of its own to add, in each shard others.
struct adder final : executor::stage {
  void run(const executor::context& at) override {
    if (at.what.kind == job_kind::reduce_grad) {
      const std::span<float> own = at.view<float>(buffer_role::collective);
      if (own.size() != 5) return;  // the user's
      const std::span<const float> before = at.summed(at.what.stage);
      if (before.empty())
        std::ranges::fill(own, static_cast<float>((at.rank + 1) * (at.what.stage + 1)));
      else
        std::ranges::copy(before, own.begin());
    } else if (at.what.kind == job_kind::optimizer) {
      for (int which = 0; which < stage_count; ++which) {
        const std::span<const float> sum = at.summed(which);
        CHECK((sum.empty() || sum.size() == 5));
        sums[static_cast<std::size_t>(which)] = sum.empty() ? -1 : sum.back();
      }
      CHECK(at.summed(stage_count).empty());
    }
  }
  std::array<float, stage_count> sums{};
};

template <class Schedule>
void sum_in(const Schedule& schedule, const shape& sizes, int replicas, bool own_group) {
  CAPTURE(replicas);
  CAPTURE(own_group);
  const placement where = stretto::place(schedule.placed(), sizes);
  REQUIRE(where.stages() == stage_count);
  const job_table costs(sizes.ranks, where.chunks);
  plan_request request;
  request.stages = {{.gradients = 20}};
  request.data_parallel = replicas > 1;
  if (own_group) {
    request.groups = {{.first = 0, .count = sizes.ranks, .elements = 3}};
    for (int rank = 0; rank < sizes.ranks; ++rank) request.members.push_back(rank);
  }
  const planned base(schedule, sizes, costs.view(), overlap::separate{}, request);
  REQUIRE(base.answer().ok());
  const shared all(base.plans(), shards, replicas);
  std::vector<adder> stages(all.plans().size());
  std::vector<executor::stage*> pointers;
  for (adder& each : stages) pointers.push_back(&each);
  executor::engine(all, pointers).step();
  for (int worker = 0; worker < static_cast<int>(stages.size()); ++worker)
    for (int stage = 0; stage < stage_count; ++stage) {
      CAPTURE(worker);
      CAPTURE(stage);
      float expected = -1;
      for (int direction = 0; direction < where.chunks; ++direction) {
        const bool both = where.kind == placement_kind::bidirectional;
        const int workers = shards * replicas, rank = worker / workers;
        if (where.stage_of(rank, direction) != stage || (replicas == 1 && !both)) continue;
        expected = 0;
        for (int other = 0; other < sizes.ranks; ++other) {
          if (other != rank && (!both || other != sizes.ranks - 1 - rank)) continue;
          for (int one = worker % shards; one < workers; one += shards)
            expected += static_cast<float>((other * workers + one + 1) * (stage + 1));
        }
      }
      CHECK(stages[static_cast<std::size_t>(worker)].sums[static_cast<std::size_t>(stage)] ==
            expected);
    }
}

}  // namespace

TEST_CASE("a stage finds the sum of its replicas by its number, whatever other sums there are") {
  for (const int replicas : {1, 3})
    for (const bool own_group : {false, true}) {
      sum_in(schedule::interleaved{}, {.ranks = 2, .microbatches = 4, .chunks = 2}, replicas,
             own_group);
      sum_in(schedule::dualpipe{}, {.ranks = 4, .microbatches = 8}, replicas, own_group);
      sum_in(schedule::bitpipe{}, {.ranks = 2, .microbatches = 3, .chunks = 2}, replicas,
             own_group);
    }
}
