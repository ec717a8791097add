#pragma once

#include <span>
#include <string>

#include "stretto/executor/bootstrap.hpp"
#include "stretto/executor/error.hpp"
#include "stretto/model/plan_view.hpp"

namespace stretto::executor {

//! Something besides this library that all processes must have in one version.
struct component {
  std::string name{};     //!< "NCCL"; one line
  std::string version{};  //!< "2.28.9"; one line
};

//! Compares, between the processes of a job and before the first step, what must fit for steps to
//! end: versions; that every rank is in one process; digests; the messages of each channel, number
//! by number; and the groups. Only hashes travel, and of the first thing that differs its details.
//! Every process calls it with the valid plans of its own ranks, and all get the same answer.
//! @throws plan_error naming the first difference: for digests the first entry of the lists that
//!         differs, where plans know these (plan_view::lists); for a channel the number of the
//!         message, its size, instruction and rank on both sides; bootstrap_error when a process is
//!         missing.
void agree(std::span<const plan_view> plans, std::span<const component> components, bootstrap& by,
           time_point limit);

}  // namespace stretto::executor
