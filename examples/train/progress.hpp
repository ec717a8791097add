// How far training has come: one line that renews itself, or where output is no terminal a line for
// each tenth of the steps, and each minute.
#pragma once

#include <chrono>
#include <ostream>

#include "model/reference.hpp"

namespace train {

class progress {
 public:
  //! @param first  the number of the first step to come
  //! @param tokens of a step
  progress(std::ostream& out, bool terminal, long first, long steps, double tokens)
      : out_(out), terminal_(terminal), first_(first), steps_(steps), tokens_(tokens) {}

  //! After step `number`.
  //! @param last  none follows
  void update(long number, const step_result& result, bool last);
  //! Since the first step; bytes and tokens are the same.
  double tokens_per_second() const;

 private:
  using clock = std::chrono::steady_clock;

  std::ostream& out_;
  bool terminal_;
  long first_;
  long steps_;
  double tokens_;
  long done_ = 0;
  clock::time_point start_ = clock::now(), shown_{};
};

}  // namespace train
