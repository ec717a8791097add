#pragma once

#include <span>
#include <vector>

#include "stretto/model/plan_view.hpp"

namespace stretto::executor {

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
