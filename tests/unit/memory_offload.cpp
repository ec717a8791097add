#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "stretto/plan/picture.hpp"
#include "stretto/stretto.hpp"
#include "support/emitted.hpp"
#include "support/schedules.hpp"

namespace {

using stretto::job;
using stretto::job_kind;
using stretto::job_table;
using stretto::job_time;
namespace memory = stretto::memory;

//! A forward keeps 10, of which an offload moves 8 in the time of a forward.
constexpr stretto::unit_costs offload_costs{.forward = 2,
                                            .backward_input = 2,
                                            .backward_weight = 2,
                                            .memory_forward = 10,
                                            .memory_backward_weight = -10,
                                            .memory_recompute = 6,
                                            .offload = 2,
                                            .memory_offload = 8};

struct offloading : support::emitted {
  template <class Schedule>
  offloading(const Schedule& schedule, const stretto::shape& shape, const job_table& with,
             const memory::offload_window& window, const memory::recompute_window& again = {})
      : emitted(schedule, shape, with, {again, window}) {}
};

TEST_CASE("every schedule with every window is valid, and what is left of it is the schedule") {
  for (const stretto::schedule::any& schedule : support::schedules()) {
    for (int ranks = 1; ranks <= 4; ++ranks)
      for (int chunks = 1; chunks <= 3; ++chunks)
        for (const int microbatches : {1, 4, 7})
          for (const auto& window :
               {memory::offload_window{}, memory::offload_all, memory::offload_window{{4, 3}, 2, 0},
                memory::offload_window{{1, 1, 1, 1}, 0, 3}}) {
            const stretto::shape shape{
                .ranks = ranks, .microbatches = microbatches, .chunks = chunks};
            if (!schedule.supports(shape).ok()) continue;
            const int held = stretto::place(schedule.placed(), shape).chunks;
            const offloading made(schedule, shape, job_table(ranks, held, offload_costs), window);
            CAPTURE(std::string(schedule.name));
            CAPTURE(ranks);
            CAPTURE(chunks);
            CAPTURE(microbatches);
            REQUIRE(made.answer.ok());
            job_table seen = made.table;
            memory::fold({{}, window}, seen.entries, seen.ranks, seen.chunks, seen.limit);
            stretto::job_lists bare(ranks, schedule.capacity(shape));
            auto out = bare.sink();
            REQUIRE(schedule.emit(shape, seen.view(), out).ok());
            const int orders = window.any() ? schedule.orders() : 0;
            const auto is_left = [&] {
              bool same = true;
              for (int rank = 0; rank < ranks; ++rank) {
                std::vector<job> left(made.lists.rows().row(rank).begin(),
                                      made.lists.rows().row(rank).end());
                std::erase_if(left, [](const job& work) { return stretto::is_copy(work.kind); });
                same = same && std::ranges::equal(left, bare.rows().row(rank));
              }
              return same;
            };
            // A search may take another of its orders: that which is best with copies.
            for (int tried = 0; !is_left() && tried < orders; ++tried) {
              std::fill_n(out.counts, ranks, 0);
              (void)schedule.score(shape, seen.view(), tried, &out);
            }
            CHECK(stretto::check::schedule(made.input()).ok());
            for (int rank = 0; rank < ranks; ++rank) {
              const auto row = made.lists.rows().row(rank);
              std::vector<job> left(row.begin(), row.end());
              std::erase_if(left, [](const job& work) { return stretto::is_copy(work.kind); });
              const auto plain = bare.rows().row(rank);
              CHECK(left == std::vector<job>(plain.begin(), plain.end()));
              // Where each copy stands, counted in nodes before it.
              const auto nodes = made.nodes(rank);
              const auto find = [&](auto&& is) {
                return std::find_if(nodes.begin(), nodes.end(),
                                    [&](const auto& node) {
                                      return std::find_if(node.begin(), node.end(), is) !=
                                             node.end();
                                    }) -
                       nodes.begin();
              };
              const auto before = [&](const job& copy) {
                std::ptrdiff_t count = 0;
                bool joined = false;
                for (const job& work : row) {
                  if (work == copy) return joined ? std::ptrdiff_t{-2} : count;
                  if (stretto::is_compute(work.kind) && !work.paired) ++count;
                  joined = work.paired;
                }
                return std::ptrdiff_t{-1};
              };
              for (const job& work : plain) {
                if (work.kind != job_kind::forward) continue;
                const auto same = [&](const job& one) {
                  return one.stage == work.stage && one.microbatch == work.microbatch;
                };
                const auto first = find(
                    [&](const job& one) { return same(one) && one.kind == job_kind::forward; });
                const auto last = find([&](const job& one) {
                  return same(one) && stretto::is_input_gradient(one.kind);
                });
                const auto gone = first + 1 + window.lag;
                const auto back = last - window.prefetch;
                const bool wanted =
                    window.which.holds(made.where.chunk_of(work), work.microbatch) &&
                    last < static_cast<std::ptrdiff_t>(nodes.size()) && gone < back;
                const job away{work.stage, work.microbatch, 0, job_kind::offload};
                const job there{work.stage, work.microbatch, 0, job_kind::reload};
                CHECK(before(away) == (wanted ? gone : -1));
                CHECK(before(there) == (wanted ? back : -1));
              }
            }
          }
  }
}

TEST_CASE("copies run beside jobs: fill and drain on one rank, by hand") {
  const stretto::shape shape{.ranks = 1, .microbatches = 4};
  const auto timeline = [&](const memory::offload_window& window, std::int64_t copy) {
    stretto::unit_costs with = offload_costs;
    with.offload = copy;
    const offloading made(stretto::schedule::gpipe{}, shape, job_table(1, 1, with), window);
    std::vector<stretto::rank_report> ranks(1);
    std::vector<job_time> times(static_cast<std::size_t>(made.lists.rows().stride));
    const auto all = stretto::measure(made.input(), ranks, times);
    REQUIRE(all.answer.ok());
    CHECK(ranks[0].busy == 4 * 6);
    std::string text;
    for (std::size_t at = 0; at < made.lists.rows().row(0).size(); ++at)
      text += (at > 0 ? " " : "") +
              std::string(stretto::to_text(made.lists.rows().row(0)[at]).view()) + "@" +
              std::to_string(times[at].start) + "-" + std::to_string(times[at].end);
    return text;
  };
  // Each copy beside a job, until copies to and from the host meet: then B0 waits for OFFLOAD2,
  // whose bytes RELOAD1 may take.
  CHECK(
      timeline(memory::offload_all, 2) ==
      "0F0@0-2 0F1@2-4 0OFFLOAD0@2-4 0F2@4-6 0OFFLOAD1@4-6 0RELOAD0@6-8 0F3@6-8 0OFFLOAD2@8-10 "
      "0RELOAD1@10-12 0B0@10-14 0OFFLOAD3@12-14 0RELOAD2@14-16 0B1@14-18 0RELOAD3@18-20 0B2@18-22 "
      "0B3@22-26");
  // Nothing runs meanwhile.
  CHECK(timeline({{1, 1}, 0, 0}, 3) ==
        "0F0@0-2 0OFFLOAD0@2-5 0F1@5-7 0OFFLOAD1@7-10 0F2@10-12 0OFFLOAD2@12-15 0F3@15-17 "
        "0OFFLOAD3@17-20 0RELOAD0@20-23 0B0@23-27 0RELOAD1@27-30 0B1@30-34 0RELOAD2@34-37 "
        "0B2@37-41 0RELOAD3@41-44 0B3@44-48");
  // A copy that takes no time delays nobody.
  CHECK(timeline({{4, 1}, 1, 2}, 0) ==
        "0F0@0-2 0F1@2-4 0F2@4-6 0F3@6-8 0B0@8-12 0B1@12-16 0B2@16-20 0B3@20-24");
  CHECK(timeline({{4, 1}, 0, 1}, 0) ==
        "0F0@0-2 0OFFLOAD0@2-2 0F1@2-4 0F2@4-6 0RELOAD0@6-6 0F3@6-8 0B0@8-12 0B1@12-16 0B2@16-20 "
        "0B3@20-24");
}

TEST_CASE("a picture's memory goes down and up with the copies, and has no bars for them") {
  const offloading made(stretto::schedule::one_f_one_b{}, {.ranks = 4, .microbatches = 9},
                        job_table(4, 1, offload_costs), memory::offload_all);
  std::vector<stretto::rank_report> ranks(4);
  std::vector<job_time> times(4 * static_cast<std::size_t>(made.lists.rows().stride));
  const auto all = stretto::measure(made.input(), ranks, times);
  const auto picture = stretto::draw_simulated(made.input(), all, times, true);
  for (const auto& bar : picture.bars) CHECK(stretto::is_compute(bar.what.kind));
  for (std::size_t rank = 0; rank < 4; ++rank) {
    std::int64_t highest = 0;
    std::int64_t last = 0;
    for (const auto& point : picture.memory[rank]) {
      highest = std::max(highest, point.level);
      CHECK(point.time >= last);
      last = point.time;
    }
    CHECK(highest == ranks[rank].peak);
    CHECK(picture.memory[rank].back().level == 0);
  }
}

TEST_CASE("1F1B of 8 ranks keeps a part of each micro-batch, and all of three") {
  const stretto::shape shape{.ranks = 8, .microbatches = 64};
  std::int64_t plain = 0;
  std::int64_t copied = 0;
  const offloading kept(stretto::schedule::one_f_one_b{}, shape, job_table(8, 1, offload_costs),
                        {});
  const offloading made(stretto::schedule::one_f_one_b{}, shape, job_table(8, 1, offload_costs),
                        memory::offload_all);
  CHECK(kept.peaks(&plain) == std::vector<std::int64_t>{80, 70, 60, 50, 40, 30, 20, 10});
  // All of two forwards and a backward where the first backward comes near, and 2 of the others; on
  // the last ranks backwards come too soon.
  CHECK(made.peaks(&copied) == std::vector<std::int64_t>{40, 38, 36, 34, 32, 30, 20, 10});
  CHECK(copied == plain);
  const auto busy = made.report();
  for (std::size_t rank = 0; rank < 8; ++rank) CHECK(busy[rank].busy == kept.report()[rank].busy);
}

TEST_CASE("in a plan, what is on the host is not in the arena, and back on a stream of its own") {
  const int p = 8;
  const std::int64_t stash = 64 * 100;
  const auto made = [&](const memory::offload_window& window, const auto& overlap) {
    stretto::plan_request request;
    request.stages = {{.output = 64, .stash = stash}};
    request.offload = window;
    const job_table table(p, 1);
    const stretto::planned plans(stretto::schedule::one_f_one_b{}, {.ranks = p, .microbatches = 64},
                                 table.view(), overlap, request);
    REQUIRE(plans.answer().ok());
    std::vector<std::vector<std::int64_t>> found(4);
    for (const auto& plan : plans.plans()) {
      found[0].push_back(stretto::measure_arena(plan).saved / stash);
      found[1].push_back(plan.host_bytes / stash);
      found[2].push_back(static_cast<std::int64_t>(plan.streams.size()));
      // Waits of jobs for an offload, whose bytes they use again, once the pipeline is full.
      std::int64_t waits = 0;
      for (const auto& at : plan.instructions)
        for (const auto& wait : plan.waits_of(at))
          for (const auto& from : plan.instructions)
            waits += from.record == wait.event && from.act == stretto::action::offload &&
                     at.what.microbatch >= p;
      found[3].push_back(waits);
    }
    return found;
  };
  using counts = std::vector<std::int64_t>;
  const auto plain = made({}, stretto::overlap::separate{});
  CHECK(plain[0] == counts{8, 7, 6, 5, 4, 3, 2, 1});
  CHECK(plain[1] == counts(8, 0));
  CHECK(plain[2] == counts(8, 5));  // nothing on the last two
  const auto away = made(memory::offload_all, stretto::overlap::separate{});
  CHECK(away[0] == counts{3, 3, 3, 3, 3, 3, 2, 1});
  CHECK(away[1] == counts{7, 6, 5, 4, 3, 2, 0, 0});
  CHECK(away[2] == counts(8, 7));
  // Each side takes what its own stream has left.
  CHECK(away[3] == counts(8, 0));
  const auto serial = made(memory::offload_all, stretto::overlap::serial{});
  CHECK(serial[0] == away[0]);
  CHECK(serial[1] == away[1]);
  CHECK(serial[2] == counts(8, 1));
}

TEST_CASE("under a limit, what is offloaded makes room") {
  const stretto::shape wave{.ranks = 4, .microbatches = 8, .chunks = 2};
  const memory::offload_window at_once{{1, 1}, 0, 0};
  job_table table(4, 2, offload_costs);
  table.limit.assign(4, 16);  // a micro-batch keeps 20 on its two chunks, or 4 and the 8 at work
  const auto fits = [&](const auto& schedule) {
    const offloading plain(schedule, wave, table, {});
    CHECK(plain.answer.what == stretto::fault::over_limit);
    CHECK(plain.answer.amount == 20);
    const offloading made(schedule, wave, table, at_once);
    REQUIRE(made.answer.ok());
    CHECK(stretto::check::schedule(made.input()).ok());
    for (const std::int64_t peak : made.peaks()) CHECK(peak <= 16);
    // And it says how little is enough.
    job_table tight(4, 2, offload_costs);
    tight.limit.assign(4, 11);
    const offloading too_tight(schedule, wave, tight, at_once);
    CHECK(too_tight.answer.amount == 12);
    tight.limit.assign(4, 12);
    CHECK(offloading(schedule, wave, tight, at_once).answer.ok());
    tight.limit.assign(4, 1);
    CHECK(offloading(schedule, wave, tight, memory::offload_all).answer.amount == 12 + 16);
  };
  fits(stretto::schedule::zbv_greedy{});
  fits(stretto::schedule::v_auto{});
  // With one chunk more are in flight, and the step is shorter.
  std::int64_t plain = 0;
  std::int64_t copied = 0;
  const stretto::shape one{.ranks = 4, .microbatches = 8};
  job_table narrow(4, 1, offload_costs);
  narrow.limit.assign(4, 20);
  offloading(stretto::schedule::zb_auto{}, one, narrow, {}).peaks(&plain);
  for (auto& entry : narrow.entries)
    entry.time = entry.change == 8 || entry.change == -8 ? 0 : entry.time;
  offloading(stretto::schedule::zb_auto{}, one, narrow, at_once).peaks(&copied);
  CHECK(copied < plain);
}

TEST_CASE("slices, odd windows and what is recomputed are refused") {
  const offloading sliced(stretto::schedule::seq_1f1b{},
                          {.ranks = 2, .microbatches = 2, .slices = 2},
                          job_table(2, 1, offload_costs), memory::offload_all);
  CHECK(sliced.answer.why == stretto::reason::slices_not_offloaded);
  for (const auto& window :
       {memory::offload_window{{0, 1}}, memory::offload_window{{1, -1}},
        memory::offload_window{{1, 1}, -1, 1}, memory::offload_window{{1, 1}, 1, -1}}) {
    const offloading wrong(stretto::schedule::gpipe{}, {.ranks = 2, .microbatches = 2},
                           job_table(2, 1, offload_costs), window);
    CHECK(wrong.answer.why == stretto::reason::bad_offload_window);
  }
  const stretto::shape shape{.ranks = 2, .microbatches = 6, .chunks = 2};
  const auto both = [&](const memory::recompute_window& again,
                        const memory::offload_window& window) {
    return offloading(stretto::schedule::interleaved{}, shape, job_table(2, 2, offload_costs),
                      window, again);
  };
  CHECK(both({2, 1}, {{3, 1}}).answer.why == stretto::reason::offload_recomputed);
  // Chunks of either sort.
  const offloading parted = both({1, 1, 0, 0}, {{1, 1, 1, 1}});
  REQUIRE(parted.answer.ok());
  CHECK(stretto::check::schedule(parted.input()).ok());
  CHECK(parted.text(0).find('R') != std::string::npos);
  CHECK(parted.text(0).find("2OFFLOAD") != std::string::npos);
  CHECK(parted.text(0).find("0OFFLOAD") == std::string::npos);
}

TEST_CASE("windows as command lines say them") {
  using memory::read_offload;
  using memory::read_window;
  CHECK(read_window("none") == memory::microbatch_window{});
  CHECK(read_window("all") == memory::microbatch_window{1, 1});
  CHECK(read_window("2/3") == memory::microbatch_window{3, 2});
  for (const char* wrong : {"", "some", "2", "/3", "2/", "3/2", "0/3", "-1/2", "2/3/4", " 2/3",
                            "2/3 ", "99999999999/1", "all,lag=1"})
    CHECK_FALSE(read_window(wrong).has_value());
  CHECK(read_offload("none") == memory::offload_window{});
  CHECK(read_offload("all") == memory::offload_all);
  CHECK(read_offload("2/3,lag=0,prefetch=4") == memory::offload_window{{3, 2}, 0, 4});
  CHECK(read_offload("all,prefetch=2") == memory::offload_window{{1, 1}, 1, 2});
  CHECK(read_offload("all,prefetch=0,lag=2") == memory::offload_window{{1, 1}, 2, 0});
  for (const char* wrong : {"", "all,", "all,lag", "all,lag=", "all,lag=-1", "all,lag=1,lag=1",
                            "all,lag=1,", "lag=1", "all,depth=1", "all lag=1"})
    CHECK_FALSE(read_offload(wrong).has_value());
  CHECK(memory::window_text(memory::microbatch_window{}) == "none");
  CHECK(memory::window_text(memory::offload_window{}) == "none");
  CHECK(memory::window_text(memory::offload_window{{3, 2}, 0, 4}) == "2/3,lag=0,prefetch=4");
}

TEST_CASE("windows of far too much keep everything") {
  const int most = std::numeric_limits<int>::max();
  const offloading made(stretto::schedule::gpipe{}, {.ranks = 2, .microbatches = 3},
                        job_table(2, 1, offload_costs), {{most, most}, most, most});
  REQUIRE(made.answer.ok());
  CHECK(made.text(0) == "0F0 0F1 0F2 0B0 0B1 0B2");
}

}  // namespace

