#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "stretto/base/stored.hpp"
#include "stretto/base/viewed.hpp"
#include "stretto/check/all.hpp"
#include "stretto/check/plan_order.hpp"
#include "stretto/lowering/communication.hpp"
#include "stretto/lowering/data_order.hpp"
#include "stretto/lowering/global_order.hpp"
#include "stretto/lowering/groups.hpp"
#include "stretto/lowering/instructions.hpp"
#include "stretto/lowering/node_order.hpp"
#include "stretto/lowering/requested.hpp"
#include "stretto/lowering/streams/concept.hpp"
#include "stretto/lowering/streams/serves.hpp"
#include "stretto/model/costs_fit.hpp"
#include "stretto/plan/digest.hpp"
#include "stretto/plan/emit_jobs.hpp"
#include "stretto/plan/gathered_weights.hpp"
#include "stretto/plan/plan_request.hpp"
#include "stretto/schedule/concept.hpp"

namespace stretto {

//! Plans of all ranks, computed at run time by the functions that stretto::pipeline evaluates at
//! compile time: for shapes known only at launch, for imported lists, and for many ranks.
class planned {
 public:
  //! From a schedule: compute jobs, then as below. `answer` tells what went wrong, if anything.
  template <schedule::Policy Schedule, overlap::Policy Overlap>
  planned(const Schedule& schedule, const shape& sizes, const job_table_view& costs,
          const Overlap& overlap, plan_request request = {})
      : planned(std::move(request)) {
    generate(schedule, sizes, costs);
    if (answer_.ok())
      lower({jobs_.rows(), where_, sizes.microbatches, sizes.slices, costs, false, {}}, overlap);
  }
  //! From compute lists, which are copied; `compute.where`'s table is kept by the caller. How far
  //! ahead receives are posted is the policy's to say, which groups sum the request's.
  template <overlap::Policy Overlap>
  planned(const replay_input& compute, const Overlap& overlap, plan_request request = {})
      : planned(std::move(request)) {
    where_ = compute.where;
    if (request_.recompute.any() || request_.offload.any())
      answer_ = refuse(fault::unsupported, reason::windows_of_lists);
    if (!answer_.ok() || !fit(compute.costs, compute.microbatches, compute.slices)) return;
    answer_ = lowering::listed(compute);
    if (!answer_.ok()) return;
    jobs_ = job_lists(compute.rows.ranks, compute.rows.stride);
    job_sink out = jobs_.sink();
    for (int rank = 0; rank < compute.rows.ranks; ++rank)
      for (const job& work : compute.rows.row(rank)) out.push(rank, work);
    replay_input mine = compute;
    mine.rows = jobs_.rows();
    lower(mine, overlap);
  }

  planned(const planned&) = delete;
  planned& operator=(const planned&) = delete;

  //! Ok, or the first rule that is broken, over all rules; the rest means something when ok.
  const verdict& answer() const { return answer_; }
  job_rows jobs() const { return jobs_.rows(); }    //!< compute, and gathers of weights
  job_rows lists() const { return lists_.rows(); }  //!< with messages and ends
  const placement& where() const { return where_; }
  //! One per rank, valid as long as this object.
  std::span<const plan_view> plans() const& { return viewed(plans_); }
  std::span<const plan_view> plans() const&& = delete;  //!< they would be gone with the temporary
  //! Bytes of what this object keeps: lists, their order, plans.
  std::int64_t storage_bytes() const {
    std::int64_t sum = jobs_.storage_bytes() + lists_.storage_bytes() + stored_bytes(turns_);
    for (const lowering::rank_plan& plan : written_) sum += plan.storage_bytes();
    return sum;
  }
  //! What a walk of the lists takes, without costs.
  replay_input issued() const {
    if (plans_.empty()) return {};
    return {lists_.rows(), where_, plans_.front().microbatches, plans_.front().slices, {}, true,
            viewed(groups_), plans_.front().receive_lead};
  }
  //! The global order of the lists.
  lowering::order_view order() const {
    return {turns_.data(), static_cast<std::int64_t>(turns_.size()), has_late_};
  }

 private:
  explicit planned(plan_request request) : request_(std::move(request)) {}

