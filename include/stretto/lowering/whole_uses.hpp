#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "stretto/base/filled.hpp"
#include "stretto/base/viewed.hpp"
#include "stretto/model/plan_view.hpp"

namespace stretto::lowering {

//! The same plans, but one rank's in other words: what pieces of ops touch in part is several
//! buffers, cut where the ranges of uses begin and end, and every use is of whole ones. Rules that
//! know of whole buffers alone then hold of bytes. Instructions, waits and events keep their
//! numbers.
class whole_uses {
 public:
  //! @param plans  kept by the caller
  constexpr whole_uses(std::span<const plan_view> plans, int rank) {
    for (const plan_view& one : plans) views_.push_back(one);
    plan_view& made = views_[static_cast<std::size_t>(rank)];
    cut_buffers(made);
    write(made);
    made.instructions = viewed(instructions_);
    made.uses = viewed(uses_);
    made.ranges = {};
    made.released = viewed(released_);
    made.buffers = viewed(buffers_);
  }
  constexpr ~whole_uses() = default;  // nvcc does not find it constexpr by itself
  whole_uses(const whole_uses&) = delete;
  whole_uses& operator=(const whole_uses&) = delete;

  //! Valid as long as this object and the plans.
  constexpr std::span<const plan_view> views() const { return viewed(views_); }

 private:
  static constexpr std::size_t index(std::int64_t at) { return static_cast<std::size_t>(at); }

  constexpr void cut_buffers(const plan_view& plan) {
    std::vector<std::vector<std::int64_t>> bounds =
        filled<std::vector<std::int64_t>>(plan.buffers.size());
    const auto put = [&](std::vector<std::int64_t>& among, std::int64_t bound) {
      std::size_t at = 0;
      while (at < among.size() && among[at] < bound) ++at;
      if (at == among.size() || among[at] != bound)
        among.insert(among.begin() + static_cast<std::ptrdiff_t>(at), bound);
    };
    for (std::size_t use = 0; use < plan.uses.size(); ++use) {
      const auto id = index(plan.uses[use].buffer);
      const byte_range range = plan.ranges[use];
      const std::int64_t end = range.first + range.bytes;
      if (range.first > 0 && range.first < plan.buffers[id].bytes) put(bounds[id], range.first);
      if (end > 0 && end < plan.buffers[id].bytes) put(bounds[id], end);
    }
    for (std::size_t id = 0; id < plan.buffers.size(); ++id) {
      first_.push_back(static_cast<std::int32_t>(buffers_.size()));
      const buffer whole = plan.buffers[id];
      bounds[id].push_back(whole.bytes);
      std::int64_t begin = 0;
      for (const std::int64_t end : bounds[id]) {
        buffer part = whole;
        part.offset += begin;
        part.bytes = end - begin;
        buffers_.push_back(part);
        begin = end;
      }
    }
    first_.push_back(static_cast<std::int32_t>(buffers_.size()));
  }

  constexpr void write(const plan_view& plan) {
    const auto count = static_cast<std::int32_t>(plan.instructions.size());
    for (std::int32_t at = 0; at < count; ++at) {
      instruction made = plan.instructions[index(at)];
      const std::int32_t first_use = made.first_use;
      made.first_use = static_cast<std::int32_t>(uses_.size());
      for (std::int32_t use = first_use; use < first_use + made.use_count; ++use)
        touch(plan, plan.uses[index(use)], plan.ranges[index(use)]);
      // Who gives a buffer back has all of it.
      if (at + 1 < count)
        for (const std::int32_t freed : plan.released_before(plan.instructions[index(at + 1)]))
          if (plan.released_as_ends(freed, at + 1)) have_all(made.first_use, freed);
      made.use_count = static_cast<std::int32_t>(uses_.size() - index(made.first_use));
      const auto first_release = static_cast<std::int32_t>(released_.size());
      for (const std::int32_t freed : plan.released_before(made))
        for (std::int32_t part = first_[index(freed)]; part < first_[index(freed) + 1]; ++part)
          released_.push_back(part);
      made.first_release = first_release;
      made.release_count = static_cast<std::int32_t>(released_.size() - index(first_release));
      instructions_.push_back(made);
    }
  }
  constexpr void touch(const plan_view& plan, buffer_use use, const byte_range& range) {
    const auto id = index(use.buffer);
    const std::int64_t begin = plan.buffers[id].offset + range.first;
    const std::int64_t end = begin + range.bytes;
    for (std::int32_t part = first_[id]; part < first_[id + 1]; ++part) {
      const buffer& mine = buffers_[index(part)];
      const bool inside = mine.offset >= begin && mine.offset + mine.bytes <= end;
      if (!inside || (mine.bytes == 0 && first_[id] + 1 != first_[id + 1])) continue;
      use.buffer = part;
      uses_.push_back(use);
    }
  }
  constexpr void have_all(std::int32_t first_use, std::int32_t of) {
    for (std::int32_t part = first_[index(of)]; part < first_[index(of) + 1]; ++part) {
      bool has = false;
      for (std::size_t use = index(first_use); use < uses_.size(); ++use)
        has = has || uses_[use].buffer == part;
      if (!has) uses_.push_back({part, buffer_role::workspace, access::read});
    }
  }

  std::vector<plan_view> views_;
  std::vector<std::int32_t> first_;  // of each buffer, its first part
  std::vector<buffer> buffers_;
  std::vector<buffer_use> uses_;
  std::vector<std::int32_t> released_;
  std::vector<instruction> instructions_;
};

}  // namespace stretto::lowering
