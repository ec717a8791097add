#pragma once

#include <functional>
#include <string>

#include "stretto/executor/bootstrap.hpp"

namespace stretto::executor {

//! What a launcher tells each process that it starts.
struct launch_info {
  int process = 0;
  int processes = 1;
  //! Which process of its machine this is, from 0, to choose a GPU by; -1: the launcher says
  //! nothing.
  int local = -1;
  std::string address{};  //!< where process 0 is to be found; empty: the launcher says nothing
  int port = 0;           //!< and 0
  std::string job{};      //!< what tells this job from others of the same machines; may be empty
};

//! The value of an environment variable; null when it is not set.
using environment = std::function<const char*(const char* name)>;

//! Reads what the launcher has set, which is the first of these that has set anything:
//!   torchrun, or by hand   RANK, WORLD_SIZE, LOCAL_RANK
//!   mpirun of Open MPI     OMPI_COMM_WORLD_RANK, _SIZE, _LOCAL_RANK
//!   mpiexec of MPICH       PMI_RANK, PMI_SIZE, MPI_LOCALRANKID
//!   srun                   SLURM_PROCID, SLURM_STEP_NUM_TASKS, SLURM_LOCALID
//! and MASTER_ADDR and MASTER_PORT, whoever sets them. The first three must not contradict each
//! other, except below torchrun, which may itself be started by the others; Slurm's are looked at
//! last and alone, because what it starts inherits them; and only where SLURM_STEP_NUM_TASKS is
//! set, because a batch script, which runs once, has others that say otherwise. Where a launcher
//! does not say which process of its machine this is, LOCAL_RANK does, if it is set. Where torchrun
//! serves at MASTER_PORT itself (TORCHELASTIC_USE_AGENT_STORE), the port is the next one.
//! @param from  empty: the environment of this process
//! @throws bootstrap_error that names the variable which is missing, is no number, or contradicts
//!         another.
launch_info read_launch(const environment& from = {});

}  // namespace stretto::executor
