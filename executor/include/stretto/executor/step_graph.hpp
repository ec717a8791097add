#pragma once

#include <functional>
#include <memory>
#include <span>

#include "stretto/executor/device.hpp"

namespace stretto::executor {

//! A step's calls on all devices of the process, recorded once and replayed as one.
class step_graph {
 public:
  virtual ~step_graph() = default;

  //! What this thread enqueues on the devices from now on is recorded and does not run. Their
  //! streams are idle.
  virtual void begin(std::span<const std::unique_ptr<device>> on) = 0;
  //! Ready to be launched.
  virtual void end() = 0;
  //! In the place of end(), when something failed.
  virtual void cancel() noexcept = 0;

  //! Enqueues the step.
  virtual void launch() = 0;
  //! @return whether the last launch is done
  virtual bool is_over() = 0;
};

using graph_factory = std::function<std::unique_ptr<step_graph>()>;

}  // namespace stretto::executor
