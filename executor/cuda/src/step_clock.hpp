#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <vector>

#include "stretto/executor/cuda/handles.hpp"
#include "stretto/executor/device.hpp"

namespace stretto::executor::cuda {

//! Times of a step's instructions, from events around them, as std::chrono::steady_clock has them.
//! CUDA tells times as floats since another event, so each step has an origin of its own, whose
//! distance to the one before is added up. A GPU's clock goes a little faster or slower than the
//! host's, which in hours is more than a step. So kept is between which times an origin lies: that
//! of the first, as long as a round trip takes; of later ones, what is added up, with what clocks
//! may differ by, and within what the host knows, when it issued the origin and when it saw the
//! end. A stamp has the middle, and how far it may be off.
class step_clock {
 public:
  //! Finds out what the host's clock says now, which takes the time of some round trips.
  //! @param idle  a stream without work
  step_clock(std::size_t instructions, cudaStream_t idle);

  void begin(cudaStream_t on, const mark& what);
  void end(cudaStream_t on, const mark& what);
  //! Fills the stamps of the step, of what has ended; at once when that is seen.
  void resolve();

 private:
  //! Times of the host between which an origin lies, in nanoseconds.
  struct limits {
    double earliest = 0, latest = 0;
    double length() const { return latest - earliest; }
  };
  struct span_of_time {
    owned_event start;
    owned_event end;
    timing* stamp = nullptr;  // of an instruction that was enqueued in this step
    bool over = false;
    double started = 0, ended = 0;  // since the step's origin, on whose stream it need not be
  };

  void look_at_host(cudaStream_t idle);
  owned_event& origin() { return origins_[static_cast<std::size_t>(step_ & 1)]; }
  owned_event& origin_before() { return origins_[static_cast<std::size_t>(~step_ & 1)]; }

  std::vector<span_of_time> spans_;
  owned_event origins_[2];
  std::int64_t step_ = -1;
  limits before_;      // of the origin before this step's
  limits now_;         // of this step's, once resolved
  double issued_ = 0;  // when the host enqueued that one
};

}  // namespace stretto::executor::cuda
