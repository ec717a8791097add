#include "refusals.hpp"

#include <cstddef>
#include <vector>

#include "stretto/model/verdict_text.hpp"
#include "stretto/plan/report.hpp"

namespace stretto::tool {

namespace {

std::string without_amounts(verdict found) {
  found.amount = found.limit = 0;
  return std::string(to_text(found).view());
}

}  // namespace

std::string plain_amount(std::int64_t amount) {
  return std::to_string(amount);
}

verdict fullest(const replay_input& order, verdict found) {
  std::vector<rank_report> ranks(static_cast<std::size_t>(order.rows.ranks));
  (void)measure(order, ranks);  // peaks are those of the lists, even if their replay never ends
  for (int rank = 0; rank < order.rows.ranks; ++rank) {
    const std::int64_t peak = ranks[static_cast<std::size_t>(rank)].peak;
    const std::int64_t limit = order.costs.limit_of(rank);
    if (peak <= limit || peak <= found.amount) continue;
    found.rank = rank;
    found.amount = peak;
    found.limit = limit;
  }
  return found;
}

std::string needs_in_words(const verdict& fullest, const amount_text& amount) {
  return "needs " + amount(fullest.amount) + " on rank " + std::to_string(fullest.rank) +
         ", whose limit is " + amount(fullest.limit);
}

std::string refusal_of_order(const verdict& found, const replay_input& order,
                             const amount_text& amount) {
  if (found.what != fault::over_limit) return std::string(to_text(found).view());
  return without_amounts(found) + " (" + amount(found.amount) + ", at most " + amount(found.limit) +
         "); the order " + needs_in_words(fullest(order, found), amount);
}

least_limit least_of(const job_table_view& costs, bool plain) {
  if (costs.class_count() > 1) return least_limit::unknown;
  bool usual = plain;
  // See schedule::wave_limits_or_refuse.
  for (int rank = 0; rank < costs.ranks; ++rank)
    for (int chunk = 0; chunk < costs.chunks; ++chunk) {
      const job_cost& forward = costs.at(rank, chunk, job_kind::forward);
      const job_cost& input = costs.at(rank, chunk, job_kind::backward_input);
      const job_cost& weight = costs.at(rank, chunk, job_kind::backward_weight);
      usual = usual && forward.change >= 0 && forward.change + input.change >= 0 &&
              forward.change + input.change + weight.change == 0 && weight.change <= 0 &&
              weight.peak <= 0;
    }
  return usual ? least_limit::smallest : least_limit::enough;
}

std::string refusal_of_search(const verdict& found, least_limit is, const amount_text& amount) {
  if (found.what != fault::over_limit) return std::string(to_text(found).view());
  const std::string above = without_amounts(found) + ", " + amount(found.limit);
  switch (is) {
    case least_limit::smallest:
      return above + "; the smallest limit that will do is " + amount(found.amount);
    case least_limit::enough:
      return above + "; a limit of " + amount(found.amount) + " is enough";
    case least_limit::unknown:
      break;
  }
  return above + "; how much is enough is not known where micro-batches differ";
}

}  // namespace stretto::tool
