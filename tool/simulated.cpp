#include "simulated.hpp"

#include <cstddef>
#include <string>

#include "errors.hpp"
#include "stretto/model/verdict_text.hpp"

namespace stretto::tool {

simulated simulate(const step& from, bool with_timeline) {
  const replay_input input = from.input();
  const auto ranks = static_cast<std::size_t>(input.rows.ranks);
  const std::size_t places = ranks * static_cast<std::size_t>(input.rows.stride);
  simulated made{
      {}, std::vector<rank_report>(ranks), std::vector<job_time>(with_timeline ? places : 0)};
  made.all = measure(input, made.ranks, made.timeline);
  if (!made.all.answer.ok())
    throw broken_schedule(from.schedule + ": " + std::string(to_text(made.all.answer).view()));
  return made;
}

std::int64_t length_of(const step& made, schedule::objective_kind objective) {
  const report all = simulate(made, false).all;
  return objective == schedule::objective_kind::span ? all.span : all.makespan;
}

}  // namespace stretto::tool
