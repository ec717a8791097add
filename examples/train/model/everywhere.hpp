// Functions that a GPU's kernels call as the host does.
#pragma once

#ifdef __CUDACC__
#define TRAIN_EVERYWHERE __host__ __device__
#else
#define TRAIN_EVERYWHERE
#endif
