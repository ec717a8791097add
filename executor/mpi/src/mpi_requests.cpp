#include "mpi_requests.hpp"

#include <chrono>
#include <thread>
#include <utility>

#include "pause.hpp"
#include "stretto/executor/error.hpp"
#include "wake_signal.hpp"

namespace stretto::executor {
namespace {

std::atomic<bool> given_up{false};

}  // namespace

void must_succeed(int code, const std::string& what) {
  if (code == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  MPI_Error_string(code, text, &length);
  throw transport_error(what + ": " + std::string(text, static_cast<std::size_t>(length)));
}

void patience::wait() {
  // Most messages come at once, or only after whole jobs: then others need the cores.
  if (turns_ < 50) {
    relax();
  } else if (turns_ < 70) {
    std::this_thread::yield();
  } else {
    const time_point now = std::chrono::steady_clock::now();
    if (began_ == time_point{}) began_ = now;
    std::this_thread::sleep_for(nap_after(now - began_));
    return;
  }
  ++turns_;
}

bool wait_for_turn(std::int64_t number, const std::atomic<std::int64_t>& done,
                   const mpi_watch& watch) {
  patience pause;
  while (done.load(std::memory_order_acquire) != number) {
    if (watch.stopped()) return false;
    pause.wait();
  }
  return true;
}

mpi_requests::mpi_requests(MPI_Comm on, std::string name, std::size_t requests, std::size_t bytes)
    : on_(on),
      name_(std::move(name)),
      memory_(std::make_unique<std::byte[]>(bytes)),
      requests_(requests, MPI_REQUEST_NULL),
      peers_(requests) {}

mpi_requests::~mpi_requests() {
  if (count_ > 0) give_up();
}

void mpi_requests::send(std::size_t offset, std::size_t bytes, int to, int tag) {
  must_succeed(MPI_Issend(memory_.get() + offset, static_cast<int>(bytes), MPI_BYTE, to, tag, on_,
                          &requests_[count_]),
               name_);
  peers_[count_++] = to;
}

void mpi_requests::receive(std::size_t offset, std::size_t bytes, int from, int tag) {
  must_succeed(MPI_Irecv(memory_.get() + offset, static_cast<int>(bytes), MPI_BYTE, from, tag, on_,
                         &requests_[count_]),
               name_);
  peers_[count_++] = from;
}

bool mpi_requests::complete(const mpi_watch* watch, time_point limit) {
  patience pause;
  while (!done()) {
    if ((watch != nullptr && watch->stopped({peers_.data(), count_})) ||
        (limit != time_point::max() && std::chrono::steady_clock::now() >= limit)) {
      give_up();
      return false;
    }
    pause.wait();
  }
  return true;
}

std::vector<int> mpi_requests::open_peers() {
  std::vector<int> open;
  for (std::size_t at = 0; at < count_; ++at) {
    int over = 0;
    must_succeed(MPI_Request_get_status(requests_[at], &over, MPI_STATUS_IGNORE), name_);
    if (over == 0) open.push_back(peers_[at]);
  }
  return open;
}

bool mpi_requests::done() {
  int all = 0;
  must_succeed(MPI_Testall(static_cast<int>(count_), requests_.data(), &all, MPI_STATUSES_IGNORE),
               name_);
  if (all == 0) return false;
  count_ = 0;
  return true;
}

void mpi_requests::give_up() noexcept {
  if (memory_ == nullptr) return;
  // Sends cannot be taken back, and a receive that is being filled cannot be cancelled.
  one_is_given_up();
  static_cast<void>(memory_.release());
}

bool mpi_requests::any_given_up() {
  return given_up.load(std::memory_order_acquire);
}

void mpi_requests::one_is_given_up() {
  given_up.store(true, std::memory_order_release);
}

}  // namespace stretto::executor
