#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "stretto/assignment/covered.hpp"
#include "stretto/assignment/unassigned.hpp"
#include "stretto/check/all.hpp"
#include "stretto/check/plan_order.hpp"
#include "stretto/lowering/communication.hpp"
#include "stretto/lowering/groups.hpp"
#include "stretto/lowering/instructions.hpp"
#include "stretto/lowering/streams/separate.hpp"
#include "stretto/lowering/walk.hpp"
#include "stretto/memory/recompute_window.hpp"
#include "stretto/memory/release_early.hpp"
#include "stretto/plan/accepted.hpp"
#include "stretto/plan/digest.hpp"
#include "stretto/schedule/concept.hpp"
#include "stretto/schedule/variants.hpp"

namespace stretto {

//! No collectives at the end of a step. A groups policy names, with these two members, the groups
//! whose sums the optimizer needs: tied parameters, the global norm. Where stages have replicas,
//! their sums come first by themselves, and number first.
struct no_groups {
  static constexpr std::array<group_info, 0> infos{};
  static constexpr std::array<std::int32_t, 0> members{};
};

//! A pipelined step, composed of policies and computed at compile time: the compute jobs of every
//! rank, the same with messages, the plan of every rank, and the verdict on all of them. Each part
//! is a constant of its own, evaluated when it is first used and only if what comes before it is
//! in order.
//!
//! `static_assert(stretto::valid<pipeline<...>>)` proves all rules or names the one that is broken.
template <shape Shape, class Schedule, class Assignment = assignment::unassigned,
          class Memory = memory::release_early, class Overlap = overlap::separate,
          class Groups = no_groups>
class pipeline {
  static_assert(schedule::Policy<Schedule>, "stretto: the second argument must be a schedule");
  static_assert(assignment::Policy<Assignment>, "stretto: the third must be an assignment");
  static_assert(memory::Policy<Memory>, "stretto: the fourth must be a memory policy");
  static_assert(overlap::Policy<Overlap>, "stretto: the fifth must be an overlap policy");

 public:
  static constexpr shape sizes = Shape;
  static constexpr placement where = place(Schedule{}.placed(), Shape);
  //! No job computes a gradient, and no optimizer ends the step.
  static constexpr bool forward_only = requires { requires Schedule::forward_only; };

 private:
  static constexpr bool sized = positive(Shape) == reason::none;
  static constexpr int stage_room = sized ? where.stages() : 1;
  static constexpr std::size_t assigned_room = Assignment{}.layers() == 0 ? 0 : stage_room;

 public:
  //! Layers of every stage, in pipeline order; empty when no assignment is given.
  static constexpr std::array<assignment::layer_range, assigned_room> layers = [] {
    std::array<assignment::layer_range, assigned_room> made{};
    if constexpr (assigned_room > 0 && sized) (void)Assignment{}.assign(where, made);
    return made;
  }();
  //! What the schedule says of the shape, then the assignment of its layers.
  static constexpr verdict supported = [] {
    verdict found = Schedule{}.supports(Shape);
    std::array<assignment::layer_range, assigned_room> made{};
    if (assigned_room > 0 && found.ok()) found = Assignment{}.assign(where, made);
    if (assigned_room > 0 && found.ok())
      found = assignment::covered(made, Assignment{}.layers(), where,
                                  assignment::leaves_empty<Assignment>);
    return found;
  }();

 private:
  static constexpr int ranks = supported.ok() ? Shape.ranks : 1;
  static constexpr int chunks = supported.ok() ? where.chunks : 1;
  static constexpr memory::recompute_window window = memory::window_of(Memory{});
  static constexpr int emitted_room = supported.ok() ? Schedule{}.capacity(Shape) : 1;
  static constexpr int compute_room = memory::with_recomputes(window, emitted_room);
  static constexpr int replicated =
      supported.ok() && !forward_only ? lowering::replicated_stages(where) : 0;
  static constexpr int group_count = replicated + static_cast<int>(Groups::infos.size());
  static constexpr int list_room =
      lowering::with_ends(lowering::with_messages(compute_room), group_count);
  static constexpr lowering::plan_capacity room =
      lowering::plan_room(compute_room, group_count, sized ? Shape.slices : 1);
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
  static constexpr fixed_job_table<ranks, chunks> folded_ = [] {
    fixed_job_table<ranks, chunks> made = table_;
    memory::fold_recompute(window, made.entries, chunks);
    return made;
  }();
  static constexpr per_rank<std::int64_t> limits_ = [] {
    per_rank<std::int64_t> made{};
    for (std::int64_t& limit : made) limit = Memory{}.limit();
    return made;
  }();
  static constexpr per_stage<stage_bytes> bytes_ = [] {
    per_stage<stage_bytes> made{};
    for (int stage = 0; stage < stage_room; ++stage)
      made[static_cast<std::size_t>(stage)] = Memory{}.bytes(stage);
    return made;
  }();
  struct group_table {
    per_group<group_info> infos{};
    std::array<std::int32_t, 2 * std::size_t{replicated} + Groups::members.size()> members{};
  };
  static constexpr group_table group_table_ = [] {
    group_table made;
    lowering::write_groups(
        where, replicated, [](int stage) { return Memory{}.bytes(stage); }, Groups::infos,
        Groups::members, made.infos.data(), made.members.data());
    return made;
  }();
  static constexpr per_group<rank_group> groups_ = [] {
    per_group<rank_group> made{};
    const group_info* info = group_table_.infos.data();
    for (rank_group& one : made) one = lowering::joined_by(*info++, group_table_.members);
    return made;
  }();

