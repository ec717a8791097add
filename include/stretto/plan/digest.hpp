#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "stretto/base/digest.hpp"
#include "stretto/base/version.hpp"
#include "stretto/model/plan_view.hpp"
#include "stretto/model/rows.hpp"

namespace stretto {

//! One number for the whole schedule of all ranks: their jobs in the global order, from which
//! messages follow, how long the lists with messages and ends are, the size of every stage's
//! message, the groups with their members, and the version of this library. Ranks that compute
//! different plans have different digests, which is looked at before the first step.
//! @param of  the jobs' in their order, as the order_sink has it
template <class MessageBytes>
constexpr std::uint64_t digest_of(digest of, const job_rows& lists, int stages,
                                  MessageBytes&& message_bytes,
                                  std::span<const group_info> groups,
                                  std::span<const std::int32_t> members) {
  digest sum = of;
  for (char letter : version) sum.add(static_cast<unsigned char>(letter));
  for (int rank = 0; rank < lists.ranks; ++rank)
    sum.add(static_cast<std::uint64_t>(lists.counts[rank]));
  for (int stage = 0; stage + 1 < stages; ++stage)
    sum.add(static_cast<std::uint64_t>(message_bytes(stage)));
  for (const group_info& group : groups) {
    // Each in a word of its own: some may be as large as 2^40.
    sum.add(static_cast<std::uint64_t>(group.first));
    sum.add(static_cast<std::uint64_t>(group.count));
    sum.add(static_cast<std::uint64_t>(group.elements));
    sum.add(group.wide ? 1u : 0u);
    sum.add(static_cast<std::uint64_t>(group.stage));
    sum.add(group.shared ? 1u : 0u);
    sum.add(group.data_parallel ? 1u : 0u);
    sum.add(static_cast<std::uint64_t>(group.weights));
    for (int at = group.first; at < group.first + group.count; ++at)
      sum.add(static_cast<std::uint64_t>(members[static_cast<std::size_t>(at)]));
  }
  return sum.value;
}

//! The same with what one rank's jobs were expanded into.
//! @param of  the schedule's, with that of the ranks before
constexpr std::uint64_t digest_of_ops(std::uint64_t of, std::span<const instruction> instructions,
                                      std::span<const op_part> parts,
                                      std::span<const byte_range> ranges) {
  digest sum{of};
  for (std::size_t at = 0; at < instructions.size(); ++at)
    sum.add(static_cast<std::uint64_t>(instructions[at].stream) +
            (static_cast<std::uint64_t>(instructions[at].act) << 8u) +
            (static_cast<std::uint64_t>(static_cast<std::uint16_t>(parts[at].op)) << 16u) +
            (static_cast<std::uint64_t>(parts[at].piece) << 32u) +
            (static_cast<std::uint64_t>(parts[at].pieces) << 48u));
  for (const byte_range& range : ranges) {
    sum.add(static_cast<std::uint64_t>(range.first));
    sum.add(static_cast<std::uint64_t>(range.bytes));
  }
  return sum.value;
}

}  // namespace stretto
