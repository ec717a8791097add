#pragma once

#include <cuda_runtime_api.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "progress_words.hpp"
#include "stretto/executor/cuda/handles.hpp"
#include "stretto/executor/device.hpp"
#include "stretto/model/plan_view.hpp"

namespace stretto::executor::cuda {

//! How far each stream has come: an event behind every instruction, the plan's own where it records
//! one; of a step that is replayed, words. One thread issues, one looks.
class progress_events {
 public:
  //! @param recorded  the events of the plan
  progress_events(const plan_view& plan, std::span<const owned_event> recorded);

  void begin(int stream, const mark& what) {
    lane_of(stream).begun.store(what.ticket, std::memory_order_release);
  }
  void end(int stream, cudaStream_t native, const mark& what);
  //! The event of the plan was recorded.
  void recorded(int event, std::int64_t step);

  //! From now on the step that these words tell of is replayed.
  void follow(const progress_words& words) { words_ = &words; }

  //! Asks how far the streams have come meanwhile.
  //! @throws error what the GPU has failed with
  void look();
  //! The whole step is done. The next one records its events again, which tell no more of this one.
  void step_ended(std::int64_t step);
  progress of(int stream) const;
  //! The ticket of the first instruction, in the order of issue, not known to be done.
  std::int64_t first_missing() const;

 private:
  struct lane {
    std::vector<int> instructions;
    // The first not known to be done, counted over all steps; written by who polls.
    std::atomic<std::int64_t> next{0};
    std::atomic<std::int64_t> begun{-1};
    std::atomic<std::int64_t> ended{-1};  // tickets
  };

  lane& lane_of(int stream) { return lanes_[static_cast<std::size_t>(stream)]; }
  const lane& lane_of(int stream) const { return lanes_[static_cast<std::size_t>(stream)]; }
  std::int64_t ticket_of(const lane& on, std::int64_t number) const;
  std::int64_t next_of(int stream) const;
  std::int64_t finished(int stream) const {
    const std::int64_t next = next_of(stream);
    return next == 0 ? -1 : ticket_of(lane_of(stream), next - 1);
  }
  bool has_started(int instruction, std::int64_t step) const;

  const plan_view plan_;
  const std::int64_t count_;
  std::vector<owned_event> own_;
  std::vector<cudaEvent_t> done_;  // by instruction
  std::vector<int> recorder_;      // by event
  std::unique_ptr<lane[]> lanes_;  // by stream
  const progress_words* words_ = nullptr;
};

}  // namespace stretto::executor::cuda
