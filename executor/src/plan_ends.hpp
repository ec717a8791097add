#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "stretto/model/plan_view.hpp"

namespace stretto::executor {

//! One end of a message: what the sender or the receiver has in its plan.
struct message_end {
  job what{};
  std::int64_t bytes = 0;
  int instruction = 0;
};

//! The messages of a directed pair of ranks, in the order in which one side issues them.
using message_list = std::vector<message_end>;
using channel_lists = std::map<std::pair<int, int>, message_list>;
channel_lists channels_of(const plan_view& plan, action act);

//! The two sides of a channel.
//! @throws plan_error naming the first message that differs.
void must_match(const std::pair<int, int>& channel, const message_list& sends,
                const message_list& receives);

//! One of a group's collectives, as a member has it in its plan.
struct collective_end {
  int instruction = 0;
  action act = action::all_reduce;
  std::int64_t gathered = 0;  //!< bytes; 0 where it sums: of what is summed all have the same

  //! Whether both can be sides of one.
  bool fits(const collective_end& other) const {
    return act == other.act && gathered == other.gathered;
  }
};

//! What one member has in its plan of a group that it sums or gathers with.
struct group_part {
  std::vector<std::int32_t> members{};
  std::int64_t elements = 0;
  bool wide = false;
  bool exists = false;
  std::vector<collective_end> collectives{};
};
group_part group_of(const plan_view& plan, int group);
//! The groups that the rank sums or gathers with.
std::vector<int> groups_of(const plan_view& plan);

//! @throws plan_error naming what the two members of the group do not agree on.
void must_match(int group, int rank, const group_part& mine, int other, const group_part& theirs);

}  // namespace stretto::executor
