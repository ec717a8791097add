#include "progress_words.hpp"

#include <atomic>

#include "note_progress.hpp"

namespace stretto::executor::cuda {

void note_progress(unsigned* word, unsigned done, cudaStream_t on) {
  void* arguments[] = {&word, &done};
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(1);
  config.blockDim = dim3(1);
  config.stream = on;
  check(
      cudaLaunchKernelExC(&config, reinterpret_cast<const void*>(stretto_note_progress), arguments),
      "cudaLaunchKernelExC");
}

progress_words::progress_words(std::size_t streams, cudaStream_t one)
    : memory_(make_pinned_memory(streams * sizeof(unsigned))), recorded_(streams) {
  reset();
  launch(0, one);
}

void progress_words::add(int stream, cudaStream_t native, std::int64_t step) {
  step_ = step;
  ++recorded_[static_cast<std::size_t>(stream)];
  launch(stream, native);
}

void progress_words::launch(int stream, cudaStream_t native) {
  note_progress(&word(stream), recorded_[static_cast<std::size_t>(stream)], native);
}

void progress_words::reset() {
  for (int stream = 0; stream < static_cast<int>(recorded_.size()); ++stream)
    std::atomic_ref(word(stream)).store(0, std::memory_order_relaxed);
}

std::int64_t progress_words::done(int stream) const {
  return std::atomic_ref(word(stream)).load(std::memory_order_acquire);
}

}  // namespace stretto::executor::cuda
