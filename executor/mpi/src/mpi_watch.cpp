#include "mpi_watch.hpp"

#include <string>

#include "stretto/executor/error.hpp"

namespace stretto::executor {

bool mpi_watch::stopped(std::span<const int> peers) const {
  if (stop_.load(std::memory_order_acquire)) return true;
  if (const std::string text = lost_.text(); !text.empty()) throw transport_error(text);
  for (const int process : peers)
    if (news_.has_left(process))
      throw transport_error("process " + std::to_string(process) +
                            " has left: it runs no further step");
  return false;
}

}  // namespace stretto::executor
