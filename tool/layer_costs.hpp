#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "stretto/model/cost.hpp"

namespace stretto::tool {

//! Layers that take the same, as `stretto costs` tells of them.
struct layer_entry {
  std::string which{};  //!< "0", "1-30"
  int layer = -1;       //!< the one; -1: all that nothing else is said of
  int slice = -1;       //!< -1: all
  unit_costs costs{};
  std::int64_t weights_alone = 0;  //!< of memory_weights, what forwards alone need
};

//! The file of --layer-costs.
//! @param with_memory  whether what they keep is known
//! @param with_sums     whether gradients are summed over replicas
//! @param with_gathers  whether weights are gathered from them
std::string layer_costs_file(std::span<const layer_entry> all, bool with_memory,
                             bool with_sums = false, bool with_gathers = false);

//! The command that compares schedules by such a file.
//! @param ranks   and
//! @param slices  that are suggested
//! @param layers  that there are
//! @param hop     time of a message between ranks
//! @param file    as the shell finds it; empty: not written
std::string comparing_command(int ranks, int slices, int layers, std::int64_t hop,
                              const std::string& file);

}  // namespace stretto::tool
