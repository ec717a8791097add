#pragma once

#include <cstdint>

#include "stretto/base/fault.hpp"
#include "stretto/model/job.hpp"

namespace stretto {

//! The answer of a check or a policy: nothing wrong, or what, where and why. Structural.
struct [[nodiscard]] verdict {
  fault what = fault::none;
  reason why = reason::none;
  int rank = -1;             //!< -1: no rank in particular
  int step = -1;             //!< index in the rank's list; -1: none
  job where{};               //!< the job at fault, when `step` or `why` speaks of one
  //! What it waits for, meets or clashes with, when there is such. Of reason::duplicate the same
  //! job where it stands the first time: at step `amount` of the same list.
  job other{};
  bool has_job = false;      //!< `where` means something
  bool has_other = false;    //!< `other` means something
  std::int64_t amount = 0;   //!< bytes or count that breaks the rule
  std::int64_t limit = 0;    //!< what it should be at most

  constexpr bool ok() const { return what == fault::none; }
  constexpr explicit operator bool() const { return ok(); }
  constexpr bool operator==(const verdict&) const = default;
};

//! Shorthands for the checks.
constexpr verdict refuse(fault what, reason why) { return {.what = what, .why = why}; }
//! The same of a job.
constexpr verdict refuse(fault what, reason why, int rank, int step, const job& where) {
  return {.what = what, .why = why, .rank = rank, .step = step, .where = where, .has_job = true};
}
//! The same of a job and the one that it waits for, meets or clashes with.
constexpr verdict refuse(fault what, reason why, int rank, int step, const job& where,
                         const job& other) {
  verdict answer = refuse(what, why, rank, step, where);
  answer.other = other;
  answer.has_other = true;
  return answer;
}

}  // namespace stretto
