#pragma once

#include <cstdint>

#include "stretto/base/scratch.hpp"

namespace stretto::check::detail {

//! Which buffer each byte of an arena belongs to so far: disjoint pieces, ascending.
class byte_owners {
 public:
  struct piece {
    std::int64_t begin = 0;
    std::int64_t end = 0;
    std::int32_t owner = -1;
  };

  constexpr explicit byte_owners(std::int64_t buffers)
      : pieces_(2 * buffers + 2), piece_(pieces_.data()), found_(hints), found_at_(found_.data()) {}
  constexpr ~byte_owners() = default;  // nvcc does not find it constexpr by itself

  //! The lowest of all pieces, or the highest; there are none of no bytes.
  constexpr piece lowest() const { return count_ == 0 ? piece{} : piece_[0]; }
  constexpr piece highest() const { return count_ == 0 ? piece{} : piece_[count_ - 1]; }

  //! Calls `visit(owner)` for every owner of bytes in [begin, end), who loses them to `owner`.
  template <class Visitor>
  constexpr void take(std::int64_t begin, std::int64_t end, std::int32_t owner, Visitor&& visit) {
    if (begin >= end) return;
    // Mostly the same piece as the last time, or one behind all others.
    std::int32_t& hint = found_at_[static_cast<std::uint64_t>(begin) / 64 % hints];
    if (hint < count_) {
      piece& same = piece_[hint];
      if (same.begin == begin && same.end == end) {
        visit(same.owner);
        same.owner = owner;
        return;
      }
    }
    if (count_ == 0 || piece_[count_ - 1].end <= begin) {
      piece_[count_] = {begin, end, owner};
      hint = count_++;
      return;
    }
    std::int64_t low = 0;
    for (std::int64_t high = count_; low < high;) {
      const std::int64_t middle = (low + high) / 2;
      if (piece_[middle].end <= begin) low = middle + 1;
      else high = middle;
    }
    std::int64_t last = low;
    for (; last < count_ && piece_[last].begin < end; ++last) visit(piece_[last].owner);
    if (last == low + 1 && piece_[low].begin == begin && piece_[low].end == end) {
      piece_[low].owner = owner;
      hint = static_cast<std::int32_t>(low);
      return;
    }
    // What sticks out at either end stays with its owner.
    piece kept[3]{};
    int keeps = 0;
    if (last > low && piece_[low].begin < begin)
      kept[keeps++] = {piece_[low].begin, begin, piece_[low].owner};
    kept[keeps++] = {begin, end, owner};
    if (last > low && piece_[last - 1].end > end)
      kept[keeps++] = {end, piece_[last - 1].end, piece_[last - 1].owner};
    const std::int64_t shift = keeps - (last - low);
    if (shift > 0)
      for (std::int64_t at = count_ - 1; at >= last; --at) piece_[at + shift] = piece_[at];
    if (shift < 0)
      for (std::int64_t at = last; at < count_; ++at) piece_[at + shift] = piece_[at];
    count_ += static_cast<std::int32_t>(shift);
    for (int at = 0; at < keeps; ++at) piece_[low + at] = kept[at];
  }

 private:
  static constexpr int hints = 1024;

  scratch<piece> pieces_;
  piece* piece_;
  scratch<std::int32_t> found_;
  std::int32_t* found_at_;  // by where bytes begin
  std::int32_t count_ = 0;
};

}  // namespace stretto::check::detail
