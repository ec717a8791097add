#pragma once

#include <cstdint>

#include "stretto/model/job.hpp"

namespace stretto::check {

//! A set of the kinds that one (stage, micro-batch, slice) may have: F up to RECV_B, one bit each.
using kind_set = std::uint16_t;

constexpr kind_set only(job_kind kind) {
  return static_cast<kind_set>(1U << static_cast<unsigned>(kind));
}
constexpr kind_set only(job_kind one, job_kind other) {
  return static_cast<kind_set>(only(one) | only(other));
}
constexpr bool holds(kind_set set, kind_set any_of) {
  return (set & any_of) != 0;
}

}  // namespace stretto::check
