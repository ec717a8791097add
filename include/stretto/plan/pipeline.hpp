#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>
#include <utility>

#include "stretto/check/all.hpp"
#include "stretto/check/plan_order.hpp"
#include "stretto/lowering/communication.hpp"
#include "stretto/lowering/data_order.hpp"
#include "stretto/lowering/global_order.hpp"
#include "stretto/lowering/instructions.hpp"
#include "stretto/lowering/node_order.hpp"
#include "stretto/lowering/streams/separate.hpp"
#include "stretto/lowering/streams/serves.hpp"
#include "stretto/plan/accepted.hpp"
#include "stretto/plan/digest.hpp"
#include "stretto/plan/groups_policy.hpp"
#include "stretto/plan/pipeline_gathers.hpp"

namespace stretto {

namespace detail {

template <class Policy>
constexpr bool can_be_made() {
  (void)Policy{};
  return true;
}
//! Whether a policy can be made where constants are: the pipeline makes one of each for itself.
template <class Policy>
concept made_constant = std::default_initializable<Policy> &&
                        requires { typename std::bool_constant<can_be_made<Policy>()>; };

}  // namespace detail

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
 public:
  static constexpr shape sizes = Shape;
  static constexpr verdict checked{};
  static constexpr std::span<const plan_view> plans() { return {}; }

 private:
  // Arguments that are something else make no more than this, or compilers would go on to speak of
  // all that lacks them.
  static_assert(schedule::Policy<Schedule>, "stretto: the second argument must be a schedule");
  static_assert(assignment::Policy<Assignment>, "stretto: the third must be an assignment");
  static_assert(memory::Policy<Memory>, "stretto: the fourth must be a memory policy");
  static_assert(overlap::Policy<Overlap>, "stretto: the fifth must be an overlap policy");
  static_assert(groups_policy<Groups>, "stretto: the sixth must be a groups policy");
  static_assert(detail::made_constant<Schedule> && detail::made_constant<Assignment> &&
                    detail::made_constant<Memory> && detail::made_constant<Overlap>,
                "stretto: policies must have a default constructor, and it must be constexpr");
};

template <shape Shape, schedule::Policy Schedule, assignment::Policy Assignment,
          memory::Policy Memory, overlap::Policy Overlap, groups_policy Groups>
  requires detail::made_constant<Schedule> && detail::made_constant<Assignment> &&
           detail::made_constant<Memory> && detail::made_constant<Overlap>
