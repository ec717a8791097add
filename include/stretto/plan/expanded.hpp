#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "stretto/base/viewed.hpp"
#include "stretto/lowering/walk.hpp"
#include "stretto/plan/planned.hpp"
#include "stretto/plan/plans_expander.hpp"

namespace stretto {

//! Plans whose jobs are expanded into ops on typed streams, from plans of whole jobs: proven anew,
//! by the same rules and that of `resident`, with as few events as they need.
class expanded {
 public:
  //! @param base     kept by the caller; a refused one has no plans, and `answer` says so
  //! @param streams  of base's plans, and of the ops
  template <OpPolicy Ops>
  expanded(const planned& base, std::span<const stream_info> streams, const Ops& ops)
      : streams_(streams.begin(), streams.end()),
        made_(base.plans(), base.issued(), viewed(streams_), ops,
              [&](auto& watch) { return lowering::walk(base.issued(), base.order(), watch); }) {}
  //! The base outlives this, which no temporary does.
  template <OpPolicy Ops>
  expanded(const planned&& base, std::span<const stream_info> streams, const Ops& ops) = delete;
  expanded(const expanded&) = delete;
  expanded& operator=(const expanded&) = delete;

  //! Ok, or the first rule that is broken; the rest means something when ok.
  const verdict& answer() const { return made_.answer; }
  //! One per rank, valid as long as this object.
  std::span<const plan_view> plans() const& { return viewed(made_.views); }
  std::span<const plan_view> plans() const&& = delete;  //!< they would be gone with the temporary
  //! Bytes of what this object keeps.
  std::int64_t storage_bytes() const {
    std::int64_t sum = 0;
    for (const lowering::op_plan& plan : made_.written) sum += plan.storage_bytes();
    return sum;
  }

 private:
  std::vector<stream_info> streams_;
  detail::plans_expander made_;
};

}  // namespace stretto
