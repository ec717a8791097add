#pragma once

#include <functional>
#include <string>

#include "stretto/memory/offload_window.hpp"
#include "stretto/memory/recompute_window.hpp"
#include "stretto/model/shape.hpp"
#include "stretto/plan/planned.hpp"

//! Plans over many shapes and options.
namespace laws {

//! Collectives at the end of a step.
enum class joined { nobody, everybody, tie_and_everybody };

stretto::plan_request requested(int ranks, joined groups, bool release_sends, bool train);

//! What a plan was made from.
struct grid_point {
  stretto::shape sizes{};
  std::string schedule{};
  std::string overlap{};
  bool release_sends = true;
  joined groups = joined::nobody;
  stretto::memory::recompute_window recompute{};
  stretto::memory::offload_window offload{};
  bool kept = false;  //!< apart from the stash, for the backwards for the weights; and some left
  bool data_parallel = false;
  int gathered = 0;  //!< of how many stages at once replicas gather the weights
  int lead = -1;  //!< of receives
  //! What clocks of neighbours cannot tell may be known: by a collective that joins ranks with
  //! others between them, or around the ring, where some of what a rank receives holds up the rest.
  bool told_far = false;

  std::string words() const;
};

//! Calls `visit(point, planned)` with the plans of every schedule for every shape up to the given
//! sizes, of one to three slices where it cuts them (a part of those where others cut more simply),
//! with every overlap policy and every option; recomputing none, all or two of three micro-batches
//! in turn, or offloading them; every other with what the backwards for the weights read apart;
//! some with data-parallel replicas, every other of these with weights that they gather (of
//! forwards alone a third), some with a receive lead. Each shape takes its turn with one part of
//! `parts` of the 24 options, or with all of them when `parts` is 1. No divisor of 24, or every
//! shape would get the same options.
void for_each_plan(
    int ranks, int microbatches, int chunks, int parts,
    const std::function<void(const grid_point&, const stretto::planned&)>& visit);

}  // namespace laws
