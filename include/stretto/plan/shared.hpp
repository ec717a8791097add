#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "stretto/base/digest.hpp"
#include "stretto/base/stored.hpp"
#include "stretto/base/viewed.hpp"
#include "stretto/model/plan_view.hpp"
#include "stretto/model/shape.hpp"
#include "stretto/model/verdict.hpp"

namespace stretto {

//! The plans of workers that share every rank's stages, all with the same plan: data-parallel
//! replicas of tensor-parallel shards. Shard k of replica d of rank r becomes rank
//! (r * replicas + d) * shards + k of a job of so many ranks. Messages go to its like of the other
//! rank; what is summed over the shards (action::share_sum) becomes an all-reduce in a group of
//! each replica's own, and the sum over data-parallel replicas (group_info::data_parallel) one in a
//! group of each shard's, and their gather of weights likewise. What was proven of the plans holds
//! of these: workers of a rank do the same in the same order, and meet nowhere else. Where replicas
//! hold a part of the weights each, each sums that part of the gradients over both directions, and
//! has a buffer for that. Jobs and buffers keep the numbers that the base's groups have;
//! instruction::peer has those of these plans.
class shared {
 public:
  //! @param base      one for each rank, kept by the caller; not a shared's
  //! @param shards    at least one
  //! @param replicas  at least one; more than one only where the plans sum over them, or train
  //!                  nothing; their number divides the weights that they gather
  //!                  (plan_request::gathered), and their gradients
  //! There are no plans for others, and `answer` says why: each replica would go its own way.
  shared(std::span<const plan_view> base, int shards, int replicas = 1)
      : answer_(asked(base, shards, replicas)), shards_(shards) {
    if (!answer_.ok()) return;
    workers_ = shards * replicas;
    deals_ = deals_weights(base);
    write_groups(base);
    for (const plan_view& plan : base) {
      if (deals_) write_buffers(plan);
      for (int worker = 0; worker < workers_; ++worker) write(plan, worker);
    }
    for (std::size_t at = 0; at < plans_.size(); ++at) {
      plans_[at].instructions = viewed(instructions_[at]);
      if (deals_) plans_[at].buffers = viewed(buffers_[at / index(workers_)]);
      plans_[at].groups = viewed(infos_);
      plans_[at].members = viewed(members_);
    }
  }
  shared(const shared&) = delete;
  shared& operator=(const shared&) = delete;

  //! Ok, or fault::unsupported and what is missing, or fault::unsound_program for a sum over shards
  //! that is not in place.
  const verdict& answer() const { return answer_; }
  //! Those of rank 0's workers, then rank 1's, and so on; valid as long as this object and the
  //! base.
  std::span<const plan_view> plans() const& { return viewed(plans_); }
  std::span<const plan_view> plans() const&& = delete;  //!< they would be gone with the temporary
  //! Bytes of what this object keeps, without the base.
  std::int64_t storage_bytes() const {
    std::int64_t sum = stored_bytes(infos_, members_, plans_);
    for (const auto& each : instructions_) sum += stored_bytes(each);
    for (const auto& each : buffers_) sum += stored_bytes(each);
    return sum;
  }

 private:
  static std::size_t index(std::int64_t at) { return static_cast<std::size_t>(at); }

  static verdict asked(std::span<const plan_view> base, int shards, int replicas) {
    if (base.empty()) return refuse(fault::unsupported, reason::no_plans);
    if (base.front().workers > 1) return refuse(fault::unsupported, reason::shared_already);
    if (shards < 1 || replicas < 1) return refuse(fault::unsupported, reason::workers_below_one);
    if (std::int64_t{shards} * replicas > shape::most_jobs / base.front().ranks)
      return refuse(fault::unsupported, reason::too_many_workers);
    if (replicas > 1 && updates(base) && !sums_over_replicas(base))
      return refuse(fault::unsupported, reason::replicas_not_summed);
    const bool deals = deals_weights(base);
    for (const group_info& group : base.front().groups)
      if (const bool weights = group.weights >= 0 && group.weights % replicas != 0;
          weights || (deals && is_dealt(group) && group.elements % replicas != 0))
        return refuse(fault::unsupported,
                      weights ? reason::weights_not_dealt : reason::gradients_not_dealt,
                      base.front().members_of(group).front(), -1,
                      {.stage = group.stage,
                       .kind = weights ? job_kind::unshard : job_kind::reduce_grad});
    for (const plan_view& plan : base)
      for (std::size_t at = 0; at < plan.instructions.size(); ++at)
        if (const instruction& sum = plan.instructions[at];
            sum.act == action::share_sum && !sums_in_place(plan, sum)) {
          verdict found = refuse(fault::unsound_program, reason::summed_apart, plan.rank,
                                 plan.part_of(static_cast<std::int32_t>(at)).op, sum.what);
          found.amount = -1;  // the op is at fault
          return found;
        }
    return {};
  }
  //! As an all-reduce does.
  static bool sums_in_place(const plan_view& plan, const instruction& sum) {
    if (sum.use_count != 1 || plan.uses_of(sum).front().mode != access::read_write) return false;
    const byte_range range = plan.range_of(sum.first_use);
    return range.first % 4 == 0 && range.bytes % 4 == 0;
  }
  static bool updates(std::span<const plan_view> base) {
    return std::ranges::any_of(base.front().instructions, [](const instruction& at) {
      return at.what.kind == job_kind::optimizer;
    });
  }
  static bool sums_over_replicas(std::span<const plan_view> base) {
    return std::ranges::any_of(base.front().groups, &group_info::data_parallel);
  }

