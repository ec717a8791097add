#pragma once

#include <cstdint>
#include <string_view>

#include "stretto/schedule/concept.hpp"
#include "stretto/schedule/parts/backward_walk.hpp"
#include "stretto/schedule/parts/microbatch_groups.hpp"

namespace stretto::schedule {

//! How many forwards precede the first backward of a rank, once its first group has been through
//! its other chunks.
enum class warmup_kind : std::uint8_t {
  standard,  //!< two for each rank that follows, which keep the pipeline full (Megatron-LM)
  half,      //!< one for each: enough where messages take no time, and p - 1 chunks' micro-batches
             //!< less to keep (PyTorch, of split backwards; of whole ones, in one group, Paddle's
             //!< VPPFhenBInBalancedMemory)
  paired,    //!< one more than standard, so that the forward and the backward of a round do not
             //!< need each other and run as one node (Megatron-LM's combined 1F1B, which overlaps
             //!< them)
  all,       //!< every one (Paddle's static graph at m = p)
};

//! Interleaved 1F1B, or virtual pipeline parallelism: v chunks per rank, visited in groups of
//! micro-batches, cut the bubble to (p - 1) / v where m >= p. Narayanan et al. 2021 (Megatron-LM),
//! which wants p | m; here any m >= 1. In k slices (costs are those of one) a group of p / k
//! micro-batches keeps all ranks busy: the bubble is one of slices, and what is kept shrinks with
//! the group. Seq1F1B-I (Sun et al. 2024, arXiv 2406.03488).
struct interleaved {
  static constexpr std::string_view name = "interleaved";
  //! Micro-batches per group, at least: 0 for the fewest that do, min(p / k, m), else from that to
  //! m. Megatron-LM's microbatch_group_size_per_vp_stage.
  int group = 0;
  remainder_kind remainder = remainder_kind::even;
  warmup_kind warmup = warmup_kind::standard;
  backwards_kind backwards = backwards_kind::groups;
  placement_kind placement = placement_kind::looped;

  constexpr placement_kind placed() const { return placement; }
  constexpr verdict supports(const shape& sizes) const {
    // On a wave the last stage is on rank 0 when v is even: the warm-up would slope the wrong way.
    if (placement != placement_kind::looped)
      return refuse(fault::unsupported, reason::placement_not_served);
    verdict sound = positive_or_refuse(sizes);
    if (sound) sound = group_or_refuse(sizes, group);
    if (sound && group > 0 && leads_too_late(sizes, groups_of(sizes)))
      return refuse(fault::unsupported, reason::group_starves_short);
    return sound;
  }
  constexpr int capacity(const shape& sizes) const {
    return 2 * sizes.microbatches * sizes.chunks * sizes.slices;
  }
  constexpr verdict emit(const shape& sizes, const job_table_view&, job_sink& out) const {
    const auto where = place(placement, sizes);
    const auto groups = groups_of(sizes);
    const int steps = groups.steps();
    const int full = steps - groups.short_last() * sizes.chunks * sizes.slices;
    const int lead = short_group_lead(sizes, groups);
    const bool paired = warmup == warmup_kind::paired;
    for (int rank = 0; rank < sizes.ranks; ++rank) {
      int forwards = 0;
      int back = 0;
      backward_walk walk(groups, backwards);
      const auto forward = [&](bool in_pair = false) {
        const auto visit = groups.at(forwards++);
        out.push(rank, {where.stage_of(rank, visit.chunk), visit.microbatch, visit.slice,
                        job_kind::forward, in_pair});
      };
      const auto backward = [&] {
        const auto visit = walk.next();
        ++back;
        out.push(rank, {where.stage_of(rank, visit.chunk), visit.microbatch, visit.slice,
                        job_kind::backward});
      };
      const auto round = [&] {
        forward(paired);
        backward();
      };
      const int first = warmup_steps(sizes, groups, rank);
      // A pair waits for both of its inputs: every rank has to be ahead of the next, also of one
      // that leads.
      const int begin = paired && first > full ? first : full;
      const int ahead = begin + lead < steps ? begin + lead : steps;
      // 1. Warm-up: w forwards.
      while (forwards < first) forward();
      // 2. Steady over the full groups: max(0, (m - q) v k - w) times a forward and a backward,
      //    where q is the length of a short last group, else 0.
      while (forwards < full) round();
      // 3. Lead into a short last group: 0, or q (v - 1) k of its forwards, less one unless paired.
      while (forwards < ahead) forward();
      // 4. Steady over the forwards that are left.
      while (forwards < steps) round();
      // 5. Cool-down: the backwards that are left.
      while (back < steps) backward();
    }
    return {};
  }