class pipeline<Shape, Schedule, Assignment, Memory, Overlap, Groups>
    : public detail::pipeline_gathers<Shape, Schedule, Assignment, Memory, Groups> {
  using parts = detail::pipeline_gathers<Shape, Schedule, Assignment, Memory, Groups>;
  using parts::bytes_, parts::complete_, parts::gathered, parts::gathers_, parts::group_table_,
      parts::groups_, parts::job_room, parts::list_room, parts::ranks, parts::room,
      parts::stage_room;
  template <class T>
  using per_rank = typename parts::template per_rank<T>;

 public:
  using parts::costs, parts::forward_only, parts::jobs, parts::where;

  //! What a replay of the compute jobs takes.
  static constexpr replay_input compute() {
    replay_input made = parts::compute();
    made.receive_lead = overlap::receive_lead_of(Overlap{});
    return made;
  }

 private:
  // Tables write themselves where they will stay: a compiler would copy a function's result, which
  // costs it as much as to compute it. Arrays of the language: gcc takes time for each struct that
  // a store passes through, and std::array is one.
  struct node_table {
    std::int32_t turns[static_cast<std::size_t>(ranks) * static_cast<std::size_t>(job_room)]{};
    std::int64_t count = 0;
    verdict answer = complete_;

    constexpr node_table() {
      if (answer.ok()) answer = lowering::order_nodes(compute(), turns, count);
    }
  };
  static constexpr node_table nodes_{};
  // The replay has ended only if the jobs are ordered and live.
  static constexpr verdict ordered_ =
      complete_.ok() && !nodes_.answer.ok() ? check::ordered(compute()) : complete_;

 public:
  //! What rules complete, ordered and live say of the compute jobs: enough to replay them.
  static constexpr verdict live = ordered_.ok() ? nodes_.answer : ordered_;
  //! The same and rule bounded: all rules of the compute jobs.
  static constexpr verdict scheduled = [] {
    verdict found = live;
    if (gathers_ && found.ok()) found = check::sharded(compute(), gathered);
    return found.ok() ? check::bounded(compute()) : found;
  }();

 private:
  struct lowered_lists {
    fixed_job_lists<ranks, list_room> lists{};
    std::int32_t turns[static_cast<std::size_t>(lowering::order_room(
        std::int64_t{ranks} * job_room, overlap::receive_lead_of(Overlap{})))]{};
    lowering::order_view order{};  // without its storage, which has no address yet
    // What the lists order by data alone.
    lowering::clock clocks[static_cast<std::size_t>(ranks) * static_cast<std::size_t>(list_room)]{};
    std::uint64_t digest = 0;
    verdict answer = live;

    constexpr lowered_lists() {
      if (answer.ok()) answer = overlap::serves(Overlap{}, where);
      if (!answer.ok()) return;
      job_sink out = lists.sink();
      lowering::order_sink noted{turns};
      replay_input input = compute();
      input.groups = groups_;
      lowering::data_order<Overlap> watch(input, out.rows(), Overlap{}, clocks);
      lowering::add_messages(input, {nodes_.turns, static_cast<std::size_t>(nodes_.count)}, out,
                             &noted, watch);
      lowering::append_ends(out, where, groups_, !forward_only, watch);
      order = {nullptr, noted.count, noted.has_late};
      digest = digest_of(
          noted.jobs, out.rows(), stage_room,
          [](int stage) { return bytes_[static_cast<std::size_t>(stage)].output; },
          group_table_.infos, group_table_.members);
    }
    constexpr lowering::clock_rows known() const { return {clocks, ranks, list_room}; }
  };
  static constexpr lowered_lists lowered_{};

 public:
  //! Jobs, messages and ends of every rank: what is issued, in this order.
  static constexpr job_rows lists() { return lowered_.lists.rows(); }
  //! What a replay of the lists with messages takes.
  static constexpr replay_input issued() {
    replay_input made = compute();
    made.rows = lists();
    made.messages = true;
    made.groups = groups_;
    return made;
  }

 private:
  struct clock_table {
    lowering::clock clocks[static_cast<std::size_t>(ranks) * static_cast<std::size_t>(list_room)]{};
    verdict answer{};

    //! @param fill writes fresh clocks, and finds a verdict
    template <class Fill>
    constexpr explicit clock_table(const Fill& fill) : answer(fill(clocks)) {}
    constexpr lowering::clock_rows rows() const { return {clocks, ranks, list_room}; }
  };
  static constexpr lowering::order_view order() {
    lowering::order_view made = lowered_.order;
    made.ranks = lowered_.turns;
    return made;
  }
  static constexpr lowering::buffer_sizes buffer_sizes() {
    return {bytes_, group_table_.infos, Memory::release_sends};
  }
  template <int Rank>
  static constexpr lowering::fixed_rank_plan<room> written_{
      [](lowering::fixed_rank_plan<room>& out) {
        if (!lowered_.answer.ok()) return;
        lowering::write_instructions(issued(), lowered_.known(), Overlap{}, buffer_sizes(), Rank,
                                     out);
      }};

  template <int... Rank>
  static constexpr int most_streams(std::integer_sequence<int, Rank...>) {
    int most = 0;
    ((written_<Rank>.streams > most ? most = written_<Rank>.streams : 0), ...);
    return most;
  }
  // Room for any plan's: a size that the plans decide would have them written with the class.
  struct stream_table {
    std::array<stream_info, max_streams> infos{};
    std::size_t count = 0;
    constexpr std::span<const stream_info> view() const { return {infos.data(), count}; }
  };
  static constexpr stream_table streams_ = [] {
    stream_table made;
    const int most = most_streams(std::make_integer_sequence<int, ranks>{});
    for (int stream = 0; stream < most; ++stream)
      made.infos[made.count++] = Overlap{}.stream(stream);
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
    made.digest = lowered_.digest;
    made.lists = lists();
    made.receive_lead = compute().receive_lead;
    made.streams = streams_.view();
    made.groups = group_table_.infos;
    made.members = group_table_.members;
    return made;
  }
  static constexpr per_rank<plan_view> plans_ = views(std::make_integer_sequence<int, ranks>{});

  static constexpr verdict listed_ =
      lowered_.answer.ok() ? check::as_listed(plans_, issued()) : lowered_.answer;
  static constexpr verdict touched_ = listed_.ok() ? check::own_buffers(plans_) : listed_;
  static constexpr clock_table plan_clocks_{[](lowering::clock* clocks) {
    if (!touched_.ok()) return touched_;
    check::plan_order watch(plans_, clocks, list_room, where.kind == placement_kind::wave);
    const verdict walked = check::issued(compute(), issued(), order(), watch);
    return walked.ok() ? watch.found() : walked;
  }};
  // A quarter of the ranks each, because compilers count their limits per constant: no more than
  // what is above. Not each rank by itself, because nvcc prepares whatever a constant reads anew.
  template <int Quarter>
  static constexpr verdict proven_ =
      plan_clocks_.answer.ok() ? check::plans(plans_, plan_clocks_.rows(), ranks * Quarter / 4,
                                              ranks * (Quarter + 1) / 4)
                               : plan_clocks_.answer;
  template <int... Quarter>
  static constexpr verdict first_broken(std::integer_sequence<int, Quarter...>) {
    verdict found{};
    ((found.ok() ? void(found = proven_<Quarter>) : void()), ...);
    return found;
  }

 public:
  //! The verdict of all rules; `stretto::valid` reads it.
  static constexpr verdict checked = [] {
    if constexpr (!scheduled.ok()) {
      return scheduled;
    } else if constexpr (!lowered_.answer.ok()) {
      return lowered_.answer;
    } else {
      return first_broken(std::make_integer_sequence<int, 4>{});
    }
  }();
  //! The plans of all ranks, for the executor. They live as long as the program.
  static constexpr std::span<const plan_view> plans() {
    static_assert(valid<pipeline>);
    return plans_;
  }
  //! The same as they are written, whether or not the rules hold; empty ones where there are no
  //! lists to write them from.
  static constexpr std::span<const plan_view> written() { return plans_; }
};

}  // namespace stretto