 public:
  //! The job table, with the memory policy's limit for every rank.
  static constexpr job_table_view costs() {
    job_table_view made = table_.view();
    made.limit = limits_;
    return made;
  }

 private:
  //! What the schedule sees, which knows of no recompute.
  static constexpr job_table_view seen() {
    job_table_view made = costs();
    made.entries = folded_.entries;
    return made;
  }
  // Where a schedule tries several variants, each one's score is a constant of its own.
  template <int Variant>
  static constexpr schedule::variant_score score_ = Schedule{}.score(Shape, seen(), Variant);
  template <int... Variant>
  static constexpr int best(std::integer_sequence<int, Variant...>) {
    schedule::variant_choice choice;
    (choice.offer(Variant, score_<Variant>), ...);
    return choice.best;
  }
  static constexpr Schedule chosen_ = [] {
    Schedule made{};
    if constexpr (schedule::Search<Schedule> && supported.ok())
      if constexpr (Schedule{}.variant < 0)
        made.variant = best(std::make_integer_sequence<int, Schedule::variants>{});
    return made;
  }();

  struct emitted_jobs {
    fixed_job_lists<ranks, compute_room> lists{};
    verdict answer{};
  };
  static constexpr emitted_jobs emitted_ = [] {
    emitted_jobs made;
    auto out = made.lists.sink();
    if constexpr (!supported.ok()) {
      made.answer = supported;
    } else if constexpr (window.any()) {
      fixed_job_lists<ranks, emitted_room> plain;
      auto first = plain.sink();
      made.answer = chosen_.emit(Shape, seen(), first);
      if (made.answer.ok())
        made.answer = memory::insert_recomputes(window, plain.rows(), where, Shape.slices, out);
    } else {
      made.answer = chosen_.emit(Shape, costs(), out);
    }
    return made;
  }();

 public:
  //! Compute jobs of every rank.
  static constexpr job_rows jobs() { return emitted_.lists.rows(); }
  //! What a replay of the compute jobs takes.
  static constexpr replay_input compute() {
    return {jobs(), where, Shape.microbatches, Shape.slices, costs(), false, {}};
  }

 private:
  static constexpr verdict complete_ =
      emitted_.answer.ok() ? check::complete(compute()) : emitted_.answer;

  struct lowered_lists {
    fixed_job_lists<ranks, list_room> lists{};
    std::array<std::int32_t,
               static_cast<std::size_t>(ranks) * static_cast<std::size_t>(compute_room)>
        order{};
    std::int64_t nodes = 0;
    verdict answer{};
  };
  static constexpr lowered_lists lowered_ = [] {
    lowered_lists made;
    made.answer = complete_;
    if (!complete_.ok()) return made;
    auto out = made.lists.sink();
    lowering::order_sink order{made.order.data()};
    made.answer = lowering::add_messages(compute(), out, &order);
    if (!made.answer.ok()) return made;
    lowering::append_ends(out, where, groups_, !forward_only);
    made.nodes = order.count;
    return made;
  }();
  // The replay behind the messages has ended only if the lists are ordered and live.
  static constexpr verdict ordered_ =
      complete_.ok() && !lowered_.answer.ok() ? check::ordered(compute()) : complete_;
  static constexpr verdict live_ = ordered_.ok() ? lowered_.answer : ordered_;
  static constexpr verdict bounded_ = live_.ok() ? check::bounded(compute()) : live_;

