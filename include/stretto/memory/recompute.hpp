#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "stretto/base/scratch.hpp"
#include "stretto/base/viewed.hpp"
#include "stretto/memory/second_run.hpp"
#include "stretto/model/program.hpp"

namespace stretto::memory {

namespace detail {

//! A copy of a chain, with second comings of buffers that run again.
class chain_copy {
 public:
  constexpr explicit chain_copy(const program_chain& from) : from_(from) {
    made.buffers = from.buffers;
    for (std::size_t at = 0; at < from.buffers.size(); ++at)
      now_.push_back(static_cast<std::int32_t>(at));
  }
  constexpr void renew(const second_run& again) {
    // The storages first: views come after what they are views of.
    for (std::size_t at = 0; at < from_.buffers.size(); ++at) {
      const program_buffer& old = from_.buffers[at];
      if (!again.anew(old.storage)) continue;
      now_[at] = old.storage == static_cast<std::int32_t>(at)
                     ? made.buffer(old.name, old.bytes, old.rows)
                     : made.view(old.name, now_[static_cast<std::size_t>(old.storage)]);
    }
  }
  //! @param renewed  its uses go to second comings
  constexpr void add(const op& one, bool renewed) {
    std::vector<op_use> touched;
    for (op_use use : from_.uses_of(one)) {
      if (renewed) use.buffer = now_[static_cast<std::size_t>(use.buffer)];
      touched.push_back(use);
    }
    made.add(one.name, viewed(touched), one);
  }

  program_chain made;

 private:
  const program_chain& from_;
  std::vector<std::int32_t> now_;  // where uses of a backward go, by buffer
};

//! The ops of forwards that run again, each when something first needs what it makes.
class late_runs {
 public:
  explicit constexpr late_runs(const program_chain& chain)
      : chain_(chain),
        waits_(static_cast<std::int64_t>(chain.ops.size())),
        touching_(static_cast<std::int64_t>(chain.buffers.size())) {}

  constexpr void add(const program& forward, const second_run& again) {
    for (std::int32_t index = 0; index < forward.op_count; ++index) {
      if (!again.again(index)) continue;
      waits_[forward.first_op + index] = 1;
      count(forward.first_op + index, 1);
    }
  }
  //! Hands `run` what must run before an op that comes next, in the order of forwards.
  template <class Run>
  constexpr void before(const op& next, const Run& run) {
    bool concerned = false;
    for (const op_use& use : chain_.uses_of(next))
      concerned = concerned || touching_[chain_.storage_of(use.buffer)] > 0;
    if (!concerned) return;
    // From the last on: what meets the op, or one behind it that does.
    const auto buffers = static_cast<std::int64_t>(chain_.buffers.size());
    scratch<char> touched(buffers), written(buffers), wanted(waits_.size());
    const auto want = [&](const op& one) {
      for (const op_use& use : chain_.uses_of(one)) {
        const std::int32_t storage = chain_.storage_of(use.buffer);
        touched[storage] = 1;
        if (use.how != touch::reads) written[storage] = 1;
      }
    };
    want(next);
    for (std::int64_t index = waits_.size() - 1; index >= 0; --index) {
      if (waits_[index] == 0) continue;
      for (const op_use& use : chain_.uses_of(at(index))) {
        const std::int32_t storage = chain_.storage_of(use.buffer);
        if ((use.how == touch::reads ? written : touched)[storage] != 0) wanted[index] = 1;
      }
      if (wanted[index] != 0) want(at(index));
    }
    for (std::int64_t index = 0; index < waits_.size(); ++index) {
      if (wanted[index] == 0) continue;
      waits_[index] = 0;
      count(index, -1);
      run(at(index));
    }
  }

 private:
  constexpr const op& at(std::int64_t index) const {
    return chain_.ops[static_cast<std::size_t>(index)];
  }
  constexpr void count(std::int64_t index, std::int32_t more) {
    for (const op_use& use : chain_.uses_of(at(index)))
      touching_[chain_.storage_of(use.buffer)] += more;
  }

  const program_chain& chain_;
  scratch<char> waits_;             // by op
  scratch<std::int32_t> touching_;  // by storage: uses of those that wait
};

}  // namespace detail

//! The chain with a recompute before each backward: the ops of a forward for which `marks(op)`
//! holds run a second time there, and what they write is not kept from the one to the other.
//! Left out are ops whose results no backward needs, and such as cannot run again because something
//! that stays overwrites what they read or write.
template <class Marks>
constexpr program_chain recompute(const program_chain& chain, const Marks& marks) {
  detail::chain_copy to(chain);
  for (const program& job : chain.programs) {
    const bool backward = job.kind == job_kind::backward || job.kind == job_kind::backward_input;
    for (const program& forward : chain.programs) {
      if (!backward || forward.kind != job_kind::forward || forward.chunk != job.chunk) continue;
      const detail::second_run again(chain, forward, marks);
      if (!again.any()) continue;
      to.renew(again);
      to.made.begin(job_kind::recompute, job.chunk);
      for (std::int32_t at = 0; at < forward.op_count; ++at)
        if (again.again(at)) to.add(chain.ops_of(forward)[static_cast<std::size_t>(at)], true);
    }
    to.made.begin(job.kind, job.chunk);
    for (const op& one : chain.ops_of(job)) to.add(one, job.kind != job_kind::forward);
  }
  return to.made;
}

//! The same with no job for it: in backwards, each op right before the first that needs what it
//! makes, so that of a stage's layers the activations of one come back at a time (Megatron-LM's
//! recompute-modules). Where backwards are split, an op that the half for the weights alone needs
//! runs there.
template <class Marks>
constexpr program_chain recompute_in_backward(const program_chain& chain, const Marks& marks) {
  detail::chain_copy to(chain);
  detail::late_runs late(chain);
  for (const program& forward : chain.programs) {
    if (forward.kind != job_kind::forward) continue;
    const detail::second_run again(chain, forward, marks);
    to.renew(again);
    late.add(forward, again);
  }
  for (const program& job : chain.programs) {
    const bool backward = job.kind != job_kind::forward;
    to.made.begin(job.kind, job.chunk);
    for (const op& one : chain.ops_of(job)) {
      if (backward) late.before(one, [&](const op& again) { to.add(again, true); });
      to.add(one, backward);
    }
  }
  return to.made;
}

//! Marks all but messages: only what comes from outside is kept.
struct recompute_full {
  constexpr bool operator()(const op& one) const {
    return one.name != "receive" && one.name != "send";
  }
};

//! Marks ops by name.
struct recompute_ops {
  std::span<const std::string_view> names;
  constexpr bool operator()(const op& one) const {
    for (const std::string_view name : names)
      if (one.name == name) return true;
    return false;
  }
};

}  // namespace stretto::memory
