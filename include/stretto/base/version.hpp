#pragma once

#include <string_view>

namespace stretto {

//! The version of the whole project. The build reads it from this line; it stands nowhere else.
inline constexpr std::string_view version = "0.1.0";

}  // namespace stretto
