// Makes the pipeline run on GPUs of several processes, or on several of one.
#pragma once

#include <vector>

#include "pipeline/settings.hpp"

namespace train::cuda {

//! Each worker on a GPU of its own, and messages and sums between them by NCCL. All processes of
//! `to.between` call it, and all refuse what one of them must refuse. Has CUDA load kernels before
//! their first launch (CUDA_MODULE_LOADING), unless the user says otherwise, and widens its queues:
//! this is the first that the process does with CUDA; and every stage run once (warm_up()).
//! @param devices  CUDA's numbers of this process's GPUs, one for each of its workers in their
//!                 order; empty: of those that it sees, from number `local` times the workers of a
//!                 process on, modulo their count
//! @param local    which process of its machine this is, from 0; -1: nobody says, and it must not
//!                 matter: it sees as many GPUs as it has workers
//! @throws bad_setting when a worker has no GPU, or two have the same
void run_over_nccl(pipeline_settings& to, std::vector<int> devices, int local);

}  // namespace train::cuda