 private:
  //! Of a group that is not told: the fewest micro-batches that keep the pipeline full and live.
  constexpr microbatch_groups groups_of(const shape& sizes) const {
    microbatch_groups groups = group_microbatches(sizes, group, remainder);
    while (group == 0 && leads_too_late(sizes, groups))
      groups = group_microbatches(sizes, groups.size + 1, remainder);
    return groups;
  }

  //! One more forward before the first backward for pairs, whose outputs leave at their end.
  constexpr int more() const { return warmup == warmup_kind::paired ? 1 : 0; }
  //! Forwards for each rank that follows.
  constexpr int for_each() const { return warmup == warmup_kind::half ? 1 : 2; }
  //! By how many rounds rank 0's backwards run ahead of the last rank's: as many for each rank
  //! between, and the slices that stand before a micro-batch's last, which is the first to come
  //! back.
  constexpr int run_ahead(const shape& sizes) const {
    return for_each() * (sizes.ranks - 1) + sizes.slices - 1;
  }

  //! w = min(m v k, (v - 1) g k + 2 (p - 1 - r) + k - 1), with g the length of the first group: its
  //! first micro-batch goes through the rank's chunks, then two steps for each rank that follows,
  //! or one.
  constexpr int warmup_steps(const shape& sizes, const microbatch_groups& groups, int rank) const {
    if (warmup == warmup_kind::all) return groups.steps();
    const int wanted = (sizes.chunks - 1) * groups.first * sizes.slices + run_ahead(sizes) -
                       for_each() * rank + more();
    return wanted < groups.steps() ? wanted : groups.steps();
  }

  //! The standard warm-up is made for full groups. In a short one of q micro-batches, rank 0's
  //! forward of the next chunk comes q k steps on and waits for rank p - 1, whose forward stands
  //! behind a backward that comes g k steps after one of rank 0, which runs 2 (p - 1) + k - 1 steps
  //! ahead: a circle if (g + q) k < 2 (p - 1) + k - 1 (Paddle's static graph hangs there;
  //! Megatron-LM refuses it), of pairs also if they are equal. It is open when all of the short
  //! group's forwards but the last chunk's go before the next backward; one of them is the next
  //! round's own, unless that is a pair.
  constexpr int short_group_lead(const shape& sizes, const microbatch_groups& groups) const {
    const int rest = groups.short_last() * sizes.slices;
    const int lead = rest * (sizes.chunks - 1) - 1 + more();
    const bool circle = groups.size * sizes.slices + rest + 1 - more() <= run_ahead(sizes);
    return circle && lead > 0 ? lead : 0;
  }

  //! Whether that lead makes a circle of its own: rank p - 1's last backward before it needs one
  //! of rank 0's that stands behind rank 0's lead, unless two groups are as long as the ranks run
  //! ahead. One slice's always are.
  constexpr bool leads_too_late(const shape& sizes, const microbatch_groups& groups) const {
    return 2 * groups.size * sizes.slices < run_ahead(sizes) + more() &&
           short_group_lead(sizes, groups) > 0;
  }
};

}  // namespace stretto::schedule
