#pragma once

#include <atomic>
#include <span>

#include "lost_peers.hpp"
#include "mpi_news.hpp"

namespace stretto::executor {

//! What ends the waiting of whoever waits in a step.
class mpi_watch {
 public:
  mpi_watch(const std::atomic<bool>& stop, lost_peers& lost, const mpi_news& news)
      : stop_(stop), lost_(lost), news_(news) {}

  //! Everything is to stop.
  //! @param peers  processes that are waited for
  //! @throws transport_error when another process has failed, with what it has told, or a peer has
  //!         left
  bool stopped(std::span<const int> peers = {}) const;

 private:
  const std::atomic<bool>& stop_;
  lost_peers& lost_;
  const mpi_news& news_;
};

}  // namespace stretto::executor