  //! Whether replicas hold a part each of the weights; gradients of a stage, once they are summed
  //! over these, are of that part.
  static bool deals_weights(std::span<const plan_view> base) {
    return std::ranges::any_of(base.front().groups,
                               [](const group_info& group) { return group.weights >= 0; });
  }
  static bool is_dealt(const group_info& group) { return group.stage >= 0 && !group.shared; }

  //! The base's groups: for each of a rank's workers, for all of them, or for each shard's
  //! replicas; behind these, for each rank and size, what every replica's shards sum.
  void write_groups(std::span<const plan_view> base) {
    const plan_view& first = base.front();
    for (group_info from : first.groups) {
      from.elements = elements_of(from);
      first_group_.push_back(static_cast<std::int32_t>(infos_.size()));
      const std::span<const std::int32_t> members = first.members_of(from);
      if (from.shared)
        add_group(from, members, 0, 1, workers_);
      else if (from.data_parallel)
        for (int shard = 0; shard < shards_; ++shard)
          add_group(from, members, shard, shards_, workers_ / shards_);
      else
        for (int worker = 0; worker < workers_; ++worker) add_group(from, members, worker, 1, 1);
    }
    for (const plan_view& plan : base)
      for (const instruction& at : plan.instructions) {
        if (at.act != action::share_sum || group_of(plan, at) >= 0) continue;
        sums_.push_back({plan.rank, bytes_of(plan, at), static_cast<std::int32_t>(infos_.size())});
        for (int worker = 0; worker < workers_; worker += shards_)
          add_group({.elements = bytes_of(plan, at) / 4}, std::span(&plan.rank, 1), worker, 1,
                    shards_);
      }
  }
  //! Of each of the ranks `count` workers, every `stride`-th from `worker` on.
  void add_group(group_info made, std::span<const std::int32_t> ranks, int worker, int stride,
                 int count) {
    made.first = static_cast<std::int32_t>(members_.size());
    made.count = static_cast<std::int32_t>(ranks.size()) * count;
    for (const std::int32_t rank : ranks)
      for (int one = 0; one < count; ++one)
        members_.push_back(rank * workers_ + worker + one * stride);
    infos_.push_back(made);
  }
  static std::int64_t bytes_of(const plan_view& plan, const instruction& at) {
    return plan.range_of(at.first_use).bytes;
  }
  std::int32_t group_of(const plan_view& plan, const instruction& at) const {
    for (const shared_sum& one : sums_)
      if (one.rank == plan.rank && one.bytes == bytes_of(plan, at)) return one.group;
    return -1;
  }

  //! What a worker sums of the group's: once a stage's gradients are summed over its replicas, its
  //! part.
  std::int64_t elements_of(const group_info& group) const {
    const bool part = deals_ && is_dealt(group) && !group.data_parallel;
    return part ? group.elements / (workers_ / shards_) : group.elements;
  }
  void write_buffers(const plan_view& plan) {
    buffers_.emplace_back(plan.buffers.begin(), plan.buffers.end());
    for (buffer& one : buffers_.back())
      if (one.role == buffer_role::collective)
        if (const group_info& group = plan.groups[index(one.stage)];
            group.elements != elements_of(group))
          one.bytes = elements_of(group) * (group.wide ? 8 : 4);
  }

  void write(const plan_view& plan, int worker) {
    instructions_.emplace_back(plan.instructions.begin(), plan.instructions.end());
    for (instruction& at : instructions_.back()) {
      if (at.act == action::share_sum) {
        at.peer = group_of(plan, at) + worker / shards_;
        at.act = action::all_reduce;
      } else if (is_collective(at.act)) {
        const group_info& group = plan.groups[index(at.peer)];
        at.peer = first_group_[index(at.peer)] +
                  (group.shared ? 0 : group.data_parallel ? worker % shards_ : worker);
      } else if (at.peer >= 0) {
        at.peer = at.peer * workers_ + worker;
      }
    }
    plans_.push_back(plan);
    plan_view& made = plans_.back();
    made.rank = plan.rank * workers_ + worker;
    made.ranks = plan.ranks * workers_;
    made.workers = workers_;
    digest sum{plan.digest};
    sum.add(static_cast<std::uint64_t>(shards_));
    sum.add(static_cast<std::uint64_t>(workers_));
    made.digest = sum.value;
  }

  struct shared_sum {
    std::int32_t rank = 0;
    std::int64_t bytes = 0;
    std::int32_t group = 0;  // of the first replica
  };
  verdict answer_;
  int shards_;
  int workers_ = 0;  // of a rank
  bool deals_ = false;
  std::vector<std::int32_t> first_group_;  // of each of the base's
  std::vector<shared_sum> sums_;
  std::vector<group_info> infos_;
  std::vector<std::int32_t> members_;
  std::vector<std::vector<instruction>> instructions_;
  std::vector<std::vector<buffer>> buffers_;  // of each of the base's, where sums are of parts
  std::vector<plan_view> plans_;
};

}  // namespace stretto
