#include "stretto/executor/describe.hpp"

#include <string>

#include "stretto/model/job_text.hpp"

namespace stretto::executor {

std::string describe(const job& what) {
  if (static_cast<int>(what.kind) >= job_kind_count)
    return "a job of unknown kind " + std::to_string(static_cast<int>(what.kind));
  std::string text(to_text(what).view());
  text += " (";
  const bool of_a_group = is_collective(what.kind);
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

std::string name_of_rank(const plan_view& plan, int number) {
  if (plan.workers <= 1) return "rank " + std::to_string(number);
  return "rank " + std::to_string(number / plan.workers) + " worker " +
         std::to_string(number % plan.workers);
}

std::string describe(const plan_view& plan, int instruction) {
  return name_of_rank(plan, plan.rank) + ", instruction " + std::to_string(instruction) + ", " +
         describe(plan.instructions[static_cast<std::size_t>(instruction)].what);
}

}  // namespace stretto::executor
