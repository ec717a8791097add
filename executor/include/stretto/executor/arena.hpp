#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "stretto/model/plan_view.hpp"

namespace stretto::executor {

//! One allocation for all buffers of a rank, or for all that the host keeps: zeroed, aligned to 64
//! bytes, never grown.
class arena {
 public:
  explicit arena(std::int64_t bytes);

  std::span<std::byte> bytes() const { return {memory_.get(), size_}; }

 private:
  struct release {
    void operator()(std::byte* memory) const noexcept;
  };
  std::size_t size_ = 0;
  std::unique_ptr<std::byte, release> memory_;
};

//! Bytes of the arena's buffers that live at the instruction, from their `first` and `release`,
//! without what alignment adds.
std::int64_t bytes_in_use(const plan_view& plan, int instruction);

//! The most bytes in use at once, without what alignment adds, and the first instruction at which
//! they are.
struct high_water_mark {
  std::int64_t bytes = 0;
  int instruction = 0;
};
//! Where the plan's arena is fullest.
high_water_mark most_in_use(const plan_view& plan);

}  // namespace stretto::executor
