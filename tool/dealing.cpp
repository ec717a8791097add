#include "dealing.hpp"

#include <utility>

#include "most_alive.hpp"

namespace stretto::tool {

cost_options evenly(cost_options costs) {
  costs.layers.evenly = true;
  return costs;
}

cost_options without_limit(cost_options costs) {
  costs.layers.within_limit = false;
  return costs;
}

cost_options as_kept(cost_options costs, std::vector<std::int32_t> alive) {
  costs.layers.alive = std::move(alive);
  return costs;
}

bool best_way::fits(const cost_options& way, std::int64_t length) {
  if (fits_ && length >= least_) return false;
  fits_ = true;
  least_ = length;
  way_ = way;
  return true;
}

void best_way::refused(const cost_options& way, const verdict& why) {
  // A search that knows no limit that is enough says 0.
  if (fits_ || why.what != fault::over_limit || why.amount == 0 || why.amount >= least_) return;
  least_ = why.amount;
  way_ = way;
}

void try_as_kept_by(const replay_input& order, const cost_options& costs, const best_way& best,
                    const std::function<void(const cost_options&)>& attempt) {
  cost_options ways[] = {costs, as_kept(costs, most_alive(order, false)),
                         as_kept(costs, most_alive(order, true))};
  attempt(ways[1]);
  attempt(ways[2]);
  constexpr std::int64_t most_jobs = 100'000;  // of more, each way takes seconds
  constexpr std::int64_t parts = 16;
  if (order.rows.total() > most_jobs) return;
  for (std::int64_t part = 1; part <= parts / 4 && !best.any(); ++part)
    for (cost_options& way : ways) {
      way.layers.spare = *costs.limit * part / parts;
      attempt(way);
    }
}

}  // namespace stretto::tool
