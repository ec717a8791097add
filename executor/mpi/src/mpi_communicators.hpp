#pragma once

#include <mpi.h>

#include <mutex>
#include <string>
#include <vector>

#include "stretto/executor/monitor.hpp"

namespace stretto::executor {

//! The communicators of a session's transports: one for each, so that they cannot take one
//! another's messages, and used again, since MPI has some thousands only. A transport may end here
//! before it does in other processes, so each tells which ones it could use again, and all take the
//! same.
class mpi_communicators {
 public:
  //! By whose number all processes mean the same one.
  struct numbered {
    int number = -1;
    MPI_Comm on = MPI_COMM_NULL;
  };

  //! What this process tells the others before they take one.
  std::string unused();
  //! One that all have told to be unused, or a new one. Called by all processes of `job`, in the
  //! same order where they take several, none of them at once.
  //! @param told  by each process
  //! @return none when it is not made in time
  //! @throws transport_error with MPI's text
  numbered take(MPI_Comm job, const std::vector<std::string>& told, time_point limit);
  //! No message is under way in it, of those which this process has sent or was to receive.
  void put_back(const numbered& one) noexcept;
  //! All that are unused, which are the same in all processes.
  void free();

 private:
  numbered make(MPI_Comm job, time_point limit);

  std::mutex calling_;  // transports may end in any thread
  std::vector<numbered> unused_;
  int made_ = 0;
};

}  // namespace stretto::executor
