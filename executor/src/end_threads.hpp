#pragma once

#include <memory>
#include <span>

#include "issuers.hpp"
#include "stretto/executor/device.hpp"
#include "stretto/executor/monitor.hpp"
#include "stretto/executor/transport.hpp"

namespace stretto::executor {

//! What an engine has set going.
struct running_parts {
  monitor& watch;
  transport& wire;
  std::span<const std::unique_ptr<device>> devices;
  issuers* threads;  //!< null: the caller issues
  bool polled;       //!< devices or the transport are
};

//! Stops all of it, and waits.
//! @return threads, or streams of a GPU, that have not ended by then.
int end_threads(const running_parts& all, time_point limit) noexcept;

}  // namespace stretto::executor
