#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "fuzz/support/fuzz.hpp"
#include "laws/oracle_plans.hpp"
#include "stretto/lowering/streams/typed.hpp"
#include "stretto/model/verdict_text.hpp"
#include "stretto/plan/planned.hpp"
#include "support/schedules.hpp"

//! Plans of small shapes, as bytes choose them, and what bytes make of them.
namespace fuzz {

//! Which of stretto::stream_type's are streams of their own is by bit of `there`.
struct some_apart {
  static constexpr std::string_view name = "some_apart";
  unsigned there = 0;
  int lead = -1;

  int count() const { return all.count(); }
  stretto::stream_info stream(int number) const { return all.stream(number); }
  int receive_lead() const { return lead; }
  int stream_of(stretto::job_kind kind, int rank, int peer, int ranks) const {
    const int apart = all.stream_of(kind, rank, peer, ranks);
    return (there >> apart & 1U) != 0 ? apart : 0;
  }

 private:
  static constexpr stretto::overlap::typed<> all{};
};

//! What plans are asked for.
struct asked {
  const stretto::schedule::any& schedule;
  stretto::shape sizes{};
  some_apart streams{};
  stretto::plan_request request{};

  explicit asked(choices& by) : schedule(by.one_of(support::schedules())) {
    sizes = {.ranks = by.from(1, 4),
             .microbatches = by.from(1, 5),
             .chunks = by.from(1, 2),
             .slices = by.from(1, 2)};
    streams = {static_cast<unsigned>(by.below(256)), by.from(-1, 2)};
    request.train = !schedule.forward_only;
    request.release_sends = by.flip();
    request.data_parallel = request.train && by.flip();
    if (by.flip()) request.stages[0] = {.output = 128, .stash = 192, .gradients = 64, .kept = 64};
    if (by.flip()) {
      request.groups.push_back({0, sizes.ranks, 4, true});
      for (int rank = 0; rank < sizes.ranks; ++rank) request.members.push_back(rank);
    }
    if (!request.train || sizes.slices > 1) return;
    if (by.flip())
      request.recompute = {by.from(1, 3), by.from(0, 3)};
    else if (by.flip())
      request.offload = {{by.from(1, 3), by.from(0, 3)}, by.from(0, 2), by.from(0, 2)};
  }
};

//! The plans that bytes ask for, or null where the schedule does not serve the shape. The same
//! bytes mostly ask again, with others behind them: what was made is kept for a while.
inline const stretto::planned* plans_of(choices& by) {
  static std::map<std::string, std::unique_ptr<const stretto::planned>> made;
  const choices begin = by;
  const asked what(by);
  if (!what.schedule.supports(what.sizes)) return nullptr;
  if (made.size() > 100) made.clear();
  auto& kept = made[begin.until(by)];
  if (kept != nullptr) return kept->answer().ok() ? kept.get() : nullptr;
  const stretto::placement where = stretto::place(what.schedule.placed(), what.sizes);
  const stretto::job_table costs(where.ranks, where.chunks);
  kept = std::make_unique<const stretto::planned>(what.schedule, what.sizes, costs.view(),
                                                  what.streams, what.request);
  const stretto::verdict& answer = kept->answer();
  require(answer.ok() || answer.what == stretto::fault::unsupported,
          "a schedule's plans keep the rules: " + std::string(to_text(answer).view()));
  return answer.ok() ? kept.get() : nullptr;
}

//! Spoils one thing. Every index stays one that there is.
inline void spoil(choices& by, oracle::loose_plans& plans) {
  oracle::loose_plan& plan = by.one_of(plans.ranks);
  auto& one = by.one_of(plan.list);
  auto& other = by.one_of(plan.list);
  const auto a_buffer = [&] { return static_cast<std::int32_t>(by.below(plan.buffers.size())); };
  const auto an_event = [&] {
    return plan.head.events == 0 ? -1 : by.below(static_cast<std::size_t>(plan.head.events));
  };
  const auto drop_one = [&](auto& from) {
    if (!from.empty()) from.erase(from.begin() + by.below(from.size()));
  };
  switch (by.below(16)) {
    case 0:
      return drop_one(one.waits);
    case 1:
      if (!one.waits.empty() && !other.waits.empty()) by.one_of(one.waits) = by.one_of(other.waits);
      return;
    case 2:
      if (an_event() < 0) return;
      one.waits.push_back({an_event(), static_cast<stretto::wait_reason>(by.below(5)), by.flip()});
      return;
    case 3:
      return std::swap(one.itself.stream, other.itself.stream);
    case 4:
      one.itself.stream = static_cast<std::uint8_t>(by.below(plan.head.streams.size()));
      return;
    case 5:
      one.itself.record = by.flip() ? -1 : an_event();
      return;
    case 6:
      return std::swap(one.itself.record, other.itself.record);
    case 7:
      return drop_one(one.uses);
    case 8:
      if (!other.uses.empty()) one.uses.push_back(by.one_of(other.uses));
      return;
    case 9:
      return drop_one(one.released);
    default:
      break;
  }
  if (plan.buffers.empty()) return;
  stretto::buffer& buffer = by.one_of(plan.buffers);
  const int count = static_cast<int>(plan.list.size());
  switch (by.below(8)) {
    case 0:
      one.released.push_back(a_buffer());
      return;
    case 1:
      if (!one.uses.empty()) by.one_of(one.uses).buffer = a_buffer();
      return;
    case 2:
      if (!one.uses.empty()) by.one_of(one.uses).mode = static_cast<stretto::access>(by.below(3));
      return;
    case 3:
      buffer.offset = by.one_of(plan.buffers).offset + 32 * by.from(-2, 2);
      return;
    case 4:
      buffer.bytes = std::max<std::int64_t>(0, buffer.bytes + 32 * by.from(-3, 3));
      return;
    case 5:
      buffer.first = by.from(-1, count + 1);
      return;
    case 6:
      buffer.release = by.from(-1, count + 1);
      break;
    default:
      buffer.release += by.from(-3, 3);
  }
  // As often as not, its release is told where it now ends.
  const auto end = static_cast<std::size_t>(buffer.release);
  const auto id = static_cast<std::int32_t>(&buffer - plan.buffers.data());
  if (buffer.release < 0 || end >= plan.list.size() || by.flip()) return;
  for (auto& each : plan.list) std::erase(each.released, id);
  plan.list[end].released.push_back(id);
}

}  // namespace fuzz
