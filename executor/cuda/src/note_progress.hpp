#pragma once

// A kernel: the word is `done` from now on, for the host to read; where there is none, nothing. To
// be launched by its address, one thread.
extern "C" {
#if defined(__CUDACC__)
__global__
#endif
    void
    stretto_note_progress(unsigned* word, unsigned done);
}
