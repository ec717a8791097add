#pragma once

// Streams as CCCL has them, for programs that use it; apart, since <cuda/stream_ref> takes longer
// to compile than all else here.

#include <cuda/stream_ref>

#include "stretto/executor/cuda/device.hpp"

namespace stretto::executor {

//! The plan's stream at the index shall be this one.
inline void lend(cuda_settings& to, int index, ::cuda::stream_ref stream) {
  to.lent.push_back({index, stream.get()});
}

//! The stream on which a stage is to launch its work.
inline ::cuda::stream_ref stream_ref_of(const context& at) {
  return ::cuda::stream_ref(native_stream(at));
}

}  // namespace stretto::executor
