// What is known in closed form of the buffers of a plan: how many sent messages live at once, that
// the arena does not grow with the micro-batches, and that what lives together shares nothing.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "laws/grid/plan_grid.hpp"
#include "stretto/lowering/happens_before.hpp"
#include "stretto/lowering/streams/separate.hpp"
#include "stretto/schedule/gpipe.hpp"
#include "stretto/schedule/inference.hpp"
#include "stretto/schedule/interleaved.hpp"
#include "stretto/schedule/looped_bfs.hpp"
#include "stretto/schedule/one_f_one_b.hpp"
#include "support/schedules.hpp"

namespace {

using stretto::buffer_role;
using stretto::shape;
using namespace stretto::schedule;

//! Most sent messages of the role that live at once, counted along the rank's list.
int live_sends(const stretto::plan_view& plan, buffer_role role) {
  std::vector<int> change(plan.instructions.size() + 1);
  for (const auto& at : plan.instructions) {
    if (at.act != stretto::action::send) continue;
    const auto& sent = plan.buffers[static_cast<std::size_t>(plan.uses_of(at).front().buffer)];
    if (sent.role != role) continue;
    ++change[static_cast<std::size_t>(sent.first)];
    --change[static_cast<std::size_t>(sent.release)];
  }
  int live = 0, most = 0;
  for (int step : change) most = std::max(most, live += step);
  return most;
}

struct facts {
  std::vector<int> activations{};  // of every rank
  std::vector<int> gradients{};
  std::vector<std::int64_t> arena{};  // in units of 64 bytes, the size of every buffer

  bool operator==(const facts&) const = default;
};

facts facts_of(const stretto::schedule::any& schedule, const shape& sizes,
               bool release_sends = true) {
  const stretto::job_table table(sizes.ranks, sizes.chunks);
  const stretto::planned made(schedule, sizes, table.view(), stretto::overlap::separate{},
                              laws::requested(sizes.ranks, laws::joined::nobody, release_sends,
                                              !schedule.forward_only));
  REQUIRE(made.answer() == stretto::verdict{});
  facts found;
  for (const auto& plan : made.plans()) {
    found.activations.push_back(live_sends(plan, buffer_role::output));
    found.gradients.push_back(live_sends(plan, buffer_role::input_gradient));
    found.arena.push_back(plan.arena_bytes / 64);
  }
  return found;
}

using numbers = std::vector<int>;

}  // namespace

TEST_CASE("1f1b: p - s sent activations and p - s + 1 sent gradients live, whatever m >= p") {
  for (int p = 2; p <= 8; ++p) {
    numbers activations, gradients;
    for (int s = 0; s < p; ++s) {
      activations.push_back(s == p - 1 ? 0 : p - s);
      gradients.push_back(s == 0 ? 0 : p - s + 1);
    }
    const facts full = facts_of(one_f_one_b{}, {.ranks = p, .microbatches = 2 * p});
    for (int m = p; m <= 40; ++m) {
      INFO("p=", p, " m=", m);
      const facts found = facts_of(one_f_one_b{}, {.ranks = p, .microbatches = m});
      CHECK(found.activations == activations);
      CHECK(found.gradients == gradients);
      // To the byte; with few micro-batches some ranks never have all of that at once.
      if (m >= 2 * p) CHECK(found.arena == full.arena);
      for (std::size_t rank = 0; rank < found.arena.size(); ++rank)
        CHECK(found.arena[rank] <= full.arena[rank]);
    }
  }
}

TEST_CASE("without releases a rank keeps one message more for every micro-batch that it sends") {
  for (int p = 2; p <= 6; ++p)
    for (int m = 1; m <= 20; ++m) {
      INFO("p=", p, " m=", m);
      const facts found = facts_of(one_f_one_b{}, {.ranks = p, .microbatches = m}, false);
      numbers activations(static_cast<std::size_t>(p), m), gradients = activations;
      activations.back() = gradients.front() = 0;
      CHECK(found.activations == activations);
      CHECK(found.gradients == gradients);
    }
}

TEST_CASE("interleaved: 4 ranks of 2 chunks keep 7, 5, 4, 4 and 4, 7, 5, 4, whatever m >= 8") {
  // The peaks that full clocks over the job lists give (an analysis of Paddle's VPP order).
  const facts first =
      facts_of(interleaved{}, {.ranks = 4, .microbatches = 12, .chunks = 2});
  for (int m = 8; m <= 40; m += 4) {
    INFO("m=", m);
    const facts found =
        facts_of(interleaved{}, {.ranks = 4, .microbatches = m, .chunks = 2});
    CHECK(found.activations == numbers{7, 5, 4, 4});
    CHECK(found.gradients == numbers{4, 7, 5, 4});
    if (m >= 12) CHECK(found.arena == first.arena);
  }
}

