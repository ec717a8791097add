// Layers dealt unevenly: the rank that also computes the loss gets fewer of them.
// g++ -std=c++20 -Iinclude examples/05_uneven_layers.cpp -o uneven_layers
#include <array>
#include <iostream>

#include "stretto/stretto.hpp"

constexpr stretto::shape small{.ranks = 2, .microbatches = 8, .chunks = 2};

//! Times of every stage's jobs from the layers that it holds; the model's head, behind the last
//! layer, takes as long as two layers.
template <class Step>
constexpr auto costs_of_layers() {
  stretto::fixed_job_table<small.ranks, small.chunks> table;
  for (int stage = 0; stage < Step::where.stages(); ++stage) {
    const int layers = Step::layers[static_cast<std::size_t>(stage)].count;
    const stretto::unit_costs costs{.forward = layers + (stage + 1 == Step::where.stages() ? 2 : 0),
                                    .backward_input = costs.forward,
                                    .backward_weight = costs.forward,
                                    .memory_forward = layers,
                                    .memory_backward_weight = -layers};
    const int first = Step::where.rank_of(stage, 0) * small.chunks + Step::where.chunk_of(stage, 0);
    for (int kind = 0; kind < stretto::cost_kinds; ++kind)
      table.entries[static_cast<std::size_t>(first * stretto::cost_kinds + kind)] =
          costs.of(static_cast<stretto::job_kind>(kind));
  }
  return table;
}

template <class Assignment>
void tell() {
  using step = stretto::pipeline<small, stretto::schedule::interleaved, Assignment>;
  static_assert(stretto::valid<step>);
  static constexpr auto table = costs_of_layers<step>();
  stretto::replay_input jobs = step::compute();
  jobs.costs = table.view();
  std::array<stretto::rank_report, small.ranks> ranks{};
  const stretto::report found = stretto::measure(jobs, ranks);

  std::cout << Assignment::name << ": layers";
  for (const auto& held : step::layers) std::cout << ' ' << held.count;
  std::cout << ", makespan " << found.makespan << ", idle " << ranks[0].idle << " and "
            << ranks[1].idle << '\n';
}

int main() {
  tell<stretto::assignment::even<8>>();
  tell<stretto::assignment::round_robin<5, 3>>();  // rank 0: 3 + 2, rank 1: 2 + 1
}
