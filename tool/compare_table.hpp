#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "finer_unit.hpp"
#include "step.hpp"
#include "stretto/model/bound.hpp"

namespace stretto::tool {

//! One row of `compare`.
struct compared {
  std::string name;
  std::string file;  //!< that an order is read from, as typed; empty: it is a schedule's
  bool forward_only = false;
  int chunks = 1;
  int slices = 1;
  verdict why;  //!< it is not there
  simulated all;
  step_bound bound;

  std::int64_t peak() const;
};

//! What all rows have in common, and how they are told.
struct comparison {
  shape wanted;
  finer_unit time;
  finer_unit memory;
  bool spans = false;   //!< what is to be short is the longest rank's first to last job
  bool layers = false;  //!< costs are those of layers

  std::int64_t length(const compared& one) const {
    return spans ? one.all.all.span : one.all.all.makespan;
  }
  std::int64_t bound(const compared& one) const { return spans ? one.bound.span : one.bound.flush; }

  //! @param absent  those with a reason why they are not in the table
  void print(const std::vector<compared>& all, const std::vector<compared>& absent) const;
  void print_json(const std::vector<compared>& all, const std::vector<compared>& absent) const;

 private:
  std::string scale(const compared& one) const;
  std::string reason_of(const compared& one) const;
};

}  // namespace stretto::tool
