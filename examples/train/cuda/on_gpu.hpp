// Makes the pipeline run on GPUs.
#pragma once

#include <vector>

#include "pipeline/settings.hpp"

namespace train::cuda {

//! Each worker on a GPU, with streams, an arena and a copy of cuBLAS of its own, and messages
//! between them, all in this process, as copies. Makes the last of the GPUs current for the calling
//! thread.
//! @param devices  CUDA's numbers of the GPUs, which the workers take in turn; at least one
//! @throws bad_setting when there is no such GPU
void run_on_gpus(pipeline_settings& to, const std::vector<int>& devices);

}  // namespace train::cuda
