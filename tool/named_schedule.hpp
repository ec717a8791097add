#pragma once

#include <string>

#include "catalogue.hpp"
#include "stretto/schedule/options.hpp"

namespace stretto::tool {

//! A schedule as a comparison names it: NAME, or NAME:option=value,option=value with options of its
//! own.
struct named_schedule {
  schedule_facts facts;
  schedule::options told{};
  std::string words{};  //!< the name, its options in one order
};

//! @throws bad_input for what is no schedule, an option that it has not, one that is told twice,
//!         and what is no value of it
named_schedule read_named(const std::string& text);

}  // namespace stretto::tool
