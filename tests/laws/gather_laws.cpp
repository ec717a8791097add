// Weights that are gathered before their stage's jobs and dropped again: where that stands in every
// schedule's lists, by a look at all that follows; and what it takes, by an oracle of this file's
// own.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <random>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "laws/order_laws.hpp"
#include "stretto/check/all.hpp"
#include "stretto/lowering/communication.hpp"
#include "stretto/plan/emit_jobs.hpp"
#include "stretto/plan/gathered_weights.hpp"
#include "stretto/plan/report.hpp"
#include "support/schedules.hpp"

namespace {

using stretto::job;
using stretto::job_kind;
using stretto::job_rows;
using stretto::job_table;
using stretto::placement;
using stretto::shape;

//! The stages that a list's jobs are of from `at` on, the next `most`.
std::set<int> next_of(std::span<const job> row, std::size_t at, std::size_t most) {
  std::set<int> next;
  for (std::size_t later = at; later < row.size() && next.size() < most; ++later)
    next.insert(row[later].stage);
  return next;
}

//! Whether the rank has, at each node, the weights that it needs next, and the list is otherwise as
//! it was.
void check_places(std::span<const job> plain, std::span<const job> gathered, std::size_t most) {
  std::set<int> there;
  std::size_t at = 0;
  for (std::size_t step = 0; step < gathered.size();) {
    const job& work = gathered[step];
    if (work.kind == job_kind::unshard) {
      CHECK(there.insert(work.stage).second);
      ++step;
    } else if (work.kind == job_kind::reshard) {
      CHECK(there.erase(work.stage) == 1);
      ++step;
    } else {
      REQUIRE(at < plain.size());
      REQUIRE(there == next_of(plain, at, most));
      for (const int jobs = work.paired ? 2 : 1; int half : {0, 1})
        if (half < jobs) REQUIRE(gathered[step++] == plain[at++]);
    }
  }
  CHECK(at == plain.size());
  CHECK(there.empty());
}

struct replayed {
  std::map<std::pair<int, int>, std::int64_t> ends;  // by rank and step
  std::vector<std::int64_t> peaks;
};

//! Every job as early as what it follows lets it, over and over until none is later than before.
replayed by_passes(const job_rows& rows, const placement& where, const job_table& table) {
  using made_by = std::tuple<bool, int, int, int>;  // a forward's, stage, micro-batch, slice
  std::map<made_by, std::int64_t> made;
  replayed found;
  for (bool moved = true; moved;) {
    moved = false;
    found.peaks.assign(static_cast<std::size_t>(rows.ranks), 0);
    for (int rank = 0; rank < rows.ranks; ++rank) {
      std::int64_t clock = 0;
      std::int64_t gathers = 0;
      std::int64_t level = 0;
      std::map<int, std::int64_t> weights;
      const std::span<const job> row = rows.row(rank);
      const auto cost = [&](const job& work, job_kind kind) -> const stretto::job_cost& {
        int chunk = -1;
        for (int each = 0; each < where.chunks; ++each)
          if (where.stage_of(rank, each) == work.stage &&
              (where.kind != stretto::placement_kind::bidirectional ||
               work.kind >= job_kind::reduce_grad ||
               where.direction(work.microbatch) == (each < where.chunks / 2 ? 0 : 1)))
            chunk = each;
        return table.view().at(rank, chunk, kind);
      };
      for (std::size_t step = 0; step < row.size(); ++step) {
        const job& work = row[step];
        auto& end = found.ends[{rank, static_cast<int>(step)}];
        auto& peak = found.peaks[static_cast<std::size_t>(rank)];
        if (work.kind == job_kind::unshard) {
          end = gathers = std::max(gathers, clock) + cost(work, job_kind::unshard).time;
          weights[work.stage] = end;
          level += cost(work, job_kind::unshard).change;
          peak = std::max(peak, level);
          continue;
        }
        if (work.kind == job_kind::reshard) {
          level -= cost(work, job_kind::unshard).change;
          end = clock;
          continue;
        }
        const std::span<const job> node = row.subspan(step, work.paired ? 2 : 1);
        std::int64_t start = clock;
        std::int64_t time = 0;
        std::int64_t shorter = INT64_MAX;
        std::int64_t used = level;
        for (const job& half : node) {
          start = std::max(start, weights.at(half.stage));
          const bool ahead = half.kind == job_kind::forward;
          const int from = half.stage + (ahead ? -1 : 1);
          if (half.kind != job_kind::backward_weight && from >= 0 && from < where.stages())
            start = std::max(
                start,
                made[{ahead, from, half.microbatch, half.slice}] +
                    (where.rank_of(from, half.microbatch) == rank ? 0 : table.communication));
          time += cost(half, half.kind).time;
          shorter = std::min(shorter, cost(half, half.kind).time);
          used += std::max<std::int64_t>(0, cost(half, half.kind).change);
          level += cost(half, half.kind).change;
        }
        if (node.size() == 2) time -= shorter * table.pair_hides / 100;
        peak = std::max(peak, used);
        clock = start + time;
        for (const job& half : node) {
          found.ends[{rank,
                      static_cast<int>(step + static_cast<std::size_t>(&half - node.data()))}] =
              clock;
          if (half.kind == job_kind::backward_weight) continue;
          auto& when =
              made[{half.kind == job_kind::forward, half.stage, half.microbatch, half.slice}];
          moved = moved || when != clock;
          when = clock;
        }
        step += node.size() - 1;
      }
    }
  }
  return found;
}

//! Costs of every rank and chunk by themselves.
job_table drawn_costs(std::mt19937& random, const placement& where) {
  job_table table(where.ranks, where.chunks);
  const auto up_to = [&](int most) {
    return static_cast<std::int64_t>(random() % static_cast<unsigned>(most)) + 1;
  };
  table.communication = up_to(4) - 1;
  table.pair_hides = static_cast<int>(up_to(3) - 1) * 50;
  for (int rank = 0; rank < where.ranks; ++rank)
    for (int chunk = 0; chunk < where.chunks; ++chunk) {
      for (const job_kind kind : {job_kind::forward, job_kind::backward, job_kind::backward_input,
                                  job_kind::backward_weight, job_kind::unshard})
        table.at(rank, chunk, kind).time = 2 * up_to(10);
      table.at(rank, chunk, job_kind::unshard).change = up_to(20);
    }
  return table;
}

}  // namespace

