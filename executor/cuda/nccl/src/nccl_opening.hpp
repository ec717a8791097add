#pragma once

#include <cuda_runtime_api.h>
#include <nccl.h>

#include <map>
#include <span>
#include <vector>

#include "lost_peers.hpp"
#include "nccl_links.hpp"
#include "stretto/executor/bootstrap.hpp"
#include "stretto/executor/cuda/nccl_transport.hpp"
#include "stretto/executor/device.hpp"
#include "stretto/executor/transport.hpp"

namespace stretto::executor {

//! How the communicators of a process come to be: which it needs, their ids, connecting, the first
//! use of each.
class nccl_opening {
 public:
  nccl_opening(bootstrap& between, const nccl_settings& settings);

  //! Begins; with all processes.
  //! @throws transport_error, bootstrap_error when there are no ids
  void begin(std::span<const plan_view> plans, time_point until);
  //! Once for each rank.
  //! @throws plan_error when communication that waits could fill the rank's GPU
  void check_room(int rank, const device& on);
  //! With all processes, when all ranks here have devices, and NCCL's kernels run alone there.
  //! @param links  where the communicators are from the first on, also when it throws
  //! @throws transport_error when NCCL fails, a process does not come or the time is up
  void finish(const std::map<int, device*>& on, nccl_links& links, time_point until);

 private:
  void note_rank(const plan_view& plan);
  void exchange_ids(time_point until);
  void connect(nccl_links& links);
  void warm_up(const nccl_links& links);
  void start_first(const nccl_comm& comm, std::size_t kind, const nccl_links& links) const;
  void settle(nccl_comm& comm, const char* call);
  void wait_for(const nccl_comm& comm, cudaEvent_t done);
  void must_be_there();
  const plan_view& plan_of(int rank) const;
  cudaStream_t first_stream(int rank) const;

  bootstrap& between_;
  const nccl_settings settings_;
  lost_peers lost_;
  std::vector<plan_view> plans_;
  time_point until_{};  // connecting
  std::map<comm_key, std::vector<nccl_comm::place>> wanted_;
  std::map<comm_key, ncclUniqueId> ids_;
  std::map<int, int> taken_;  // multiprocessors, by GPU
  std::map<int, device*> on_;
};

}  // namespace stretto::executor
