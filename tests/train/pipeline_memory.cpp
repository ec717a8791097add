// A step touches what the plan gives out, all of it and no byte beside; and what was painted and is
// read before it is written would be NaN.
#include <algorithm>
#include <string_view>

#include "model/host_math.hpp"
#include "model/scratch.hpp"
#include "pipeline/footprint.hpp"
#include "pipeline_support.hpp"
#include "stretto/executor/arena.hpp"
#include "support/schedules.hpp"

using namespace train;
using namespace pipeline_test;

namespace {

//! For each line of the arena, and behind it of what the host keeps, whether a buffer of the plan
//! lies on it, or one that lives to the end, or a stash.
std::vector<bool> lines_of(const stretto::plan_view& plan, bool to_the_end = false,
                           bool stashes = false) {
  std::vector<bool> lines(static_cast<std::size_t>(plan.arena_bytes + plan.host_bytes) / 64);
  for (const stretto::buffer& each : plan.buffers)
    if ((!to_the_end || each.release == static_cast<std::int32_t>(plan.instructions.size())) &&
        (!stashes || each.role == stretto::buffer_role::stash ||
         each.role == stretto::buffer_role::host))
    for (std::int64_t at = each.offset; at < each.offset + each.bytes; at += 64)
      lines[static_cast<std::size_t>(at) / 64] = true;
  return lines;
}

std::span<std::byte> line_at(pipeline& of, std::size_t rank, std::size_t line) {
  const auto arena = of.engine().arena(rank);
  return line < arena.size() / 64
             ? arena.subspan(64 * line, 64)
             : of.engine().host_memory(rank).subspan(64 * line - arena.size(), 64);
}

//! Two steps equal the reference's to the bit, with all of the arena NaN at first, and again
//! wherever the plan has released.
void check_poisoned(const pipeline_settings& settings) {
  const config model = tiny(std::max(3, settings.ranks * settings.chunks), true);
  CAPTURE(name(settings, model));
  pipeline pipelined(model, text(), settings, learning());
  reference whole(pipelined.model(), learning().seed);
  paint_all(pipelined);
  CHECK(compare(pipelined, whole, 2) == "");
  for (std::size_t rank = 0; rank < config::size(settings.ranks); ++rank) {
    const stretto::plan_view& plan = pipelined.plan().plans()[rank];
    const std::vector<bool> held = lines_of(plan, true);
    const std::vector<bool> lines = lines_of(plan);
    for (std::size_t line = 0; line < lines.size(); ++line)
      if (lines[line] && !held[line] && touched_bytes(line_at(pipelined, rank, line)) > 0)
        FAIL_CHECK("line " << line << " of rank " << rank << " is released, but not poisoned");
  }
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
  int number = 0;
  std::size_t kept = 0;
  for (const char* schedule : {"gpipe", "1f1b", "interleaved", "seq_1f1b"})
    for (const int ranks : {1, 3, 4})
      for (const int microbatches : {2, 5})
        for (const char* overlap : {"serial", "separate"}) {
          pipeline_settings settings{.schedule = schedule,
                                     .ranks = ranks,
                                     .microbatches = microbatches,
                                     .slices = schedule == std::string("seq_1f1b") ? 2 : 1,
                                     .overlap = overlap,
                                     .poison = false};  // which would hide the paint
          if (settings.slices == 1 && ++number % 3 > 0)
            settings.offload = {{1, 1}, number % 2, number % 3 - 1};
          const config model = tiny(std::max(3, 2 * ranks), true);
          CAPTURE(name(settings, model));
          pipeline pipelined(model, text(), settings, learning());
          reference whole(pipelined.model(), learning().seed);
          paint_all(pipelined);
          CHECK(compare(pipelined, whole, 2) == "");
          for (std::size_t rank = 0; rank < config::size(ranks); ++rank) {
            CAPTURE(rank);
            const stretto::plan_view& plan = pipelined.plan().plans()[rank];
            const auto arena = pipelined.engine().arena(rank);
            CHECK(static_cast<std::int64_t>(arena.size()) == plan.arena_bytes);
            const auto host = pipelined.engine().host_memory(rank);
            CHECK(static_cast<std::int64_t>(host.size()) == plan.host_bytes);
            CHECK((touched_bytes(host) > 0) == (plan.host_bytes > 0));
            kept += host.size();
            const std::vector<bool> lines = lines_of(plan);
            // A stash that goes to the host leaves its place before the backward, which alone
            // writes some of it.
            const std::vector<bool> partly =
                settings.offload.any() ? lines_of(plan, false, true)
                                       : std::vector<bool>(lines.size());
            for (std::size_t line = 0; line < lines.size(); ++line)
              if (const bool touched = touched_bytes(line_at(pipelined, rank, line)) > 0;
                  touched != lines[line] && (touched || !partly[line]))
                FAIL_CHECK("line " << line << (lines[line] ? " is not touched" : " is touched"));
            if (!settings.offload.any())
              CHECK(stretto::executor::most_in_use(plan).bytes <= touched_bytes(arena));
          }
        }
  CHECK(kept > 0);
}

TEST_CASE("every schedule, painted before the first step and poisoned where the plan releases") {
  int number = 0;
  for (const stretto::schedule::any& schedule : support::schedules()) {
    if (schedule.forward_only) continue;
    const int before = number;
    for (const int ranks : {2, 3, 4})
      for (const int chunks : {1, 2})
        for (const int microbatches : {3, 8}) {
          const stretto::shape sizes{
              .ranks = ranks, .microbatches = microbatches, .chunks = chunks};
          if (!schedule.supports(sizes)) continue;
          ++number;
          pipeline_settings settings{.schedule = std::string(schedule.name),
                                     .ranks = ranks,
                                     .microbatches = microbatches,
                                     .chunks = chunks,
                                     .overlap = number % 2 == 0 ? "serial" : "separate",
                                     .poison = true};
          settings.transport_capacity = number / 2 % 2 * 2;
          if (number % 3 == 0) settings.offload = stretto::memory::offload_all;
          check_poisoned(settings);
          settings.offload = {};
          if (schedule.name == std::string_view("seq_1f1b")) {
            settings.slices = 4;
            check_poisoned(settings);
          }
        }
    CAPTURE(std::string(schedule.name));
    CHECK(number > before);
  }
}

TEST_CASE("what a rank holds is known before the first step") {
  for (const int capacity : {0, 3}) {
    const config model = tiny(8, false);
    pipeline_settings settings{.schedule = "1f1b", .ranks = 2, .microbatches = 3, .chunks = 1};
    settings.transport_capacity = capacity;
    pipeline pipelined(model, text(), settings, learning());
    std::int64_t weights = 0;
    for (int rank = 0; rank < 2; ++rank) {
      const rank_memory here = pipelined.memory(rank);
      weights += here.weights;
      CHECK(here.gradients == here.weights);
      CHECK(here.optimizer == 2 * here.weights);
      CHECK(here.arena ==
            static_cast<std::int64_t>(pipelined.engine().arena(config::size(rank)).size()));
      CHECK(pipelined.engine().most_in_use(config::size(rank)).bytes <= here.arena);
      // Activations forwards in both plans, and gradients backwards in training.
      const std::int64_t message = 16 * 8 * 4;
      const pipeline without(model, text(),
                             {.schedule = "1f1b", .ranks = 2, .microbatches = 3, .chunks = 1},
                             learning());
      CHECK(here.workspaces - without.memory(rank).workspaces ==
            capacity * message * (rank == 0 ? 2 : 1));
      CHECK(without.memory(rank).sum() ==
            4 * here.weights + here.arena + without.memory(rank).workspaces);
    }
    // Tensors are aligned to 64 bytes, which adds to them.
    const auto least = static_cast<std::int64_t>(4 * pipelined.parameter_count());
    CHECK(weights >= least);
    CHECK(weights < least + least / 10);
  }
}

TEST_CASE("bf16: half the messages, about half the stashes, and all that is in fp32 as before") {
  config model = tiny(8, false);
  for (const char* schedule : {"1f1b", "interleaved", "zbv", "dualpipe"}) {
    CAPTURE(schedule);
    pipeline_settings settings{.schedule = schedule, .ranks = 2, .microbatches = 4};
    pipeline exact(model, text(), settings, learning());
    settings.products = precision::bf16;
    pipeline rounding(model, text(), settings, learning());
    rounding.step();
    for (int rank = 0; rank < 2; ++rank) {
      const rank_memory before = exact.memory(rank), after = rounding.memory(rank);
      CHECK(after.weights == before.weights);
      CHECK(after.gradients == before.gradients);
      CHECK(after.optimizer == before.optimizer);
      CHECK(after.arena ==
            static_cast<std::int64_t>(rounding.engine().arena(config::size(rank)).size()));
      // Replicas' gradients, which dualpipe sums, stay fp32.
      CHECK(10 * after.arena < (schedule == std::string_view("dualpipe") ? 7 : 6) * before.arena);
      const auto wide = exact.plan().plans()[config::size(rank)].buffers;
      const auto half = rounding.plan().plans()[config::size(rank)].buffers;
      REQUIRE(wide.size() == half.size());
      for (std::size_t at = 0; at < wide.size(); ++at) {
        const std::int64_t of_wide = wide[at].bytes, of_half = half[at].bytes;
        REQUIRE(half[at].role == wide[at].role);
        switch (wide[at].role) {
          case stretto::buffer_role::stash:
            // Deviations, tokens and the attention's scratch are no bf16.
            CHECK(2 * of_half > of_wide);
            CHECK(100 * of_half < 56 * of_wide);
            break;
          case stretto::buffer_role::collective:
            CHECK(of_half == of_wide);
            break;
          default:
            CHECK(2 * of_half == of_wide);
        }
      }
    }
  }
}

TEST_CASE("bf16: room for both sides of products, and for what is not rounded yet") {
  config model = tiny(8, false);
  const auto bytes = [&] { return make_host_math(model, precision::bf16)->rounding_bytes(); };
  // Of either side the logits, 8 rows of 61; of the right one the table, 61 rows of 16.
  CHECK(bytes() == 4 * (8 * 61) + 4 * (61 * 16));
  CHECK(largest_rounded(model) == 8 * 61);
  model.activations = precision::bf16;
  // What a product leaves for more to be done to it, the gradients of a head's scores in bf16, and
  // four rows of 61, each up to 64 bytes off.
  CHECK(bytes() == 4 * (8 * 61) + 4 * (61 * 16) + 4 * (8 * 61) + 2 * (8 * 8) + 4 * 4 * 80);
  CHECK(largest_rounded(model) == 0);
  // Attention reads squares, which long sequences make the largest.
  CHECK(largest_factor(model) == 8 * 61);
  model.context = 100;
  CHECK(largest_factor(model) == 100 * 100);
  model.slices = 2;
  // The weights of a head, or where products come in batches, of both heads of a sequence.
  CHECK(room_scalars(model, 0, false) == 50 * 100);
  CHECK(room_scalars(model, 0, true) == 2 * 50 * 100);
  CHECK(room_scalars(model, 1, true) == 50 * 100);
  CHECK(room_scalars(model, 2, false) == 50 * 8);
  CHECK(room_scalars(model, 2, true) == 50 * 16);
  CHECK(largest_row(model) == 100);
  CHECK(largest_rounded(model, true) == 0);
  model.activations = precision::fp32;
  CHECK(largest_rounded(model, true) == 2 * 50 * 50);
  CHECK(room_scalars(model, 0, false) == 0);
  CHECK(room_scalars(model, 0, true) == 2 * 50 * 100);
  CHECK(room_scalars(model, 1, true) == 0);
  CHECK(largest_weight(model) == 61 * 16);
}

TEST_CASE("what the process holds beside the ranks: plans, and the stacks of its threads") {
  const config model = tiny(8, false);
  const auto made = [&](int shards, const char* overlap) {
    return pipeline(model, text(),
                    {.schedule = "1f1b",
                     .ranks = 2,
                     .microbatches = 3,
                     .chunks = 1,
                     .overlap = overlap,
                     .tensor_parallel = shards},
                    learning())
        .memory();
  };
  const shared_memory one = made(1, "serial"), separate = made(1, "separate");
  const shared_memory two = made(2, "serial");
  CHECK(one.threads == 4);  // a stream for each rank in both steps
  CHECK(one.computing == 4);
  CHECK(separate.computing == 4);
  CHECK(two.computing == 8);
  CHECK(separate.stacks - one.stacks == (separate.threads - one.threads) * 8192);
  // Two ranks of two steps: the second has the head.
  CHECK(one.stacks - one.threads * 8192 ==
        4 * 5 * 4096 + 2 * static_cast<std::int64_t>(packed_bytes(model, false) +
                                                     packed_bytes(model, true)));
  CHECK(packed_bytes(model, false) <= packed_bytes(model, true));
  config wide = model;
  wide.width *= 2;
  CHECK(packed_bytes(wide, false) > packed_bytes(model, false));
  const std::int64_t instructions = 2 * (3 * 4 + 2);  // jobs and messages, both ranks, about
  CHECK(one.plans > instructions * static_cast<std::int64_t>(sizeof(stretto::instruction)));
  CHECK(two.plans > 2 * one.plans);
  // Of jobs in ops no second copy, where a rank has one worker.
  const pipeline in_ops(model, text(),
                        {.schedule = "1f1b",
                         .ranks = 2,
                         .microbatches = 30,
                         .chunks = 1,
                         .overlap = "serial",
                         .ops = "look_ahead"},
                        learning());
  std::size_t bytes = 0;
  for (const stretto::plan_view& plan : in_ops.plans()) bytes += plan.instructions.size_bytes();
  CHECK(in_ops.memory().plans < 3 * static_cast<std::int64_t>(bytes));
}

TEST_CASE("what the host keeps is not in the arena, and known before the first step") {
  const config model = tiny(6, false);
  const auto made = [&](const stretto::memory::offload_window& offload) {
    return pipeline(model, text(),
                    {.schedule = "1f1b",
                     .ranks = 6,
                     .microbatches = 12,
                     .chunks = 1,
                     .offload = offload},
                    learning());
  };
  pipeline kept = made({});
  pipeline away = made(stretto::memory::offload_all);
  for (int rank = 0; rank < 6; ++rank) {
    CAPTURE(rank);
    const rank_memory before = kept.memory(rank);
    const rank_memory after = away.memory(rank);
    CHECK(before.host == 0);
    // Three are here, one more is there than is not here: see tests/unit/memory_offload.cpp.
    const auto stash = stretto::lowering::aligned([&] {
      for (const stretto::buffer& each : kept.plan().plans()[config::size(rank)].buffers)
        if (each.role == stretto::buffer_role::stash) return each.bytes;
      return std::int64_t{0};
    }());
    CHECK(before.arena - after.arena == std::max(0, 6 - rank - 3) * stash);
    CHECK(after.host == (rank < 4 ? (5 - rank) * stash : 0));
    CHECK(static_cast<std::int64_t>(away.engine().host_memory(config::size(rank)).size()) ==
          after.host);
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
