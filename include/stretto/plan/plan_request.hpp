#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "stretto/memory/concept.hpp"
#include "stretto/memory/offload_window.hpp"
#include "stretto/memory/recompute_window.hpp"
#include "stretto/model/layer.hpp"
#include "stretto/model/plan_view.hpp"
#include "stretto/model/stage_bytes.hpp"

namespace stretto {

//! What a plan is made for, beside the schedule and the streams. `stages`: bytes per stage (one
//! entry serves all). `groups` index into `members`: the collectives at the end of a step, in the
//! order in which they run; where stages have replicas, their sums come first by themselves, and
//! number first, before them those of data-parallel replicas.
struct plan_request {
  std::vector<stage_bytes> stages = std::vector<stage_bytes>(1);
  std::vector<group_info> groups;
  std::vector<std::int32_t> members;
  bool release_sends = true;
  //! An optimizer ends the step, unless the schedule is forward-only. Without one no gradients are
  //! summed over replicas by themselves: whoever has an optimizer elsewhere sums them there, too.
  bool train = true;
  //! Every rank's workers are several replicas, each with micro-batches of its own (see
  //! stretto::shared): each stage's gradients are summed over them as soon as all are there.
  bool data_parallel = false;
  //! With data_parallel: each replica holds a part of a stage's weights (stage_bytes::weights),
  //! which they gather before its jobs and drop where those of so many stages are there that come
  //! next (with_gathered_weights), and gets the sum of that part of the gradients: ZeRO's third
  //! stage, FSDP. 0: each has them all.
  int gathered = 0;
  //! Of a schedule's jobs; lists have their own, and are refused with these.
  memory::recompute_window recompute{};
  memory::offload_window offload{};  //!< the same
};

//! What a memory policy says of it: bytes, and the windows of what is recomputed and offloaded. Its
//! costs and limit are not in it: they belong in the job table.
//! @param stages  how many the placement has
//! @param layers  of every stage, in pipeline order; empty when no assignment says so, which a
//!                policy that knows layers has no answer to. Then, and of another number, there are
//!                no bytes of stages in the request, with which no plan is made
template <memory::Policy Memory>
plan_request request_of(const Memory& made, int stages, std::span<const layer_range> layers = {}) {
  plan_request request;
  // Layers that are not told would be taken for none.
  constexpr bool knows = memory::by_layer<Memory> || memory::by_layer_bytes<Memory>;
  const bool told = layers.size() == static_cast<std::size_t>(std::max(stages, 0));
  if (stages < 1 || (!told && (knows || !layers.empty()))) {
    request.stages.clear();
    return request;
  }
  request.stages.resize(static_cast<std::size_t>(stages));
  memory::write_stage_bytes(made, layers, {request.stages.data(), request.stages.size()});
  request.release_sends = Memory::release_sends;
  request.recompute = memory::recompute_of(made);
  request.offload = memory::offload_of(made);
  return request;
}

}  // namespace stretto
