#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "stretto/model/plan_view.hpp"

namespace stretto::executor {

//! The plan with its buffers further apart: behind each one are 64 bytes and more that no
//! instruction may touch while the buffer is in use, whatever runs beside it. Everything else is
//! the same.
//!
//! Buffers keep their order, and what overlapped before alone may overlap now, guards included. So
//! who may touch a guard shares bytes with its buffer in the plan, which puts all its accesses
//! before the buffer's first one or behind its last one.
class guarded_plan {
 public:
  //! @param plan  a valid one, which outlives this
  explicit guarded_plan(const plan_view& plan);
  guarded_plan(guarded_plan&&) = default;
  guarded_plan& operator=(guarded_plan&&) = default;

  //! Valid as long as this object, or whatever it is moved to.
  const plan_view& view() const { return view_; }

 private:
  std::vector<buffer> buffers_;
  plan_view view_;
};

//! What lies behind a buffer of such a plan, up to the next line but one.
inline std::span<std::byte> guard_behind(std::span<std::byte> bytes) {
  const std::size_t line = 64, rest = (line - bytes.size() % line) % line;
  return {bytes.data() + bytes.size(), rest + line};
}

}  // namespace stretto::executor
