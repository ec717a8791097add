// Makes the pipeline run on GPUs.
#pragma once

#include <vector>

#include "pipeline/settings.hpp"

namespace train::cuda {

//! Lets up to 32 streams of a GPU run beside one another, unless the user says otherwise
//! (CUDA_DEVICE_MAX_CONNECTIONS): there are 8 queues else, and streams that share one wait for one
//! another. Before the process's first call of CUDA's.
void widen_queues();

//! Each worker on a GPU, with streams, an arena and a copy of cuBLAS of its own, and messages
//! between them, all in this process, as copies. Widens the queues, and makes the last of the GPUs
//! current for the calling thread.
//! @param devices  CUDA's numbers of the GPUs, which the workers take in turn; at least one
//! @throws bad_setting when there is no such GPU
void run_on_gpus(pipeline_settings& to, const std::vector<int>& devices);

}  // namespace train::cuda
