#include <doctest/doctest.h>

#include <map>
#include <string>

#include "support/csv_files.hpp"

namespace {

using stretto::csv_fault;
using stretto::fault;
using stretto::reason;

TEST_CASE("every broken file is refused, with row, cell and rule") {
  struct expected {
    fault what;
    reason why;
    int row;
    int cell;
  };
  const std::map<std::string, expected> all{
      {"b_without_w.csv", {fault::incomplete, reason::weight_gradient_missing, 1, 2}},
      {"backward_before_forward.csv", {fault::disordered, reason::needs_earlier, 1, 3}},
      {"bad_token.csv", {fault::syntax, reason::bad_token, 1, 2}},
      {"comm_in_compute_only.csv", {fault::rendezvous, reason::unexpected_communication, 1, 2}},
      {"cross_rank_deadlock.csv", {fault::deadlocked, reason::waits_forever, 1, 2}},
      {"dropped_before_backward.csv", {fault::missharded, reason::not_gathered, 1, 10}},
      {"dropped_before_forward.csv", {fault::missharded, reason::not_gathered, 1, 4}},
      {"dropped_twice.csv", {fault::missharded, reason::not_gathered, 2, 12}},
      {"duplicate_backward.csv", {fault::incomplete, reason::duplicate, 1, 4}},
      {"duplicate_forward.csv", {fault::incomplete, reason::duplicate, 1, 2}},
      {"empty_rank_row.csv", {fault::syntax, reason::empty_row, 2, 0}},
      {"gathered_elsewhere.csv", {fault::incomplete, reason::wrong_rank, 1, 1}},
      {"gathered_for_reduced.csv", {fault::missharded, reason::gathered_twice, 1, 45}},
      {"gathered_on_one_rank.csv", {fault::missharded, reason::not_gathered, 1, 1}},
      {"gathered_twice.csv", {fault::missharded, reason::gathered_twice, 2, 5}},
      {"i_w_and_b_both.csv", {fault::incomplete, reason::both_whole_and_split, 1, 4}},
      {"left_on_one_rank.csv", {fault::missharded, reason::never_dropped, 2, 1}},
      {"microbatch_out_of_range.csv", {fault::incomplete, reason::missing, 1, 2}},
      {"missing_microbatch.csv", {fault::incomplete, reason::missing, 1, 0}},
      {"never_dropped.csv", {fault::missharded, reason::never_dropped, 2, 1}},
      {"never_gathered.csv", {fault::missharded, reason::not_gathered, 1, 1}},
      {"not_reduced.csv", {fault::missharded, reason::missing, 1, 44}},
      {"reduced_before_backward.csv", {fault::disordered, reason::needs_earlier, 1, 9}},
      {"reduced_twice.csv", {fault::missharded, reason::duplicate, 1, 11}},
      {"reduced_without_backward.csv", {fault::missharded, reason::nothing_to_reduce, 2, 7}},
      {"stage_on_two_ranks.csv", {fault::incomplete, reason::wrong_rank, 2, 5}},
      {"torch_1f1b_ir_last_rank.csv", {fault::incomplete, reason::missing, 2, 3}},
      {"trailing_garbage.csv", {fault::syntax, reason::trailing_text, 1, 1}},
      {"w_before_i.csv", {fault::disordered, reason::needs_earlier, 1, 2}}};
  const auto bad = csv_files::files("csv_invalid");
  CHECK(bad.size() == all.size());
  for (const auto& path : bad) {
    INFO(path.filename().string());
    const csv_fault found = csv_files::accept(csv_files::contents(path));
    const auto at = all.find(path.filename().string());
    REQUIRE(at != all.end());
    INFO(found.sentence());
    CHECK(found.what.what == at->second.what);
    CHECK(found.what.why == at->second.why);
    CHECK(found.row == at->second.row);
    CHECK(found.cell == at->second.cell);
  }
}

}  // namespace
