// A step touches what the plan gives out, all of it and no byte beside; and what was painted and is
// read before it is written would be NaN.
#include <algorithm>

#include "pipeline/footprint.hpp"
#include "pipeline_support.hpp"
#include "stretto/executor/arena.hpp"

using namespace train;
using namespace pipeline_test;

namespace {

//! For each line of the arena whether a buffer of the plan lies on it.
std::vector<bool> lines_of(const stretto::plan_view& plan) {
  std::vector<bool> lines(static_cast<std::size_t>(plan.arena_bytes) / 64);
  for (const stretto::buffer& each : plan.buffers)
    for (std::int64_t at = each.offset; at < each.offset + each.bytes; at += 64)
      lines[static_cast<std::size_t>(at) / 64] = true;
  return lines;
}

}  // namespace

TEST_CASE("paint shows what is written, by lines of 64 bytes") {
  std::vector<std::byte> arena(200);
  paint(arena);
  CHECK(touched_bytes(arena) == 0);
  arena[0] = std::byte{1};
  arena[3] = std::byte{1};
  CHECK(touched_bytes(arena) == 64);
  arena[199] = std::byte{0};
  CHECK(touched_bytes(arena) == 64 + 8);
}

TEST_CASE("high water equals the plan, and no value is read before it is written") {
  for (const char* schedule : {"gpipe", "1f1b", "interleaved", "seq_1f1b"})
    for (const int ranks : {1, 3, 4})
      for (const int microbatches : {2, 5})
        for (const char* overlap : {"serial", "separate"}) {
          const pipeline_settings settings{.schedule = schedule,
                                           .ranks = ranks,
                                           .microbatches = microbatches,
                                           .slices = schedule == std::string("seq_1f1b") ? 2 : 1,
                                           .overlap = overlap};
          const config model = tiny(std::max(3, 2 * ranks), true);
          CAPTURE(name(settings, model));
          pipeline pipelined(model, text(), settings, learning());
          reference whole(pipelined.model(), learning().seed);
          for (std::size_t rank = 0; rank < config::size(ranks); ++rank)
            paint(pipelined.engine().arena(rank));
          CHECK(compare(pipelined, whole, 2) == "");
          for (std::size_t rank = 0; rank < config::size(ranks); ++rank) {
            CAPTURE(rank);
            const stretto::plan_view& plan = pipelined.plan().plans()[rank];
            const auto arena = pipelined.engine().arena(rank);
            CHECK(static_cast<std::int64_t>(arena.size()) == plan.arena_bytes);
            const std::vector<bool> lines = lines_of(plan);
            for (std::size_t line = 0; line < lines.size(); ++line)
              if ((touched_bytes(arena.subspan(64 * line, 64)) > 0) != lines[line])
                FAIL_CHECK("line " << line << (lines[line] ? " is not touched" : " is touched"));
            CHECK(stretto::executor::most_in_use(plan).bytes <= touched_bytes(arena));
          }
        }
}

TEST_CASE("1F1B keeps as many micro-batches as ranks follow, fill and drain keeps all") {
  const config model = tiny(6, false);
  const int ranks = 4, microbatches = 8;
  const auto stashes = [&](const char* schedule, int rank) {
    const pipeline_settings settings{.schedule = schedule,
                                     .ranks = ranks,
                                     .microbatches = microbatches,
                                     .chunks = 1,
                                     .layers_per_rank = {2, 1, 1, 2}};
    const pipeline pipelined(model, text(), settings, learning());
    std::vector<std::int64_t> places;
    for (const stretto::buffer& each : pipelined.plan().plans()[config::size(rank)].buffers)
      if (each.role == stretto::buffer_role::stash) places.push_back(each.offset);
    std::ranges::sort(places);
    const auto end = std::ranges::unique(places).begin();
    return static_cast<int>(end - places.begin());
  };
  for (int rank = 0; rank < ranks; ++rank) {
    CHECK(stashes("1f1b", rank) == ranks - rank);
    CHECK(stashes("gpipe", rank) == microbatches);
  }
}
