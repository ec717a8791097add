#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <stdexcept>
#include <vector>

#include "stretto/base/stored.hpp"
#include "stretto/model/plan_view.hpp"

namespace stretto::lowering {

//! How much room one rank's plan needs at most.
struct plan_capacity {
  int instructions = 0;
  int waits = 0;
  int uses = 0;
  int buffers = 0;

  constexpr bool operator==(const plan_capacity&) const = default;
};

//! The room for lists of at most `compute` compute jobs and `groups` collectives a rank: a message
//! has one use and one wait, a compute job four or five uses and two waits, and a micro-batch on a
//! stage six buffers for its two jobs, or seven for its three. A slice uses what the earlier ones
//! of its micro-batch keep, too: half of the others on the average. Where weights are gathered,
//! `compute` counts what gathers and drops them, too, and each job waits for them, and uses them.
constexpr plan_capacity plan_room(int compute, int groups, int slices = 1, bool gathers = false) {
  const int list = 3 * compute + 2 * groups + 2;
  const std::int64_t earlier = (std::int64_t{compute} * (slices - 1) + 1) / 2;
  if (earlier > 1 << 30) throw std::length_error("stretto: too many slices use earlier ones");
  return {.instructions = list,
          .waits = list + (gathers ? 2 : 1) * compute + 16,
          .uses = (gathers ? compute : 0) + (9 * compute + 1) / 2 + 2 * compute +
                  static_cast<int>(earlier) + groups * (groups + 3),
          .buffers = 3 * compute + groups};
}

namespace detail {
//! What is written of `plan`.
template <class Plan>
constexpr plan_view written_part(const Plan& plan) {
  const auto size = [](int count) { return static_cast<std::size_t>(count); };
  plan_view seen;
  seen.events = plan.events;
  seen.arena_bytes = plan.arena_bytes;
  seen.host_bytes = plan.host_bytes;
  seen.instructions = {std::data(plan.instructions), size(plan.used.instructions)};
  seen.waits = {std::data(plan.waits), size(plan.used.waits)};
  seen.uses = {std::data(plan.uses), size(plan.used.uses)};
  seen.released = {std::data(plan.released), size(plan.used.buffers)};
  seen.buffers = {std::data(plan.buffers), size(plan.used.buffers)};
  return seen;
}
}  // namespace detail

//! One rank's plan, sized at compile time; trivially copyable. Arrays of the language: compilers
//! evaluate an element of one faster than by a function of std::array, and gcc than behind a
//! pointer.
template <plan_capacity Room>
struct fixed_rank_plan {
  static constexpr plan_capacity room = Room;
  instruction instructions[static_cast<std::size_t>(Room.instructions)]{};
  event_wait waits[static_cast<std::size_t>(Room.waits)]{};
  buffer_use uses[static_cast<std::size_t>(Room.uses)]{};
  std::int32_t released[static_cast<std::size_t>(Room.buffers)]{};
  buffer buffers[static_cast<std::size_t>(Room.buffers)]{};
  plan_capacity used{};
  std::int32_t events = 0;
  std::int64_t arena_bytes = 0;
  std::int64_t host_bytes = 0;
  int streams = 0;  //!< all that are used are below

  //! Written in its place by `write(plan)`: a compiler would copy a function's result.
  template <class Write>
  constexpr explicit fixed_rank_plan(const Write& write) {
    write(*this);
  }
  constexpr plan_view view() const { return detail::written_part(*this); }
};

//! One rank's plan, sized at run time.
struct rank_plan {
  //! Takes any index, as an array of the language does. Throws std::length_error when there is no
  //! such element: the room was too small. A constant evaluation ends there by itself.
  template <class T>
  struct array {
    std::vector<T> items;

    constexpr explicit array(int count) : items(static_cast<std::size_t>(count)) {}
    constexpr T& operator[](std::int64_t at) {
      if (at < 0 || static_cast<std::size_t>(at) >= items.size())
        throw std::length_error("stretto: the room for a plan is too small");
      return items[static_cast<std::size_t>(at)];
    }
    constexpr const T* data() const { return items.data(); }
  };
  plan_capacity room;
  array<instruction> instructions;
  array<event_wait> waits;
  array<buffer_use> uses;
  array<std::int32_t> released;
  array<buffer> buffers;
  plan_capacity used{};
  std::int32_t events = 0;
  std::int64_t arena_bytes = 0;
  std::int64_t host_bytes = 0;
  int streams = 0;

  constexpr explicit rank_plan(const plan_capacity& room_)
      : room(room_),
        instructions(room.instructions),
        waits(room.waits),
        uses(room.uses),
        released(room.buffers),
        buffers(room.buffers) {}
  constexpr plan_view view() const { return detail::written_part(*this); }
  constexpr std::int64_t storage_bytes() const {
    return stored_bytes(instructions.items, waits.items, uses.items, released.items,
                        buffers.items);
  }
};

}  // namespace stretto::lowering
