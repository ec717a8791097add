#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "stretto/model/plan_view.hpp"
#include "stretto/model/replay_input.hpp"
#include "stretto/model/shape.hpp"
#include "stretto/model/stage_bytes.hpp"
#include "stretto/model/verdict.hpp"

namespace stretto::lowering {

//! No buffer is larger, 1 TiB: what 2^22 of them take together then stays in 64 bits.
inline constexpr std::int64_t most_bytes = std::int64_t{1} << 40;

//! Whether there can be such lists, for which room is made before a rule looks at them.
//! @return fault::incomplete for other ranks than the placement's, or, with its rank, a list of no
//!         possible length; fault::unsupported for more jobs than a step may have
constexpr verdict listed(const replay_input& compute) {
  const job_rows& rows = compute.rows;
  const placement& where = compute.where;
  if (rows.ranks != where.ranks) return refuse(fault::incomplete, reason::ranks_differ);
  if (positive({where.ranks, compute.microbatches, where.chunks, compute.slices}) ==
      reason::shape_too_large)
    return refuse(fault::unsupported, reason::shape_too_large);
  for (int rank = 0; rank < rows.ranks; ++rank)
    if (rows.counts[rank] < 0 || rows.counts[rank] > rows.stride) {
      verdict found = refuse(fault::incomplete, reason::list_out_of_range);
      found.rank = rank;
      found.amount = rows.counts[rank];
      found.limit = rows.stride;
      return found;
    }
  return {};
}

//! Whether plans can be written for these sizes and groups.
//! @param bytes   of every stage; one entry serves all
//! @param summed  whether replicas sum gradients
//! @param infos   the user's groups, which refer to `members`
//! @return ok; fault::misassigned for another number of entries; else fault::unsupported: of a size
//!         `where` names the stage, of a group its all-reduce, and `rank` is the member, if it is
//!         one that is wrong
constexpr verdict requested(std::span<const stage_bytes> bytes, int stages, bool summed,
                            std::span<const group_info> infos,
                            std::span<const std::int32_t> members, int ranks) {
  const auto is_size = [](std::int64_t size) { return size >= 0 && size <= most_bytes; };
  if (bytes.size() != 1 && bytes.size() != static_cast<std::size_t>(stages))
    return {.what = fault::misassigned,
            .why = reason::sizes_not_per_stage,
            .amount = static_cast<std::int64_t>(bytes.size()),
            .limit = stages};
  struct named_size {
    reason why;
    std::int64_t bytes;
  };
  for (std::size_t stage = 0; stage < bytes.size(); ++stage)
    for (const named_size& size :
         {named_size{reason::output_out_of_range, bytes[stage].output},
          named_size{reason::stash_out_of_range, bytes[stage].stash},
          named_size{reason::gradients_out_of_range, bytes[stage].gradients},
          named_size{reason::kept_out_of_range, bytes[stage].kept},
          named_size{reason::left_out_of_range, bytes[stage].left},
          named_size{reason::passing_out_of_range,
                     bytes[stage].passing == -1 ? 0 : bytes[stage].passing},
          named_size{reason::weights_out_of_range, bytes[stage].weights}})
      if (!is_size(size.bytes)) {
        verdict found = refuse(fault::unsupported, size.why, -1, -1,
                               {.stage = static_cast<std::int32_t>(stage)});
        found.amount = size.bytes;
        found.limit = most_bytes;
        return found;
      }
  for (std::size_t stage = 0; summed && stage < bytes.size(); ++stage)
    if (bytes[stage].gradients % 4 != 0)
      return refuse(fault::unsupported, reason::gradients_not_floats, -1, -1,
                    {.stage = static_cast<std::int32_t>(stage)});
  for (std::size_t group = 0; group < infos.size(); ++group) {
    const group_info& info = infos[group];
    const job sum{.microbatch = static_cast<std::int32_t>(group), .kind = job_kind::all_reduce};
    if (info.first < 0 || info.count < 1 ||
        static_cast<std::size_t>(info.first) + static_cast<std::size_t>(info.count) >
            members.size() ||
        !is_size(info.elements) || info.data_parallel || info.weights >= 0 || info.stage < -1 ||
        info.stage >= stages)
      return refuse(fault::unsupported, reason::group_unsound, -1, -1, sum);
    const std::span<const std::int32_t> of = members.subspan(static_cast<std::size_t>(info.first),
                                                             static_cast<std::size_t>(info.count));
    for (std::size_t at = 0; at < of.size(); ++at) {
      bool sound = of[at] >= 0 && of[at] < ranks;
      for (std::size_t before = 0; before < at; ++before) sound = sound && of[before] != of[at];
      if (!sound) return refuse(fault::unsupported, reason::group_unsound, of[at], -1, sum);
    }
  }
  return {};
}

}  // namespace stretto::lowering
