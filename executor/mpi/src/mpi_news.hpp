#pragma once

#include <mpi.h>

#include <atomic>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "stretto/executor/monitor.hpp"

namespace stretto::executor {

//! What the processes of a job tell one another when it comes, between all exchanges: that one has
//! failed, or has left. Every member may be called from every thread.
class mpi_news {
 public:
  //! Called by all processes of `job`, which stays there.
  explicit mpi_news(MPI_Comm job);
  void free();

  //! What the first one that failed has told, as far as is known; "process 1 has failed: ...".
  std::string failure();
  //! Tells the others why this one has, and returns when they have heard, or after a second.
  void fail(std::string_view why);

  //! Whether the process has told so a while ago: whatever it had sent is here. Heard of by
  //! failure().
  bool has_left(int process) const;
  //! Tells the others that this one leaves, and waits for them to leave.
  //! @return false when one has failed instead
  bool leave();

 private:
  enum tag { failed, left };

  void hear();
  void tell(tag what, std::string_view words, time_point limit);

  MPI_Comm on_ = MPI_COMM_NULL;
  int process_ = 0;
  std::mutex calling_;
  std::string failure_;
  std::vector<std::atomic<time_point>> left_at_;  // of each process; the epoch: it is there
};

}  // namespace stretto::executor