TEST_CASE(
    "interleaved: a message takes the place that was left the longest ago, and hardly waits") {
  // Bytes of every second message; one of another size does not find every place large enough.
  for (const auto& [other, one_in] : {std::pair{64, 25}, std::pair{128, 5}}) {
    const shape sizes{.ranks = 8, .microbatches = 64, .chunks = 2};
    stretto::plan_request request;
    request.stages.resize(16);
    for (std::size_t stage = 1; stage < request.stages.size(); stage += 2)
      request.stages[stage].output = other;
    const stretto::planned made(interleaved{}, sizes, stretto::job_table(8, 2).view(),
                                stretto::overlap::separate{}, request);
    REQUIRE(made.answer() == stretto::verdict{});
    int receives = 0, waiting = 0;
    for (const auto& plan : made.plans())
      for (const auto& at : plan.instructions) {
        if (at.act != stretto::action::receive) continue;
        ++receives;
        waiting += std::ranges::any_of(plan.waits_of(at), [](const auto& wait) {
          return wait.why == stretto::wait_reason::data;
        });
      }
    INFO(other, ": ", waiting, " of ", receives);
    CHECK(waiting * one_in < receives);
  }
}

TEST_CASE("gpipe keeps 2p messages: it waits for its sends where none comes back for long") {
  for (int p = 3; p <= 6; ++p)
    for (int m = 2 * p; m <= 40; m += 5) {
      INFO("p=", p, " m=", m);
      const auto n = static_cast<std::size_t>(p);
      numbers activations(n, 2 * p), gradients(n, 2 * p);
      const facts twice = facts_of(gpipe{}, {.ranks = p, .microbatches = m, .chunks = 2});
      CHECK(twice.activations == activations);
      CHECK(twice.gradients == gradients);
      activations.back() = gradients.front() = 0;
      const facts once = facts_of(gpipe{}, {.ranks = p, .microbatches = m});
      CHECK(once.activations == activations);
      CHECK(once.gradients == gradients);
    }
}

TEST_CASE("inference of several chunks keeps 2p messages; of one, where nothing comes back, two") {
  for (int p = 3; p <= 6; ++p)
    for (int m = 2 * p; m <= 6 * p; m += p) {
      INFO("p=", p, " m=", m);
      const auto n = static_cast<std::size_t>(p);
      numbers around(n, 2 * p);
      around.back() = p;
      const facts twice = facts_of(inference{}, {.ranks = p, .microbatches = m, .chunks = 2});
      CHECK(twice.activations == around);
      numbers straight(n, 2);
      straight.back() = 0;
      CHECK(facts_of(inference{}, {.ranks = p, .microbatches = m}).activations == straight);
    }
}

TEST_CASE("where nothing comes back, a job waits for the send of the micro-batch before the last") {
  constexpr int ranks = 4, microbatches = 12;
  const stretto::job_table table(ranks, 1);
  stretto::plan_request request;
  request.train = false;
  const stretto::planned made(inference{}, {.ranks = ranks, .microbatches = microbatches},
                              table.view(), stretto::overlap::separate{}, request);
  REQUIRE(made.answer().ok());
  for (const auto& plan : made.plans()) {
    std::vector<stretto::job> recorder(static_cast<std::size_t>(plan.events));
    for (const auto& at : plan.instructions)
      if (at.record >= 0) recorder[static_cast<std::size_t>(at.record)] = at.what;
    for (const auto& at : plan.instructions) {
      if (at.act != stretto::action::run) continue;
      std::vector<stretto::job> sends;
      for (const auto& wait : plan.waits_of(at))
        if (const auto& by = recorder[static_cast<std::size_t>(wait.event)];
            stretto::is_send(by.kind))
          sends.push_back(by);
      const int sent = at.what.microbatch - 2;
      if (plan.rank + 1 < ranks && sent >= 0)
        CHECK(sends ==
              std::vector{stretto::job{plan.rank, sent, 0, stretto::job_kind::send_forward}});
      else
        CHECK(sends.empty());
    }
  }
}

