// Memory against the global batch: GPT-2 medium (24 layers, hidden 1024, sequence 1024) on 8 ranks,
// 1F1B, micro-batches of 4, all in single precision. With sends held to the end of the step a rank
// keeps one message more for every micro-batch; released as early as is proven, none. Beside it
// what PaddlePaddle measured on V100s of 32 GB before and after it released sends in 1F1B
// (PaddlePaddle/Paddle pull requests 34230 and 34214): the whole of a process, so what compares is
// the growth.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "stretto/stretto.hpp"

namespace {

constexpr int ranks = 8;
constexpr int layers_per_stage = 3;
constexpr std::int64_t mib = std::int64_t{1} << 20;
constexpr stretto::transformer model{
    .hidden = 1024, .heads = 16, .sequence = 1024, .microbatch = 4, .vocabulary = 50304};

//! Published, in MB; 0: not said.
struct published {
  int batch;
  int before[2];  // on the second and on the last card
  int after[2];
};
constexpr published paddle[] = {
    {32, {21376, 0}, {21380, 0}},
    {64, {21634, 0}, {21380, 0}},
    {256, {0, 0}, {0, 0}},
    {1024, {25504, 11770}, {21380, 0}},
    {2048, {29632, 15710}, {21398, 7834}},
    {3072, {-1, -1}, {0, 0}},
};

//! Buffers of every stage, from the lives of its program's buffers.
std::vector<stretto::stage_bytes> stage_buffers() {
  const stretto::placement where{.ranks = ranks};
  const std::vector<std::int32_t> layers(ranks, layers_per_stage);
  stretto::job_table table(ranks, 1);
  std::vector<stretto::stage_bytes> stages;
  const std::int64_t message = model.tokens() * model.hidden * model.bytes.activation;
  for (int rank = 0; rank < ranks; ++rank) {
    const auto chain = stretto::transformer_chain(model, where, rank,
                                                  stretto::transformer_parts(layers), false);
    const stretto::verdict answer = stretto::memory::estimate(chain, rank, table);
    if (!answer.ok()) {
      std::fprintf(stderr, "growth: %s\n", stretto::memory::explain(answer, chain).view().data());
      std::exit(1);
    }
    // The received input is a buffer of its own.
    const std::int64_t kept = table.at(rank, 0, stretto::job_kind::forward).change;
    stages.push_back({.output = message, .stash = kept - (rank > 0 ? message : 0)});
  }
  return stages;
}

std::int64_t state_bytes(int rank) {
  const bool last = rank == ranks - 1;
  return model.state_bytes({layers_per_stage, rank == 0, last ? 1 : 0, last});
}

//! Bytes of every rank's arena.
std::vector<std::int64_t> arenas(int microbatches, bool release_sends) {
  stretto::plan_request request;
  request.stages = stage_buffers();
  request.release_sends = release_sends;
  const stretto::job_table table(ranks, 1);
  const stretto::planned made(stretto::schedule::one_f_one_b{},
                              {.ranks = ranks, .microbatches = microbatches}, table.view(),
                              stretto::overlap::separate{}, request);
  if (!made.answer().ok()) {
    std::fprintf(stderr, "growth: %s\n", to_text(made.answer()).view().data());
    std::exit(1);
  }
  std::vector<std::int64_t> bytes;
  for (const stretto::plan_view& plan : made.plans()) bytes.push_back(plan.arena_bytes);
  return bytes;
}

void print(int value) {
  if (value > 0)
    std::printf(" %8d", value);
  else
    std::printf(" %8s", value < 0 ? "no room" : "-");
}

}  // namespace

int main() {
  std::printf("MiB, ours: weights, gradients, Adam's moments and the arena of rank 1 and rank 7\n");
  std::printf("MB, Paddle's: card 1 and card 7, before and after\n\n");
  std::printf("%6s %12s | %8s %8s | %8s %8s | %8s %8s | %8s %8s\n", "batch", "micro-batches",
              "keep 1", "keep 7", "early 1", "early 7", "before 1", "before 7", "after 1",
              "after 7");
  std::vector<std::int64_t> first[2];
  std::vector<std::int64_t> last[2];
  for (const published& row : paddle) {
    const int microbatches = row.batch / static_cast<int>(model.microbatch);
    std::printf("%6d %12d |", row.batch, microbatches);
    for (const bool early : {false, true}) {
      const auto bytes = arenas(microbatches, early);
      if (row.batch == paddle[1].batch) first[early] = bytes;
      last[early] = bytes;
      for (const int rank : {1, 7})
        std::printf(" %8.0f",
                    static_cast<double>(state_bytes(rank) + bytes[static_cast<std::size_t>(rank)]) /
                        static_cast<double>(mib));
      std::printf(" |");
    }
    for (const int value : row.before) print(value);
    std::printf(" |");
    for (const int value : row.after) print(value);
    std::printf("\n");
  }
  const int more =
      (paddle[std::size(paddle) - 1].batch - paddle[1].batch) / static_cast<int>(model.microbatch);
  std::printf(
      "\nA message is %lld bytes. Bytes for each micro-batch more, by rank (Paddle held the\n"
      "gradients alone, we hold activations, too):\n",
      static_cast<long long>(model.tokens() * model.hidden * model.bytes.activation));
  bool constant = true;
  for (const bool early : {false, true}) {
    std::printf("%s", early ? "\n  released early " : "  held to the end");
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      const std::int64_t growth = (last[early][rank] - first[early][rank]) / more;
      constant = constant && (!early || last[early][rank] == first[early][rank]);
      std::printf(" %lld", static_cast<long long>(growth));
    }
  }
  std::printf("\n");
  return constant ? 0 : 1;
}
