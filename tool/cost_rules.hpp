#pragma once

#include <cstdint>

#include "cost_cut.hpp"
#include "cost_options.hpp"

namespace stretto::tool {

//! Sums of times and of memory must stay in 64 bits, in a finer unit, too. Upwards of the real
//! sums: no step is longer than all that its jobs and messages take one after another (of gathers
//! three for each, before each job of a micro-batch), and no rank holds more than if none of its
//! jobs gave anything back.
//! @param given  before it is refined, and the loss added: to four jobs, of replicas twice
//! @throws bad_option naming the option whose numbers are too large
void refuse_long_sums(const cost_options& options, const job_table& given, const placement& where,
                      const cost_cut& cut, std::int64_t loss);

//! A whole backward takes no less than no time.
//! @throws bad_option of --whole-saves
void refuse_saving_too_much(const cost_options& options, const job_table& given);

}  // namespace stretto::tool
