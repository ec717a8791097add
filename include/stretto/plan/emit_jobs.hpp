#pragma once

#include <cstdint>
#include <vector>

#include "stretto/base/scratch.hpp"
#include "stretto/base/viewed.hpp"
#include "stretto/memory/windows.hpp"
#include "stretto/model/cost.hpp"
#include "stretto/model/job.hpp"
#include "stretto/model/placement.hpp"
#include "stretto/model/rows.hpp"
#include "stretto/model/shape.hpp"
#include "stretto/model/verdict.hpp"
#include "stretto/schedule/concept.hpp"

namespace stretto {

namespace detail {

//! Lists of the running function's own, which refuse what the sink of the caller's does.
struct scratch_lists {
  scratch<job> items;
  scratch<std::int32_t> counts;
  job_sink sink;

  constexpr scratch_lists(const job_sink& like, int stride)
      : items(std::int64_t{like.ranks} * stride),
        counts(like.ranks),
        sink{items.data(), counts.data(), like.ranks, stride, like.refused} {}
  constexpr ~scratch_lists() = default;  // nvcc needs it written
};

}  // namespace detail

//! The compute jobs of every rank: the schedule's, with recomputes and then copies put in.
//! @param schedule  that serves the shape
//! @param costs     the job table, which fits the shape's placement
//! @param seen      the same as memory::fold leaves it, where anything is put in
//! @param out       room for `put.room(schedule.capacity(sizes))` jobs a rank
//! @return what the schedule says of the costs; fault::unsupported for windows that are unsound, do
//!         not go together or are asked for with slices
template <schedule::Policy Schedule>
constexpr verdict emit_jobs(const Schedule& schedule, const shape& sizes,
                            const memory::windows& put, const job_table_view& costs,
                            const job_table_view& seen, job_sink& out) {
  if (!put.any() && put.sound()) return schedule.emit(sizes, costs, out);
  const placement where = place(schedule.placed(), sizes);
  const int room = schedule.capacity(sizes);
  detail::scratch_lists plain(out, room);
  verdict answer =
      memory::unfolded(schedule.emit(sizes, seen, plain.sink), costs.limit, seen.limit);
  if (!answer.ok()) return answer;
  detail::scratch_lists again(out, memory::with_recomputes(put.recompute, room));
  answer =
      memory::insert_recomputes(put.recompute, plain.sink.rows(), where, sizes.slices, again.sink);
  if (!answer.ok()) return answer;
  return memory::insert_offloads(put.offload, put.recompute, again.sink.rows(), where, sizes.slices,
                                 out);
}

//! The same into lists of its own making, at run time.
//! @return that, or what was wrong with the first job that there is no place for; see
//!         schedule::capacity_or_refuse
template <schedule::Policy Schedule>
verdict emit_jobs(const Schedule& schedule, const shape& sizes, const memory::windows& put,
                  const job_table_view& costs, job_lists& made) {
  if (const verdict sound = schedule::capacity_or_refuse(schedule, sizes); !sound.ok())
    return sound;
  std::vector<job_cost> entries(costs.entries.begin(), costs.entries.end());
  std::vector<std::int64_t> limits(costs.limit.begin(), costs.limit.end());
  memory::fold(put, {entries.data(), entries.size()}, costs.chunks, {limits.data(), limits.size()});
  job_table_view seen = costs;
  seen.entries = viewed(entries);
  seen.limit = viewed(limits);
  made = job_lists(sizes.ranks, put.room(schedule.capacity(sizes)));
  verdict refused{};
  job_sink out = made.sink();
  out.refused = &refused;
  const verdict answer = emit_jobs(schedule, sizes, put, costs, seen, out);
  return refused.ok() ? answer : refused;
}

}  // namespace stretto
