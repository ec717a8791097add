#pragma once

// A kernel that copies within a GPU, from and to memory that begins at multiples of 16 bytes. To be
// launched by its address; any number of blocks and threads.
extern "C" {
#if defined(__CUDACC__)
__global__
#endif
    void
    stretto_copy_bytes(void* to, const void* from, long long bytes);
}
