#pragma once

#include <memory>

#include "stretto/executor/step_graph.hpp"

namespace stretto::executor {

//! A CUDA graph of the step, for options::graph: captured from all streams of the process's ranks,
//! with their priorities, and launched on the first of them. What a stage launches is captured with
//! its arguments, so that whatever changes from step to step must be read from device memory.
std::unique_ptr<step_graph> make_cuda_graph();

}  // namespace stretto::executor
