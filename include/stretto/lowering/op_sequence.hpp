#pragma once

#include <cstdint>
#include <vector>

#include "stretto/model/plan_view.hpp"

namespace stretto::lowering {

//! The ops of a job, or of a pair, in order of issue, as plans have them: on streams, with what
//! they touch between themselves and whom they wait for.
struct op_sequence {
  struct step {
    op_part part{};
    std::int32_t half = 0;  //!< of a pair, as the list has them
    std::uint8_t stream = 0;
    bool collective = false;
    bool recorded = false;          //!< somebody waits for its end
    bool started_recorded = false;  //!< somebody waits for its start
    std::int32_t first_use = 0, uses = 0;
    std::int32_t first_wait = 0, waits = 0;
  };
  struct wait {
    std::int32_t step = 0;
    bool start = false;  //!< for its start; else for its end
  };
  //! Of the job's own: what ops on different streams have in common.
  struct local_buffer {
    std::int64_t offset = 0;  //!< in the workspace; of 64 bytes
    std::int64_t bytes = 0;
    std::int32_t half = 0;
    std::int32_t first = 0;  //!< the first step that touches it
    //! Which gives it back: one that computes, and knows of all that touch it.
    std::int32_t last = 0;
  };
  //! What a step gives back as it ends, and touches no byte of.
  struct held {
    std::int32_t step = 0;
    std::int32_t buffer = 0;
  };
  std::vector<step> steps;
  std::vector<buffer_use> uses;    //!< of local buffers
  std::vector<byte_range> ranges;  //!< of each use
  bool cut = false;                //!< whether some are no whole buffers
  std::vector<wait> waits;
  std::vector<local_buffer> buffers;
  std::vector<held> held_uses;
  std::int64_t workspace_bytes = 0;

  constexpr ~op_sequence() = default;  // nvcc does not find it constexpr by itself
};

}  // namespace stretto::lowering