TEST_CASE(
    "plans are in order where messages are of several sizes, and leave places that nobody takes") {
  int plans = 0;
  const auto in_order = [&](const stretto::schedule::any& schedule, const shape& sizes,
                            bool train) {
    if (!schedule.supports(sizes)) return;
    INFO(schedule.name, ", ranks ", sizes.ranks, ", micro-batches ", sizes.microbatches,
         ", chunks ", sizes.chunks, ", slices ", sizes.slices);
    stretto::plan_request request;
    request.train = train;
    request.stages.resize(static_cast<std::size_t>(sizes.ranks) *
                          static_cast<std::size_t>(sizes.chunks));
    for (std::size_t stage = 0; stage < request.stages.size(); ++stage)
      request.stages[stage].output = 64 * (1 + static_cast<std::int64_t>(stage) * 5 % 7);
    const stretto::job_table table(sizes.ranks, sizes.chunks);
    const stretto::planned made(schedule, sizes, table.view(), stretto::overlap::separate{},
                                std::move(request));
    CHECK(made.answer() == stretto::verdict{});
    ++plans;
  };
  for (int p = 2; p <= 6; p += 2)
    for (int m : {7, 18, 30})
      for (int v = 1; v <= 3; ++v)
        for (int k = 1; k <= 2; ++k) {
          const shape sizes{.ranks = p, .microbatches = m, .chunks = v, .slices = k};
          in_order(gpipe{}, sizes, true);
          in_order(looped_bfs{}, sizes, true);
          in_order(interleaved{}, sizes, true);
          in_order(inference{}, sizes, false);
        }
  CHECK(plans > 100);
}

namespace {

//! All messages on one stream, where what a send follows is not all that its stream knows.
struct one_message_stream : stretto::overlap::separate {
  constexpr int stream_of(stretto::job_kind kind, int rank, int peer, int ranks) const {
    return stretto::is_message(kind) ? 1 : separate::stream_of(kind, rank, peer, ranks);
  }
};

}  // namespace

TEST_CASE("a send knows what its stream knows, and what its job knows") {
  using stretto::lowering::clock;
  std::vector<clock> clocks(5);
  stretto::lowering::happens_before known(clocks.data(), 1, 5);
  CHECK(known.arrive(0, 0, 0).own[0] == 1);
  clock& receive = known.arrive(0, 1, 1);
  CHECK(receive.own[1] == 2);
  receive.side[0] = 7;
  const clock& behind = known.follow(0, 2, 1, 0);
  CHECK(behind.after == 1);
  CHECK(behind.stream == 1);
  CHECK(behind.own[0] == 1);
  CHECK(behind.own[1] == 3);
  CHECK(behind.side[0] == 7);
  clock& alone = known.follow(0, 3, 6, 0);
  CHECK(alone.after == 1);
  CHECK(alone.stream == 6);
  CHECK(alone.far);
  CHECK(alone.own[0] == 1);
  CHECK(alone.own[1] == 0);
  CHECK(alone.side[0] == 0);
  CHECK(alone.own[6] == 4);
  const clock& again = known.follow(0, 4, 6, 0);
  CHECK(again.after == 0);
  CHECK(again.own[0] == 1);
  CHECK(again.own[6] == 5);
}

TEST_CASE("plans are in order where all messages share a stream") {
  int plans = 0;
  for (const stretto::schedule::any& schedule : support::schedules()) {
    for (const shape& sizes : {shape{2, 4, 1}, shape{4, 8, 2}, shape{4, 8, 1}, shape{6, 12, 3},
                               shape{3, 20, 1}, shape{4, 20, 2}})
      // Where the last rank is slow, what it receives runs ahead of its jobs: one that waits for a
      // message to be sent hears of some that have come.
      for (const bool uneven : {false, true}) {
        if (!schedule.supports(sizes).ok()) continue;
        INFO(schedule.name, ", ranks ", sizes.ranks, ", chunks ", sizes.chunks, ", uneven ",
             uneven);
        const stretto::placement where = stretto::place(schedule.placed(), sizes);
        stretto::job_table table(sizes.ranks, where.chunks);
        for (int chunk = 0; chunk < where.chunks && uneven; ++chunk)
          table.at(sizes.ranks - 1, chunk, stretto::job_kind::forward).time = 9;
        stretto::plan_request request;
        request.train = !schedule.forward_only;
        const stretto::planned made(schedule, sizes, table.view(), one_message_stream{}, request);
        CHECK(made.answer() == stretto::verdict{});
        ++plans;
      }
  }
  CHECK(plans > 80);
}

