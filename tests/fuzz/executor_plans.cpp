// Plans with any numbers, as somebody may hand them to the executor: it refuses them in words, or
// can put them in one order of issue, draw what was measured of them and hold it against them.
#include <sstream>

#include "executor/src/issue_order.hpp"
#include "fuzz/support/spoilt_plans.hpp"
#include "stretto/executor/error.hpp"
#include "stretto/executor/meetings.hpp"
#include "stretto/executor/trace.hpp"
#include "stretto/executor/validate.hpp"

namespace {

using fuzz::choices;

//! A number that nobody has looked at.
template <class Number>
void put_any(choices& by, Number& into) {
  into = static_cast<Number>(by.number());
}

void put_anything(choices& by, oracle::loose_plan& plan) {
  auto& one = by.one_of(plan.list);
  stretto::instruction& at = one.itself;
  switch (by.below(20)) {
    case 0:
      return put_any(by, at.what.stage);
    case 1:
      return put_any(by, at.what.microbatch);
    case 2:
      return put_any(by, at.what.slice);
    case 3:
      at.what.kind = static_cast<stretto::job_kind>(by.below(18));
      return;
    case 4:
      at.act = static_cast<stretto::action>(by.below(9));
      return;
    case 5:
      return put_any(by, at.stream);
    case 6:
      return put_any(by, at.peer);
    case 7:
      return put_any(by, at.record);
    case 8:
      if (!one.waits.empty()) put_any(by, by.one_of(one.waits).event);
      return;
    case 9:
      if (!one.uses.empty()) put_any(by, by.one_of(one.uses).buffer);
      return;
    case 10:
      if (!one.uses.empty())
        by.one_of(one.uses).role = static_cast<stretto::buffer_role>(by.below(10));
      return;
    case 11:
      if (!one.released.empty()) put_any(by, by.one_of(one.released));
      return;
    case 12:
      return put_any(by, plan.head.rank);
    case 13:
      plan.head.ranks = static_cast<int>(by.number() % 4096);
      return;
    case 14:
      plan.head.events = static_cast<std::int32_t>(by.number() % 4096);
      return;
    case 15:
      return put_any(by, plan.head.arena_bytes);
    case 16:
      return put_any(by, plan.head.host_bytes);
    default:
      break;
  }
  if (plan.buffers.empty()) return;
  stretto::buffer& buffer = by.one_of(plan.buffers);
  switch (by.below(5)) {
    case 0:
      return put_any(by, buffer.offset);
    case 1:
      return put_any(by, buffer.bytes);
    case 2:
      return put_any(by, buffer.first);
    case 3:
      return put_any(by, buffer.release);
    default:
      buffer.role = static_cast<stretto::buffer_role>(by.below(10));
  }
}

void put_anything(choices& by, std::vector<stretto::plan_view>& views,
                  std::vector<stretto::instruction>& changed) {
  stretto::plan_view& plan = by.one_of(views);
  changed.assign(plan.instructions.begin(), plan.instructions.end());
  stretto::instruction& at = by.one_of(changed);
  switch (by.below(6)) {
    case 0:
      put_any(by, at.first_wait);
      break;
    case 1:
      put_any(by, at.first_use);
      break;
    case 2:
      put_any(by, at.first_release);
      break;
    case 3:
      put_any(by, at.wait_count);
      break;
    case 4:
      put_any(by, at.use_count);
      break;
    default:
      put_any(by, at.release_count);
  }
  plan.instructions = changed;
}

void take(choices& by, std::span<const stretto::plan_view> plans) {
  using namespace stretto::executor;
  try {
    validate(plans);
    std::vector<trace_record> records;
    for (const stretto::plan_view& plan : plans)
      for (std::size_t at = 0; at < plan.instructions.size(); ++at) {
        const std::int64_t start = by.below(1 << 16);
        records.push_back({.rank = plan.rank,
                           .instruction = static_cast<int>(at),
                           .start = start,
                           .end = start + by.below(256)});
      }
    std::ostringstream text;
    write_chrome_trace(text, plans, records);
    (void)check_against(plans, records);
    (void)order_of_issue(plans, meetings(plans));
  } catch (const plan_error& refused) {
    fuzz::require(*refused.what() != '\0', "words");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  choices by(data, size);
  const stretto::planned* const made = fuzz::plans_of(by);
  if (made == nullptr) return 0;
  oracle::loose_plans plans(made->plans());
  for (int times = by.below(4); times > 0; --times) fuzz::spoil(by, plans);
  for (int times = by.below(4); times > 0; --times) put_anything(by, by.one_of(plans.ranks));
  const auto packed = plans.views();
  std::vector<stretto::plan_view> views(packed.begin(), packed.end());
  std::vector<stretto::instruction> changed;
  if (by.flip()) put_anything(by, views, changed);
  take(by, views);
  return 0;
}
