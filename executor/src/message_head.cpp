#include "message_head.hpp"

#include "stretto/executor/error.hpp"
#include "stretto/model/job_text.hpp"

namespace stretto::executor {
namespace {

std::string place_of(const message_head& at) {
  return "(rank " + std::to_string(at.rank) + ", instruction " + std::to_string(at.instruction) +
         ", step " + std::to_string(at.step) + ")";
}
std::string job_of(const message_head& at) {
  return std::string(to_text(at.what).view()) + ' ';
}

}  // namespace

message_head head_of(const operation& what, std::int64_t step) {
  return {step, what.bytes, what.what, what.rank, what.instruction};
}

std::string text_of(const message_head& head) {
  return job_of(head) + "of " + std::to_string(head.bytes) + " bytes " + place_of(head);
}

void must_meet(int from, int to, const message_head& sent, const message_head& wanted) {
  const bool same = sent.step == wanted.step && matching_receive(sent.what) == wanted.what;
  if (same && sent.bytes == wanted.bytes) return;
  throw transport_error("channel " + std::to_string(from) + " -> " + std::to_string(to) +
                        (same ? ": sizes differ: send " : ": messages differ: send ") +
                        text_of(sent) + " meets receive " + text_of(wanted));
}

void must_meet(int group, const message_head& first, const message_head& other) {
  if (other.step == first.step && other.what.microbatch == first.what.microbatch &&
      other.what.kind == first.what.kind &&
      (first.what.kind != job_kind::all_gather || other.bytes == first.bytes))
    return;
  throw transport_error("group " + std::to_string(group) +
                        ": collectives differ: " + job_of(first) + place_of(first) + " meets " +
                        job_of(other) + place_of(other));
}

void must_hold(int group, const message_head& mine, std::int64_t needed) {
  if (mine.bytes >= needed) return;
  throw transport_error("group " + std::to_string(group) + ": sizes differ: " + job_of(mine) +
                        place_of(mine) + " holds " + std::to_string(mine.bytes) +
                        " bytes, the group sums " + std::to_string(needed));
}

}  // namespace stretto::executor