TEST_CASE("what lives together shares no byte; offsets are aligned and inside the arena") {
  long offloaded = 0;
  laws::for_each_plan(5, 9, 3, 1, [&](const laws::grid_point& point, const auto& made) {
    INFO(point.words());
    REQUIRE(made.answer().ok());
    for (const auto& plan : made.plans()) offloaded += plan.host_bytes > 0;
    for (const auto& plan : made.plans()) {
      const auto count = static_cast<std::int32_t>(plan.instructions.size());
      std::vector<int> released(plan.buffers.size());
      for (std::int32_t index = 0; index < count; ++index)
        for (std::int32_t id :
             plan.released_before(plan.instructions[static_cast<std::size_t>(index)])) {
          REQUIRE(plan.buffers[static_cast<std::size_t>(id)].release == index);
          ++released[static_cast<std::size_t>(id)];
        }
      bool sound = true;
      for (std::size_t one = 0; one < plan.buffers.size(); ++one) {
        const auto& mine = plan.buffers[one];
        const bool host = mine.role == buffer_role::host;
        sound = sound && mine.offset % 64 == 0 && mine.bytes > 0 &&
                mine.offset >= (host ? plan.arena_bytes : 0) &&
                mine.offset + mine.bytes <= plan.arena_bytes + (host ? plan.host_bytes : 0) &&
                mine.first < mine.release &&
                released[one] == (mine.release < count ? 1 : 0);
        for (std::size_t other = 0; other < one; ++other) {
          const auto& theirs = plan.buffers[other];
          const bool together = mine.first < theirs.release && theirs.first < mine.release;
          sound = sound && !(together && mine.offset < theirs.offset + theirs.bytes &&
                             theirs.offset < mine.offset + mine.bytes);
        }
      }
      REQUIRE(sound);
    }
  });
  CHECK(offloaded > 1000);
}

TEST_CASE("a slice uses what earlier slices of its micro-batch and stage keep, after its own") {
  long sliced = 0;
  long weights = 0;  // to whose gradients the other half has brought what earlier slices keep
  laws::for_each_plan(4, 5, 2, 1, [&](const laws::grid_point& point, const auto& made) {
    if (point.sizes.slices == 1) return;
    INFO(point.words());
    REQUIRE(made.answer().ok());
    for (const auto& plan : made.plans())
      for (const auto& at : plan.instructions) {
        if (!stretto::is_compute(at.what.kind)) continue;
        const bool backward = stretto::is_input_gradient(at.what.kind);
        const bool weight = at.what.kind == stretto::job_kind::backward_weight;
        int next = -1;  // the slice whose stash comes next; -1: the job's own
        for (const auto& use : plan.uses_of(at)) {
          if (use.role != buffer_role::stash) continue;
          const auto& kept = plan.buffers[static_cast<std::size_t>(use.buffer)];
          REQUIRE(kept.stage == at.what.stage);
          REQUIRE(kept.microbatch == at.what.microbatch);
          REQUIRE(kept.slice == (next < 0 ? at.what.slice : next));
          REQUIRE(use.mode == (backward   ? stretto::access::read_write
                               : weight   ? stretto::access::read
                               : next < 0 ? stretto::access::write
                                          : stretto::access::read));
          ++next;
        }
        // Of a stash that its other half gives back only what was put aside is left.
        REQUIRE(next == (!weight ? at.what.slice : point.kept ? -1 : 0));
        ++(weight ? weights : sliced);
      }
  });
  CHECK(sliced > 1000);
  CHECK(weights > 1000);
}

TEST_CASE("forwards alone: a slice's stash lives until the last slice of its micro-batch") {
  const shape sizes{.ranks = 2, .microbatches = 3, .chunks = 1, .slices = 3};
  stretto::job_lists lists(2, 9);
  stretto::job_sink out = lists.sink();
  for (int rank = 0; rank < 2; ++rank)
    for (std::int32_t at = 0; at < 9; ++at)
      out.push(rank, {rank, at / 3, static_cast<std::int16_t>(at % 3), stretto::job_kind::forward});
  const stretto::job_table table(2, 1);
  stretto::plan_request request = laws::requested(2, laws::joined::nobody, true, false);
  const stretto::planned made({.rows = lists.rows(),
                               .where = place(stretto::placement_kind::looped, sizes),
                               .microbatches = 3,
                               .slices = 3,
                               .costs = table.view()},
                              stretto::overlap::separate{}, request);
  REQUIRE(made.answer() == stretto::verdict{});
  for (const auto& plan : made.plans())
    for (const auto& kept : plan.buffers) {
      if (kept.role != buffer_role::stash) continue;
      const auto& last = plan.instructions[static_cast<std::size_t>(kept.release - 1)].what;
      CHECK(last == stretto::job{kept.stage, kept.microbatch, 2, stretto::job_kind::forward});
    }
}
