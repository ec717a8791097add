#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "catalogue.hpp"
#include "finer_unit.hpp"
#include "refusals.hpp"
#include "stretto/memory/windows.hpp"
#include "stretto/model/replay.hpp"
#include "stretto/plan/csv.hpp"

namespace stretto::tool {

//! One valid step. Not copied: `input` points into it.
struct step {
  std::string title;     //!< `1f1b: 4 ranks, 8 micro-batches`
  std::string schedule;  //!< its name, or the file's
  generated made;        //!< lists, placement and costs
  int microbatches = 1;
  int chunks = 1;
  int slices = 1;
  bool messages = false;
  bool forward_only = false;
  int receive_lead = -1;  //!< see replay_input
  finer_unit time{};      //!< of its costs
  std::vector<std::int32_t> layers{};  //!< of every stage, where the costs are layers'
  memory::windows put{};               //!< between its jobs
  std::optional<imported_schedule> imported;
  bool sums = false;     //!< of gradients are in it, and take what costs say
  bool gathers = false;  //!< of weights, the same
  //! The lists with them, where those that were made or read lack some.
  std::optional<job_lists> with_replicas{};

  replay_input input() const;
  //! Whether its lists have a job of the kind.
  bool has(job_kind kind) const;
};

//! Why there is no step: its schedule does not serve the shape, or a limit is exceeded (see
//! `fullest`).
struct no_step {
  verdict found;
  //! What found.amount is where a search keeps to no limit; it is 0 where that is unknown.
  std::optional<least_limit> searched{};
};

}  // namespace stretto::tool
