#pragma once

#include <exception>
#include <string>

namespace stretto::executor {

//! What an exception says of itself.
inline std::string cause_text(const std::exception_ptr& cause) {
  try {
    std::rethrow_exception(cause);
  } catch (const std::exception& known) {
    const char* const text = known.what();
    return text != nullptr ? text : "an exception that says nothing";
  } catch (...) {
    return "an exception that is no std::exception";
  }
}

}  // namespace stretto::executor
