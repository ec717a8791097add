// Automatic zero bubble under costs and limits drawn at random, and when nothing fits.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "laws/order_laws.hpp"
#include "stretto/check/all.hpp"
#include "stretto/model/bound.hpp"
#include "stretto/plan/emit_jobs.hpp"
#include "stretto/plan/report.hpp"
#include "stretto/schedule/eager_1f1b.hpp"
#include "stretto/schedule/gpipe.hpp"
#include "stretto/schedule/one_f_one_b.hpp"
#include "stretto/schedule/zb_auto.hpp"
#include "stretto/schedule/zb_h1.hpp"
#include "stretto/schedule/zb_h1_light.hpp"
#include "stretto/schedule/zb_h2.hpp"
#include "support/measured_order.hpp"

namespace {

using stretto::job_kind;
using stretto::shape;
using namespace stretto::schedule;

struct drawn {
  shape sizes{};
  stretto::job_table table;
  std::int64_t needed = 0;  //!< of one micro-batch, on the rank that needs most above its base
};

//! Costs that differ from rank to rank, memory that a forward takes and both halves give back, some
//! of it only within a job, and a limit a rank from one micro-batch's need to that of all.
drawn draw(std::mt19937& random) {
  const auto pick = [&](std::int64_t from, std::int64_t to) {
    return from + static_cast<std::int64_t>(random() % static_cast<std::uint32_t>(to - from + 1));
  };
  drawn made;
  made.sizes.ranks = static_cast<int>(pick(1, 6));
  made.sizes.microbatches = static_cast<int>(pick(1, 16));
  made.table = stretto::job_table(made.sizes.ranks, 1);
  made.table.communication = pick(0, 5);
  for (int rank = 0; rank < made.sizes.ranks; ++rank) {
    const std::int64_t taken = pick(1, 9);
    const std::int64_t early = pick(0, taken);
    const std::int64_t peaks[] = {pick(0, 1) * pick(1, 12), pick(0, 1) * pick(1, 4),
                                  pick(0, 1) * pick(1, 4)};
    made.table.at(rank, 0, job_kind::forward) = {pick(1, 20), taken, peaks[0]};
    made.table.at(rank, 0, job_kind::backward_input) = {pick(1, 20), -early, peaks[1]};
    made.table.at(rank, 0, job_kind::backward_weight) = {pick(0, 20), early - taken, peaks[2]};
    const auto& input = made.table.at(rank, 0, job_kind::backward_input);
    const auto& weight = made.table.at(rank, 0, job_kind::backward_weight);
    made.table.at(rank, 0, job_kind::backward) = {
        input.time + weight.time, -taken,
        std::max({std::int64_t{0}, peaks[1], peaks[2] > 0 ? peaks[2] - early : 0})};
    const std::int64_t one =
        std::max({taken, peaks[0], taken + peaks[1], taken - early + peaks[2]});
    made.needed = std::max(made.needed, one);
    made.table.base.push_back(pick(0, 30));
    made.table.limit.push_back(made.table.base.back() + one +
                               pick(0, taken * made.sizes.microbatches));
  }
  return made;
}

//! Whole backwards that take less than their halves: of all micro-batches, or of some.
void save_some(drawn& made, std::mt19937& random, bool alike) {
  if (!alike) {
    made.table.add_class();
    for (int k = 0; k < made.sizes.microbatches; ++k)
      made.table.classes.push_back(static_cast<std::int32_t>(random() % 2));
  }
  for (int rank = 0; rank < made.sizes.ranks; ++rank) {
    std::int64_t& whole = made.table.at(alike ? 0 : 1, rank, 0, job_kind::backward).time;
    whole -= whole * static_cast<std::int64_t>(random() % 50) / 100;
  }
}

}  // namespace

