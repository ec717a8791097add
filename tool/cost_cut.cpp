#include "cost_cut.hpp"

#include <algorithm>
#include <cstddef>
#include <map>
#include <vector>

namespace stretto::tool {

namespace {

//! Of one chunk of `parts`, what `chunks` chunks of the table do one after another.
job_cost share(const job_table_view& table, int rank, job_kind kind, int parts) {
  job_cost sum;
  for (int chunk = 0; chunk < table.chunks; ++chunk) add_behind(sum, table.at(rank, chunk, kind));
  return {sum.time / parts, sum.change / parts, sum.peak / parts};
}

//! What a job takes that does the work of several slices, one after another.
//! @param classes  of the slices
job_cost joined(const job_table& given, const placement& where, int rank, int chunk, job_kind kind,
                const std::vector<std::int32_t>& classes) {
  const int parts = where.chunks_one_way();
  job_cost sum;
  for (const std::int32_t number : classes) {
    const job_table_view table = given.view().of_class(number);
    const job_cost one = given.chunks != parts ? share(table, rank, kind, parts)
                                               : table.at(rank, chunk % parts, kind);
    if (classes.size() == 1) return one;
    add_behind(sum, one);
  }
  return sum;
}

}  // namespace

void add_behind(job_cost& sum, const job_cost& one) {
  sum.peak = std::max({sum.peak, sum.change + one.peak, sum.change + one.change});
  sum.time += one.time;
  sum.change += one.change;
}

void refine(job_table& table, const cost_cut& cut) {
  table.communication *= cut.times;
  table.between_nodes *= cut.times;
  for (job_cost& one : table.entries)
    one = {one.time * cut.times, one.change * cut.amounts, one.peak * cut.amounts};
  for (auto* all : {&table.base, &table.limit})
    for (std::int64_t& one : *all) one *= cut.amounts;
}

void join_messages(job_table& table, const cost_cut& cut) {
  if (!table.serial_links) return;
  table.communication *= cut.joined;
  table.between_nodes *= cut.joined;
}

job_table cut_anew(const job_table& given, const placement& where, const cost_cut& cut) {
  job_table table(where.ranks, where.chunks);
  table.communication = given.communication;
  table.between_nodes = given.between_nodes;
  table.node_ranks = given.node_ranks;
  table.serial_links = given.serial_links;
  table.pair_hides = given.pair_hides;
  table.base = given.base;
  table.limit = given.limit;
  table.slices = cut.slices;
  const auto many = static_cast<std::size_t>(cut.joined);
  std::vector<std::vector<std::int32_t>> made;  // of each class: those of a job's slices
  std::map<std::vector<std::int32_t>, std::int32_t> numbers;
  for (std::size_t first = 0; first < given.classes.size(); first += many) {
    const auto from = given.classes.begin() + static_cast<std::ptrdiff_t>(first);
    const auto [found, fresh] = numbers.try_emplace(std::vector(from, from + cut.joined),
                                                    static_cast<std::int32_t>(made.size()));
    if (fresh) made.push_back(found->first);
    table.classes.push_back(found->second);
  }
  if (made.empty()) made.emplace_back(many);
  for (std::size_t more = 1; more < made.size(); ++more) table.add_class();
  for (std::size_t number = 0; number < made.size(); ++number)
    for (int at = 0; at < cost_kinds; ++at) {
      const auto kind = static_cast<job_kind>(at);
      std::vector<std::int32_t> classes = made[number];
      if (is_of_stage(kind)) classes.resize(1);  // of all slices together
      if (kind >= job_kind::backward && kind <= job_kind::backward_weight)
        std::ranges::reverse(classes);
      for (int rank = 0; rank < where.ranks; ++rank)
        for (int chunk = 0; chunk < where.chunks; ++chunk)
          table.at(static_cast<int>(number), rank, chunk, kind) =
              joined(given, where, rank, chunk, kind, classes);
    }
  return table;
}

}  // namespace stretto::tool
