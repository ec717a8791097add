// What a GPU may load only when it is asked for it the first time.
#pragma once

#include "model/stage.hpp"

namespace train::cuda {

//! Runs every op of the stage's jobs once, alone, and what a step does behind them, and waits for
//! it: cuBLAS chooses and loads kernels by the sizes of products, and CUDA others at their first
//! launch, which must not happen while others wait for messages. With all multiprocessors, as in a
//! step: no plan of the trainer's takes some from an op (stage_ops), by whose number cuBLAS
//! chooses, too. Leaves gradients at zero and parameters as they are. The stage's GPU is current.
//! @param pieces  the most that an op is cut into
//! @throws stretto::executor::cuda::error, std::runtime_error when it does not end
void warm_up(stage& one, int pieces);

}  // namespace train::cuda
