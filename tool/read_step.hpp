#pragma once

#include <string>

#include "cost_table.hpp"
#include "step.hpp"
#include "stretto/schedule/variants.hpp"

namespace stretto::tool {

//! What a file in PyTorch's CSV holds, without costs, and held against no rule yet.
//! @param option  which names it
//! @throws bad_input, broken_schedule
step read_order(const std::string& option, const std::string& path);
//! @throws bad_input for a file (--csv) with messages, which plans make of their own
void refuse_own_messages(const step& read, const std::string& csv);
//! Gives what is read its costs, as make_step() does, and holds it against every rule.
//! Of how many stages at once a rank may have the weights: without --gathered of any number in
//! lists that say where they are gathered, of as many as by default in others.
//! @param given      as the options have them, of whatever step
//! @param why        is told what a limit or --gathered does not let be; null: that is thrown, too
//! @param objective  what is to be short where layers can be dealt in several ways
//! @throws broken_schedule
void prove_order(step& read, const cost_options& given, const cost_cut& cut, no_step* why = nullptr,
                 schedule::objective_kind objective = schedule::objective_kind::flush);

}  // namespace stretto::tool
