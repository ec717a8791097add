#include "critical.hpp"

#include <array>
#include <cstddef>
#include <span>
#include <string_view>
#include <utility>

#include "stretto/model/job_text.hpp"
#include "table.hpp"

namespace stretto::tool {

namespace {

//! How many of one sort are on a path, and how long they take together.
struct share {
  int count = 0;
  std::int64_t time = 0;
};

//! Jobs by their kind, then pairs, messages, and what a measured step loses between a rank's jobs.
constexpr std::size_t pairs = job_kind_count, messages = pairs + 1, lost = messages + 1,
                      sorts = lost + 1;
using shares = std::array<share, sorts>;

shares by_sort(const job_rows& rows, std::span<const critical_job> path) {
  shares all;
  for (const critical_job& one : path) {
    const job& work = rows.at(one.rank, one.step);
    share& its = all[one.pair ? pairs : static_cast<std::size_t>(work.kind)];
    ++its.count;
    its.time += one.when.end - one.when.start;
    share& before = all[one.messages > 0 ? messages : lost];
    before.count += one.messages > 0 ? one.messages : one.waited > 0 ? 1 : 0;
    before.time += one.waited;
  }
  return all;
}

std::string_view name_of(std::size_t sort, std::string_view (*of_kind)(job_kind)) {
  return sort == pairs      ? "pairs"
         : sort == messages ? "messages"
         : sort == lost     ? "lost"
                            : of_kind(static_cast<job_kind>(sort));
}

std::string text_of(const job_rows& rows, const critical_job& one) {
  const job& work = rows.at(one.rank, one.step);
  std::string text(to_text(work).view());
  if (one.pair) text += ";" + std::string(to_text(rows.at(one.rank, one.step + 1)).view());
  return text;
}

//! Where a line of the table ends that begins at `at`: behind what follows on one rank, with no
//! more than a hundredth of the path lost before any, or, where that is one job, behind all stages
//! through which its micro-batch then goes at once.
std::size_t end_of_line(const job_rows& rows, const std::vector<critical_job>& path,
                        std::size_t at) {
  const auto stays = [&](std::size_t next) {
    return next < path.size() && path[next].rank == path[next - 1].rank &&
           path[next].messages == 0 && path[next].waited <= path.back().when.end / 100;
  };
  std::size_t next = at + 1;
  if (stays(next)) {
    while (stays(next)) ++next;
    return next;
  }
  if (path[at].pair) return next;
  const job begun = rows.at(path[at].rank, path[at].step);
  int ahead = 0, across = 0;  // stages and ranks from one to the next: 1 or -1
  for (; next < path.size() && path[next].messages > 0 && !stays(next + 1); ++next) {
    job expected = begun;
    const job& work = rows.at(path[next].rank, path[next].step);
    if (ahead == 0) {
      ahead = work.stage > begun.stage ? 1 : -1;
      across = path[next].rank > path[at].rank ? 1 : -1;
    }
    const int passed = static_cast<int>(next - at);
    expected.stage += ahead * passed;
    if (work != expected || path[next].rank != path[at].rank + across * passed) break;
  }
  return next;
}

}  // namespace

std::vector<std::int64_t> critical_by_rank(int ranks, const std::vector<critical_job>& path) {
  std::vector<std::int64_t> times(static_cast<std::size_t>(ranks));
  for (const critical_job& one : path)
    times[static_cast<std::size_t>(one.rank)] += one.when.end - one.when.start;
  return times;
}

std::string critical_text(const job_rows& rows, const finer_unit& time,
                          const std::vector<critical_job>& path) {
  std::string text = "critical path:";
  const shares all = by_sort(rows, path);
  for (std::size_t sort = 0; sort < sorts; ++sort)
    if (all[sort].count > 0)
      text.append(text.back() == ':' ? " " : ", ")
          .append(name_of(sort, words))
          .append(" " + time.text(all[sort].time) + " (" + std::to_string(all[sort].count) + ")");
  std::vector<std::vector<std::string>> table{
      {"rank", "from", "to", "jobs", "first", "last", "messages"}};
  if (all[lost].count > 0) table.front().push_back("lost");
  for (std::size_t at = 0; at < path.size();) {
    const std::size_t end = end_of_line(rows, path, at);
    const critical_job& first = path[at];
    const critical_job& last = path[end - 1];
    std::string rank = std::to_string(first.rank);
    if (last.rank != first.rank) rank += " to " + std::to_string(last.rank);
    const shares its = by_sort(rows, std::span(path).subspan(at, end - at));
    table.push_back({std::move(rank), time.text(first.when.start), time.text(last.when.end),
                     std::to_string(end - at), text_of(rows, first), text_of(rows, last),
                     its[messages].count > 0 ? time.text(its[messages].time) : std::string()});
    if (all[lost].count > 0)
      table.back().push_back(its[lost].count > 0 ? time.text(its[lost].time) : std::string());
    at = end;
  }
  return text + "\n\n" + print_table(table);
}

nlohmann::ordered_json critical_json(const job_rows& rows, const finer_unit& time,
                                     const std::vector<critical_job>& path) {
  nlohmann::ordered_json made{{"time", nlohmann::ordered_json::object()},
                              {"count", nlohmann::ordered_json::object()},
                              {"jobs", nlohmann::ordered_json::array()}};
  const shares all = by_sort(rows, path);
  for (std::size_t sort = 0; sort < sorts; ++sort) {
    if (all[sort].count == 0) continue;
    const std::string name(name_of(sort, letters));
    made["time"][name] = time.json(all[sort].time);
    made["count"][name] = all[sort].count;
  }
  for (const critical_job& one : path)
    made["jobs"].push_back({{"rank", one.rank},
                            {"job", text_of(rows, one)},
                            {"start", time.json(one.when.start)},
                            {"end", time.json(one.when.end)},
                            {"messages", one.messages},
                            {"waited", time.json(one.waited)}});
  return made;
}

}  // namespace stretto::tool
