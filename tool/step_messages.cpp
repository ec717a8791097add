#include "step_messages.hpp"

#include <limits>
#include <string>

#include "errors.hpp"
#include "stretto/check/all.hpp"
#include "stretto/check/sharded.hpp"
#include "stretto/lowering/communication.hpp"
#include "stretto/model/verdict_text.hpp"
#include "stretto/plan/csv_comms.hpp"

namespace stretto::tool {

namespace {

//! @throws broken_schedule when lists with messages break a rule
void check_messages(const step& from, const replay_input& compute, verdict answer,
                    const job_lists& lists, int gathered = std::numeric_limits<int>::max()) {
  if (answer.ok()) {
    replay_input lowered = compute;
    lowered.rows = lists.rows();
    lowered.messages = true;
    answer = check::schedule(lowered);
    if (answer.ok()) answer = check::sharded(lowered, gathered);
  }
  if (!answer.ok())
    throw broken_schedule(from.schedule +
                          ", with messages: " + std::string(to_text(answer).view()));
}

}  // namespace

job_lists with_messages(const step& from) {
  const replay_input compute = from.input();
  if (from.messages) return from.imported->lists;
  job_lists lists(compute.rows.ranks, lowering::with_messages(compute.rows.stride));
  job_sink sink = lists.sink();
  check_messages(from, compute, lowering::add_messages(compute, sink), lists);
  return lists;
}

job_lists with_pytorch_comms(const step& from, int gathered) {
  const replay_input compute = from.input();
  job_lists lists = stretto::with_pytorch_comms(compute, gathered);
  check_messages(from, compute, {}, lists, gathered);
  return lists;
}

}  // namespace stretto::tool
