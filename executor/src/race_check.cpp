#include "race_check.hpp"

#include <algorithm>
#include <string_view>

#include "stretto/executor/describe.hpp"
#include "stretto/executor/error.hpp"
#include "stretto/model/plan_names.hpp"

namespace stretto::executor {
namespace {

bool meets(const instruction& each) {
  return meets_others(each.act);
}

}  // namespace

race_check::race_check(std::span<const plan_view> plans, bool rendezvous)
    : rendezvous_(rendezvous) {
  if (plans.empty() || plans.size() != static_cast<std::size_t>(plans.front().ranks))
    throw plan_error("races are checked where all ranks of a job are: " +
                     std::to_string(plans.size()) + " plans are here");
  rank_of_.resize(plans.size());
  for (const plan_view& plan : plans) {
    if (std::ranges::any_of(ranks_,
                            [&](const rank_state& each) { return each.plan.rank == plan.rank; }))
      throw plan_error("rank " + std::to_string(plan.rank) + " has two plans");
    rank_of_[static_cast<std::size_t>(plan.rank)] = ranks_.size();
    groups_.resize(std::max(groups_.size(), plan.groups.size()));
    rank_state& made = ranks_.emplace_back();
    made.plan = plan;
    made.first_stream = streams_;
    streams_ += plan.streams.size();
  }
  channels_.resize(plans.size() * plans.size());
  for (rank_state& rank : ranks_) {
    lay_out(rank);
    rank.clocks.resize(rank.plan.streams.size() * streams_);
    rank.events.resize(static_cast<std::size_t>(rank.plan.events) * streams_);
    rank.recorded.resize(static_cast<std::size_t>(rank.plan.events), -1);
    for (const instruction& each : rank.plan.instructions) {
      if (each.act == action::send) ++channel_of(rank.plan.rank, each.peer).sent.size;
      if (each.act == action::receive) ++channel_of(each.peer, rank.plan.rank).received.size;
      if (is_collective(each.act)) ++groups_[static_cast<std::size_t>(each.peer)].joined.size;
    }
  }
  // What a step has begun may not have ended when the next one begins.
  const auto make = [&](ring& one) {
    if (one.size > 0) one.clocks.resize((one.size = 2 * one.size + 1) * streams_);
  };
  for (channel& one : channels_) {
    make(one.sent);
    make(one.received);
  }
  for (group& one : groups_) {
    make(one.joined);
    one.begun.resize(ranks_.size());
    one.ended.resize(ranks_.size());
  }
}

void race_check::lay_out(rank_state& rank) {
  std::vector<std::int64_t> bounds;
  for (const buffer& each : rank.plan.buffers) {
    bounds.push_back(each.offset);
    bounds.push_back(each.offset + each.bytes);
  }
  // A use that belongs to no instruction was not checked.
  const auto each_use = [&](const auto& visit) {
    for (const instruction& each : rank.plan.instructions)
      for (std::int32_t use = each.first_use; use < each.first_use + each.use_count; ++use) {
        const auto at = static_cast<std::size_t>(use);
        const auto id = static_cast<std::size_t>(rank.plan.uses[at].buffer);
        const byte_range range = rank.plan.range_of(use);
        const std::int64_t begin = rank.plan.buffers[id].offset + range.first;
        visit(at, begin, begin + range.bytes);
      }
  };
  each_use([&](std::size_t, std::int64_t begin, std::int64_t end) {
    bounds.push_back(begin);
    bounds.push_back(end);
  });
  std::ranges::sort(bounds);
  bounds.erase(std::unique(bounds.begin(), bounds.end()), bounds.end());
  for (std::size_t at = 0; at + 1 < bounds.size(); ++at)
    rank.pieces.push_back({bounds[at], bounds[at + 1]});
  const auto place_of = [&](std::int64_t offset) {
    return static_cast<std::size_t>(std::ranges::lower_bound(bounds, offset) - bounds.begin());
  };
  const auto between = [&](std::int64_t begin, std::int64_t end) {
    const std::size_t first = place_of(begin);
    return piece_range{first, place_of(end) - first};
  };
  for (const buffer& each : rank.plan.buffers)
    rank.pieces_of.push_back(between(each.offset, each.offset + each.bytes));
  rank.used.resize(rank.plan.uses.size());
  each_use([&](std::size_t use, std::int64_t begin, std::int64_t end) {
    rank.used[use] = between(begin, end);
  });
}

race_check::clock race_check::clock_of(rank_state& rank, int stream) {
  return clock(rank.clocks).subspan(static_cast<std::size_t>(stream) * streams_, streams_);
}

race_check::clock race_check::in_ring(ring& from, std::int64_t number) {
  const auto at = static_cast<std::size_t>(number) % from.size;
  return clock(from.clocks).subspan(at * streams_, streams_);
}

void race_check::join(clock to, std::span<const std::int64_t> from) {
  for (std::size_t at = 0; at < to.size(); ++at) to[at] = std::max(to[at], from[at]);
}

void race_check::record(std::size_t plan, int stream, int event, std::int64_t step) {
  rank_state& rank = ranks_[plan];
  const clock now = clock_of(rank, stream);
  std::ranges::copy(now, rank.events.begin() + static_cast<std::ptrdiff_t>(
                                                   static_cast<std::size_t>(event) * streams_));
  rank.recorded[static_cast<std::size_t>(event)] = step;
}

void race_check::wait(std::size_t plan, int stream, int event, std::int64_t step) {
  if (step < 0) return;
  rank_state& rank = ranks_[plan];
  const auto at = static_cast<std::size_t>(event);
  if (rank.recorded[at] < step)
    throw race_error(
        "stream " + std::string(name(rank.plan.streams[static_cast<std::size_t>(stream)])) +
        " of " + name_of_rank(rank.plan, rank.plan.rank) + " waits for event " +
        std::to_string(event) + ", which nobody has recorded in step " + std::to_string(step));
  join(clock_of(rank, stream), std::span(rank.events).subspan(at * streams_, streams_));
}

void race_check::begin(std::size_t plan, int stream, int instruction, std::int64_t step) {
  rank_state& rank = ranks_[plan];
  const auto& each = rank.plan.instructions[static_cast<std::size_t>(instruction)];
  const std::size_t own = rank.first_stream + static_cast<std::size_t>(stream);
  const clock now = clock_of(rank, stream);
  touch by{now[own] + 1, step, instruction, static_cast<std::uint8_t>(stream), true};
  for (const std::int32_t freed : rank.plan.released_before(each))
    if (!rank.plan.released_as_ends(freed, instruction))
      access_all(rank, rank.pieces_of[static_cast<std::size_t>(freed)], true, by);
  by.release = false;
  if (!meets(each)) access_uses(rank, each, by);

  const auto keep = [&](ring& in, std::int64_t number) {
    const clock kept = in_ring(in, number);
    std::ranges::copy(now, kept.begin());
    kept[own] = by.count;
  };
  if (each.act == action::send) {
    channel& to = channel_of(rank.plan.rank, each.peer);
    keep(to.sent, to.sends++);
  } else if (each.act == action::receive) {
    channel& from = channel_of(each.peer, rank.plan.rank);
    keep(from.received, from.receives++);
  } else if (is_collective(each.act)) {
    group& all = groups_[static_cast<std::size_t>(each.peer)];
    const std::int64_t round = all.begun[plan]++;
    const clock joined = in_ring(all.joined, round);
    // Clocks only grow, so those of the round that stood here are no more than what comes anew.
    join(joined, now);
    joined[own] = by.count;
  }
}

void race_check::end(std::size_t plan, int stream, int instruction, std::int64_t step) {
  rank_state& rank = ranks_[plan];
  const auto& each = rank.plan.instructions[static_cast<std::size_t>(instruction)];
  const std::size_t own = rank.first_stream + static_cast<std::size_t>(stream);
  const clock now = clock_of(rank, stream);
  // A peer that has not begun yet tells nothing: less is known then, never more.
  if (each.act == action::send) {
    channel& to = channel_of(rank.plan.rank, each.peer);
    const std::int64_t number = to.sends_ended++;
    if (rendezvous_ && number < to.receives) join(now, in_ring(to.received, number));
  } else if (each.act == action::receive) {
    channel& from = channel_of(each.peer, rank.plan.rank);
    const std::int64_t number = from.receives_ended++;
    if (number < from.sends) join(now, in_ring(from.sent, number));
  } else if (is_collective(each.act)) {
    group& all = groups_[static_cast<std::size_t>(each.peer)];
    join(now, in_ring(all.joined, all.ended[plan]++));
  }
  touch by{now[own] + 1, step, instruction, static_cast<std::uint8_t>(stream), false};
  // A message is moved, and a sum made, when all sides are there.
  if (meets(each)) access_uses(rank, each, by);
  now[own] = by.count;
  by.release = true;
  const std::int32_t next = instruction + 1;
  if (static_cast<std::size_t>(next) >= rank.plan.instructions.size()) return;
  for (const std::int32_t freed :
       rank.plan.released_before(rank.plan.instructions[static_cast<std::size_t>(next)]))
    if (rank.plan.released_as_ends(freed, next))
      access_all(rank, rank.pieces_of[static_cast<std::size_t>(freed)], true, by);
}

void race_check::access_uses(rank_state& rank, const instruction& of, const touch& by) {
  for (std::int32_t use = of.first_use; use < of.first_use + of.use_count; ++use) {
    const auto at = static_cast<std::size_t>(use);
    access_all(rank, rank.used[at], rank.plan.uses[at].mode != access::read, by);
  }
}

void race_check::access_all(rank_state& rank, const piece_range& range, bool writes,
                            const touch& by) {
  const clock known = clock_of(rank, by.stream);
  for (std::size_t at = range.first; at < range.first + range.count; ++at) {
    piece& here = rank.pieces[at];
    hold(rank, known, here, here.written, by, writes);
    if (!writes) {
      here.read[by.stream] = by;
      continue;
    }
    for (touch& read : here.read) {
      hold(rank, known, here, read, by, writes);
      read = {};
    }
    here.written = by;
  }
}

//! A stream's own work is in order.
void race_check::hold(const rank_state& rank, clock known, const piece& at, const touch& before,
                      const touch& by, bool writes) {
  if (before.count == 0 || before.stream == by.stream ||
      known[rank.first_stream + before.stream] >= before.count)
    return;
  complain(rank, at, before, &before == &at.written, by, writes);
}

void race_check::complain(const rank_state& rank, const piece& at, const touch& before, bool wrote,
                          const touch& by, bool writes) {
  const auto stream_of = [&](const touch& one) {
    return std::string(name(rank.plan.streams[one.stream]));
  };
  const auto does = [&](const touch& one, bool writing) {
    return std::string(one.release ? "release"
                       : writing   ? "write"
                                   : "read") +
           " by " + describe(rank.plan, one.instruction) + ", step " + std::to_string(one.step) +
           ", stream " + stream_of(one);
  };
  throw race_error("a race on bytes [" + std::to_string(at.begin) + ", " + std::to_string(at.end) +
                   ") of " + name_of_rank(rank.plan, rank.plan.rank) + ": the " + does(by, writes) +
                   ", has no order with the " + does(before, wrote) +
                   ": no wait of the first, nor what came before it, no message and no collective "
                   "tells that the second is done");
}

}  // namespace stretto::executor