TEST_CASE(
    "each rank's limit leaves room for what it copies at once, of the class that moves most") {
  job_table table(3, 2);
  table.add_class();
  const auto moves = [&](int of, int rank, int chunk, std::int64_t bytes) {
    table.at(of, rank, chunk, job_kind::reload).change = bytes;
    table.at(of, rank, chunk, job_kind::forward).change = 20;
  };
  moves(0, 0, 0, 3), moves(0, 0, 1, 4), moves(0, 1, 0, 5), moves(0, 1, 1, 1);
  moves(0, 2, 0, 2), moves(0, 2, 1, 2);
  moves(1, 0, 0, 1), moves(1, 0, 1, 1), moves(1, 1, 0, 1), moves(1, 1, 1, 9);
  moves(1, 2, 0, 1), moves(1, 2, 1, 3);
  std::vector<std::int64_t> limits{100, 100, stretto::unlimited};
  memory::fold({{}, {{1, 1}, 2, 1}}, table.entries, 3, 2, limits);
  CHECK(limits == std::vector<std::int64_t>{100 - 3 * 4, 100 - 3 * 9, stretto::unlimited});
  // A forward leaves that to its backward, each class its own.
  CHECK(table.at(0, 1, 0, job_kind::forward).change == 20 - 5);
  CHECK(table.at(1, 1, 1, job_kind::forward).change == 20 - 9);
  CHECK(table.at(1, 2, 1, job_kind::forward).change == 20 - 3);
}
