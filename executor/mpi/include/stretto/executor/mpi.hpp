#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "stretto/executor/bootstrap.hpp"
#include "stretto/executor/transport.hpp"

namespace stretto::executor {

//! MPI in this process: the processes that mpirun has started, as a bootstrap. Initialises MPI and
//! finalises it, unless the program does so itself: then there may be several sessions, one after
//! another. Made and destroyed by the main thread of all processes, and destroyed after every
//! transport between these.
class mpi_session final : public bootstrap {
 public:
  //! @throws bootstrap_error when this MPI does not serve calls from several threads at once
  //!         (MPI_THREAD_MULTIPLE), or has been finalised already.
  mpi_session();
  //! Waits for the other processes to do the same, and finalises MPI. After a step that failed it
  //! waits a second at most for them to come as well, so that each can have told what it knows;
  //! when messages of any of them are under way, or one has not come, MPI cannot be finalised: then
  //! one says to standard error what it knows of the failure, and ends all with code 1. So catch
  //! exceptions in the session's scope: of one that leaves it the others are told as of a failure,
  //! and no handler behind may come to say more.
  ~mpi_session() override;
  mpi_session(const mpi_session&) = delete;
  mpi_session& operator=(const mpi_session&) = delete;

  int process() const override;
  int processes() const override;
  std::vector<std::string> all_gather(std::string_view what, std::string_view mine,
                                      time_point limit) override;
  std::vector<std::string> gather(std::string_view what, std::string_view mine,
                                  time_point limit) override;

  std::string failure() noexcept override;
  //! Returns when the others have heard, or after a second: who has died, or waits for nothing,
  //! does not.
  void abandon(std::string_view why) noexcept override;

  //! Ends all processes of the job, this one with the code: what is left to do after an error, for
  //! the others wait for messages of this one. Waits 0.3 s before, so that what was printed
  //! arrives; those of higher numbers longer, at most 4.3 s, for one of lower number to have done
  //! it.
  [[noreturn]] void abort(int code) noexcept;

  struct state;

 private:
  std::vector<std::string> run(std::string_view what, std::string_view mine, time_point limit,
                               bool to_all);

  std::shared_ptr<state> state_;
  friend std::unique_ptr<transport> make_mpi_transport(mpi_session& between,
                                                       std::chrono::nanoseconds opening);
};

//! Between the ranks of several processes, each of which holds one rank or several: arenas must be
//! memory that the host's threads can write. open() is called by all processes, those without
//! any rank too, in the same order where there are several transports, and compares their plans:
//! see agree().
//!
//! Rendezvous: a sender's stream waits until the receiver has posted its receive. Each message
//! carries its job, step and size, which are compared where it meets its receive. Every channel has
//! room for its largest message on both sides, through which messages are copied, so that memory
//! which MPI may still touch after an abort is never one that is given back. An all-reduce shares
//! out the elements: each member sums one part of all buffers in the order of the ranks, as the
//! loopback transport does and to the same bits, and sends it to all.
//! Waiting is by looking again, with short sleeps between: it ends with the step, at its deadline,
//! when it is aborted, when another process tells that its step has failed, or when the peer tells
//! that it has left, whatever has become of the peer.
//! @param between  outlives the transport
//! @param opening  how long open() waits for other processes
std::unique_ptr<transport> make_mpi_transport(
    mpi_session& between, std::chrono::nanoseconds opening = std::chrono::minutes(1));

}  // namespace stretto::executor