 public:
  //! Jobs, messages and ends of every rank: what is issued, in this order.
  static constexpr job_rows lists() { return lowered_.lists.rows(); }
  //! What a replay of the lists with messages takes.
  static constexpr replay_input issued() {
    return {lists(), where, Shape.microbatches, Shape.slices, costs(), true, groups_};
  }

 private:
  struct clock_table {
    std::array<lowering::clock,
               static_cast<std::size_t>(ranks) * static_cast<std::size_t>(list_room)>
        clocks{};
    verdict answer{};
    constexpr lowering::clock_rows rows() const { return {clocks.data(), ranks, list_room}; }
  };
  static constexpr lowering::order_view order() { return {lowered_.order.data(), lowered_.nodes}; }
  static constexpr clock_table data_clocks_ = [] {
    clock_table made;
    made.answer = bounded_;
    if (!bounded_.ok()) return made;
    const replay_input lists = issued();
    lowering::data_order<Overlap> watch(lists, Overlap{}, made.clocks.data());
    made.answer = check::issued(compute(), lists, order(), watch);
    return made;
  }();

  static constexpr lowering::buffer_sizes buffer_sizes() {
    return {bytes_, group_table_.infos, Memory::release_sends};
  }
  template <int Rank>
  static constexpr lowering::fixed_rank_plan<room> written_ = [] {
    lowering::fixed_rank_plan<room> made;
    if (!data_clocks_.answer.ok()) return made;
    auto out = made.sink();
    const replay_input lists = issued();
    lowering::write_instructions(lists, data_clocks_.rows(), Overlap{}, buffer_sizes(), Rank, out);
    made.keep(out);
    return made;
  }();

  static constexpr std::uint64_t digest_ = digest_of(
      lists(), stage_room, [](int stage) { return bytes_[static_cast<std::size_t>(stage)].output; },
      group_table_.infos);
  static constexpr std::array<stream_info, static_cast<std::size_t>(Overlap{}.count())> streams_ =
      [] {
    std::array<stream_info, static_cast<std::size_t>(Overlap{}.count())> made{};
    for (int stream = 0; stream < Overlap{}.count(); ++stream)
      made[static_cast<std::size_t>(stream)] = Overlap{}.stream(stream);
    return made;
  }();

  template <int... Rank>
  static constexpr per_rank<plan_view> views(
      std::integer_sequence<int, Rank...>) {
    return {view<Rank>()...};
  }
  template <int Rank>
  static constexpr plan_view view() {
    plan_view made = written_<Rank>.view();
    made.rank = Rank;
    made.ranks = ranks;
    made.stages = where.stages();
    made.microbatches = Shape.microbatches;
    made.slices = Shape.slices;
    made.digest = digest_;
    made.streams = streams_;
    made.groups = group_table_.infos;
    made.members = group_table_.members;
    return made;
  }
  static constexpr per_rank<plan_view> plans_ = views(std::make_integer_sequence<int, ranks>{});

  static constexpr clock_table plan_clocks_ = [] {
    clock_table made;
    made.answer = data_clocks_.answer;
    if (!made.answer.ok()) return made;
    check::plan_order watch(plans_, made.clocks.data(), list_room);
    made.answer = lowering::walk(issued(), order(), watch);
    if (made.answer.ok()) made.answer = watch.found();
    return made;
  }();
  // One constant a rank and rule: compilers count their limits per constant.
  template <int Rank>
  static constexpr verdict race_free_ =
      plan_clocks_.answer.ok() ? check::race_free(plans_, plan_clocks_.rows(), Rank)
                               : plan_clocks_.answer;
  template <int Rank>
  static constexpr verdict spare_ =
      race_free_<Rank>.ok() ? check::spare(plans_, plan_clocks_.rows(), Rank) : race_free_<Rank>;

  template <int... Rank>
  static constexpr verdict first_broken(std::integer_sequence<int, Rank...>) {
    verdict found{};
    ((found.ok() ? void(found = spare_<Rank>) : void()), ...);
    return found;
  }

 public:
  //! The verdict of all rules; `stretto::valid` reads it.
  static constexpr verdict checked = [] {
    if constexpr (!bounded_.ok()) {
      return bounded_;
    } else if constexpr (!data_clocks_.answer.ok()) {
      return data_clocks_.answer;
    } else {
      return first_broken(std::make_integer_sequence<int, ranks>{});
    }
  }();
  //! The plans of all ranks, for the executor. They live as long as the program.
  static constexpr std::span<const plan_view> plans() {
    static_assert(valid<pipeline>);
    return plans_;
  }
};

}  // namespace stretto
