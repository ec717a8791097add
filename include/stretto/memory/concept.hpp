#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <type_traits>

#include "stretto/base/named_members.hpp"
#include "stretto/base/saturated.hpp"
#include "stretto/model/cost.hpp"
#include "stretto/model/layer.hpp"
#include "stretto/model/stage_bytes.hpp"

namespace stretto::memory {

//! What a memory policy is: it says what jobs cost in time and memory, how much a rank may use, how
//! large a stage's buffers are, and whether sent messages are released before the step ends.
//! - `name`: as the command-line tool spells it.
//! - `release_sends`: false keeps every sent message to the end of the step; static constexpr, as
//!   the name.
//! - `costs()`: the job table's entry for every rank and chunk.
//! - `limit()`: most memory of a rank, in the unit of `costs`; stretto::unlimited for none.
//! - `bytes(stage)`: what the stage's buffers hold.
//! - `layer(i)` (optional): what layer i adds to each job of its stage, and its weights' memory.
//!   An assignment must then say which layers a stage has, and the table is their sums; of
//!   `costs()` only communication and hiding are read.
//! - `layer_bytes(i)` (optional): what layer i adds to the buffers of its stage, likewise; of
//!   `bytes()` only output and passing are then read. Its type is written `stretto::layer_bytes`
//!   there, or the member would have its name.
//! - `recompute()` (optional): a recompute_window, which forwards run a second time.
//! - `offload()` (optional): an offload_window, what the host keeps between forward and backward.
//! These are their names, to the letter: a policy that derives from another inherits what it spells
//! otherwise, and nobody hears of that. Refused are limits() for limit(), and the like, and
//! optional members that are private or take other parameters; what a step has heard of is in its
//! costs(), limits with them, and in its plans.
template <class Memory>
concept Policy = requires(const Memory& made, int stage) {
  { Memory::name } -> std::convertible_to<std::string_view>;
  typename std::bool_constant<static_cast<bool>(Memory::release_sends)>;
  { made.costs() } -> std::same_as<unit_costs>;
  { made.limit() } -> std::same_as<std::int64_t>;
  { made.bytes(stage) } -> std::same_as<stage_bytes>;
};

//! A policy that knows layers.
template <class Memory>
concept by_layer = requires(const Memory& made) {
  { made.layer(0) } -> std::same_as<unit_costs>;
};

//! One that knows the bytes of a layer's buffers.
template <class Memory>
concept by_layer_bytes = requires(const Memory& made) {
  { made.layer_bytes(0) } -> std::same_as<layer_bytes>;
};

//! What it says of them, as a stretto::layer_costs.
template <by_layer Memory>
struct layers_of {
  constexpr unit_costs operator()(int layer) const { return Memory{}.layer(layer); }
};

namespace detail {

//! Refuses members of the right names that whoever asks for them cannot use.
template <class Memory>
constexpr void refuse_unheard() {
  using namespace stretto::detail;
  static_assert(!requires(Memory& any) { any.release_sends(); },
                "stretto: a memory policy's release_sends is a value and not a function");
  static_assert(!names_layer<Memory> || requires(Memory& any) { any.layer(0); },
                "stretto: a memory policy's layer(int) must be public, and take a layer's number");
  static_assert(!names_layer_bytes<Memory> || requires(Memory& any) { any.layer_bytes(0); },
                "stretto: a memory policy's layer_bytes(int) must be public, and take a layer's "
                "number");
  static_assert(!names_recompute<Memory> || requires(Memory& any) { any.recompute; } ||
                    requires(Memory& any) { any.recompute(); },
                "stretto: a memory policy's recompute() must be public, and take nothing");
  static_assert(!names_offload<Memory> || requires(Memory& any) { any.offload; } ||
                    requires(Memory& any) { any.offload(); },
                "stretto: a memory policy's offload() must be public, and take nothing");
}

//! Refuses members that are one letter from the policy's, in the singular or the plural: nobody
//! would call them, and a limit, say, that is taken for proven would not be. Other names are free.
template <class Memory>
constexpr void refuse_misspelled() {
  static_assert(!requires(Memory& any) { any.cost(); },
                "stretto: a memory policy's cost() is not asked for: costs() is");
  static_assert(!requires(Memory& any) { any.limits(); },
                "stretto: a memory policy's limits() is not asked for: limit() is");
  static_assert(!requires(Memory& any) { any.byte(0); },
                "stretto: a memory policy's byte(int) is not asked for: bytes(int) is");
  static_assert(!requires(Memory& any) { any.layers(0); },
                "stretto: a memory policy's layers(int) is not asked for: layer(int) is");
  static_assert(!requires(Memory& any) { any.layer_byte(0); },
                "stretto: a memory policy's layer_byte(int) is not asked for: layer_bytes(int) is");
  static_assert(
      !requires(Memory & any) { any.layers_bytes(0); },
      "stretto: a memory policy's layers_bytes(int) is not asked for: layer_bytes(int) is");
  static_assert(!requires(Memory& any) { any.recomputes(); },
                "stretto: a memory policy's recomputes() is not asked for: recompute() is");
  static_assert(!requires(Memory& any) { any.offloads(); },
                "stretto: a memory policy's offloads() is not asked for: offload() is");
  refuse_unheard<Memory>();
}

//! Refuses what a policy says of layers where nobody says which a stage has: it would go unheard,
//! and a limit be proven of something else.
template <class Memory, bool Assigned>
constexpr void refuse_untold() {
  static_assert(Assigned || !(by_layer<Memory> || by_layer_bytes<Memory>),
                "stretto: the memory policy knows layers, and no assignment deals any: name one in "
                "the third place, such as assignment::even");
}

}  // namespace detail

//! Writes what the buffers of every stage hold.
//! @param layers  of every stage, in pipeline order; empty when no assignment says so
template <class Memory>
constexpr void write_stage_bytes(const Memory& made, std::span<const layer_range> layers,
                                 std::span<stage_bytes> stages) {
  detail::refuse_misspelled<Memory>();
  static_assert(!requires(Memory& any) { any.layer(0); } || by_layer<Memory>,
                "stretto: a memory policy's layer(int) must be const and return unit_costs");
  static_assert(!requires(Memory& any) { any.layer_bytes(0); } || by_layer_bytes<Memory>,
                "stretto: a memory policy's layer_bytes(int) must be const and return layer_bytes");
  for (std::size_t stage = 0; stage < stages.size(); ++stage) {
    stages[stage] = made.bytes(static_cast<int>(stage));
    if constexpr (by_layer_bytes<Memory>) {
      if (layers.empty()) continue;
      const layer_range& held = layers[stage];
      stages[stage].stash = stages[stage].gradients = stages[stage].kept = stages[stage].left =
          stages[stage].weights = 0;
      for (int layer = held.first; layer < held.first + held.count; ++layer) {
        const layer_bytes one = made.layer_bytes(layer);
        stages[stage].stash = saturated_sum_of_sizes(stages[stage].stash, one.stash);
        stages[stage].gradients = saturated_sum_of_sizes(stages[stage].gradients, one.gradients);
        stages[stage].kept = saturated_sum_of_sizes(stages[stage].kept, one.kept);
        stages[stage].left = saturated_sum_of_sizes(stages[stage].left, one.left);
        stages[stage].weights = saturated_sum_of_sizes(stages[stage].weights, one.weights);
      }
    }
  }
}

}  // namespace stretto::memory
