#include "mpi_communicators.hpp"

#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <sstream>

#include "mpi_requests.hpp"

namespace stretto::executor {

std::string mpi_communicators::unused() {
  const std::lock_guard lock(calling_);
  std::string numbers;
  for (const numbered& each : unused_) numbers += std::to_string(each.number) + ' ';
  return numbers;
}

mpi_communicators::numbered mpi_communicators::take(MPI_Comm job,
                                                    const std::vector<std::string>& told,
                                                    time_point limit) {
  std::map<int, std::size_t> tellers;
  for (const std::string& each : told) {
    std::istringstream numbers(each);
    for (int number = 0; numbers >> number;) ++tellers[number];
  }
  {
    const std::lock_guard lock(calling_);
    for (const auto& [number, count] : tellers) {
      if (count < told.size()) continue;
      const auto at = std::ranges::find(unused_, number, &numbered::number);
      const numbered found = *at;
      unused_.erase(at);
      return found;
    }
    unused_.reserve(static_cast<std::size_t>(made_) + 1);  // to be put back without fail
  }
  return make(job, limit);
}

mpi_communicators::numbered mpi_communicators::make(MPI_Comm job, time_point limit) {
  const std::string name = "the MPI transport's communicator";
  // Counted as MPI does, which brings those together that are made in the same turn.
  const int number = made_++;
  auto fresh = std::make_unique<MPI_Comm>();
  MPI_Request made = MPI_REQUEST_NULL;
  must_succeed(MPI_Comm_idup(job, fresh.get(), &made), name);
  int done = 0;
  for (patience pause; true; pause.wait()) {
    must_succeed(MPI_Test(&made, &done, MPI_STATUS_IGNORE), name);
    if (done != 0) break;
    if (std::chrono::steady_clock::now() < limit) continue;
    mpi_requests::one_is_given_up();
    static_cast<void>(fresh.release());  // MPI may write it yet
    return {};
  }
  MPI_Comm_set_errhandler(*fresh, MPI_ERRORS_RETURN);
  return {number, *fresh};
}

void mpi_communicators::put_back(const numbered& one) noexcept {
  const std::lock_guard lock(calling_);
  unused_.push_back(one);
}

void mpi_communicators::free() {
  std::ranges::sort(unused_, {}, &numbered::number);
  for (numbered& each : unused_) MPI_Comm_free(&each.on);
  unused_.clear();
}

}  // namespace stretto::executor
