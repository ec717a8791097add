#pragma once

#include <cuda_runtime_api.h>

#include <compare>
#include <cstdint>
#include <map>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

#include "nccl_comm.hpp"
#include "stretto/executor/transport.hpp"
#include "stretto/model/plan_view.hpp"

namespace stretto::executor {

//! Which communicator: a channel from one rank to another, or a group (and its first member). Every
//! process has them in one order. Its bytes go to the others, and so has none that mean nothing.
struct comm_key {
  int of_group = 0;  //!< 1: a group's
  int first = 0;
  int second = 0;
  auto operator<=>(const comm_key&) const = default;
};
static_assert(std::has_unique_object_representations_v<comm_key>);

//! The communicators of a process's ranks, and what is enqueued on them.
class nccl_links {
 public:
  //! @param group  whose it is, if it is one's
  nccl_comm& add(const comm_key& key, const nccl_comm::place& at, const ncclUniqueId& id,
                 const group_info& group);
  //! By key, for each rank here one.
  const auto& all() const { return held_; }

  nccl_comm& of_send(const operation& what) const { return *sends_.at({what.rank, what.peer}); }
  nccl_comm& of_receive(const operation& what) const {
    return *receives_.at({what.peer, what.rank});
  }
  nccl_comm& of_group(const operation& what) const {
    return *groups_.at({what.peer, what.rank}).comm;
  }

  // Calls, which are under way until the communicator has settled.
  void send(const operation& what, cudaStream_t on) const;
  void receive(const operation& what, cudaStream_t on) const;
  void sum(const operation& what, cudaStream_t on, std::int64_t step) const;
  void gather(const operation& what, cudaStream_t on) const;
  void scatter(const operation& what, cudaStream_t on, std::int64_t step) const;

  //! Gives those up for which it holds.
  template <class Which>
  std::vector<ncclComm_t> release(Which which) noexcept {
    std::vector<ncclComm_t> given;
    for (auto& [key, held] : held_)
      for (auto& each : held)
        if (which(*each))
          if (ncclComm_t const comm = each->release(); comm != nullptr) given.push_back(comm);
    return given;
  }

 private:
  struct group_side {
    nccl_comm* comm = nullptr;
    std::int64_t elements = 0;
    bool wide = false;
    std::size_t members = 1;
    std::size_t place = 0;  // among them
  };

  std::map<comm_key, std::vector<std::unique_ptr<nccl_comm>>> held_;
  std::map<std::pair<int, int>, nccl_comm*> sends_;
  std::map<std::pair<int, int>, nccl_comm*> receives_;
  std::map<std::pair<int, int>, group_side> groups_;  // by group and rank
};

}  // namespace stretto::executor
