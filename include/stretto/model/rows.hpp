#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "stretto/base/scratch.hpp"
#include "stretto/base/stored.hpp"
#include "stretto/model/job.hpp"
#include "stretto/model/verdict.hpp"

namespace stretto {

//! One job list per rank, read only. Rank r's jobs are items[r * stride ... + counts[r]).
struct job_rows {
  const job* items = nullptr;
  const std::int32_t* counts = nullptr;
  int ranks = 0;
  int stride = 0;

  constexpr std::span<const job> row(int rank) const {
    return {items + static_cast<std::ptrdiff_t>(rank) * stride,
            static_cast<std::size_t>(counts[rank])};
  }
  constexpr const job& at(int rank, int step) const {
    return items[static_cast<std::ptrdiff_t>(rank) * stride + step];
  }
  constexpr std::int64_t total() const {
    std::int64_t sum = 0;
    for (int rank = 0; rank < ranks; ++rank) sum += counts[rank];
    return sum;
  }
};

//! Whether the lists have a job of which `matches(work)` says so.
template <class Matches>
constexpr bool any_job(const job_rows& rows, const Matches& matches) {
  for (int rank = 0; rank < rows.ranks; ++rank)
    for (const job& work : rows.row(rank))
      if (matches(work)) return true;
  return false;
}

namespace detail {

// Not constexpr: where a list is a constant, these names stand in the compiler's message.
[[noreturn]] inline void pushed_on_no_such_rank(int rank, const job& work) {
  throw std::length_error("stretto::job_sink: there is no rank " + std::to_string(rank) +
                          " for the job of stage " + std::to_string(work.stage) +
                          " and micro-batch " + std::to_string(work.microbatch));
}
[[noreturn]] inline void pushed_more_jobs_than_capacity(int rank, const job& work) {
  throw std::length_error("stretto::job_sink: the list of rank " + std::to_string(rank) +
                          " is full before the job of stage " + std::to_string(work.stage) +
                          " and micro-batch " + std::to_string(work.microbatch));
}

}  // namespace detail

//! Where a schedule or a lowering writes its lists: storage of the caller's. A push beyond the
//! stride, which is the schedule's `capacity`, or on a rank that is none throws std::length_error;
//! or, where `refused` is given, the first such push is told there, and none is made.
struct job_sink {
  job* items = nullptr;
  std::int32_t* counts = nullptr;
  int ranks = 0;
  int stride = 0;
  verdict* refused = nullptr;

  constexpr void push(int rank, const job& work) {
    if (rank < 0 || rank >= ranks || counts[rank] == stride) return no_place(rank, work);
    items[static_cast<std::ptrdiff_t>(rank) * stride + counts[rank]++] = work;
  }
  constexpr job_rows rows() const { return {items, counts, ranks, stride}; }

 private:
  constexpr void no_place(int rank, const job& work) const {
    const bool nowhere = rank < 0 || rank >= ranks;
    if (refused == nullptr) {
      if (nowhere) detail::pushed_on_no_such_rank(rank, work);
      detail::pushed_more_jobs_than_capacity(rank, work);
    } else if (refused->ok()) {
      *refused = nowhere ? refuse(fault::incomplete, reason::wrong_rank, rank, -1, work)
                         : refuse(fault::capacity, reason::above_capacity, rank, stride, work);
    }
  }
};

//! Lists sized at compile time.
template <int Ranks, int Stride>
struct fixed_job_lists {
  job items[static_cast<std::size_t>(Ranks) * static_cast<std::size_t>(Stride)]{};
  std::int32_t counts[static_cast<std::size_t>(Ranks)]{};

  constexpr job_rows rows() const { return {items, counts, Ranks, Stride}; }
  constexpr job_sink sink() { return {items, counts, Ranks, Stride}; }
};

//! Lists of a size known only to the running function, for as long as it runs; see scratch.
struct scratch_lists {
  scratch<job> items;
  scratch<std::int32_t> counts;
  job_sink sink;

  //! @param refused  see job_sink
  constexpr scratch_lists(int ranks, int stride, verdict* refused = nullptr)
      : items(std::int64_t{ranks} * stride),
        counts(ranks),
        sink{items.data(), counts.data(), ranks, stride, refused} {}
  constexpr ~scratch_lists() = default;  // nvcc needs it written
};

//! Lists sized at run time.
class job_lists {
 public:
  constexpr job_lists() = default;
  constexpr job_lists(int ranks, int stride)
      : items_(static_cast<std::size_t>(ranks) * static_cast<std::size_t>(stride)),
        counts_(static_cast<std::size_t>(ranks)),
        stride_(stride) {}
  constexpr job_rows rows() const {
    return {items_.data(), counts_.data(), static_cast<int>(counts_.size()), stride_};
  }
  constexpr job_sink sink() {
    return {items_.data(), counts_.data(), static_cast<int>(counts_.size()), stride_};
  }
  constexpr std::int64_t storage_bytes() const { return stored_bytes(items_, counts_); }

 private:
  std::vector<job> items_;
  std::vector<std::int32_t> counts_;
  int stride_ = 0;
};

}  // namespace stretto
