#pragma once

#include <string_view>

#include "stretto/model/plan_view.hpp"

namespace stretto::executor {

//! Who says how many bytes a buffer has, for errors.
constexpr std::string_view said_by(buffer_role role) {
  switch (role) {
    case buffer_role::workspace:
      return "the program of its ops says (program_chain::buffer)";
    case buffer_role::collective:
      return "its group says (elements, or a stage's gradients)";
    default:
      return "the memory policy's bytes() says";
  }
}

}  // namespace stretto::executor
