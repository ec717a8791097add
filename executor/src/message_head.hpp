#pragma once

#include <cstdint>
#include <string>

#include "stretto/executor/transport.hpp"

namespace stretto::executor {

//! What an operation tells its partners of itself: transports compare it where they meet.
struct message_head {
  std::int64_t step = 0;
  std::int64_t bytes = 0;
  job what{};
  std::int32_t rank = 0;
  std::int32_t instruction = 0;
};
message_head head_of(const operation& what, std::int64_t step);
//! "0SEND_F1 of 32 bytes (rank 0, instruction 3, step 1)".
std::string text_of(const message_head& head);

//! @throws transport_error naming the channel, both instructions and both sizes.
void must_meet(int from, int to, const message_head& sent, const message_head& wanted);
//! The first member of a group and another one.
//! @throws transport_error naming the group and both instructions.
void must_meet(int group, const message_head& first, const message_head& other);
//! Whether the operation's buffer holds what its group sums.
//! @throws transport_error naming the group and both sizes.
void must_hold(int group, const message_head& mine, std::int64_t needed);

}  // namespace stretto::executor
