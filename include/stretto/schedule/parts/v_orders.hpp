#pragma once

#include <cstdint>

#include "stretto/base/scratch.hpp"
#include "stretto/model/shape.hpp"
#include "stretto/schedule/parts/v_block.hpp"
#include "stretto/schedule/parts/v_timeline.hpp"

namespace stretto::schedule {

//! The order of each rank's streams in a V schedule, in slots: all jobs but the backwards for the
//! weights that come after the rank's last forward, which may run anywhere there. Within a stream
//! micro-batches follow each other.
class v_orders {
 public:
  //! @param most  activations of a chunk that a rank may keep
  constexpr v_orders(const shape& sizes, int most)
      : most_(most),
        stride_((v_streams * sizes.microbatches / 16 | 1) * 16 + 16),
        placed_(stride_ * sizes.ranks),
        counts_(sizes.ranks) {}
  constexpr ~v_orders() = default;  // nvcc needs it written

  constexpr int most() const { return most_; }
  constexpr int count(int rank) const { return counts_[rank]; }
  constexpr std::int32_t& count(int rank) { return counts_[rank]; }
  constexpr const v_placed* order(int rank) const { return placed_.data() + stride_ * rank; }
  constexpr v_placed* order(int rank) { return placed_.data() + stride_ * rank; }
  constexpr std::int64_t stride() const { return stride_; }  //!< from one rank's order to the next

 private:
  int most_;
  std::int64_t stride_;  // odd in lines of a cache
  scratch<v_placed> placed_;
  scratch<std::int32_t> counts_;
};

}  // namespace stretto::schedule
