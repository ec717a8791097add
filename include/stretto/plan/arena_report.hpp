#pragma once

#include <cstdint>

#include "stretto/base/scratch.hpp"
#include "stretto/lowering/buffers.hpp"
#include "stretto/model/plan_view.hpp"

namespace stretto {

//! How a rank's arena is used, in bytes, every buffer rounded up to 64.
struct arena_report {
  std::int64_t arena = 0;     //!< its size
  std::int64_t peak = 0;      //!< the most in use at once: no arena can be smaller
  std::int64_t saved = 0;     //!< the most in use by what forwards save
  std::int64_t messages = 0;  //!< the most in use by messages, and workspaces of jobs
  std::int64_t sums = 0;      //!< the most in use by copies of gradients that replicas sum
  std::int64_t beside = 0;    //!< the most in use by these two, which share a part of the arena

  //! Arena over peak: 1 when nothing lies idle where most is in use.
  constexpr double ratio() const {
    return peak == 0 ? 1 : static_cast<double>(arena) / static_cast<double>(peak);
  }
  //! The ratio of an arena whose two parts are each as large as it must be by itself: what equal
  //! stages come to, or a little more, as both are of whole buffers.
  constexpr double bound() const {
    return peak == 0 ? 1 : static_cast<double>(saved + beside) / static_cast<double>(peak);
  }
};

//! Adds up the lives of a plan's buffers. Linear in instructions and buffers.
constexpr arena_report measure_arena(const plan_view& plan) {
  const auto count = static_cast<std::int64_t>(plan.instructions.size());
  scratch<std::int64_t> saved(count + 2);
  scratch<std::int64_t> messages(count + 2);
  scratch<std::int64_t> sums(count + 2);
  for (const buffer& one : plan.buffers) {
    if (one.role == buffer_role::host) continue;
    scratch<std::int64_t>& change = is_saved(one.role)                    ? saved
                                    : one.role == buffer_role::collective ? sums
                                                                          : messages;
    change[one.first] += lowering::aligned(one.bytes);
    change[one.release] -= lowering::aligned(one.bytes);
  }
  arena_report made{.arena = plan.arena_bytes};
  std::int64_t of_saved = 0;
  std::int64_t of_messages = 0;
  std::int64_t of_sums = 0;
  for (std::int64_t at = 0; at <= count; ++at) {
    of_saved += saved[at];
    of_messages += messages[at];
    of_sums += sums[at];
    const std::int64_t beside = of_messages + of_sums;
    if (of_saved > made.saved) made.saved = of_saved;
    if (of_messages > made.messages) made.messages = of_messages;
    if (of_sums > made.sums) made.sums = of_sums;
    if (beside > made.beside) made.beside = beside;
    if (of_saved + beside > made.peak) made.peak = of_saved + beside;
  }
  return made;
}

}  // namespace stretto
