// V-Half and V-Min beside the orders of their authors' generator, which are made here, too: job by
// job those that it prints, and for whatever costs never shorter than ours, nor keeping less.
#include "stretto/schedule/parts/v_pulled.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "stretto/model/job_text.hpp"
#include "stretto/plan/report.hpp"
#include "stretto/schedule/v_half.hpp"
#include "stretto/schedule/v_min.hpp"

namespace {

using stretto::job;
using stretto::job_table;
using stretto::shape;
using namespace stretto::schedule;

//! What they call V-Half and V-Min.
void lay_theirs(bool half, int ranks, v_block* blocks) {
  if (half)
    lay({.fast = 2, .slow = 2, .back = ranks % 2 == 0 ? 3 : 0, .home = 1}, ranks, blocks);
  else
    lay({.fast = 1, .slow = 1, .back = ranks % 3 == 0 ? 2 : 0}, ranks, blocks);
}

stretto::job_lists theirs(bool half, const shape& sizes) {
  stretto::scratch<v_block> blocks(sizes.ranks);
  lay_theirs(half, sizes.ranks, blocks.data());
  v_orders slots(sizes, most_kept(blocks.data(), sizes));
  v_pulled(sizes, blocks.data(), slots);
  const auto where = stretto::place(stretto::placement_kind::wave, sizes);
  stretto::job_lists made(sizes.ranks, v_streams * sizes.microbatches);
  stretto::job_sink out = made.sink();
  for (int rank = 0; rank < sizes.ranks; ++rank) {
    int done[v_streams]{};
    for (int at = 0; at < slots.count(rank); ++at) {
      const int stream = slots.order(rank)[at].stream();
      out.push(rank,
               {where.stage_of(rank, v_chunk(stream)), done[stream]++, 0, v_kind(stream, false)});
    }
  }
  return made;
}

struct taken {
  std::int64_t makespan = 0;
  std::int64_t peak = 0;
};
taken measured(const stretto::job_lists& lists, const shape& sizes, const job_table& costs) {
  const stretto::replay_input input{.rows = lists.rows(),
                                    .where = stretto::place(stretto::placement_kind::wave, sizes),
                                    .microbatches = sizes.microbatches,
                                    .costs = costs.view()};
  std::vector<stretto::rank_report> ranks(static_cast<std::size_t>(sizes.ranks));
  const stretto::report all = stretto::measure(input, ranks);
  REQUIRE(all.answer.ok());
  return {all.makespan, std::ranges::max(ranks, {}, &stretto::rank_report::peak).peak};
}

template <class Schedule>
void check_no_longer(bool half, const shape& sizes, const job_table& costs) {
  stretto::job_lists lists(sizes.ranks, Schedule{}.capacity(sizes));
  stretto::job_sink out = lists.sink();
  REQUIRE(Schedule{}.emit(sizes, costs.view(), out).ok());
  const taken mine = measured(lists, sizes, costs);
  const taken other = measured(theirs(half, sizes), sizes, costs);
  CHECK(mine.makespan <= other.makespan);
  CHECK(mine.peak <= other.peak);
}

}  // namespace

TEST_CASE("the authors' orders of V-Half and V-Min, job by job") {
  std::ifstream file(STRETTO_GOLDEN_DIR "/v_pulled.txt");
  REQUIRE(file.good());
  int entries = 0;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("#")) continue;
    std::istringstream words(line);
    std::string name, ranks, microbatches;
    words >> name >> ranks >> microbatches;
    const shape sizes{.ranks = std::stoi(ranks.substr(2)),
                      .microbatches = std::stoi(microbatches.substr(2)),
                      .chunks = 2};
    INFO(line);
    const stretto::job_lists made = theirs(name == "v_half", sizes);
    for (int rank = 0; rank < sizes.ranks; ++rank) {
      std::string row, expected;
      for (const job& work : made.rows().row(rank))
        row += (row.empty() ? "" : " ") + std::string(stretto::to_text(work).view());
      REQUIRE(std::getline(file, expected));
      CHECK(row == expected);
    }
    ++entries;
  }
  CHECK(entries == 20);
}

TEST_CASE("for whatever costs, V-Half and V-Min are no longer than these, nor keep more") {
  std::mt19937_64 numbers(3);
  const auto drawn = [&](int least, int most) {
    const auto count = static_cast<std::uint64_t>(most - least + 1);
    return static_cast<std::int64_t>(numbers() % count) + least;
  };
  for (int ranks = 1; ranks <= 9; ++ranks)
    for (int microbatches = 1; microbatches <= 16; ++microbatches)
      for (int tried = 0; tried < 12; ++tried) {
        const shape sizes{.ranks = ranks, .microbatches = microbatches, .chunks = 2};
        const int most = tried % 3 == 0 ? 5 : 60;
        const stretto::unit_costs units{.forward = drawn(1, most),
                                        .backward_input = drawn(1, most),
                                        .backward_weight = drawn(1, most),
                                        .communication = tried % 2 == 0 ? 0 : drawn(0, most / 3)};
        job_table costs(ranks, 2, tried == 0 ? stretto::unit_costs{} : units);
        // Ranks that differ, but not in their chunks, of which weights' backwards run in other
        // turns.
        for (int rank = 0; tried >= 9 && rank < ranks; ++rank)
          for (int kind = 0; kind < stretto::cost_kinds; ++kind) {
            const std::int64_t more = drawn(0, most / 4);
            for (int chunk = 0; chunk < 2; ++chunk)
              costs.at(rank, chunk, static_cast<stretto::job_kind>(kind)).time += more;
          }
        CAPTURE(ranks);
        CAPTURE(microbatches);
        CAPTURE(tried);
        check_no_longer<v_half>(true, sizes, costs);
        check_no_longer<v_min>(false, sizes, costs);
      }
}
