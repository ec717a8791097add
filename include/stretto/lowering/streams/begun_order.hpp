#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "stretto/base/filled.hpp"
#include "stretto/model/op_replay.hpp"

namespace stretto::overlap::detail {

//! How good an order of ops is that has been begun.
struct order_score {
  std::int64_t left[max_streams]{};  // of each stream's work
  std::int64_t lost = 0;             // time times multiprocessors of communication not issued
  std::int64_t least = 0;            // nothing shorter can become of this
  std::int64_t bound = 0;            // the same, if what is lost is lost beside what computes
  std::int64_t ends = 0;             // sum of all ends: the smaller the better
  std::uint64_t set = 0;             // names the ops issued, whatever their order
};

//! One op of a history of orders, and the entry of what was issued before it; -1: it is the first.
struct issued_node {
  std::int32_t node = 0;
  std::int32_t before = -1;
};

//! An order that has been begun. What it has issued stands in a history that it shares with others.
struct begun_order {
  // No initialisers: these are copied often, and all at once if they are trivial.
  struct node_state {
    std::int16_t missing;  // of what the node needs
    std::int16_t awaited;  // of what waits for it
  };
  op_times times;
  std::vector<node_state> nodes;
  std::vector<std::int32_t> ready;    // nodes that may come next, ascending
  std::vector<std::uint64_t> issued;  // a bit for each node
  std::int32_t last = -1;             // entry of the history
  int outstanding = 0;
  order_score score{};

  constexpr begun_order(int count, int multiprocessors)
      : times(count, multiprocessors),
        nodes(filled<node_state>(static_cast<std::size_t>(count))),
        issued(filled<std::uint64_t>((static_cast<std::size_t>(count) + 63) / 64)) {}
  constexpr ~begun_order() = default;  // nvcc does not find it constexpr by itself
};

//! One that may be begun: the same, and a node behind it. Most of these are not kept, and what is
//! to be known of them is known without a copy of what all have in common.
struct longer_order {
  const begun_order* from = nullptr;
  std::int32_t node = 0;
  op_times::run when{};
  std::uint8_t stream = 0;
  std::uint8_t link = 0;
  order_score score{};

  //! 64 bits of begun_order::issued.
  constexpr std::uint64_t issued_word(std::size_t at) const {
    const auto mine = static_cast<std::size_t>(node);
    return from->issued[at] | (mine / 64 == at ? std::uint64_t{1} << mine % 64 : 0);
  }
  constexpr bool issued(std::int32_t other) const {
    const auto at = static_cast<std::size_t>(other);
    return other == node || (from->issued[at / 64] >> at % 64 & 1) != 0;
  }
  constexpr std::int64_t end(std::int32_t other) const {
    return other == node ? when.end : from->times.end(other);
  }
  constexpr std::int64_t stream_end(int other) const {
    return other == stream ? when.end : from->times.stream_end(other);
  }
  constexpr std::int64_t link_end(int other) const {
    return other == link ? when.end : from->times.link_end(other);
  }
};

}  // namespace stretto::overlap::detail
