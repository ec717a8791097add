// A consumer of the executor between processes: compiled and linked, not started.
#include "stretto/executor/mpi.hpp"

int main() {
  const stretto::executor::mpi_session session;
  return session.process() < session.processes() ? 0 : 1;
}
