#pragma once

#include <cstdint>

#include "stretto/base/scratch.hpp"
#include "stretto/lowering/happens_before.hpp"

namespace stretto::lowering {

//! The free places of parts of an arena where buffers of several sizes lie, each part's by their
//! offsets. Neighbours are used as one, but each remembers who was there.
//! @tparam Parts    how many there are
//! @tparam Buffers  how many may leave theirs, where the compiler knows; else 0
template <int Parts, std::int64_t Buffers>
class free_places {
 public:
  constexpr explicit free_places(std::int64_t buffers) : places_(buffers) {}
  constexpr ~free_places() = default;  // nvcc does not find it constexpr by itself

  //! What was at a place that has been taken.
  struct taken {
    std::int64_t begin = 0;
    std::int32_t left = -1;    //!< the latest job that touched it; -1: none
    std::int32_t copied = -1;  //!< the latest copy that did
  };

  //! Buffer `id`, last touched by `last`, leaves `begin` to `end`.
  constexpr void leave(int part, std::int32_t id, std::int64_t begin, std::int64_t end,
                       std::int32_t last) {
    if (begin == end) return;
    ends& of = ends_[part];
    std::int32_t before = of.last;
    std::int32_t after = 0;
    if (before > 0 && at(before).begin >= begin)
      for (before = 0, after = of.first; after > 0 && at(after).begin < begin;)
        before = after, after = at(after).next;
    places_.items[id] = {last, after, before, begin, end};
    (before > 0 ? at(before).next : of.first) = id + 1;
    (after > 0 ? at(after).previous : of.last) = id + 1;
  }
  //! The lowest place of a part that is long enough, beyond `top` if none is, which then grows.
  //! @param oldest  rather that of the free ones that was left the longest ago
  //! @param row     clocks of the rank's instructions
  //! @param copies  whether some of those that left places may be copies, on streams of their own
  //! @param stream  rather the lowest that was left on it; -1: on whichever
  constexpr taken take(int part, std::int64_t bytes, bool oldest, std::int64_t& top,
                       const clock* row, bool copies, int stream) {
    ends& of = ends_[part];
    std::int32_t start = stream < 0 ? 0 : of.first;
    while (start > 0 && (at(start).end - at(start).begin < bytes ||
                         row[at(start).last].stream != stream))
      start = at(start).next;
    if (start == 0 && oldest) start = oldest_of(of, bytes);
    taken found{top};
    if (start > 0) {
      found.begin = at(start).begin;
    } else {
      // The first run of free places that is long enough; the last may grow.
      std::int64_t to = -1;
      std::int32_t one = of.first;
      while (one > 0) {
        place free = at(one);
        if (free.begin != to) found.begin = free.begin, start = one;
        to = free.end;
        if (to - found.begin >= bytes) break;
        one = free.next;
      }
      if (one == 0) {
        if (to != top) found.begin = top, start = 0;
        if (found.begin + bytes > top) top = found.begin + bytes;
      }
    }
    const std::int64_t end = found.begin + bytes;
    while (start > 0) {
      place free = at(start);
      if (free.begin >= end) break;
      std::int32_t& last = copies && row[free.last].stream > 0 ? found.copied : found.left;
      if (free.last > last) last = free.last;
      if (free.end > end) {
        at(start).begin = end;
        break;
      }
      (free.previous > 0 ? at(free.previous).next : of.first) = free.next;
      (free.next > 0 ? at(free.next).previous : of.last) = free.previous;
      if (free.end == end) break;
      start = free.next;
    }
    return found;
  }

 private:
  // Places are numbered by the buffers that left them, plus one.
  struct place {
    std::int32_t last;
    std::int32_t next;
    std::int32_t previous;
    std::int64_t begin;
    std::int64_t end;
  };
  struct ends {
    std::int32_t first = 0;
    std::int32_t last = 0;
  };
  constexpr place& at(std::int32_t number) { return places_.items[number - 1]; }

  //! Of those that are long enough; 0: none is.
  constexpr std::int32_t oldest_of(const ends& of, std::int64_t bytes) {
    std::int32_t found = 0;
    std::int32_t longest = 0;
    for (std::int32_t one = of.first; one > 0;) {
      place free = at(one);  // a copy is read faster by a compiler
      if ((found == 0 || free.last < longest) && free.end - free.begin >= bytes)
        found = one, longest = free.last;
      one = free.next;
    }
    return found;
  }

  sized_scratch<place, Buffers> places_;
  ends ends_[static_cast<std::size_t>(Parts)]{};
};

}  // namespace stretto::lowering