TEST_CASE("gathers stand where what is there is what comes next; they take what an oracle says") {
  std::mt19937 random(20261127);
  for (const stretto::schedule::any& schedule : support::schedules())
    for (const shape& sizes : {shape{1, 3, 1}, shape{2, 5, 1}, shape{4, 8, 1}, shape{4, 8, 2},
                               shape{3, 6, 3}, shape{2, 8, 4}, shape{2, 4, 1, 2}, shape{1, 4, 4}}) {
      if (!schedule.supports(sizes).ok()) continue;
      INFO(std::string(schedule.name), " ", laws::words(sizes));
      const placement where = place(schedule.placed(), sizes);
      const job_table table = drawn_costs(random, where);
      stretto::job_lists plain;
      REQUIRE(stretto::emit_jobs(schedule, sizes, {}, table.view(), plain).ok());
      stretto::replay_input input{.rows = plain.rows(),
                                  .where = where,
                                  .microbatches = sizes.microbatches,
                                  .slices = sizes.slices,
                                  .costs = table.view()};
      std::vector<stretto::rank_report> ranks(static_cast<std::size_t>(sizes.ranks));
      const std::int64_t without = stretto::measure(input, ranks).makespan;
      for (const int most : {1, 2, 3, 100}) {
        CAPTURE(most);
        bool pairs = false;
        for (int rank = 0; rank < sizes.ranks; ++rank)
          for (const job& work : plain.rows().row(rank))
            pairs = pairs || (work.paired && (&work)[1].stage != work.stage);
        CHECK(stretto::least_gathered(plain.rows()) == (pairs ? 2 : 1));
        if (pairs && most == 1) continue;
        const stretto::job_lists made = stretto::with_gathered_weights(input, most);
        stretto::replay_input gathered = input;
        gathered.rows = made.rows();
        for (int rank = 0; rank < sizes.ranks; ++rank)
          check_places(plain.rows().row(rank), made.rows().row(rank),
                       static_cast<std::size_t>(most));
        CHECK(stretto::check::schedule(gathered).ok());
        CHECK(stretto::check::sharded(gathered, most).ok());

        std::vector<stretto::job_time> times(
            static_cast<std::size_t>(sizes.ranks * made.rows().stride));
        const stretto::report all = stretto::measure(gathered, ranks, times);
        REQUIRE(all.answer.ok());
        const replayed theirs = by_passes(made.rows(), where, table);
        std::int64_t longest = 0;
        for (int rank = 0; rank < sizes.ranks; ++rank) {
          for (int step = 0; step < made.rows().counts[rank]; ++step) {
            const std::int64_t end = theirs.ends.at({rank, step});
            longest = std::max(longest, end);
            REQUIRE(times[static_cast<std::size_t>(rank * made.rows().stride + step)].end == end);
          }
          CHECK(ranks[static_cast<std::size_t>(rank)].peak ==
                theirs.peaks[static_cast<std::size_t>(rank)]);
        }
        CHECK(all.makespan == longest);
        // The first weights have nothing to hide behind.
        CHECK(all.makespan >= without + stretto::least_gather(where, table.view()));
        // Messages are added to them as to others.
        stretto::job_lists lowered(sizes.ranks,
                                   stretto::lowering::with_messages(made.rows().stride));
        stretto::job_sink sink = lowered.sink();
        REQUIRE(stretto::lowering::add_messages(gathered, sink).ok());
        stretto::replay_input sent = gathered;
        sent.rows = lowered.rows();
        sent.messages = true;
        CHECK(stretto::check::schedule(sent).ok());
      }
    }
}
