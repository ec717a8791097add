#pragma once

#include <cstdint>

#include "stretto/lowering/happens_before.hpp"
#include "stretto/lowering/plan_storage.hpp"

namespace stretto::lowering {

//! The waits of one rank's instructions while its plan is written: after what each instruction
//! needs, unless its stream or another wait says that it is done.
class wait_book {
 public:
  //! @param row the rank's clocks, as `data_order` found them
  constexpr wait_book(const clock* row, rank_sink& out)
      : row_(row), out_(out), made_(out.instructions) {}

  //! Instruction `index` comes to its stream; what follows is said of it.
  constexpr void come(std::int32_t index, int stream) {
    std::int32_t& last = last_on_[stream];
    before_ = last > 0 ? row_[last - 1].own : nothing_;
    last = index + 1;
    at_ = index, stream_ = stream, needs_ = 0;
  }

  //! After `earlier`, if that is not done before this instruction by stream order alone, or by what
  //! its stream has waited for to use bytes again.
  constexpr void need(std::int32_t earlier) {
    const int stream = made_[earlier].stream;
    if (stream == stream_ || before_[stream] > earlier ||
        (stream_ == 0  ? heard_[stream]
         : stream == 0 ? waited_[stream_]
                       : 0) > earlier)
      return;
    // Of each stream the latest: what stands before it there is done, too.
    int at = 0;
    while (at < needs_ && made_[needed_[at]].stream != stream) ++at;
    if (at == needs_) needed_[needs_++] = earlier;
    else if (needed_[at] < earlier) needed_[at] = earlier;
  }
  //! Of a job: `copy` was the last to touch what was in the place of what it saves.
  constexpr void need_place_of(std::int32_t copy) {
    need(copy);
    std::int32_t& heard = heard_[made_[copy].stream];
    if (copy >= heard) heard = copy + 1;
  }
  //! Turns what is needed into waits, without those that another wait implies.
  constexpr void wait_for_needs() {
    for (int one = 0; one < needs_; ++one) {
      const std::int32_t earlier = needed_[one];
      const int stream = made_[earlier].stream;
      bool implied = false;
      for (int other = 0; needs_ > 1 && other < needs_ && !implied; ++other)
        implied = other != one && row_[needed_[other]].own[stream] > earlier;
      if (!implied) wait_for(earlier, wait_reason::data);
    }
  }

  //! Of a receive or a reload: job `last` was the last to touch what was in its place, or has
  //! released it; -1: none. The message itself, coming from a peer that has heard of that job, or
  //! an earlier wait of this stream may prove it done. Nor is a receive posted before its gate.
  constexpr void take_place_of(std::int32_t last) {
    const std::int32_t gate = row_[at_].gate;
    if (last >= waited_[stream_] && stream_ != 0 && row_[at_].own[0] <= last) {
      wait_for(last, wait_reason::data);
      waited_[stream_] = last + 1;
    } else if (gate >= waited_[stream_]) {
      wait_for(gate, wait_reason::lead);
    } else if (gate == clock::step_start) {
      out_.push(event_wait{-1, wait_reason::gate, true});
    }
  }

  //! All streams with instructions are below.
  constexpr int streams() const {
    int count = max_streams;
    while (count > 0 && last_on_[count - 1] == 0) --count;
    return count;
  }

  //! Of the step's end: everything that each of the streams holds is done before, by this rank's
  //! own events: what a peer has heard of may still be running here. Where somebody waits for a
  //! stream's last instruction, his own stream's last is waited for in turn.
  constexpr void end_step(int streams) {
    for (int stream = 0; stream < streams; ++stream)
      if (const std::int32_t last = last_on_[stream] - 1;
          last >= 0 && last != at_ && made_[last].record < 0)
        wait_for(last, wait_reason::bound);
    // The record that the streams' first instructions wait for in the next step.
    for (int wait = 0; wait < out_.used.waits; ++wait) {
      if (!out_.waits[wait].previous_step) continue;
      instruction& end = made_[at_];
      if (end.record < 0) end.record = out_.events++;
      out_.waits[wait].event = end.record;
    }
  }

 private:
  constexpr void wait_for(std::int32_t earlier, wait_reason why) {
    instruction& recorded = made_[earlier];
    if (recorded.record < 0) recorded.record = out_.events++;
    out_.push(event_wait{recorded.record, why, false});
  }

  const clock* row_;
  rank_sink& out_;
  instruction* made_;
  std::int32_t last_on_[max_streams]{};  // latest instruction of each stream, plus one
  // For bytes that are used again, plus one:
  std::int32_t waited_[max_streams]{};   // latest job that the stream has waited for
  std::int32_t heard_[max_streams]{};    // latest of the stream that a job has waited for
  std::int32_t needed_[max_streams]{};
  int needs_ = 0;
  std::int32_t at_ = 0;
  int stream_ = 0;
  const std::int32_t nothing_[max_streams]{};
  const std::int32_t* before_ = nothing_;  // what is known before the instruction on its stream
};

}  // namespace stretto::lowering
