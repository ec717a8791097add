// Makes the pipeline run on GPUs.
#pragma once

#include "pipeline/settings.hpp"

namespace train::cuda {

//! All workers on one GPU, each with streams, an arena and a copy of cuBLAS of its own, and messages
//! between them as copies. Makes the GPU current for the calling thread.
//! @param device  CUDA's number of the GPU
//! @throws bad_setting when there is no such GPU
void run_on_gpu(pipeline_settings& to, int device);

}  // namespace train::cuda
