#include "stretto/executor/error.hpp"

#include <utility>

namespace stretto::executor {

execution_error::execution_error(failure kind, const culprit& where, const std::string& text,
                                 std::exception_ptr cause, int threads_left,
                                 std::string flight_record)
    : std::runtime_error(text),
      kind_(kind),
      where_(where),
      cause_(std::move(cause)),
      threads_left_(threads_left),
      flight_record_(std::make_shared<const std::string>(std::move(flight_record))) {}

}  // namespace stretto::executor
