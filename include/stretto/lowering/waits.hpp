#pragma once

#include <cstdint>

#include "stretto/lowering/happens_before.hpp"
#include "stretto/lowering/plan_storage.hpp"

namespace stretto::lowering {

//! The waits of one rank's instructions while its plan is written: after what each instruction
//! needs, unless its stream or another wait says that it is done.
template <class Plan>
class wait_book {
 public:
  //! @param row the rank's clocks, as `data_order` found them
  constexpr wait_book(const clock* row, Plan& out) : row_(row), out_(out) {}

  //! Makes stream `mine` wait for `earlier`, and for nothing else. By data alone the stream does
  //! not know that it is done; an earlier wait, to use bytes again, may have said so.
  constexpr void wait_after(int mine, std::int32_t earlier) {
    if (heard_of(mine, row_[earlier].stream) <= earlier) wait_for_data(earlier);
  }
  //! The same, with more to come: see wait_for_needs.
  constexpr void need_unknown(std::int32_t at, std::int32_t earlier) {
    const int stream = row_[earlier].stream;
    if (heard_of(row_[at].stream, stream) > earlier) return;
    // Of each stream the latest: what stands before it there is done, too.
    int one = 0;
    while (one < needs_ && row_[needed_[one]].stream != stream) ++one;
    if (one == needs_) needed_[needs_++] = earlier;
    else if (needed_[one] < earlier) needed_[one] = earlier;
  }
  //! The same, if `earlier` is not done before `at` by stream order alone.
  constexpr void need(std::int32_t at, std::int32_t earlier) {
    const int stream = row_[earlier].stream;
    const int mine = row_[at].stream;
    std::int32_t before = at - 1;
    while (before >= 0 && row_[before].stream != mine) --before;
    if (stream != mine && (before < 0 || row_[before].own[stream] <= earlier))
      need_unknown(at, earlier);
  }
  //! Of a job: it gives back what `send` has sent. Whoever waits for that knows what it knows.
  constexpr void need_done(std::int32_t at, std::int32_t send) {
    need_unknown(at, send);
    const clock& known = row_[send];
    for (int stream = 0; stream < max_streams; ++stream)
      if (known.own[stream] > heard_[stream]) heard_[stream] = known.own[stream];
  }
  //! Of a job: `copy` was the last to touch what was in the place of what it saves.
  constexpr void need_place_of(std::int32_t at, std::int32_t copy) {
    need(at, copy);
    std::int32_t& heard = heard_[row_[copy].stream];
    if (copy >= heard) heard = copy + 1;
  }
  //! Turns what is needed into waits, without those that another wait implies.
  constexpr void wait_for_needs() {
    for (int one = 0; one < needs_; ++one) {
      const std::int32_t earlier = needed_[one];
      const int stream = row_[earlier].stream;
      bool implied = false;
      for (int other = 0; needs_ > 1 && other < needs_ && !implied; ++other)
        implied = other != one && row_[needed_[other]].own[stream] > earlier;
      if (!implied) wait_for_data(earlier);
    }
    needs_ = 0;
  }

  //! Of a receive or a reload: job `last` was the last to touch what was in its place, or has
  //! released it; -1: none. The message itself, coming from a peer that has heard of that job, or
  //! an earlier wait of this stream may prove it done. Nor is a receive posted before its gate.
  constexpr void take_place_of(std::int32_t at, std::int32_t last) {
    clock now = row_[at];
    const std::int32_t gate = now.gate;
    std::int32_t& waited = waited_[now.stream];
    if (last >= waited && now.stream != 0 && now.own[0] <= last) {
      wait_for_data(last);
      waited = last + 1;
    } else if (gate >= waited) {
      wait_for(gate, wait_reason::lead);
    } else if (gate == clock::step_start) {
      wait_for(-1, wait_reason::gate);
    }
  }

  //! Of the step's end, `at`, which has been written: everything that each of the streams holds is
  //! done before, by this rank's own events: what a peer has heard of may still be running here.
  //! Where somebody waits for a stream's last instruction, his own stream's last is waited for in
  //! turn.
  //! @param last_on  the latest instruction of each of the streams, plus one
  constexpr void end_step(std::int32_t at, const std::int32_t* last_on, int streams) {
    instruction& end = out_.instructions[at];
    for (int stream = 0; stream < streams; ++stream)
      if (const std::int32_t last = last_on[stream] - 1;
          last >= 0 && last != at && out_.instructions[last].record < 0)
        wait_for(last, wait_reason::bound);
    // The record that the streams' first instructions wait for in the next step.
    if (started_ > 0) end.record = out_.events++;
    while (started_ > 0) {
      event_wait& wait = out_.waits[started_ - 1];
      started_ = wait.event;
      wait.event = end.record;
    }
    end.wait_count = static_cast<std::int16_t>(out_.used.waits - end.first_wait);
  }

 private:
  //! The latest instruction of `stream` that `mine` has waited for to use bytes again, plus one.
  constexpr std::int32_t heard_of(int mine, int stream) const {
    return mine == 0 ? heard_[stream] : stream == 0 ? waited_[mine] : 0;
  }
  //! For data of this step, which an empty wait says already: most waits, so compilers are spared
  //! what else there is to one.
  constexpr void wait_for_data(std::int32_t earlier) {
    std::int32_t& record = out_.instructions[earlier].record;
    if (record < 0) record = out_.events++;
    out_.waits[out_.used.waits++].event = record;
  }
  //! @param earlier  of this step; -1: the end of the one before, whose event is known at the end
  constexpr void wait_for(std::int32_t earlier, wait_reason why) {
    const int at = out_.used.waits;
    std::int32_t event = started_;
    if (earlier < 0) {
      started_ = at + 1;
    } else {
      std::int32_t& record = out_.instructions[earlier].record;
      if (record < 0) record = out_.events++;
      event = record;
    }
    out_.waits[at] = {event, why, earlier < 0};
    out_.used.waits = at + 1;
  }

  const clock* row_;
  Plan& out_;
  // The latest wait for the end of the step before, plus one; as event, each has that before it.
  std::int32_t started_ = 0;
  // For bytes that are used again, plus one:
  std::int32_t waited_[max_streams]{};  // latest job that the stream has waited for
  std::int32_t heard_[max_streams]{};   // latest of the stream that a job has waited for
  std::int32_t needed_[max_streams]{};
  int needs_ = 0;
};

}  // namespace stretto::lowering
