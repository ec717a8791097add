#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <type_traits>

#include "stretto/assignment/concept.hpp"
#include "stretto/assignment/covered.hpp"
#include "stretto/assignment/unassigned.hpp"
#include "stretto/lowering/groups.hpp"
#include "stretto/lowering/plan_storage.hpp"
#include "stretto/lowering/requested.hpp"
#include "stretto/memory/concept.hpp"
#include "stretto/memory/release_early.hpp"
#include "stretto/memory/windows.hpp"
#include "stretto/model/costs_fit.hpp"
#include "stretto/model/replay_input.hpp"
#include "stretto/plan/emit_jobs.hpp"
#include "stretto/schedule/concept.hpp"
#include "stretto/schedule/variants.hpp"

namespace stretto {

namespace detail {

//! The first part of a pipeline: what the policies say of the shape, and the compute jobs that the
//! schedule makes of it. Each part is a constant of its own, evaluated when it is first used.
template <shape Shape, class Schedule, class Assignment, class Memory, class Groups>
class pipeline_jobs {
  // Asked first, lest a compiler say through what of all below it has come there.
  static_assert((memory::detail::refuse_misspelled<Memory>(), true));
  static_assert((memory::detail::refuse_untold<
                     Memory, !std::is_same_v<Assignment, assignment::unassigned>>(),
                 true));

 public:
  static constexpr shape sizes = Shape;
  static constexpr placement where = place(Schedule{}.placed(), Shape);
  //! No job computes a gradient, and no optimizer ends the step.
  static constexpr bool forward_only = schedule::forward_only(Schedule{});

 protected:
  static constexpr bool sized = positive(Shape) == reason::none;
  static constexpr int stage_room = sized ? where.stages() : 1;
  static constexpr std::size_t assigned_room =
      std::is_same_v<Assignment, assignment::unassigned> ? 0 : stage_room;

 public:
  //! Layers of every stage, in pipeline order; empty when no assignment is given.
  static constexpr std::array<assignment::layer_range, assigned_room> layers = [] {
    std::array<assignment::layer_range, assigned_room> made{};
    if constexpr (assigned_room > 0 && sized) (void)Assignment{}.assign(where, made);
    return made;
  }();
  //! What the schedule says of the shape, then the assignment of its layers.
  static constexpr verdict supported = [] {
    verdict found = schedule::positive_or_refuse(Shape);
    if (found.ok()) found = Schedule{}.supports(Shape);
    if (found.ok() && !where.sound())
      found = refuse(fault::unsupported, reason::placement_not_served);
    if (found.ok()) found = schedule::capacity_or_refuse(Schedule{}, Shape);
    std::array<assignment::layer_range, assigned_room> made{};
    if (assigned_room > 0 && found.ok()) found = Assignment{}.assign(where, made);
    if (assigned_room > 0 && found.ok())
      found = assignment::covered(made, Assignment{}.layers(), where,
                                  assignment::leaves_empty<Assignment>);
    return found;
  }();

 protected:
  static constexpr int ranks = supported.ok() ? Shape.ranks : 1;
  static constexpr int chunks = supported.ok() ? where.chunks : 1;
  static constexpr memory::windows put_in = memory::windows_of(Memory{});
  static constexpr int compute_room = put_in.room(supported.ok() ? Schedule{}.capacity(Shape) : 1);
  static constexpr int replicated =
      supported.ok() && !forward_only ? lowering::replicated_stages(where) : 0;
  static constexpr bool has_replicas = requires { requires Groups::reduces; };
  //! Of how many stages at once a rank has the weights, where replicas gather them; else 0.
  static constexpr int gathered = [] {
    if constexpr (requires { Groups::gathered; }) return has_replicas ? Groups::gathered : 0;
    return 0;
  }();
  // What replicas do together: forwards alone have no gradients to sum.
  static constexpr bool grouped = supported.ok() && has_replicas && (!forward_only || gathered > 0);
  static constexpr int summed = grouped ? lowering::summed_stages(where) : 0;
  static constexpr int group_count =
      summed + replicated + static_cast<int>(std::size(Groups::infos));
  // No rank takes part in the sums of another's data-parallel replicas.
  static constexpr int held_groups = group_count - summed + (grouped ? chunks : 0);
  template <class T>
  using per_rank = std::array<T, static_cast<std::size_t>(ranks)>;
  template <class T>
  using per_stage = std::array<T, static_cast<std::size_t>(stage_room)>;
  template <class T>
  using per_group = std::array<T, static_cast<std::size_t>(group_count)>;

