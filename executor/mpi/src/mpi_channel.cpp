#include "mpi_channel.hpp"

#include <algorithm>
#include <cstring>
#include <string>

#include "message_head.hpp"
#include "stretto/executor/error.hpp"

namespace stretto::executor {
namespace {

std::string name_of(const mpi_channel::place& at) {
  return "channel " + std::to_string(at.from) + " -> " + std::to_string(at.to);
}

}  // namespace

mpi_channel::mpi_channel(MPI_Comm on, const place& at, std::int64_t largest, const mpi_watch& watch)
    : at_(at),
      largest_(largest),
      watch_(watch),
      requests_(on, name_of(at), 1, sizeof(message_head) + static_cast<std::size_t>(largest)) {}

void mpi_channel::send(const operation& what, std::int64_t step, std::int64_t number) {
  if (!wait_for_turn(number, done_, watch_)) return;
  const message_head head = head_of(what, step);
  // The receiver has room for its own largest message, and compares.
  if (what.bytes > largest_) {
    throw transport_error(name_of(at_) + ": a send of " + std::to_string(what.bytes) +
                          " bytes exceeds the largest message of the plan, " +
                          std::to_string(largest_) + " bytes");
  }
  const auto bytes = static_cast<std::size_t>(what.bytes);
  std::memcpy(requests_.memory(), &head, sizeof head);
  std::copy_n(what.data, bytes, requests_.memory() + sizeof head);
  requests_.send(0, sizeof head + bytes, at_.process, at_.tag);
  if (requests_.complete(&watch_)) done_.store(number + 1, std::memory_order_release);
}

void mpi_channel::receive(const operation& what, std::int64_t step, std::int64_t number) {
  if (!wait_for_turn(number, done_, watch_)) return;
  message_head sent;
  requests_.receive(0, sizeof sent + static_cast<std::size_t>(largest_), at_.process, at_.tag);
  if (!requests_.complete(&watch_)) return;
  std::memcpy(&sent, requests_.memory(), sizeof sent);
  must_meet(at_.from, at_.to, sent, head_of(what, step));
  std::copy_n(requests_.memory() + sizeof sent, static_cast<std::size_t>(what.bytes), what.data);
  done_.store(number + 1, std::memory_order_release);
}

}  // namespace stretto::executor
