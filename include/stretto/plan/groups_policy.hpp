#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>

#include "stretto/model/plan_view.hpp"

namespace stretto {

//! No collectives at the end of a step. A groups policy names, with these two members, the groups
//! whose sums the optimizer needs: tied parameters, the global norm. Where stages have replicas,
//! their sums come first by themselves, and number first.
struct no_groups {
  static constexpr std::array<group_info, 0> infos{};
  static constexpr std::array<std::int32_t, 0> members{};
};

//! A type with these members, which are constants.
template <class Groups>
concept groups_policy = requires {
  std::integral_constant<std::size_t, std::span<const group_info>(Groups::infos).size()>{};
  std::integral_constant<std::size_t, std::span<const std::int32_t>(Groups::members).size()>{};
};

//! The same for ranks whose workers are several data-parallel replicas (see stretto::shared), each
//! with micro-batches of its own: each stage's gradients are summed over them as soon as all are
//! there; of forwards alone nothing is. These groups number before all others.
template <class Groups = no_groups>
struct with_data_parallel : Groups {
  static constexpr bool reduces = true;
};

//! The same where each replica holds a part of a stage's weights (stage_bytes::weights), which they
//! gather before its jobs and drop where those of `Most` stages are there that come next (see
//! with_gathered_weights), and of whose gradients each gets the sum of its part: ZeRO's third
//! stage, FSDP.
template <int Most = 3, class Groups = no_groups>
struct with_sharded_weights : with_data_parallel<Groups> {
  static constexpr int gathered = Most;
};

}  // namespace stretto