  bool fit(const job_table_view& costs, int microbatches, int slices) {
    // A schedule's own is no table.
    const bool no_table = where_.kind == placement_kind::table && where_.table == nullptr;
    const reason flaw = no_table ? reason::placement_not_served : where_.flaw();
    answer_ = flaw == reason::none ? costs_fit(costs, where_, microbatches, slices)
                                   : refuse(fault::unsupported, flaw);
    return answer_.ok();
  }
  template <class Schedule>
  void generate(const Schedule& schedule, const shape& sizes, const job_table_view& costs) {
    forward_only_ = stretto::schedule::forward_only(schedule);
    if (forward_only_) request_.train = false;
    answer_ = stretto::schedule::positive_or_refuse(sizes);
    if (answer_.ok()) answer_ = schedule.supports(sizes);
    if (!answer_.ok()) return;
    where_ = place(schedule.placed(), sizes);
    if (!fit(costs, sizes.microbatches, sizes.slices)) return;
    answer_ = emit_jobs(schedule, sizes, {request_.recompute, request_.offload}, costs, jobs_);
  }
  template <class Overlap>
  void lower(replay_input compute, const Overlap& overlap) {
    compute.receive_lead = overlap::receive_lead_of(overlap);
    const bool summed =
        request_.train && (request_.data_parallel || lowering::replicated_stages(where_) > 0);
    answer_ = lowering::requested(viewed(request_.stages), where_.stages(), summed,
                                  viewed(request_.groups), viewed(request_.members), where_.ranks);
    if (answer_.ok())
      answer_ = check::schedule(compute, request_.train  ? check::lists_of::training
                                         : forward_only_ ? check::lists_of::forwards
                                                         : check::lists_of::jobs);
    // Without gathers, either, it would say of nothing.
    if (answer_.ok() && request_.data_parallel && request_.gathered == 0 && !request_.train &&
        any_job(compute.rows, [](const job& work) { return is_input_gradient(work.kind); }))
      answer_ = refuse(fault::unsupported, reason::summed_for_nobody);
    if (answer_.ok()) answer_ = overlap::serves(overlap, compute.where);
    if (answer_.ok()) answer_ = gather_weights(compute);
    if (!answer_.ok()) return;
    const int ranks = compute.rows.ranks;
    join_replicas();
    const int groups = static_cast<int>(request_.groups.size()) - held_elsewhere_;
    const int list_room =
        lowering::with_ends(lowering::with_messages(compute.rows.stride), groups);
    for (const group_info& info : request_.groups)
      groups_.push_back(lowering::joined_by(info, viewed(request_.members), request_.train));
    lists_ = job_lists(ranks, list_room);
    job_sink out = lists_.sink();
    turns_.resize(static_cast<std::size_t>(
        lowering::order_room(compute.rows.total(), compute.receive_lead)));
    lowering::order_sink order{turns_.data()};
    replay_input input = compute;
    input.groups = viewed(groups_);
    replay_input issued = input;
    issued.rows = lists_.rows();
    issued.messages = true;
    std::vector<lowering::clock> clocks(static_cast<std::size_t>(ranks) *
                                        static_cast<std::size_t>(list_room));
    lowering::data_order<Overlap> by_data(input, lists_.rows(), overlap, clocks.data());
    {
      std::vector<std::int32_t> nodes(static_cast<std::size_t>(compute.rows.total()));
      std::int64_t count = 0;
      answer_ = lowering::order_nodes(compute, nodes.data(), count);
      if (!answer_.ok()) return;
      lowering::add_messages(input, {nodes.data(), static_cast<std::size_t>(count)}, out, &order,
                             by_data);
    }
    turns_.resize(static_cast<std::size_t>(order.count));
    has_late_ = order.has_late;
    lowering::append_ends(out, where_, viewed(groups_), request_.train, by_data);
    write(compute, issued, order, overlap, clocks,
          lowering::plan_room(compute.rows.stride, groups, compute.slices, request_.gathered > 0));
  }

  //! Puts gathers into the lists, which keep all rules without. The memory that they take counts.
  verdict gather_weights(replay_input& compute) {
    if (request_.gathered == 0) return {};
    if (const verdict found = may_gather(compute.rows, request_.data_parallel, request_.gathered);
        !found.ok())
      return found;
    jobs_ = with_gathered_weights(compute, request_.gathered);
    compute.rows = jobs_.rows();
    const verdict found = check::sharded(compute, request_.gathered);
    return found.ok() ? check::bounded(compute) : found;
  }

