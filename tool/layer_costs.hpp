#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "stretto/model/cost.hpp"

namespace stretto::tool {

//! Layers that take the same, as `stretto costs` tells of them.
struct layer_entry {
  std::string which{};        //!< "0", "1-30"
  std::vector<int> layers{};  //!< none: all that nothing else is said of
  int slice = -1;             //!< -1: all
  unit_costs costs{};
  std::int64_t weights_alone = 0;  //!< of memory_weights, what forwards alone need
  std::optional<std::int64_t> copy{};  //!< time of a copy to the host, or back, of what is kept
};

//! What a file of --layer-costs tells.
struct layer_costs_format {
  int layers;               //!< that it is for
  bool ends_apart = false;  //!< the first is the embedding alone, the last the head
  bool memory = false;      //!< what they keep is known
  bool sums = false;        //!< gradients are summed over replicas
  bool gathers = false;     //!< weights are gathered from them
  bool second = false;      //!< what a forward's second run takes and brings back is known
  std::int64_t shared_ends = 0;        //!< KiB that a rank with both ends has once,
  std::int64_t shared_ends_alone = 0;  //!< and of these what forwards alone need
  std::int64_t reduce_ends = 0;        //!< ns to sum its gradients where two ranks have it
};

//! The file of --layer-costs.
std::string layer_costs_file(std::span<const layer_entry> all, const layer_costs_format& with);

//! A pipeline that is suggested, and the layers that there are.
struct suggested_pipeline {
  int ranks;
  int chunks;
  int slices;
  int layers;
  bool again = false;  //!< with forwards that run a second time
};

//! What messages between its ranks take.
struct suggested_hops {
  std::int64_t within = 0;  //!< a node
  int node_ranks = 0;       //!< 0: all are of one
  std::int64_t between = 0;
};

//! The command that compares schedules by such a file.
//! @param file  as the shell finds it; empty: not written
std::string comparing_command(const suggested_pipeline& of, const suggested_hops& hops,
                              const std::string& file);

}  // namespace stretto::tool
