#pragma once

#include <cstdint>

#include "stretto/schedule/parts/v_block.hpp"

namespace stretto::schedule {

//! A job in a rank's list; its micro-batch follows from how many of its stream stand before it.
struct v_placed {
  std::int32_t packed = 0;  //!< start and stream, since lists are long

  constexpr std::int32_t start() const { return packed / 8; }  //!< slot
  constexpr int stream() const { return packed % 8; }
};

//! What the jobs of a V's streams take of a rank.
struct v_use {
  int width = 1;     //!< slots of a backward: whole, or for the input
  int releases = 0;  //!< the first stream that gives memory back
  int most = 0;      //!< activations that are kept at once

  constexpr int width_of(int stream) const { return stream < v_back_down ? 1 : width; }
};

//! A rank's jobs in order of time. Most are put at the end or close to it; but while the first
//! micro-batches go in, forwards move ahead of as many jobs as there are ranks. So that the effort
//! for a job does not grow with the ranks, their place is not looked for one job at a time.
class v_timeline {
 public:
  constexpr int count() const { return count_; }

  //! Puts a job into the first free slots from `earliest` on; a forward, only where no more than
  //! the most activations are kept after it too.
  //! @param jobs  the list, with room for one more
  //! @return its first slot
  constexpr std::int32_t put(const v_use& use, v_placed* jobs, int stream, std::int32_t earliest) {
    int place = first_after(use, jobs, earliest);
    const bool forward = stream < v_back_down;
    if (forward && (place < from_ || high_ >= use.most)) place = first_with_room(use, jobs, place);
    std::int32_t start = earliest;
    if (place > 0) {
      const v_placed before = jobs[place - 1];
      const std::int32_t end = before.start() + use.width_of(before.stream());
      if (end > start) start = end;
    }
    const int width = use.width_of(stream);
    for (; place < count_ && jobs[place].start() < start + width; ++place)
      start = jobs[place].start() + use.width_of(jobs[place].stream());
    for (int to = count_; to > place; --to) jobs[to] = jobs[to - 1];
    jobs[place] = {8 * start + stream};
    const bool releases = stream >= use.releases;
    const int change = forward ? 1 : releases ? -1 : 0;
    if (releases && kept_ > high_) high_ = kept_;
    if (place < count_) {
      if (forward) ++high_;
      if (place < from_) {
        ++from_;
        level_ += change;
      }
    }
    kept_ += change;
    ++count_;
    return start;
  }

 private:
  //! Releases that leave room for fewer forwards than this are looked at one by one.
  static constexpr int little = 16;

  //! The place after the last job that ends by then, searched from the end in growing steps.
  constexpr int first_after(const v_use& use, const v_placed* jobs, std::int32_t time) const {
    int place = count_;
    int low = 0;
    for (int step = 1; place > 0; step *= 2) {
      const int before = place > step ? place - step : 0;
      if (jobs[before].start() + use.width_of(jobs[before].stream()) <= time) {
        low = before + 1;
        break;
      }
      place = before;
    }
    while (low < place) {
      const int middle = (low + place) / 2;
      if (jobs[middle].start() + use.width_of(jobs[middle].stream()) <= time)
        low = middle + 1;
      else
        place = middle;
    }
    return place;
  }

  //! The first place from there on with no release after it that finds the most kept: one more
  //! forward before that would be too many.
  constexpr int first_with_room(const v_use& use, const v_placed* jobs, int earliest) {
    if (high_ >= use.most) {
      from_ = count_;
      level_ = kept_;
      high_ = 0;
    }
    int place = from_;
    int level = level_;
    int high = high_;
    bool ample = high <= use.most - little;
    for (; place > earliest; --place) {
      const int before = jobs[place - 1].stream();
      if (before < v_back_down) {
        --level;
      } else if (before >= use.releases) {
        ++level;
        if (ample && level > use.most - little) {
          ample = false;
          remember(place, level - 1, high);
        }
        if (level >= use.most) break;
        if (level > high) high = level;
      }
    }
    if (ample) remember(place, level, high);
    return place;
  }
  constexpr void remember(int from, int level, int high) {
    from_ = from;
    level_ = level;
    high_ = high;
  }

  int count_ = 0;
  int kept_ = 0;  // activations after the last job
  // What is known of the list, so that forwards need not look at all of it:
  int from_ = 0;   // a place,
  int level_ = 0;  // the activations kept before it,
  int high_ = 0;   // and the most that a release at it or later may find kept
};

}  // namespace stretto::schedule
