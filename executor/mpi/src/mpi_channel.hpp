#pragma once

#include <atomic>
#include <cstdint>

#include "mpi_requests.hpp"
#include "stretto/executor/transport.hpp"

namespace stretto::executor {

//! One side of a directed pair of ranks, in the process of that side. Its operations are handled in
//! the order of their enqueuing, on whatever streams they are.
class mpi_channel {
 public:
  //! The pair, and where the other side is.
  struct place {
    int from = 0;
    int to = 0;
    int process = 0;
    int tag = 0;
  };

  //! @param largest  bytes of the largest message
  mpi_channel(MPI_Comm on, const place& at, std::int64_t largest, const mpi_watch& watch);

  //! The number of the next operation; called from the issuing thread of the rank.
  std::int64_t next() { return issued_++; }

  //! On a stream. Both return early when stopped.
  //! @throws transport_error when the two sides do not fit, MPI fails, another process has failed,
  //!         or the peer has left
  void send(const operation& what, std::int64_t step, std::int64_t number);
  void receive(const operation& what, std::int64_t step, std::int64_t number);

 private:
  const place at_;
  const std::int64_t largest_;
  const mpi_watch& watch_;
  mpi_requests requests_;
  std::int64_t issued_ = 0;
  std::atomic<std::int64_t> done_{0};
};

}  // namespace stretto::executor