  // Types are written out below: an `auto` member would be evaluated with the class.
  static constexpr fixed_job_table<ranks, chunks> table_ = [] {
    fixed_job_table<ranks, chunks> made{Memory{}.costs()};
    if constexpr (memory::by_layer<Memory> && assigned_room > 0)
      if (supported.ok())
        write_layer_costs(where, layers, memory::layers_of<Memory>{}, made.entries, made.base);
    return made;
  }();
  static constexpr per_rank<std::int64_t> limits_ = [] {
    per_rank<std::int64_t> made{};
    for (std::int64_t& limit : made) limit = Memory{}.limit();
    return made;
  }();
  struct folded_costs {
    fixed_job_table<ranks, chunks> table{};
    per_rank<std::int64_t> limits{};
  };
  static constexpr folded_costs folded_ = [] {
    folded_costs made{table_, limits_};
    memory::fold(put_in, made.table.entries, ranks, chunks, made.limits);
    return made;
  }();
  static constexpr per_stage<stage_bytes> bytes_ = [] {
    per_stage<stage_bytes> made{};
    memory::write_stage_bytes(Memory{}, layers, made);
    return made;
  }();
  static constexpr verdict requested_ =
      lowering::requested(bytes_, stage_room, !forward_only && replicated + summed > 0,
                          Groups::infos, Groups::members, ranks);
  struct group_table {
    per_group<group_info> infos{};
    std::array<std::int32_t,
               std::size_t{summed} + 2 * std::size_t{replicated} + std::size(Groups::members)>
        members{};
  };
  static constexpr group_table group_table_ = [] {
    group_table made;
    if (!requested_.ok()) return made;
    lowering::write_groups(
        where, grouped, gathered > 0, replicated,
        [](int stage) {
          stage_bytes each = bytes_[static_cast<std::size_t>(stage)];
          if (forward_only) each.gradients = 0;
          return each;
        },
        Groups::infos, Groups::members, made.infos.data(), made.members.data());
    return made;
  }();
  static constexpr per_group<rank_group> groups_ = [] {
    per_group<rank_group> made{};
    const group_info* info = group_table_.infos.data();
    for (rank_group& one : made)
      one = lowering::joined_by(*info++, group_table_.members, !forward_only);
    return made;
  }();

 public:
  //! The job table, with the memory policy's limit for every rank.
  static constexpr job_table_view costs() {
    job_table_view made = table_.view();
    made.limit = limits_;
    return made;
  }

 protected:
  //! What the schedule sees, which knows of no recompute and no copies.
  static constexpr job_table_view seen() {
    job_table_view made = folded_.table.view();
    made.limit = folded_.limits;
    return made;
  }
  // Where a schedule tries several variants, each is a constant of its own, and those after one
  // that no other can beat are never asked for. Mostly that is the first, which is written as it is
  // tried where nothing is to be put in between its jobs.
  static constexpr bool writes_first = !put_in.any() && put_in.sound();
  template <int Variant>
  struct tried_variant {
    static constexpr bool writes = Variant == 0 && writes_first;
    fixed_job_lists<ranks, writes ? compute_room : 1> lists{};
    schedule::variant_score score{};
    verdict refused{};

    constexpr tried_variant() {
      job_sink out = lists.sink();
      out.refused = &refused;
      score = score_with(Schedule{}, Shape, put_in, costs(), seen(), Variant,
                         writes ? &out : nullptr);
    }
  };
  template <int Variant>
  static constexpr tried_variant<Variant> tried_{};
  template <int Variant, schedule::variant_choice Before>
  static constexpr int best_from() {
    if constexpr (Variant >= Schedule::variants || Before.is_settled(possible()))
      return Before.best;
    else
      return best_from<Variant + 1, Before.with(Variant, tried_<Variant>.score)>();
  }
  static constexpr schedule::variant_score possible() {
    return possible_with(Schedule{}, Shape, put_in, costs(), seen());
  }
  // Of the whole step, before any job of it is asked for.
  static constexpr verdict sound_ = [] {
    if (!supported.ok()) return supported;
    const verdict found = costs_fit(costs(), where, Shape.microbatches, Shape.slices);
    return found.ok() ? requested_ : found;
  }();
  static constexpr bool searches = [] {
    if constexpr (schedule::Search<Schedule> && sound_.ok())
      return !schedule::is_one_variant(Schedule{});
    return false;
  }();
  //! The best variant; -1 where there are none to choose from, or none fits.
  static constexpr int best_ = [] {
    if constexpr (searches) return best_from<0, schedule::variant_choice{}>();
    return -1;
  }();
  static constexpr bool is_written = writes_first && best_ == 0;

  struct emitted_jobs {
    fixed_job_lists<ranks, is_written ? 1 : compute_room> lists{};
    verdict answer = sound_;

    // In its place: a compiler would copy a function's result.
    constexpr emitted_jobs() {
      if constexpr (is_written) {
        answer = tried_<0>.refused;
      } else if constexpr (sound_.ok()) {
        verdict refused{};
        job_sink out = lists.sink();
        out.refused = &refused;
        if constexpr (best_ >= 0 && put_in.sound() && !detail::sees_all(put_in, costs())) {
          (void)score_with(Schedule{}, Shape, put_in, costs(), seen(), best_, &out);
        } else {
          Schedule chosen{};
          if constexpr (best_ >= 0) chosen.variant = best_;
          // A search of which none fits has tried all already.
          answer = searches && best_ < 0 ? emit_one(chosen, Shape, put_in, costs(), seen(), out)
                                         : emit_jobs(chosen, Shape, put_in, costs(), seen(), out);
        }
        if (!refused.ok())
          answer = refused_or_taken(refused, {out.rows(), where, Shape.microbatches, Shape.slices,
                                              costs(), false, {}});
      }
    }
  };
  static constexpr emitted_jobs emitted_{};

  //! What a replay of the schedule's jobs takes.
  static constexpr replay_input scheduled_jobs() {
    replay_input made{{}, where, Shape.microbatches, Shape.slices, costs(), false, {}};
    if constexpr (is_written)
      made.rows = tried_<0>.lists.rows();
    else
      made.rows = emitted_.lists.rows();
    return made;
  }
};

}  // namespace detail

}  // namespace stretto
