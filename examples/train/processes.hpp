// The processes that share one training run.
#pragma once

#include <chrono>
#include <memory>
#include <span>
#include <string>

#include "options.hpp"
#include "pipeline/settings.hpp"

namespace train {

//! This process alone, or those that a launcher has started: mpirun, or for GPUs torchrun, srun or
//! mpirun.
class processes {
 public:
  processes();
  ~processes();

  //! For nccl the processes find one another by what the launcher has set (read_launch()) and
  //! exchange what is outside the steps over TCP; the transport itself comes with the GPUs.
  //! @param transport  loopback: this process alone; mpi; nccl
  //! @param join_timeout  how long the others may take to come (nccl)
  //! @throws bad_setting when there is no such transport, or the launcher has not set what is
  //!         needed; stretto::executor::bootstrap_error when processes do not find one another
  void join(const std::string& transport, std::chrono::seconds join_timeout,
            pipeline_settings& to);

  //! All of them have been told the same, or all throw; they call it alike.
  //! @throws as must_agree() of agreement.hpp
  void agree(std::span<const told_option> mine) const;
  //! Whether this one prints and writes files.
  bool speaks() const { return number_ == 0; }
  int count() const { return count_; }
  int number() const { return number_; }
  //! Which process of its machine this is; -1: nobody says.
  int local() const { return local_; }
  //! After a common end, of which every process has something to tell: lets the others come as far
  //! before end() ends them too.
  void wait_for_others(std::chrono::seconds longest);
  //! Ends the process; with an error, all of them: the others wait for this one. MPI ends them, and
  //! those of nccl are told and fail. Not so what all have agreed on (ended_early).
  int end(int code);

 private:
  struct session;
  void abandon(int code);
  void join_mpi(pipeline_settings& to);
  void join_launched(std::chrono::seconds join_timeout, pipeline_settings& to);

  std::unique_ptr<session> session_;
  stretto::executor::bootstrap* between_ = nullptr;
  int number_ = 0;
  int count_ = 1;
  int local_ = -1;
};

}  // namespace train
