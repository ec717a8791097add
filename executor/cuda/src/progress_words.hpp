#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "stretto/executor/cuda/handles.hpp"

namespace stretto::executor::cuda {

//! The kernel of note_progress.hpp on a stream of the current GPU.
void note_progress(unsigned* word, unsigned done, cudaStream_t on);

//! How far each stream has come in a step that is replayed, where no event tells: behind each
//! instruction a kernel of one thread is recorded, which writes into pinned memory how many of its
//! stream's are done. The host reads that without any stream, of a GPU that has failed, too.
//!
//! A kernel, because its node has its value as an argument and its stream's priority: a node that
//! sets memory has neither more than a byte nor a priority, a copy would queue for an engine behind
//! what goes to the host, and the driver's own write of a value is out of the runtime's reach.
class progress_words {
 public:
  //! For the current GPU.
  //! @param one  of them, on which the kernel runs for the first time: it would else be loaded
  //! while
  //!             a step is recorded, or beside kernels that wait for others
  progress_words(std::size_t streams, cudaStream_t one);

  //! One more of the stream's instructions is recorded, with all that it does: it is done once the
  //! stream comes here. On the current GPU.
  void add(int stream, cudaStream_t native, std::int64_t step);
  //! Nothing is done of the replay to come. None is under way.
  void reset();

  //! The step that was recorded.
  std::int64_t step() const { return step_; }
  //! How many of the stream's instructions are done.
  std::int64_t done(int stream) const;

  //! Leaves the memory to work that may still write there.
  void abandon() noexcept { static_cast<void>(memory_.release()); }

 private:
  unsigned& word(int stream) const { return static_cast<unsigned*>(memory_.get())[stream]; }
  void launch(int stream, cudaStream_t native);

  pinned_memory memory_;            // a word for each stream
  std::vector<unsigned> recorded_;  // instructions, by stream
  std::int64_t step_ = -1;
};

}  // namespace stretto::executor::cuda