TEST_CASE("zb_auto: valid and within every rank's limit, whatever the costs") {
  std::mt19937 random(20231130);
  int variants_that_fit = 0;
  for (int round = 0; round < 10'000; ++round) {
    drawn made = draw(random);
    if (round % 4 == 3) save_some(made, random, true);
    INFO("round ", round, " ", laws::words(made.sizes));
    std::int64_t best = stretto::unlimited;
    std::int64_t single = stretto::unlimited;
    for (int variant = -1; variant < zb_auto::variants; ++variant) {
      if (variant >= 0 && round % 10 != 0) break;  // each by itself: now and then
      if (variant + 1 == zb_auto::light) continue;  // the last resort
      const zb_auto schedule{.variant = variant};
      stretto::job_lists lists(made.sizes.ranks, schedule.capacity(made.sizes));
      stretto::job_sink sink = lists.sink();
      const auto answer = schedule.emit(made.sizes, made.table.view(), sink);
      REQUIRE(std::string(stretto::to_text(answer).view()) == "ok");
      ++variants_that_fit;
      const stretto::replay_input input{.rows = lists.rows(),
                                        .where = stretto::place(schedule.placed(), made.sizes),
                                        .microbatches = made.sizes.microbatches,
                                        .costs = made.table.view()};
      const auto valid = stretto::check::schedule(input);
      REQUIRE(std::string(stretto::to_text(valid).view()) == "ok");
      std::vector<stretto::rank_report> ranks(static_cast<std::size_t>(made.sizes.ranks));
      const auto measured = stretto::measure(input, ranks);
      (variant < 0 ? best : single) =
          variant < 0 ? measured.makespan : std::min(single, measured.makespan);
      const auto bound = stretto::lower_bound(input.where, input.costs);
      REQUIRE(bound.flush <= measured.makespan);
    }
    if (round % 10 == 0) CHECK(best == single);
  }
  CHECK(variants_that_fit == 10'000 + 1'000 * (zb_auto::variants - 1));
}

namespace {

//! What a schedule's step takes, and whether it keeps within every limit.
struct taken {
  std::int64_t makespan = 0;
  std::int64_t span = 0;
  bool fits = false;
};
template <class Schedule>
taken take(const drawn& made, const Schedule& schedule) {
  stretto::job_lists lists;
  REQUIRE(stretto::emit_jobs(schedule, made.sizes, {}, made.table.view(), lists).ok());
  const stretto::replay_input input{.rows = lists.rows(),
                                    .where = stretto::place(schedule.placed(), made.sizes),
                                    .microbatches = made.sizes.microbatches,
                                    .costs = made.table.view()};
  std::vector<stretto::rank_report> ranks(static_cast<std::size_t>(made.sizes.ranks));
  const stretto::report seen = stretto::measure(input, ranks);
  REQUIRE(seen.answer.ok());
  return {seen.makespan, seen.span, stretto::check::bounded(input).ok()};
}

}  // namespace

TEST_CASE("zb_auto: no closed form with one chunk that fits is shorter") {
  std::mt19937 random(20240606);
  int fitting = 0;
  for (int round = 0; round < 1000; ++round) {
    drawn made = draw(random);
    if (round % 3 != 0) save_some(made, random, round % 3 == 1);
    INFO("round ", round, " ", laws::words(made.sizes));
    const taken flush = take(made, zb_auto{});
    const taken span = take(made, zb_auto{.objective = objective_kind::span});
    const auto hold_against = [&](const auto& form) {
      INFO(std::string(form.name));
      const taken theirs = take(made, form);
      if (!theirs.fits) return;
      ++fitting;
      CHECK(flush.makespan <= theirs.makespan);
      CHECK(span.span <= theirs.span);
    };
    hold_against(zb_h1{});
    hold_against(zb_h1{.split = split_kind::partial});
    hold_against(zb_h1_light{});
    hold_against(zb_h2{});
    hold_against(one_f_one_b{});
    hold_against(eager_1f1b{});
    hold_against(gpipe{});
  }
  CHECK(fitting == 3030);
}

TEST_CASE("zb_auto: each closed form by itself, backwards whole where that takes less") {
  std::mt19937 random(20240607);
  int shorter = 0;
  for (int round = 0; round < 1000; ++round) {
    drawn made = draw(random);
    INFO("round ", round, " ", laws::words(made.sizes));
    save_some(made, random, round % 2 == 0);
    int variant = zb_auto::forms;
    const auto hold_against = [&](const auto& form) {
      INFO(std::string(form.name));
      const taken ours = take(made, zb_auto{.variant = variant++});
      const taken theirs = take(made, form);
      CHECK(ours.fits);
      if (!theirs.fits) return;
      CHECK(ours.makespan <= theirs.makespan);
      shorter += ours.makespan < theirs.makespan ? 1 : 0;
    };
    hold_against(zb_h1{});
    hold_against(zb_h2{});
    hold_against(eager_1f1b{});
    hold_against(one_f_one_b{});
    hold_against(gpipe{});
    CHECK(variant == zb_auto::waves);
    variant = zb_auto::light;
    hold_against(zb_h1_light{});
    hold_against(zb_h1{.split = split_kind::partial});
    CHECK(variant == zb_auto::variants);
  }
  MESSAGE(shorter, " are shorter than what they are named after");
}