  void join_replicas() {
    const int replicated = request_.train ? lowering::replicated_stages(where_) : 0;
    // Forwards alone have no gradients to sum.
    const bool grouped = request_.data_parallel && (request_.train || request_.gathered > 0);
    const int summed = grouped ? lowering::summed_stages(where_) : 0;
    if (replicated + summed == 0) return;
    const lowering::buffer_sizes sizes{viewed(request_.stages), {}, false};
    std::vector<group_info> infos(static_cast<std::size_t>(summed + replicated) +
                                  request_.groups.size());
    std::vector<std::int32_t> members(static_cast<std::size_t>(summed + 2 * replicated) +
                                      request_.members.size());
    lowering::write_groups(
        where_, grouped, request_.gathered > 0, replicated,
        [&](int stage) {
          stage_bytes each = sizes.of(stage);
          if (!request_.train) each.gradients = 0;
          return each;
        },
        viewed(request_.groups), viewed(request_.members), infos.data(), members.data());
    request_.groups = std::move(infos);
    request_.members = std::move(members);
    // No rank takes part in the sums of another's replicas.
    held_elsewhere_ = summed - (grouped ? where_.chunks : 0);
  }

  template <class Overlap>
  void write(const replay_input& compute, const replay_input& issued,
             const lowering::order_sink& order, const Overlap& overlap,
             std::vector<lowering::clock>& clocks, const lowering::plan_capacity& room) {
    const int ranks = issued.rows.ranks;
    const int stride = issued.rows.stride;
    const lowering::buffer_sizes sizes = buffer_sizes();
    for (int rank = 0; rank < ranks; ++rank) {
      written_.emplace_back(room);
      lowering::write_instructions(issued, {clocks.data(), ranks, stride}, overlap, sizes, rank,
                                   written_.back());
    }
    freeze(issued, order.jobs, overlap);

    answer_ = check::as_listed(viewed(plans_), issued);
    if (answer_.ok()) answer_ = check::own_buffers(viewed(plans_));
    if (!answer_.ok()) return;
    clocks.assign(clocks.size(), {});
    check::plan_order by_plan(viewed(plans_), clocks.data(), stride,
                              where_.kind == placement_kind::wave);
    answer_ = check::issued(compute, issued, order, by_plan);
    if (answer_.ok()) answer_ = by_plan.found();
    if (answer_.ok()) answer_ = check::plans(viewed(plans_), {clocks.data(), ranks, stride});
  }

  template <class Overlap>
  void freeze(const replay_input& issued, digest jobs, const Overlap& overlap) {
    int used = 0;
    for (const lowering::rank_plan& plan : written_) used = std::max(used, plan.streams);
    for (int stream = 0; stream < used; ++stream) streams_.push_back(overlap.stream(stream));
    const lowering::buffer_sizes sizes = buffer_sizes();
    const std::uint64_t whole = digest_of(
        jobs, issued.rows, where_.stages(), [&](int stage) { return sizes.of(stage).output; },
        viewed(request_.groups), viewed(request_.members));
    for (std::size_t rank = 0; rank < written_.size(); ++rank) {
      plan_view seen = written_[rank].view();
      seen.rank = static_cast<int>(rank);
      seen.ranks = issued.rows.ranks;
      seen.stages = where_.stages();
      seen.microbatches = issued.microbatches;
      seen.slices = issued.slices;
      seen.digest = whole;
      seen.lists = issued.rows;
      seen.receive_lead = issued.receive_lead;
      seen.streams = viewed(streams_);
      seen.groups = viewed(request_.groups);
      seen.members = viewed(request_.members);
      plans_.push_back(seen);
    }
  }

  lowering::buffer_sizes buffer_sizes() const {
    return {viewed(request_.stages), viewed(request_.groups), request_.release_sends};
  }

  plan_request request_;
  bool forward_only_ = false;  // as its schedule says
  placement where_{};
  verdict answer_{};
  job_lists jobs_;
  job_lists lists_;
  std::vector<rank_group> groups_;
  int held_elsewhere_ = 0;  // groups that a rank is no member of, at least
  std::vector<std::int32_t> turns_;  // the global order
  bool has_late_ = false;            // of its messages
  std::vector<lowering::rank_plan> written_;
  std::vector<stream_info> streams_;
  std::vector<plan_view> plans_;
};

}  // namespace stretto
