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

//! What has not ended.
struct unfinished {
  int threads = 0;  //!< that issue: a callback holds them
  int streams = 0;  //!< of devices: on the host threads, too, which callbacks hold

  int all() const { return threads + streams; }
};

//! Stops all of it, and waits.
unfinished end_threads(const running_parts& all, time_point limit) noexcept;

}  // namespace stretto::executor
