#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "rank_memory.hpp"
#include "stretto/model/transformer.hpp"
#include "stretto/schedule/concept.hpp"

namespace stretto::tool {

//! What a rank needs, in bytes.
struct rank_need {
  std::int64_t layers = 0;
  std::int64_t head_pieces = 0;
  std::int64_t state = 0;  //!< weights and, where it trains, gradients and optimizer
  std::int64_t jobs = 0;   //!< state and the most at once that is gathered and jobs keep and need
  std::int64_t gathered = 0;  //!< the most at once of gathered weights
  rank_memory step;

  void add(const transformer_part& part) {
    layers += part.layers;
    head_pieces += part.head_pieces;
  }
  std::int64_t activations() const { return step.arena + step.working; }
  std::int64_t total() const { return state + gathered + activations(); }
};

//! Every rank's need, and what is worth a column.
struct memory_table {
  std::string schedule;
  shape sizes;
  bool forward_only = false;
  bool gathers = false;   //!< weights are dealt to replicas
  bool sums = false;      //!< copies of gradients are summed over replicas
  bool offloads = false;  //!< some of what forwards save goes to the host
  bool in_pieces = false;  //!< the head is
  std::vector<rank_need> ranks;

  std::string text() const;  //!< in MiB, rounded up
  std::string json() const;  //!< in bytes
};

//! Whole MiB, rounded up.
std::string in_mib(std::int64_t bytes);

}  // namespace stretto::tool
