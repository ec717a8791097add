#pragma once

#include <algorithm>
#include <cstddef>
#include <map>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "stretto/model/job_text.hpp"
#include "stretto/plan/csv_comms.hpp"
#include "support/sample_lists.hpp"

//! What rule `sharded` must find, by letters and regular expressions; shares no code with the rule.
namespace oracle {

//! Of stages' parameters, not of micro-batches.
inline bool of_parameters(const job& work) {
  return work.kind == job_kind::unshard || work.kind == job_kind::reshard ||
         work.kind == job_kind::reduce_grad;
}

inline bool makes_gradients(const job& work) {
  return makes_gradient(work) || work.kind == job_kind::backward_weight;
}

//! A stage's jobs in a list: U, R, G, C for what computes, B for what makes gradients.
inline std::map<int, std::string> letters_of(const std::vector<job>& row) {
  std::map<int, std::string> found;
  for (const job& work : row) {
    if (stretto::is_message(work.kind)) continue;
    found[work.stage] += work.kind == job_kind::unshard       ? 'U'
                         : work.kind == job_kind::reshard     ? 'R'
                         : work.kind == job_kind::reduce_grad ? 'G'
                         : makes_gradients(work)              ? 'B'
                                                              : 'C';
  }
  return found;
}

inline std::string without(std::string letters, const std::string& some) {
  std::erase_if(letters, [&](char one) { return some.find(one) != std::string::npos; });
  return letters;
}

inline bool sharded(const lists& in) {
  static const std::regex dropped("(U[CB]*R)*");
  static const std::regex left("(U[CB]*R)*U[CB]*");
  static const std::regex reduced("C*|[CB]*BC*GC*");
  std::string all;
  for (const auto& row : in.ranks)
    for (const auto& [stage, letters] : letters_of(row)) all += letters;
  const bool gathers = all.find_first_of("UR") != std::string::npos;
  const bool reduces = all.find('G') != std::string::npos;
  std::size_t keeping = 0;
  for (const auto& row : in.ranks) {
    const auto last = std::find_if(row.rbegin(), row.rend(),
                                   [](const job& work) { return stretto::is_compute(work.kind); });
    for (const auto& [stage, letters] : letters_of(row)) {
      if (reduces && !std::regex_match(without(letters, "UR"), reduced)) return false;
      if (!gathers || std::regex_match(without(letters, "G"), dropped)) continue;
      if (reduces || stage != last->stage) return false;
      if (!std::regex_match(letters, left)) return false;
      ++keeping;
    }
  }
  return keeping == 0 || keeping == in.ranks.size();
}

}  // namespace oracle

namespace samples {

constexpr std::size_t all_ranks = static_cast<std::size_t>(-1);

inline lists with_pytorch_comms(const lists& made) {
  const oracle::packed rows(made);
  const stretto::job_lists storage = stretto::with_pytorch_comms(rows.input());
  lists with = with_rows(made, storage.rows());
  with.messages = true;
  return with;
}

//! Without the jobs of these kinds, on one rank or on all.
inline lists without(lists made, const std::set<job_kind>& kinds, std::size_t rank = all_ranks) {
  for (std::size_t each = 0; each < made.ranks.size(); ++each)
    if (rank == all_ranks || rank == each)
      std::erase_if(made.ranks[each], [&](const job& work) { return kinds.contains(work.kind); });
  return made;
}

//! As PyTorch wrote it before there was REDUCE_GRAD: what a rank uses last stays gathered.
inline lists older(const lists& made) {
  lists found = without(made, {job_kind::reduce_grad});
  for (auto& row : found.ranks) row.pop_back();
  return found;
}

//! What of the samples PyTorch's grammar can say, and more stages than are gathered at once.
inline std::vector<sample> lowered_for_pytorch() {
  const stretto::shape many{.ranks = 2, .microbatches = 3, .chunks = 5};
  std::vector<sample> found = all();
  found.push_back({"five stages a rank", emitted(stretto::schedule::gpipe{}, many)});
  std::erase_if(found, [](const sample& one) {
    const auto has_form = [](const job& work) { return stretto::has_pytorch_form(work); };
    return one.made.where.kind == stretto::placement_kind::bidirectional ||
           !std::all_of(one.made.ranks.begin(), one.made.ranks.end(), [&](const auto& row) {
             return std::all_of(row.begin(), row.end(), has_form);
           });
  });
  for (std::size_t one = 0, count = found.size(); one < count; ++one) {
    found[one].made = with_pytorch_comms(found[one].made);
    found.push_back({found[one].name + ", older", older(found[one].made)});
  }
  return found;
}

}  // namespace samples
