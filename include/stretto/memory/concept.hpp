#pragma once

#include <concepts>
#include <cstdint>
#include <string_view>

#include "stretto/model/cost.hpp"
#include "stretto/model/stage_bytes.hpp"

namespace stretto::memory {

//! What a memory policy is: it says what jobs cost in time and memory, how much a rank may use, how
//! large a stage's buffers are, and whether sent messages are released before the step ends.
//! - `name`: as the command-line tool spells it.
//! - `release_sends`: false keeps every sent message to the end of the step.
//! - `costs()`: the job table's entry for every rank and chunk.
//! - `limit()`: most memory of a rank, in the unit of `costs`; stretto::unlimited for none.
//! - `bytes(stage)`: what the stage's buffers hold.
//! - `layer(i)` (optional): what layer i adds to each job of its stage, and its weights' memory.
//!   Where an assignment says which layers a stage has, the table is their sums; of `costs()` only
//!   communication and hiding are then read.
//! - `recompute()` (optional): a recompute_window, which forwards run a second time.
//! - `offload()` (optional): an offload_window, what the host keeps between forward and backward.
template <class Memory>
concept Policy = requires(const Memory& made, int stage) {
  { Memory::name } -> std::convertible_to<std::string_view>;
  { Memory::release_sends } -> std::convertible_to<bool>;
  { made.costs() } -> std::same_as<unit_costs>;
  { made.limit() } -> std::same_as<std::int64_t>;
  { made.bytes(stage) } -> std::same_as<stage_bytes>;
};

//! A policy that knows layers.
template <class Memory>
concept by_layer = requires(const Memory& made) {
  { made.layer(0) } -> std::same_as<unit_costs>;
};

//! What it says of them, as a stretto::layer_costs.
template <by_layer Memory>
struct layers_of {
  constexpr unit_costs operator()(int layer) const { return Memory{}.layer(layer); }
};

}  // namespace stretto::memory
