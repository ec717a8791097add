#include "mpi_group.hpp"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

namespace stretto::executor {
namespace {

constexpr std::size_t align(std::size_t bytes) {
  return (bytes + 63) / 64 * 64;
}
//! Heads keep parts aligned.
constexpr std::size_t head_room = align(sizeof(message_head));

}  // namespace

mpi_group::mpi_group(MPI_Comm on, place at, const mpi_watch& watch)
    : at_(std::move(at)),
      watch_(watch),
      room_(head_room + align(largest_part())),
      requests_(on, "group " + std::to_string(at_.group), 2 * at_.members.size(),
                (2 * at_.members.size() + 1) * room_ + 64) {
  while (at_.members[mine_].rank != at_.rank) ++mine_;
}

std::size_t mpi_group::largest_part() const {
  const std::size_t size = at_.wide ? sizeof(double) : sizeof(float);
  const std::size_t lines = (static_cast<std::size_t>(at_.elements) * size + 63) / 64;
  return std::max((lines / at_.members.size() + 1) * 64,
                  static_cast<std::size_t>(at_.gathered) / at_.members.size());
}

void mpi_group::all_reduce(const operation& what, std::int64_t step, std::int64_t number) {
  sum(what, step, number, sum_to::all);
}

void mpi_group::reduce_scatter(const operation& what, std::int64_t step, std::int64_t number) {
  sum(what, step, number, sum_to::each_its_part);
}

void mpi_group::sum(const operation& what, std::int64_t step, std::int64_t number, sum_to whom) {
  if (!wait_for_turn(number, done_, watch_)) return;
  const auto size = static_cast<std::int64_t>(at_.wide ? sizeof(double) : sizeof(float));
  must_hold(at_.group, head_of(what, step), at_.elements * size);
  at_.wide ? sum<double>(what, step, whom) : sum<float>(what, step, whom);
  if (!ended_) done_.store(number + 1, std::memory_order_release);
}

void mpi_group::all_gather(const operation& what, std::int64_t step, std::int64_t number) {
  if (!wait_for_turn(number, done_, watch_)) return;
  gather(what, step);
  if (!ended_) done_.store(number + 1, std::memory_order_release);
}

template <class Call>
void mpi_group::for_others(const Call& call) const {
  for (std::size_t other = 0; other < at_.members.size(); ++other)
    if (other != mine_) call(other, at_.members[other]);
}

void mpi_group::must_meet_others(const message_head& head) {
  for_others([&](std::size_t other, const member&) {
    message_head theirs;
    std::memcpy(&theirs, requests_.memory() + incoming(other), sizeof theirs);
    other < mine_ ? must_meet(at_.group, theirs, head) : must_meet(at_.group, head, theirs);
  });
}

void mpi_group::gather(const operation& what, std::int64_t step) {
  const std::size_t count = at_.members.size();
  const std::size_t bytes = static_cast<std::size_t>(what.bytes) / count;
  const message_head head = head_of(what, step);
  for_others([&](std::size_t other, const member& to) {
    requests_.receive(incoming(other), head_room + bytes, to.process, to.receive_tag);
    std::memcpy(requests_.memory() + outgoing(other), &head, sizeof head);
    if (bytes > 0)
      std::memcpy(requests_.memory() + outgoing(other) + head_room, what.data + mine_ * bytes,
                  bytes);
    requests_.send(outgoing(other), head_room + bytes, to.process, to.send_tag);
  });
  ended_ = !requests_.complete(&watch_);
  if (ended_) return;
  must_meet_others(head);
  for_others([&](std::size_t other, const member&) {
    if (bytes > 0)
      std::memcpy(what.data + other * bytes, requests_.memory() + incoming(other) + head_room,
                  bytes);
  });
}

template <class Element>
void mpi_group::sum(const operation& what, std::int64_t step, sum_to whom) {
  const std::size_t count = at_.members.size();
  const auto begin = [&](std::size_t part) {
    return part_begin<Element>(whom, part, count, at_.elements);
  };
  const auto elements = [&](std::size_t part) { return begin(part + 1) - begin(part); };
  const auto bytes = [&](std::size_t part) {
    return static_cast<std::size_t>(elements(part)) * sizeof(Element);
  };
  auto* const data = reinterpret_cast<Element*>(what.data);
  // Parts are aligned as the elements are: memory comes aligned for any type of 16 bytes.
  const auto part_at = [&](std::size_t offset) {
    return reinterpret_cast<Element*>(requests_.memory() + offset + head_room);
  };
  const message_head head = head_of(what, step);
  // Everyone's elements of part k go to member k.
  for_others([&](std::size_t other, const member& to) {
    requests_.receive(incoming(other), head_room + bytes(mine_), to.process, to.receive_tag);
    std::memcpy(requests_.memory() + outgoing(other), &head, sizeof head);
    std::copy_n(data + begin(other), elements(other), part_at(outgoing(other)));
    requests_.send(outgoing(other), head_room + bytes(other), to.process, to.send_tag);
  });
  ended_ = !requests_.complete(&watch_);
  if (ended_) return;
  must_meet_others(head);
  Element* const sums = part_at(2 * count * room_);
  ordered_sum(
      count,
      [&](std::size_t of) -> const Element* {
        return of == mine_ ? data + begin(mine_) : part_at(incoming(of));
      },
      elements(mine_), sums);
  if (whom == sum_to::each_its_part) {
    std::copy_n(sums, elements(mine_), data + begin(mine_));
    return;
  }
  // And the sums of part k from member k to everyone.
  for_others([&](std::size_t other, const member& to) {
    requests_.receive(incoming(other) + head_room, bytes(other), to.process, to.receive_tag);
    requests_.send(2 * count * room_ + head_room, bytes(mine_), to.process, to.send_tag);
  });
  ended_ = !requests_.complete(&watch_);
  if (ended_) return;
  for (std::size_t of = 0; of < count; ++of)
    std::copy_n(of == mine_ ? sums : part_at(incoming(of)), elements(of), data + begin(of));
}

}  // namespace stretto::executor
