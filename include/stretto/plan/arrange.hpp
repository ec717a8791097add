#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <numeric>
#include <span>
#include <stdexcept>
#include <utility>
#include <vector>

#include "stretto/check/bounded.hpp"
#include "stretto/memory/windows.hpp"
#include "stretto/model/cost.hpp"
#include "stretto/model/costs_fit.hpp"
#include "stretto/plan/emit_jobs.hpp"
#include "stretto/plan/report.hpp"
#include "stretto/schedule/concept.hpp"

namespace stretto {

//! An order of micro-batches that take different times: the k-th of the step is number order[k] of
//! those that the job table speaks of.
struct arrangement {
  std::vector<std::int32_t> order;
  std::int64_t makespan = 0;  //!< below 0: no order is possible
  std::int64_t as_given = 0;  //!< of the order 0, 1, 2 ...; below 0: that is not possible
};

//! The table with its micro-batches in another order.
inline job_table arranged(const job_table& table, std::span<const std::int32_t> order) {
  job_table made = table;
  const auto slices = static_cast<std::size_t>(table.slices);
  for (std::size_t at = 0; at < order.size() && !table.classes.empty(); ++at)
    for (std::size_t slice = 0; slice < slices; ++slice)
      made.classes[at * slices + slice] =
          table.classes[static_cast<std::size_t>(order[at]) * slices + slice];
  return made;
}

namespace detail {

//! The search of arrange().
template <class MakespanOf>
class order_search {
 public:
  order_search(const job_table& table, int microbatches, MakespanOf& makespan_of)
      : table_(table), makespan_of_(makespan_of), given_(static_cast<std::size_t>(microbatches)) {
    std::iota(given_.begin(), given_.end(), 0);
    for (const std::int32_t one : given_) lengths_.push_back(length_of(one));
  }

  arrangement run(int tries) {
    best_ = {given_, makespan_of_(table_), 0};
    best_.as_given = best_.makespan;
    if (are_alike()) return best_;
    std::vector<std::int32_t> order = given_;
    std::ranges::stable_sort(order, std::greater<>{},
                             [&](std::int32_t one) { return lengths_[index(one)]; });
    consider(order);  // the longest first
    consider(ends_of(order));
    std::ranges::reverse(order);
    consider(order);
    consider(ends_of(order));
    if (are_within(tries)) {
      order = given_;
      const auto before = [&](std::int32_t one, std::int32_t other) {
        return classes_of(one) < classes_of(other);
      };
      std::ranges::sort(order, before);
      do consider(order);
      while (std::ranges::next_permutation(order, before).found);
      tidy();
      return best_;
    }
    // Then two change places, as long as that makes nothing longer.
    std::uint64_t drawn = 88172645463325252u;
    for (int tried = 0; tried < tries; ++tried) {
      order = best_.order;
      const std::size_t one = draw(drawn);
      const std::size_t other = draw(drawn);
      if (classes_of(order[one]) == classes_of(order[other])) continue;
      std::swap(order[one], order[other]);
      consider(order, true);
    }
    tidy();
    return best_;
  }

 private:
  static std::size_t index(std::int32_t at) { return static_cast<std::size_t>(at); }

