#pragma once

#include <cstdint>
#include <limits>

#include "stretto/base/scratch.hpp"

namespace stretto::check::detail {

//! Which buffer each byte of an arena belongs to so far: disjoint pieces, ascending, in two runs.
//! The second begins where the first piece does that leaves bytes below itself free; so what comes
//! there later, as saved bytes do below messages, does not move what lies above.
class byte_owners {
 public:
  //! No initialisers: see scratch.
  struct piece {
    std::int64_t begin;
    std::int64_t end;
    std::int32_t owner;
  };

  constexpr explicit byte_owners(std::int64_t buffers)
      : room_(2 * buffers + 2),
        pieces_(2 * room_),
        piece_(pieces_.data()),
        found_(hints),
        found_at_(found_.data()) {}
  constexpr ~byte_owners() = default;  // nvcc does not find it constexpr by itself

  //! The lowest of all pieces, or the highest; there are none of no bytes.
  constexpr piece lowest() const {
    return low_count_ > 0 ? piece_[0] : high_count_ > 0 ? piece_[room_] : none;
  }
  constexpr piece highest() const {
    return high_count_ > 0  ? piece_[room_ + high_count_ - 1]
           : low_count_ > 0 ? piece_[low_count_ - 1]
                            : none;
  }

  //! Calls `visit(owner)` for every owner of bytes in [begin, end), who loses them to `owner`;
  //! maybe twice for one of many pieces.
  template <class Visitor>
  constexpr void take(std::int64_t begin, std::int64_t end, std::int32_t owner, Visitor&& visit) {
    if (begin >= end) return;
    // Mostly the same piece as the last time.
    std::int32_t& hint = found_at_[static_cast<std::uint64_t>(begin) / 64 % hints];
    piece& same = piece_[hint];
    if (same.begin == begin && same.end == end) {
      visit(same.owner);
      same.owner = owner;
      return;
    }
    if (high_count_ == 0 && begin > (low_count_ > 0 ? piece_[low_count_ - 1].end : 0))
      high_from_ = begin;
    if (begin < high_from_ && high_from_ < end) {
      hint = take_in(0, low_count_, begin, high_from_, owner, visit);
      (void)take_in(room_, high_count_, high_from_, end, owner, visit);
    } else if (begin < high_from_) {
      hint = take_in(0, low_count_, begin, end, owner, visit);
    } else {
      hint = take_in(room_, high_count_, begin, end, owner, visit);
    }
  }

 private:
  static constexpr int hints = 1024;
  static constexpr piece none{0, 0, -1};

  //! The same in one run, whose pieces lie from `first` on. @return where the new one lies
  template <class Visitor>
  constexpr std::int32_t take_in(std::int64_t first, std::int32_t& count, std::int64_t begin,
                                 std::int64_t end, std::int32_t owner, Visitor& visit) {
    piece* const run = piece_ + first;
    if (count == 0 || run[count - 1].end <= begin) {
      run[count] = {begin, end, owner};
      return static_cast<std::int32_t>(first + count++);
    }
    std::int64_t low = 0;
    for (std::int64_t high = count; low < high;) {
      const std::int64_t middle = (low + high) / 2;
      if (run[middle].end <= begin) low = middle + 1;
      else high = middle;
    }
    std::int64_t last = low;
    for (; last < count && run[last].begin < end; ++last) visit(run[last].owner);
    if (last == low + 1 && run[low].begin == begin && run[low].end == end) {
      run[low].owner = owner;
      return static_cast<std::int32_t>(first + low);
    }
    // What sticks out at either end stays with its owner.
    piece kept[3]{};
    int keeps = 0;
    if (last > low && run[low].begin < begin)
      kept[keeps++] = {run[low].begin, begin, run[low].owner};
    const std::int64_t mine = low + keeps;
    kept[keeps++] = {begin, end, owner};
    if (last > low && run[last - 1].end > end)
      kept[keeps++] = {end, run[last - 1].end, run[last - 1].owner};
    const std::int64_t shift = keeps - (last - low);
    if (shift > 0)
      for (std::int64_t at = count - 1; at >= last; --at) run[at + shift] = run[at];
    if (shift < 0) {
      for (std::int64_t at = last; at < count; ++at) run[at + shift] = run[at];
      for (std::int64_t at = count + shift; at < count; ++at) run[at] = {};  // not to be found
    }
    count += static_cast<std::int32_t>(shift);
    for (int at = 0; at < keeps; ++at) run[low + at] = kept[at];
    return static_cast<std::int32_t>(first + mine);
  }

  std::int64_t room_;  // of each run
  scratch<piece> pieces_;
  piece* piece_;
  scratch<std::int32_t> found_;
  std::int32_t* found_at_;  // by where bytes begin
  std::int64_t high_from_ = std::numeric_limits<std::int64_t>::max();  // the second run's bytes
  std::int32_t low_count_ = 0;
  std::int32_t high_count_ = 0;
};

}  // namespace stretto::check::detail
