#pragma once

#include <mpi.h>

#include <optional>
#include <string>

#include "mpi_communicators.hpp"
#include "mpi_news.hpp"
#include "stretto/executor/mpi.hpp"

namespace stretto::executor {

struct mpi_session::state {
  int process = 0;
  int processes = 1;
  bool finalises = false;
  int exceptions = 0;                // under way when it was made
  std::string library{};             // its name and version
  MPI_Comm control = MPI_COMM_NULL;  // of the exchanges
  int exchanges = 0;
  bool ending = false;  // failures are known, and nobody is to hear of them any more
  std::string broken{};
  std::optional<mpi_news> news{};
  mpi_communicators communicators{};  // of transports
};

}  // namespace stretto::executor
