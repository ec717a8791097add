#pragma once

#include <cstddef>
#include <cstdint>

#include "stretto/base/scratch.hpp"
#include "stretto/lowering/plan_books.hpp"
#include "stretto/lowering/replica_groups.hpp"
#include "stretto/model/replay_input.hpp"

namespace stretto::lowering {

//! plan_books with what ranks, or the workers of one, do together: sums, and gathers of weights. Of
//! each the buffer, and what those who prepare, do and read it wait for.
template <class Plan>
class collective_books : protected plan_books<Plan> {
  using books = plan_books<Plan>;

 protected:
  using books::at_, books::book_, books::open, books::use, books::waits_;

  //! @param row the rank's clocks, as `data_order` found them
  constexpr collective_books(const replay_input& input, const clock* row, const buffer_sizes& sizes,
                             int rank, Plan& out, buffer_book<Plan>& book, wait_book<Plan>& waits)
      : books(input, row, sizes, rank, out, book, waits),
        in_(input),
        collective_(static_cast<std::int64_t>(input.groups.size()) + 1),
        gathers_(replica_groups::gather(input.groups)),
        weights_(gathers_ ? input.where.stages() : 0) {}
  constexpr ~collective_books() = default;  // nvcc does not find it constexpr by itself

  //! Of a gather of weights: what a replica holds of them is put in its place, the others' come
  //! there, and all are dropped in the end.
  constexpr action gather(const job& work) {
    std::int32_t& weights = weights_[work.stage];
    if (work.kind == job_kind::unshard) {
      weights = open(buffer_role::weights, work);
      if (const std::int32_t left = book_.left_at(); left >= 0) waits_.need(at_, left);
    } else {
      use(weights - 1, buffer_role::weights,
          work.kind == job_kind::all_gather ? access::read_write : access::read);
    }
    waits_.wait_for_needs();
    if (work.kind == job_kind::reshard) book_.close(book_.weights_part, weights - 1, at_ + 1);
    return work.kind == job_kind::all_gather ? action::all_gather : action::run;
  }

  //! Of what sums, prepares a sum, or reads them all.
  constexpr void finish(const job& work) {
    const auto group = static_cast<std::size_t>(work.microbatch);
    if (work.kind == job_kind::reduce_grad) {
      const bool replicas = in_.sums_replicas(work);
      for (std::size_t earlier = 0; earlier < group && !in_.groups[group].data_parallel; ++earlier)
        if (!replicas || in_.groups[earlier].data_parallel) read_collective(earlier);
      collective_[static_cast<std::int64_t>(group)] =
          open(buffer_role::collective, {work.microbatch, 0, 0, work.kind, false});
    } else if (work.kind == job_kind::all_reduce) {
      use(collective_[static_cast<std::int64_t>(group)] - 1, buffer_role::collective,
          access::read_write);
    } else if (work.kind == job_kind::optimizer) {
      for (std::size_t earlier = 0; earlier < in_.groups.size(); ++earlier)
        read_collective(earlier);
    }
    waits_.wait_for_needs();
  }

  constexpr void read_collective(std::size_t group) {
    if (const std::int32_t id = collective_[static_cast<std::int64_t>(group)] - 1; id >= 0)
      use(id, buffer_role::collective, access::read);
  }

  const replay_input& in_;
  scratch<std::int32_t> collective_;  // buffer by group, plus one
  bool gathers_;
  scratch<std::int32_t> weights_;  // buffer by stage, plus one, where they are gathered
};

}  // namespace stretto::lowering
