#pragma once

#include <charconv>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "stretto/assignment/balanced.hpp"
#include "stretto/assignment/covered.hpp"
#include "stretto/assignment/even.hpp"
#include "stretto/assignment/layout.hpp"
#include "stretto/assignment/rank_list.hpp"
#include "stretto/assignment/round_robin.hpp"
#include "stretto/assignment/table.hpp"
#include "stretto/model/verdict_text.hpp"

namespace stretto::assignment {

//! An assignment in words, for command lines and files; the policies by their names:
//!   even:32 (or 32)                   32 layers, as evenly as can be
//!   round_robin:9,8,8,7 (or 9,8,8,7)  layers of every rank
//!   rank_list:0,0,1,1                 the rank of every layer
//!   table:3,2,2,1, sparse_table:...   layers of every stage
//!   layout:Et*3|(tt|)*29,m|L (or without layout:)
//!   balanced:32                       32 layers, by their costs
class described {
 public:
  static constexpr int most_layers = 100'000;
  static constexpr int most_balanced = 4096;  //!< whose table of cuts stays small

  described() = default;
  //! `complaint()` says what is wrong with the text, if anything is.
  explicit described(std::string_view text) { read(text); }

  const std::string& complaint() const { return complaint_; }
  const std::string& name() const { return name_; }
  int layers() const { return layers_; }
  //! Stages that it is made for; 0 when it deals to any number.
  int stages() const {
    return name_ == "layout" ? read_layout(layout_).stages
           : holds_table()   ? static_cast<int>(numbers_.size())
                             : 0;
  }
  //! Ranks that it is made for; 0 when it does not say.
  int ranks() const { return name_ == "round_robin" ? static_cast<int>(numbers_.size()) : 0; }
  //! E, t, m or L of every layer; empty when it is no layout.
  std::string letters() const {
    std::string all;
    if (name_ != "layout") return all;
    all.resize(static_cast<std::size_t>(layers_));
    (void)read_layout(layout_, {}, all);
    return all;
  }

  //! Deals the layers, whose costs and whose limits matter to `balanced` alone.
  //! @param bound what the slowest rank takes at least; unchanged when not by cost
  template <layer_costs Costs>
  verdict assign(const placement& where, std::span<layer_range> stages, const Costs& costs,
                 const balance_limits& limits = {}, std::int64_t* bound = nullptr) const {
    verdict answer;
    if (name_ == "even") {
      answer = deal_evenly(layers_, where, stages);
    } else if (name_ == "round_robin") {
      answer = deal_round_robin(numbers_, where, stages);
    } else if (name_ == "rank_list") {
      answer = deal_list(numbers_, where, stages);
    } else if (holds_table()) {
      answer = deal_table(numbers_, where, stages, may_be_empty());
    } else if (name_ == "layout") {
      answer = deal_layout(layout_, where, stages);
    } else {
      const balance_result made = deal_balanced(layers_, where, stages, costs, limits);
      answer = made.answer;
      if (bound != nullptr) *bound = made.bound;
    }
    if (!answer.ok()) return answer;
    return covered(stages.first(static_cast<std::size_t>(where.stages())), layers_, where,
                   may_be_empty());
  }
  //! The answer as a sentence; of a list of ranks with all layers that would have to move.
  std::string explain(const verdict& answer, const placement& where) const {
    std::string text(to_text(answer).view());
    if (answer.why != reason::layer_misplaced) return text;
    std::vector<layer_range> dealt(static_cast<std::size_t>(where.stages()));
    (void)deal_counts(numbers_, where, dealt);
    int told = 0;
    for (verdict next = answer; told < 8; ++told) {
      next = first_misplaced(numbers_, where, dealt, static_cast<int>(next.amount) + 1);
      if (next.ok()) return text;
      text += (told == 0 ? "; and layer " : ", ") + std::to_string(next.amount) + " on rank " +
              std::to_string(next.limit);
    }
    return text + ", ...";
  }

 private:
  bool holds_table() const { return name_ == "table" || name_ == "sparse_table"; }
  bool may_be_empty() const { return name_ == "sparse_table" || name_ == "layout"; }

  void read(std::string_view text) {
    const std::size_t colon = text.find(':');
    const std::string_view rest = colon == text.npos ? text : text.substr(colon + 1);
    name_ = colon == text.npos ? std::string() : std::string(text.substr(0, colon));
    const bool digits = !rest.empty() && rest.front() >= '0' && rest.front() <= '9';
    if (colon == text.npos)
      name_ = !digits ? "layout" : rest.find(',') == rest.npos ? "even" : "round_robin";
    if (name_ == "layout") {
      layout_ = rest;
      const layout_size size = read_layout(layout_);
      layers_ = size.layers;
      if (!size.answer.ok()) complaint_ = to_text(size.answer).view();
    } else if (name_ == "even" || name_ == "balanced" || name_ == "round_robin" ||
               name_ == "rank_list" || holds_table()) {
      read_numbers(rest);
    } else {
      complaint_ =
          "no such assignment; there are even:N, round_robin:N,..., rank_list:R,..., "
          "table:N,..., sparse_table:N,..., layout:..., balanced:N";
    }
    const int most = name_ == "balanced" ? most_balanced : most_layers;
    if (complaint_.empty() && layers_ < 1) complaint_ = "there must be at least one layer";
    if (complaint_.empty() && layers_ > most)
      complaint_ = "at most " + std::to_string(most) + " layers";
  }
  void read_numbers(std::string_view text) {
    const bool one = name_ == "even" || name_ == "balanced";
    std::int64_t sum = 0;
    const char* at = text.data();
    const char* const end = at + text.size();
    for (bool more = true; more;) {
      std::int32_t number = 0;
      const auto got = std::from_chars(at, end, number);
      more = got.ptr != end;
      if (got.ec != std::errc{} || number < 0 || (more && *got.ptr != ',')) {
        complaint_ = one ? "expected one number of layers"
                         : "expected numbers between commas, as in 5,3";
        return;
      }
      numbers_.push_back(number);
      sum += number;
      at = got.ptr + 1;
    }
    if (one && numbers_.size() != 1) complaint_ = "expected one number of layers";
    if (name_ == "rank_list") sum = static_cast<std::int64_t>(numbers_.size());
    layers_ = static_cast<int>(sum > most_layers ? most_layers + 1 : sum);
  }

  std::string name_;
  std::string complaint_;
  std::string layout_;
  std::vector<std::int32_t> numbers_;
  int layers_ = 0;
};

}  // namespace stretto::assignment