  std::vector<std::int32_t> classes_of(std::int32_t microbatch) const {
    const auto slices = static_cast<std::ptrdiff_t>(table_.slices);
    if (table_.classes.empty()) return {};
    const auto from = table_.classes.begin() + microbatch * slices;
    return {from, from + slices};
  }
  bool are_alike() const {
    return std::ranges::all_of(
        given_, [&](std::int32_t one) { return classes_of(one) == classes_of(given_.front()); });
  }
  //! Whether there are no more orders than that, of which those of like ones are one.
  bool are_within(int tries) const {
    std::map<std::vector<std::int32_t>, std::int64_t> alike;
    std::int64_t orders = 1;
    std::int64_t count = 0;
    for (const std::int32_t one : given_) {
      orders = orders * ++count / ++alike[classes_of(one)];
      if (orders > tries) return false;
    }
    return true;
  }
  std::int64_t length_of(std::int32_t microbatch) const {
    std::int64_t sum = 0;
    for (const std::int32_t of : classes_of(microbatch))
      for (const job_cost& one : table_.view().of_class(of).entries) sum += one.time;
    return sum;
  }
  //! The first of the order at both ends of the step.
  static std::vector<std::int32_t> ends_of(const std::vector<std::int32_t>& order) {
    std::vector<std::int32_t> made(order.size());
    std::size_t first = 0;
    std::size_t last = order.size();
    for (std::size_t at = 0; at < order.size(); ++at)
      made[at % 2 == 0 ? first++ : --last] = order[at];
    return made;
  }
  //! Those that are alike stay in the order that they had.
  void tidy() {
    std::map<std::vector<std::int32_t>, std::vector<std::int32_t>> alike;
    for (const std::int32_t one : best_.order) alike[classes_of(one)].push_back(one);
    for (auto& [of, all] : alike) std::ranges::sort(all, std::greater<>{});
    for (std::int32_t& one : best_.order) {
      std::vector<std::int32_t>& left = alike[classes_of(one)];
      one = left.back();
      left.pop_back();
    }
  }
  std::size_t draw(std::uint64_t& drawn) const {  // xorshift, Marsaglia 2003
    drawn ^= drawn << 13U;
    drawn ^= drawn >> 7U;
    drawn ^= drawn << 17U;
    return static_cast<std::size_t>(drawn % given_.size());
  }
  void consider(const std::vector<std::int32_t>& order, bool equals = false) {
    const std::int64_t makespan = makespan_of_(arranged(table_, order));
    if (makespan < 0) return;
    if (best_.makespan >= 0 && (equals ? makespan > best_.makespan : makespan >= best_.makespan))
      return;
    best_.makespan = makespan;
    best_.order = order;
  }

  const job_table& table_;
  MakespanOf& makespan_of_;
  std::vector<std::int32_t> given_;
  std::vector<std::int64_t> lengths_;
  arrangement best_;
};

}  // namespace detail

//! In which order micro-batches of different classes (job_table::classes) make a short step: as
//! they are, by length up and down, the long ones in the middle or at both ends, and from the best
//! of these on by exchanges that make it no longer. Never longer than as they are, and where there
//! are no more orders than tries, in the best of all.
//! @param table        one that knows the class of each micro-batch
//! @param makespan_of  (const job_table&): of the step under it; below 0: it is not possible
//! @param tries        exchanges, each of which asks for it once
//! @throws std::invalid_argument for a table of another number of micro-batches
template <class MakespanOf>
arrangement arrange(const job_table& table, int microbatches, MakespanOf&& makespan_of,
                    int tries = 256) {
  const auto known = std::ssize(table.classes);
  if (microbatches < 1 || table.slices < 1 ||
      (known > 0 && known != std::int64_t{microbatches} * table.slices))
    throw std::invalid_argument("stretto::arrange: the table is not of so many micro-batches");
  return detail::order_search(table, microbatches, makespan_of).run(tries);
}

//! The same of a schedule's steps, within the table's limits.
//! @param put  what a memory policy puts in
//! @return without an order where the schedule does not serve the shape or the table does not fit
//! it
template <schedule::Policy Schedule>
arrangement arrange(const Schedule& made, const shape& sizes, const job_table& table,
                    const memory::windows& put = {}, int tries = 256) {
  const placement where = place(made.placed(), sizes);
  if (positive(sizes) != reason::none || !made.supports(sizes).ok() ||
      !costs_fit(table.view(), where, sizes.microbatches, sizes.slices).ok())
    return {.order = {}, .makespan = -1, .as_given = -1};
  std::vector<rank_report> ranks(static_cast<std::size_t>(sizes.ranks));
  const auto makespan_of = [&](const job_table& costs) -> std::int64_t {
    job_lists lists;
    if (!emit_jobs(made, sizes, put, costs.view(), lists).ok()) return -1;
    const replay_input input{.rows = lists.rows(),
                             .where = where,
                             .microbatches = sizes.microbatches,
                             .slices = sizes.slices,
                             .costs = costs.view()};
    if (!check::bounded(input).ok()) return -1;
    const report all = measure(input, ranks);
    return all.answer.ok() ? all.makespan : -1;
  };
  return arrange(table, sizes.microbatches, makespan_of, tries);
}

}  // namespace stretto
