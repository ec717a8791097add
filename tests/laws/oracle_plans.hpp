#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "stretto/model/plan_view.hpp"

//! Plans of all ranks that own their memory and are easy to spoil.
namespace oracle {

struct loose_instruction {
  stretto::instruction itself{};
  std::vector<stretto::event_wait> waits{};
  std::vector<stretto::buffer_use> uses{};
  std::vector<std::int32_t> released{};
};

struct loose_plan {
  stretto::plan_view head{};  //!< what the lists do not hold; its spans are not used
  std::vector<loose_instruction> list{};
  std::vector<stretto::buffer> buffers{};
};

class loose_plans {
 public:
  loose_plans() = default;
  explicit loose_plans(std::span<const stretto::plan_view> from) {
    for (const stretto::plan_view& plan : from) {
      loose_plan& made = ranks.emplace_back();
      made.head = plan;
      made.buffers.assign(plan.buffers.begin(), plan.buffers.end());
      for (const stretto::instruction& at : plan.instructions) {
        loose_instruction& one = made.list.emplace_back();
        one.itself = at;
        const auto waits = plan.waits_of(at);
        const auto uses = plan.uses_of(at);
        const auto released = plan.released_before(at);
        one.waits.assign(waits.begin(), waits.end());
        one.uses.assign(uses.begin(), uses.end());
        one.released.assign(released.begin(), released.end());
      }
    }
  }

  std::vector<loose_plan> ranks{};

  //! Lists every release where its buffer's life ends.
  void settle_releases() {
    for (loose_plan& plan : ranks) {
      for (loose_instruction& one : plan.list) one.released.clear();
      for (std::size_t id = 0; id < plan.buffers.size(); ++id) {
        const auto end = static_cast<std::size_t>(plan.buffers[id].release);
        if (end < plan.list.size()) plan.list[end].released.push_back(static_cast<int>(id));
      }
    }
  }

  //! As the rules read them; alive until the next call.
  std::span<const stretto::plan_view> views() {
    packed_.resize(ranks.size());
    views_.clear();
    for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
      arrays& all = packed_[rank];
      all.instructions.clear(), all.waits.clear(), all.uses.clear(), all.released.clear();
      for (const loose_instruction& one : ranks[rank].list) {
        stretto::instruction at = one.itself;
        at.first_wait = append(all.waits, one.waits);
        at.first_use = append(all.uses, one.uses);
        at.first_release = append(all.released, one.released);
        at.wait_count = static_cast<std::int16_t>(one.waits.size());
        at.use_count = static_cast<std::int32_t>(one.uses.size());
        at.release_count = static_cast<std::int32_t>(one.released.size());
        all.instructions.push_back(at);
      }
      stretto::plan_view seen = ranks[rank].head;
      seen.instructions = all.instructions;
      seen.waits = all.waits;
      seen.uses = all.uses;
      seen.released = all.released;
      seen.buffers = ranks[rank].buffers;
      views_.push_back(seen);
    }
    return views_;
  }

 private:
  struct arrays {
    std::vector<stretto::instruction> instructions{};
    std::vector<stretto::event_wait> waits{};
    std::vector<stretto::buffer_use> uses{};
    std::vector<std::int32_t> released{};
  };
  template <class T>
  static std::int32_t append(std::vector<T>& to, const std::vector<T>& items) {
    const auto first = static_cast<std::int32_t>(to.size());
    to.insert(to.end(), items.begin(), items.end());
    return first;
  }

  std::vector<arrays> packed_{};
  std::vector<stretto::plan_view> views_{};
};

}  // namespace oracle
