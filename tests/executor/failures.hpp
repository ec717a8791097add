#pragma once

#include <doctest/doctest.h>

#include <optional>
#include <string>
#include <string_view>

#include "stretto/executor/engine.hpp"
#include "stretto/executor/error.hpp"

namespace stretto::test {

//! The error that the step ends with; a test failure when it ends well.
inline executor::execution_error error_of(executor::engine& engine) {
  try {
    engine.step();
  } catch (const executor::execution_error& caught) {
    return caught;
  }
  FAIL("the step was expected to fail");
  throw std::logic_error("unreachable");
}

//! What the plan_error says that the call throws; a test failure when it throws none.
template <class Call>
std::string refusal_of(Call&& call) {
  try {
    call();
  } catch (const executor::plan_error& caught) {
    return caught.what();
  }
  FAIL_CHECK("a plan_error was expected");
  return {};
}

//! Checks that the text holds the part.
inline void expect_part(std::string_view text, std::string_view part) {
  CHECK_MESSAGE(text.find(part) != std::string_view::npos, std::string(text), " lacks \"",
                std::string(part), "\"");
}

}  // namespace stretto::test
