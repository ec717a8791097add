// Layers dealt unevenly: the rank that also computes the loss gets fewer of them.
// g++ -std=c++20 -Iinclude examples/05_uneven_layers.cpp -o uneven_layers
#include <array>
#include <cstddef>
#include <iostream>

#include "stretto/stretto.hpp"

constexpr stretto::shape small{.ranks = 2, .microbatches = 8, .chunks = 2};

//! Eight equal layers; the last one takes the head with it, which is as long as two more.
struct model {
  static constexpr int layers = 8;

  constexpr stretto::unit_costs layer(int at) const {
    const int parts = at + 1 == layers ? 3 : 1;
    return {.forward = parts, .backward_input = parts, .backward_weight = parts};
  }
};

//! A memory policy that knows layers: every stage then costs what its own cost, and saves for its
//! backwards what its own save.
struct by_layers : stretto::memory::release_early {
  constexpr stretto::unit_costs layer(int at) const { return model{}.layer(at); }
  constexpr stretto::layer_bytes layer_bytes(int) const { return {.stash = 4096}; }
};

template <class Assignment>
void tell() {
  using step = stretto::pipeline<small, stretto::schedule::interleaved, Assignment, by_layers>;
  static_assert(stretto::valid<step>);
  std::array<stretto::rank_report, std::size_t{small.ranks}> ranks{};
  const stretto::report found = stretto::measure(step::compute(), ranks);

  std::cout << Assignment::name << ": layers";
  for (const auto& held : step::layers) std::cout << ' ' << held.count;
  std::cout << ", makespan " << found.makespan << ", idle " << ranks[0].idle << " and "
            << ranks[1].idle << ", bytes " << step::plans()[0].arena_bytes << " and "
            << step::plans()[1].arena_bytes << '\n';
}

int main() {
  tell<stretto::assignment::even<8>>();
  tell<stretto::assignment::round_robin<5, 3>>();  // rank 0: 3 + 2, rank 1: 2 + 1
  tell<stretto::assignment::balanced<model>>();    // from the costs
}
