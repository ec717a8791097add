#pragma once

#include <cstddef>
#include <cstdint>

#include "stretto/base/scratch.hpp"
#include "stretto/model/program.hpp"

namespace stretto::memory {

namespace detail {

//! Which ops of one forward can run a second time, and which buffers come anew.
class second_run {
 public:
  template <class Marks>
  constexpr second_run(const program_chain& chain, const program& forward, const Marks& marks)
      : chain_(chain),
        forward_(forward),
        again_(forward.op_count),
        anew_(static_cast<std::int64_t>(chain.buffers.size())) {
    for (std::int32_t index = 0; index < forward.op_count; ++index)
      again_[index] = marks(at(index)) ? 1 : 0;
    while (drop_unsound()) {
    }
    keep_needed();
  }
  constexpr bool again(std::int32_t index) const { return again_[index] != 0; }
  //! By storage: a later backward finds its bytes in a new buffer.
  constexpr bool anew(std::int32_t storage) const { return anew_[storage] != 0; }
  constexpr bool any() const {
    for (std::int32_t index = 0; index < forward_.op_count; ++index)
      if (again_[index] != 0) return true;
    return false;
  }

 private:
  constexpr const op& at(std::int32_t index) const {
    return chain_.ops_of(forward_)[static_cast<std::size_t>(index)];
  }
  //! An op can only run again where all that it writes comes anew as a whole, and all that it reads
  //! comes anew, too, or is still what it was.
  constexpr bool drop_unsound() {
    const auto buffers = static_cast<std::int64_t>(chain_.buffers.size());
    scratch<std::int32_t> kept(buffers);  // the last op that writes it and runs once, plus one
    scratch<char> remade(buffers);
    for (std::int32_t index = 0; index < forward_.op_count; ++index)
      for (const op_use& use : chain_.uses_of(at(index))) {
        const std::int32_t storage = chain_.storage_of(use.buffer);
        if (use.how != touch::writes) continue;
        if (again_[index] != 0)
          remade[storage] = 1;
        else
          kept[storage] = index + 1;
      }
    bool dropped = false;
    for (std::int32_t index = 0; index < forward_.op_count; ++index) {
      if (again_[index] == 0) continue;
      for (const op_use& use : chain_.uses_of(at(index))) {
        if (chain_.buffers[static_cast<std::size_t>(use.buffer)].persistent) continue;
        const std::int32_t storage = chain_.storage_of(use.buffer);
        if (kept[storage] > index + 1 || (kept[storage] > 0 && remade[storage] != 0)) {
          again_[index] = 0;
          dropped = true;
        }
      }
    }
    return dropped;
  }
  //! Nothing runs again whose results no backward and no other second run reads.
  constexpr void keep_needed() {
    scratch<char> needed(static_cast<std::int64_t>(chain_.buffers.size()));
    for (const program& job : chain_.programs)
      if (job.kind != job_kind::forward)
        for (const op& one : chain_.ops_of(job))
          for (const op_use& use : chain_.uses_of(one))
            if (use.how == touch::reads) needed[chain_.storage_of(use.buffer)] = 1;
    for (std::int32_t index = forward_.op_count - 1; index >= 0; --index) {
      const op& one = at(index);
      bool wanted = false;
      for (const op_use& use : chain_.uses_of(one))
        wanted = wanted || (use.how == touch::writes && needed[chain_.storage_of(use.buffer)] != 0);
      if (!wanted) again_[index] = 0;
      if (again_[index] == 0) continue;
      for (const op_use& use : chain_.uses_of(one)) {
        const std::int32_t storage = chain_.storage_of(use.buffer);
        if (use.how == touch::writes) anew_[storage] = 1;
        if (use.how == touch::reads) needed[storage] = 1;
      }
    }
  }

  const program_chain& chain_;
  const program& forward_;
  scratch<char> again_;
  scratch<char> anew_;
};

}  // namespace detail

}  // namespace stretto::memory
