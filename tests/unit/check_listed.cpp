// Rule complete of plans of ops, by hand: what is no op of its entry, and entries that ops skip.
#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "stretto/check/as_listed.hpp"
#include "stretto/check/op_by_op.hpp"

namespace check_listed {
namespace {

using stretto::action;
using stretto::job;
using stretto::job_kind;
using stretto::reason;
using stretto::verdict;

struct listed_plan {
  std::vector<job> list;
  std::vector<stretto::instruction> instructions{};
  std::vector<stretto::op_part> parts{};

  //! An op of this job. @param ends  how many of the list's
  void op(const job& what, int ends, action act = action::run) {
    instructions.push_back({.what = what, .act = act});
    parts.push_back({.op = 0, .ends = static_cast<std::uint8_t>(ends)});
  }
  //! All of an entry.
  void whole(const job& what, action act = action::run) {
    instructions.push_back({.what = what, .act = act});
    parts.push_back({});
  }
  verdict judged() const {
    const auto count = static_cast<std::int32_t>(list.size());
    const stretto::plan_view plan{.instructions = instructions, .parts = parts};
    return stretto::check::as_listed(
        plan, {.rows = {list.data(), &count, 1, count}, .where = {.microbatches = 2}, .costs = {}});
  }
};

constexpr job first{0, 0, 0, job_kind::forward}, second{0, 1, 0, job_kind::forward};

TEST_CASE("ops that end more or fewer jobs than their node has skip an entry") {
  listed_plan made{{first, second}};
  made.op(first, 0);
  made.op(first, 1);
  made.op(second, 1);
  CHECK(made.judged().ok());
  listed_plan skips{{first, second}};
  skips.op(first, 0);
  skips.op(first, 2);
  CHECK(skips.judged().why == reason::not_as_listed);
  CHECK(skips.judged().step == 1);
  // Of a pair both end at once.
  job leads = first;
  leads.paired = true;
  const job other{0, 1, 0, job_kind::backward};
  listed_plan pair{{leads, other}};
  pair.op(first, 0);
  pair.op(other, 2);
  CHECK(pair.judged().ok());
  pair.parts[1].ends = 1;
  pair.op(other, 1);
  CHECK(pair.judged().why == reason::not_as_listed);
  CHECK(pair.judged().step == 1);
}

TEST_CASE("a job has each of its ops once, and as many as others of its kind") {
  //! By number; -1 ends the job.
  const auto with = [](const std::vector<std::vector<int>>& jobs) {
    listed_plan made{{first, second}};
    for (std::size_t of = 0; of < jobs.size(); ++of)
      for (std::size_t at = 0; at < jobs[of].size(); ++at) {
        made.op(of == 0 ? first : second, at + 1 == jobs[of].size() ? 1 : 0);
        made.parts.back().op = static_cast<std::int16_t>(jobs[of][at]);
      }
    const auto count = static_cast<std::int32_t>(made.list.size());
    const stretto::plan_view plan{.instructions = made.instructions, .parts = made.parts};
    return stretto::check::op_by_op(
        plan,
        {.rows = {made.list.data(), &count, 1, count}, .where = {.microbatches = 2}, .costs = {}});
  };
  CHECK(with({{0, 1, 2}, {2, 0, 1}}).ok());
  CHECK(with({{0}, {0}}).ok());
  const verdict twice = with({{0, 1, 2}, {0, 1, 1, 2}});
  CHECK(twice.why == reason::op_twice);
  CHECK(twice.step == 5);
  CHECK(twice.where == second);
  CHECK(with({{0, 0}, {0}}).why == reason::op_twice);
  for (const std::vector<int>& fewer : {std::vector{1, 2}, {0, 2}, {0, 1}, {1}}) {
    const verdict missing = with({{0, 1, 2}, fewer});
    CHECK(missing.why == reason::op_missing);
    CHECK(missing.step == 2 + static_cast<int>(fewer.size()));
    CHECK(missing.where == second);
  }
  CHECK(with({{0, 1}, {0, 1, 2}}).why == reason::op_missing);
  CHECK(with({{1, 2}, {1, 2}}).why == reason::op_missing);
  // Of a pair each half's are counted, and none may have none.
  const auto pair = [](bool other_half, std::int16_t number) {
    job leads = first;
    leads.paired = true;
    const job other{0, 1, 0, job_kind::backward};
    listed_plan made{{leads, other}};
    made.op(first, 0);
    made.op(other_half ? other : first, 2);
    made.parts.back().op = number;
    const std::int32_t count = 2;
    const stretto::plan_view plan{.instructions = made.instructions, .parts = made.parts};
    return stretto::check::op_by_op(
        plan,
        {.rows = {made.list.data(), &count, 1, 2}, .where = {.microbatches = 2}, .costs = {}});
  };
  CHECK(pair(true, 0).ok());
  CHECK(pair(true, 1).why == reason::op_missing);
  CHECK(pair(false, 1).why == reason::op_missing);
  CHECK(pair(false, 0).why == reason::op_twice);
}

TEST_CASE("what no job computes is in no ops") {
  for (const auto& [kind, act] : {std::pair{job_kind::send_forward, action::send},
                                  {job_kind::receive_backward, action::receive},
                                  {job_kind::offload, action::offload},
                                  {job_kind::reload, action::reload},
                                  {job_kind::all_reduce, action::all_reduce},
                                  {job_kind::reduce_grad, action::run},
                                  {job_kind::optimizer, action::run},
                                  {job_kind::end_step, action::end_step}}) {
    CAPTURE(static_cast<int>(kind));
    const job entry{.kind = kind};
    for (const action how : {act, action::run}) {
      listed_plan made{{entry}};
      made.op(entry, 1, how);
      CHECK(made.judged().why == reason::not_as_listed);
    }
  }
}

TEST_CASE("a job that has begun in ops is not run as a whole behind them") {
  listed_plan made{{first, second}};
  made.op(first, 0);
  made.whole(first);
  made.whole(second);
  CHECK(made.judged().why == reason::not_as_listed);
  CHECK(made.judged().step == 1);
  listed_plan left{{first}};
  left.op(first, 0);
  CHECK(left.judged().why == reason::missing);
}

TEST_CASE("nothing stands behind the list's end, whatever lies behind the list in memory") {
  const std::int32_t counts[] = {1, 1};
  const std::vector<job> rows{first, second};
  const std::vector<stretto::instruction> two{{.what = first}, {.what = second}};
  const stretto::plan_view plan{.instructions = two};
  const verdict found = stretto::check::as_listed(
      plan,
      {.rows = {rows.data(), counts, 2, 1}, .where = {.ranks = 2, .microbatches = 2}, .costs = {}});
  CHECK(found.why == reason::not_as_listed);
  CHECK(found.step == 1);
}

}  // namespace
}  // namespace check_listed
