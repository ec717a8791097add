#include <cstring>
#include <string>
#include <string_view>

#include "stretto/executor/validate.hpp"
#include "stretto/model/job_text.hpp"

namespace stretto::executor {
namespace {

std::string_view words(job_kind kind) {
  switch (kind) {
    case job_kind::forward:
      return "forward";
    case job_kind::backward:
      return "backward";
    case job_kind::backward_input:
      return "backward for the input";
    case job_kind::backward_weight:
      return "backward for the weights";
    case job_kind::recompute:
      return "recompute";
    case job_kind::send_forward:
      return "send of activations";
    case job_kind::receive_forward:
      return "receive of activations";
    case job_kind::send_backward:
      return "send of a gradient";
    case job_kind::receive_backward:
      return "receive of a gradient";
    case job_kind::offload:
      return "offload";
    case job_kind::reload:
      return "reload";
    case job_kind::unshard:
      return "unshard";
    case job_kind::reshard:
      return "reshard";
    case job_kind::reduce_grad:
      return "gradient reduction";
    case job_kind::all_reduce:
      return "all-reduce";
    case job_kind::optimizer:
      return "optimizer";
    case job_kind::end_step:
      return "end of the step";
  }
  return "unknown kind";
}

}  // namespace

std::string describe(const job& what) {
  if (static_cast<int>(what.kind) >= job_kind_count)
    return "a job of unknown kind " + std::to_string(static_cast<int>(what.kind));
  std::string text(to_text(what).view());
  text += " (";
  const bool of_a_group = what.kind == job_kind::all_reduce;
  const bool of_the_rank = what.kind == job_kind::optimizer || what.kind == job_kind::end_step;
  if (!of_a_group && !of_the_rank) text += "stage " + std::to_string(what.stage) + ", ";
  text += words(what.kind);
  if (of_a_group)
    text += ", group " + std::to_string(what.microbatch);
  else if (names_microbatch(what.kind))
    text += ", micro-batch " + std::to_string(what.microbatch);
  if (what.slice != 0) text += ", slice " + std::to_string(what.slice);
  return text + ')';
}

std::string describe(const plan_view& plan, int instruction) {
  return "rank " + std::to_string(plan.rank) + ", instruction " + std::to_string(instruction) +
         ", " + describe(plan.instructions[static_cast<std::size_t>(instruction)].what);
}

std::string label(const plan_view& plan, int instruction) {
  std::string name(to_text(plan.instructions[static_cast<std::size_t>(instruction)].what).view());
  const op_part part = plan.part_of(instruction);
  if (part.op >= 0) name += " op " + std::to_string(part.op);
  if (part.pieces > 1)
    name += " piece " + std::to_string(part.piece + 1) + "/" + std::to_string(part.pieces);
  return name;
}

std::string_view label(const stream_info& stream) {
  return {stream.name, strnlen(stream.name, sizeof stream.name)};
}

}  // namespace stretto::executor
