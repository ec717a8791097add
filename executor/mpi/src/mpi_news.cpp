#include "mpi_news.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>

#include "mpi_requests.hpp"

namespace stretto::executor {
namespace {

constexpr std::size_t most_words = 4000;

int processes_of(MPI_Comm job) {
  int count = 0;
  MPI_Comm_size(job, &count);
  return count;
}

time_point a_second_from_now() {
  return std::chrono::steady_clock::now() + std::chrono::seconds(1);
}

}  // namespace

mpi_news::mpi_news(MPI_Comm job) : left_at_(static_cast<std::size_t>(processes_of(job))) {
  MPI_Comm_dup(job, &on_);
  MPI_Comm_set_errhandler(on_, MPI_ERRORS_RETURN);
  MPI_Comm_rank(on_, &process_);
}

void mpi_news::free() {
  MPI_Comm_free(&on_);
}

std::string mpi_news::failure() {
  const std::lock_guard lock(calling_);
  hear();
  return failure_;
}

void mpi_news::fail(std::string_view why) {
  const std::lock_guard lock(calling_);
  tell(failed, why.substr(0, most_words), a_second_from_now());
  if (failure_.empty())
    failure_ = "process " + std::to_string(process_) + " has failed: " + std::string(why);
}

bool mpi_news::has_left(int process) const {
  constexpr auto while_ago = std::chrono::milliseconds(500);
  const time_point at = left_at_[static_cast<std::size_t>(process)].load(std::memory_order_relaxed);
  return at != time_point{} && std::chrono::steady_clock::now() >= at + while_ago;
}

bool mpi_news::leave() {
  const std::lock_guard lock(calling_);
  if (!failure_.empty()) return false;
  left_at_[static_cast<std::size_t>(process_)] = std::chrono::steady_clock::now();
  tell(left, {}, time_point::max());
  patience pause;
  while (failure_.empty() && std::ranges::any_of(left_at_, [](const auto& at) {
           return at.load(std::memory_order_relaxed) == time_point{};
         })) {
    pause.wait();
    hear();
  }
  return failure_.empty();
}

//! Until all have heard or the time has come; without a limit until a second after one has failed,
//! which may hear nothing more. Others may be telling, too, until this one has heard.
void mpi_news::tell(tag what, std::string_view words, time_point limit) {
  mpi_requests out(on_, "what other processes are told", left_at_.size(), most_words);
  std::copy_n(reinterpret_cast<const std::byte*>(words.data()), words.size(), out.memory());
  for (int other = 0; other < static_cast<int>(left_at_.size()); ++other)
    if (other != process_) out.send(0, words.size(), other, what);
  patience pause;
  while (!out.done() && std::chrono::steady_clock::now() < limit) {
    hear();
    if (limit == time_point::max() && !failure_.empty()) limit = a_second_from_now();
    pause.wait();
  }
}

void mpi_news::hear() {
  while (true) {
    int there = 0;
    MPI_Status status;
    if (MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, on_, &there, &status) != MPI_SUCCESS || there == 0)
      return;
    char words[most_words];
    int bytes = 0;
    MPI_Get_count(&status, MPI_BYTE, &bytes);
    if (MPI_Recv(words, bytes, MPI_BYTE, status.MPI_SOURCE, status.MPI_TAG, on_,
                 MPI_STATUS_IGNORE) != MPI_SUCCESS)
      return;
    if (status.MPI_TAG == left)
      left_at_[static_cast<std::size_t>(status.MPI_SOURCE)] = std::chrono::steady_clock::now();
    else if (failure_.empty())
      failure_ = "process " + std::to_string(status.MPI_SOURCE) +
                 " has failed: " + std::string(words, static_cast<std::size_t>(bytes));
  }
}

}  // namespace stretto::executor
