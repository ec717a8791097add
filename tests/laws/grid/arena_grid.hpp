#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "stretto/memory/offload_window.hpp"
#include "stretto/model/verdict.hpp"
#include "stretto/plan/arena_report.hpp"

namespace laws {

//! Calls `visit(answer, name, report)` for every rank of every schedule's plan over many shapes,
//! with how its arena is used; once, and without a report, where the plan breaks a rule. What a
//! stage saves is `times` as large as a message, and `more` bytes larger on each stage than on the
//! one before.
void for_each_arena(
    std::int64_t times, std::int64_t more,
    const std::function<void(const stretto::verdict&, const std::string&,
                             const stretto::arena_report&)>& visit,
    const stretto::memory::offload_window& offload = {});

}  // namespace laws
