// Forwards alone, of stages whose weights replicas hold a part of each.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

#include "stretto/executor/callbacks.hpp"
#include "stretto/executor/engine.hpp"
#include "stretto/lowering/streams/separate.hpp"
#include "stretto/plan/planned.hpp"
#include "stretto/plan/shared.hpp"
#include "stretto/schedule/inference.hpp"

using namespace stretto;

namespace {

constexpr std::size_t width = 24;

float weight(int round, int stage, std::size_t k) {
  return static_cast<float>((round + 2 * stage + static_cast<int>(k)) % 3 - 1);
}
float data(int replica, int microbatch, std::size_t k) {
  return static_cast<float>((7 * replica + 3 * microbatch + static_cast<int>(k)) % 5);
}

//! Each stage adds its weights. How many numbers of what comes out are wrong, of how many.
struct served {
  int wrong = 0, found = 0, dropped = 0;
};
served serve(const shape& sizes, int most, int replicas, int rounds) {
  constexpr std::int64_t row = width * sizeof(float);
  plan_request wanted;
  wanted.stages = {{.output = row, .weights = row}};
  wanted.data_parallel = true;
  wanted.gathered = most;
  const job_table costs(sizes.ranks, sizes.chunks);
  const planned base(schedule::inference{}, sizes, costs.view(), overlap::separate{}, wanted);
  REQUIRE(base.answer() == verdict{});
  const shared workers(base.plans(), 1, replicas);
  REQUIRE(workers.answer() == verdict{});
  const int stages = base.where().stages();
  int round = 0;
  std::vector<served> of(workers.plans().size());  // each written by its own thread alone
  executor::callback_stage stage(
      {.forward =
           [&](const executor::context& at) {
             const int replica = at.rank % replicas;
             const bool last = at.what.stage + 1 == stages;
             const auto w = at.need<float>(buffer_role::weights, width);
             for (std::size_t k = 0; k < width; ++k) {
               const float x = at.what.stage == 0
                                   ? data(replica, at.what.microbatch, k)
                                   : at.need<float>(buffer_role::input, width)[k];
               const float y = x + w[k];
               if (!last) {
                 at.need<float>(buffer_role::output, width)[k] = y;
                 continue;
               }
               float expected = data(replica, at.what.microbatch, k);
               for (int s = 0; s < stages; ++s) expected += weight(round, s, k);
               served& mine = of[static_cast<std::size_t>(at.rank)];
               ++mine.found;
               mine.wrong += y == expected ? 0 : 1;
             }
           },
       .unshard =
           [&](const executor::context& at) {
             const std::span<std::byte> own = at.own_weights();
             const std::size_t part = width / static_cast<std::size_t>(replicas);
             REQUIRE(own.size() == part * sizeof(float));
             auto* const to = reinterpret_cast<float*>(own.data());
             for (std::size_t k = 0; k < part; ++k)
               to[k] = weight(round, at.what.stage,
                              static_cast<std::size_t>(at.rank % replicas) * part + k);
           },
       .reshard =
           [&](const executor::context& at) { ++of[static_cast<std::size_t>(at.rank)].dropped; }});
  const std::vector<executor::stage*> all(workers.plans().size(), &stage);
  executor::options with;
  with.poison = with.checked = true;
  executor::engine engine(workers, all, std::move(with));
  for (; round < rounds; ++round) engine.step();  // with others each time
  served sum;
  for (const served& one : of) {
    sum.wrong += one.wrong;
    sum.found += one.found;
    sum.dropped += one.dropped;
  }
  return sum;
}

}  // namespace

TEST_CASE("forwards compute with all of the weights, which are gathered anew in each step") {
  for (const int chunks : {1, 2, 3})
    for (const int most : {1, 2})
      for (const int replicas : {1, 2, 3}) {
        CAPTURE(chunks);
        CAPTURE(most);
        CAPTURE(replicas);
        const shape sizes{.ranks = 2, .microbatches = 4, .chunks = chunks};
        const served all = serve(sizes, most, replicas, 3);
        CHECK(all.wrong == 0);
        CHECK(all.found == 3 * 4 * replicas * static_cast<int>(width));
        CHECK(all.dropped >= 3 * 2 * chunks * replicas);
      }
}