TEST_CASE("zb_auto: closed forms keep as many micro-batches alive as the limits allow") {
  std::mt19937 random(20251126);
  int cut = 0;
  for (int round = 0; round < 2'000; ++round) {
    drawn made = draw(random);
    for (std::int64_t& limit : made.table.limit) limit -= static_cast<std::int64_t>(random() % 8);
    const shape& sizes = made.sizes;
    INFO("round ", round, " ", laws::words(sizes));
    std::vector<zb_form> all(std::begin(zb_forms), std::end(zb_forms));
    all.insert(all.end(), std::begin(zb_light_forms), std::end(zb_light_forms));
    for (const zb_form& form : all) {
      const bool first = form.which == late_kind::first;
      const auto lists = [&] { return stretto::job_lists(sizes.ranks, 3 * sizes.microbatches); };
      stretto::job_lists written = lists();
      stretto::job_sink out = written.sink();
      const bool fits = write_zb_form(sizes, made.table.view(), form, out);
      // One fewer at a time, until the limit keeps.
      bool expected = true;
      int before = sizes.microbatches;
      for (int rank = 0; rank < sizes.ranks && expected; ++rank) {
        stretto::job_lists one = lists();
        stretto::job_sink tried = one.sink();
        const auto cost = [&](job_kind kind) { return made.table.at(rank, 0, kind).time; };
        const bool less = cost(job_kind::backward) <
                          cost(job_kind::backward_input) + cost(job_kind::backward_weight);
        const auto ahead = std::int64_t{form.ahead} * (sizes.ranks - 1 - rank) + 1;
        const int warmup = static_cast<int>(std::min<std::int64_t>(ahead, before));
        int late = std::min(form.late * rank, sizes.microbatches - 1);
        if (form.late > 1)  // as ZB-H2 itself
          late = rounds_of_forwards(sizes, static_cast<int>(ahead), late);
        const int most = first ? warmup + late : std::max(warmup, late + 1);
        int alive = most;
        for (; alive > 0; --alive) {
          tried.counts[rank] = 0;
          const int begun = std::min(warmup, alive);
          const int split = sizes.microbatches - (rank > 0 ? std::min(form.split, begun) : 0);
          push_late_weights(sizes, rank, begun, std::min(late, alive - (first ? begun : 1)), tried,
                            form.which,
                            [&](int k) { return less && (first ? k < split : form.late == 0); });
          if (zb_form_fits(made.table.view(), tried, rank)) break;
        }
        cut += alive > 0 && alive < most;
        expected = alive > 0;
        before = std::min(warmup, alive);
        if (expected) CHECK(std::ranges::equal(written.rows().row(rank), one.rows().row(rank)));
      }
      CHECK(fits == expected);
    }
  }
  CHECK(cut > 1'000);
}

TEST_CASE("zb_auto: where nothing fits it names the rank and the smallest limit that does") {
  std::mt19937 random(20240101);
  for (int round = 0; round < 300; ++round) {
    drawn made = draw(random);
    INFO("round ", round, " ", laws::words(made.sizes));
    const int rank = round % made.sizes.ranks;
    const auto at = static_cast<std::size_t>(rank);
    made.table.limit[at] = made.table.base[at];  // less than any forward takes
    const zb_auto schedule;
    const auto emit = [&] {
      stretto::job_lists lists(made.sizes.ranks, schedule.capacity(made.sizes));
      stretto::job_sink sink = lists.sink();
      const auto answer = schedule.emit(made.sizes, made.table.view(), sink);
      if (!answer) CHECK(lists.rows().total() == 0);
      return answer;
    };
    const auto refused = emit();
    CHECK(refused.what == stretto::fault::over_limit);
    CHECK(refused.rank == rank);
    CHECK(refused.limit == made.table.limit[at]);
    REQUIRE(refused.amount > refused.limit);
    const auto raised = made.table.limit;
    const auto raise = [&](std::int64_t to) {
      made.table.limit = raised;
      for (std::int64_t& limit : made.table.limit) limit = std::max(limit, to);
    };
    raise(refused.amount);
    CHECK(emit().ok());
    raise(refused.amount - 1);
    CHECK(!emit().ok());
  }
}

TEST_CASE("zb_auto: under a span objective the span is no longer than under a flush") {
  for (int p = 1; p <= 6; ++p)
    for (int m = 1; m <= 16; ++m) {
      const shape sizes{.ranks = p, .microbatches = m};
      stretto::job_table table(p, 1, {10, 12, 8, 1});
      table.limit.assign(static_cast<std::size_t>(p), 2 * p);
      const auto flush = support::measure_order(zb_auto{}, sizes, table.view());
      const auto span = support::measure_order(zb_auto{.objective = objective_kind::span}, sizes,
                                               table.view());
      INFO(laws::words(sizes));
      REQUIRE(flush.fits);
      REQUIRE(span.fits);
      CHECK(flush.makespan <= span.makespan);
      CHECK(span.span <= flush.span);
    }
}
