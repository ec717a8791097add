#pragma once

#include <mpi.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "mpi_watch.hpp"
#include "stretto/executor/monitor.hpp"

namespace stretto::executor {

//! @throws transport_error with MPI's text and the name of what was tried.
void must_succeed(int code, const std::string& what);

//! Waits a little, and longer every time: for conditions that only looking again can tell.
class patience {
 public:
  void wait();

 private:
  int turns_ = 0;       // without sleep
  time_point began_{};  // to sleep
};

//! Waits until all operations before the one of that number are done.
//! @param done  how many are
//! @return false when stopped instead
//! @throws transport_error as mpi_watch does
bool wait_for_turn(std::int64_t number, const std::atomic<std::int64_t>& done,
                   const mpi_watch& watch);

//! Sends and receives under way at once, through memory of its own. Memory that MPI may still touch
//! when they are given up is never freed.
class mpi_requests {
 public:
  //! @param name  for errors
  mpi_requests(MPI_Comm on, std::string name, std::size_t requests, std::size_t bytes);
  ~mpi_requests();

  std::byte* memory() { return memory_.get(); }
  //! Of a part of the memory. Synchronous sends: done when the receive has been posted.
  void send(std::size_t offset, std::size_t bytes, int to, int tag);
  void receive(std::size_t offset, std::size_t bytes, int from, int tag);
  //! The other sides of those that are not done.
  std::vector<int> open_peers();
  //! Looks whether all are done.
  bool done();
  //! Looks until they are.
  //! @return false when stopped, or late, instead; nothing may follow then
  //! @throws transport_error as mpi_watch does; nothing may follow then, either
  bool complete(const mpi_watch* watch, time_point limit = time_point::max());
  //! Whether any were given up in this process, so that MPI cannot be finalised.
  static bool any_given_up();
  //! One of another kind was, too.
  static void one_is_given_up();

 private:
  void give_up() noexcept;

  MPI_Comm on_;
  std::string name_;
  std::unique_ptr<std::byte[]> memory_;
  std::vector<MPI_Request> requests_;
  std::vector<int> peers_;
  std::size_t count_ = 0;
};

}  // namespace stretto::executor
