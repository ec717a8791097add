#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "stretto/model/plan_view.hpp"

namespace stretto::executor {

//! "rank 1, instruction 4, 2F0 (stage 2, forward, micro-batch 0)".
std::string describe(const plan_view& plan, int instruction);
//! "2F0 (stage 2, forward, micro-batch 0)".
std::string describe(const job& what);
//! What traces call the instruction: "2F0", of an op "2F0 op 3".
std::string label(const plan_view& plan, int instruction);
//! The stream's name, which points into it.
std::string_view label(const stream_info& stream);

//! Checks that one plan can be run: every index in range, buffers inside the arena and used only
//! while they live, events recorded once and before they are waited for, one end_step, last, with
//! everything before it.
//! @throws plan_error naming rank, instruction and rule.
void validate(const plan_view& plan);

//! Checks each plan and all of them together: different ranks of one job with equal digests; on
//! each channel as many receives as sends, the k-th of both being the same message of equal size;
//! members of a group that agree on it. What concerns ranks that are not given is left out.
//! @throws plan_error naming the first rank, channel or group that differs.
void validate(std::span<const plan_view> plans);

//! One instruction of one of the plans: indices into the list of plans and into the plan.
struct place {
  int plan = -1;
  int instruction = -1;
  bool operator==(const place&) const = default;
};

//! Which instructions of valid plans meet: the two ends of a message, the members of a collective.
class meetings {
 public:
  explicit meetings(std::span<const plan_view> plans);

  //! The other instructions of the meeting; empty for instructions that meet nobody.
  std::span<const place> others(place at) const;

 private:
  struct range {
    int first = 0;
    int count = 0;
  };
  std::vector<std::vector<range>> ranges_;
  std::vector<place> places_;
};

}  // namespace stretto::executor
