#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "stretto/base/text.hpp"
#include "stretto/model/job_text.hpp"
#include "stretto/model/plan_view.hpp"

namespace stretto {

//! What the parts of a plan are called: the enumerators as plan_view.hpp spells them; "?" for what
//! is none.
constexpr std::string_view name(action what) {
  switch (what) {
    case action::run:
      return "run";
    case action::send:
      return "send";
    case action::receive:
      return "receive";
    case action::offload:
      return "offload";
    case action::reload:
      return "reload";
    case action::all_reduce:
      return "all_reduce";
    case action::end_step:
      return "end_step";
    case action::share_sum:
      return "share_sum";
    case action::all_gather:
      return "all_gather";
    case action::reduce_scatter:
      return "reduce_scatter";
  }
  return "?";
}
constexpr std::string_view name(wait_reason why) {
  switch (why) {
    case wait_reason::data:
      return "data";
    case wait_reason::gate:
      return "gate";
    case wait_reason::starts_before:
      return "starts_before";
    case wait_reason::bound:
      return "bound";
    case wait_reason::lead:
      return "lead";
  }
  return "?";
}
constexpr std::string_view name(buffer_role role) {
  switch (role) {
    case buffer_role::input:
      return "input";
    case buffer_role::output:
      return "output";
    case buffer_role::stash:
      return "stash";
    case buffer_role::kept:
      return "kept";
    case buffer_role::left:
      return "left";
    case buffer_role::output_gradient:
      return "output_gradient";
    case buffer_role::input_gradient:
      return "input_gradient";
    case buffer_role::collective:
      return "collective";
    case buffer_role::weights:
      return "weights";
    case buffer_role::host:
      return "host";
    case buffer_role::workspace:
      return "workspace";
  }
  return "?";
}
constexpr std::string_view name(access mode) {
  switch (mode) {
    case access::read:
      return "read";
    case access::write:
      return "write";
    case access::read_write:
      return "read_write";
  }
  return "?";
}
//! The stream's name, which points into it.
constexpr std::string_view name(const stream_info& stream) {
  std::size_t count = 0;
  while (count < sizeof stream.name && stream.name[count] != '\0') ++count;
  return {stream.name, count};
}

//! Long enough for every instruction.
using instruction_text = fixed_text<96>;

//! An instruction by its job, `2F0`; of an op `2F0 op 3`, of a piece `2F0 op 3 piece 1/2`.
constexpr instruction_text to_text(const plan_view& plan, std::int32_t index) {
  instruction_text text;
  text << to_text(plan.instructions[static_cast<std::size_t>(index)].what).view();
  const op_part part = plan.part_of(index);
  if (part.op >= 0) text << std::string_view(" op ") << part.op;
  if (part.pieces > 1) text << std::string_view(" piece ") << part.piece + 1 << '/' << part.pieces;
  return text;
}

}  // namespace stretto
