#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <stdexcept>
#include <string_view>
#include <utility>
#include <vector>

#include "stretto/model/plan_view.hpp"

namespace stretto::test {

//! A plan put together by hand, one instruction after the other. Everything stays open to change
//! afterwards, so that tests can spoil it.
class plan_builder {
 public:
  plan_builder(int rank, int ranks, std::initializer_list<std::string_view> stream_names) {
    head.rank = rank;
    head.ranks = ranks;
    head.stages = ranks;
    head.digest = 42;
    for (const std::string_view name : stream_names) {
      stream_info info;
      std::memcpy(info.name, name.data(), std::min(name.size(), sizeof info.name));
      info.priority = static_cast<std::int32_t>(streams.size());
      streams.push_back(info);
    }
  }

  //! A buffer of its own bytes, alive for the whole step.
  int add_buffer(buffer_role role, int stage, int microbatch, std::int64_t bytes) {
    buffer fresh;
    fresh.offset = head.arena_bytes;
    fresh.bytes = bytes;
    fresh.stage = stage;
    fresh.microbatch = microbatch;
    fresh.role = role;
    head.arena_bytes += (bytes + 63) / 64 * 64;
    buffers.push_back(fresh);
    return static_cast<int>(buffers.size()) - 1;
  }

  //! An instruction after the ones given; those on other streams get an event.
  int add(action act, const job& what, int stream, std::vector<buffer_use> with = {},
          std::vector<int> after = {}, int peer = -1) {
    instruction fresh;
    fresh.what = what;
    fresh.act = act;
    fresh.stream = static_cast<std::uint8_t>(stream);
    fresh.peer = peer;
    fresh.first_wait = static_cast<std::int32_t>(waits.size());
    for (const int before : after) {
      if (before < 0 || at(before).stream == fresh.stream) continue;
      waits.push_back({event_of(before), wait_reason::data, false});
      ++fresh.wait_count;
    }
    fresh.first_use = static_cast<std::int32_t>(uses.size());
    fresh.use_count = static_cast<std::int32_t>(with.size());
    uses.insert(uses.end(), with.begin(), with.end());
    instructions.push_back(fresh);
    return static_cast<int>(instructions.size()) - 1;
  }

  int run(const job& what, int stream, std::vector<buffer_use> with = {},
          std::vector<int> after = {}) {
    return add(action::run, what, stream, std::move(with), std::move(after));
  }
  int send(const job& what, int stream, int peer, int buffer, std::vector<int> after = {}) {
    return add(action::send, what, stream, {{buffer, buffer_role::output, access::read}},
               std::move(after), peer);
  }
  int receive(const job& what, int stream, int peer, int buffer, std::vector<int> after = {}) {
    return add(action::receive, what, stream, {{buffer, buffer_role::input, access::write}},
               std::move(after), peer);
  }
  int all_reduce(int group, int stream, int buffer, std::vector<int> after = {}) {
    return add(action::all_reduce, {0, group, 0, job_kind::all_reduce}, stream,
               {{buffer, buffer_role::collective, access::read_write}}, std::move(after), group);
  }
  int reduce_scatter(int group, int stream, int buffer, std::vector<int> after = {}) {
    return add(action::reduce_scatter, {0, group, 0, job_kind::all_reduce}, stream,
               {{buffer, buffer_role::collective, access::read_write}}, std::move(after), group);
  }
  int all_gather(int group, int stream, int buffer, std::vector<int> after = {}) {
    return add(action::all_gather, {0, group, 0, job_kind::all_gather}, stream,
               {{buffer, buffer_role::weights, access::read_write}}, std::move(after), group);
  }
  int add_group(std::vector<std::int32_t> ranks, std::int64_t elements, bool wide) {
    groups.push_back({static_cast<std::int32_t>(members.size()),
                      static_cast<std::int32_t>(ranks.size()), elements, wide});
    members.insert(members.end(), ranks.begin(), ranks.end());
    return static_cast<int>(groups.size()) - 1;
  }

  //! The last instruction, after the last one of every stream.
  plan_builder& end() {
    std::vector<int> last(streams.size(), -1);
    for (std::size_t index = 0; index < instructions.size(); ++index)
      last[instructions[index].stream] = static_cast<int>(index);
    add(action::end_step, {0, 0, 0, job_kind::end_step}, 0, {}, last);
    for (buffer& each : buffers) each.release = static_cast<std::int32_t>(instructions.size());
    return *this;
  }

  //! After end(): the buffer lives until just before `index` starts.
  void release(int buffer, int index) {
    buffers[static_cast<std::size_t>(buffer)].release = index;
    released.clear();
    for (std::size_t now = 0; now < instructions.size(); ++now) {
      instructions[now].first_release = static_cast<std::int32_t>(released.size());
      for (std::size_t id = 0; id < buffers.size(); ++id)
        if (buffers[id].release == static_cast<std::int32_t>(now))
          released.push_back(static_cast<std::int32_t>(id));
      instructions[now].release_count = static_cast<std::int32_t>(
          static_cast<std::int32_t>(released.size()) - instructions[now].first_release);
    }
  }
  //! After end(): every buffer lives until its last use in the list has ended; what is sent to the
  //! end of the step, which waits for its stream: a send gives nothing back.
  plan_builder& release_all() {
    const plan_view all = view();
    for (int id = 0; id < static_cast<int>(buffers.size()); ++id) {
      int after = 0;
      for (int index = 0; index < static_cast<int>(instructions.size()); ++index)
        for (const buffer_use& use : all.uses_of(at(index)))
          if (use.buffer == id)
            after = at(index).act == action::send ? static_cast<int>(instructions.size()) - 1
                                                  : index + 1;
      if (after > 0) release(id, after);
    }
    return *this;
  }

  instruction& at(int index) { return instructions[static_cast<std::size_t>(index)]; }
  //! The event that the instruction records, made when there is none.
  std::int32_t event_of(int index) {
    if (at(index).record < 0) at(index).record = head.events++;
    return at(index).record;
  }

  plan_view view() const {
    plan_view plan = head;
    plan.instructions = instructions;
    plan.waits = waits;
    plan.uses = uses;
    plan.ranges = ranges;
    plan.released = released;
    plan.buffers = buffers;
    plan.streams = streams;
    plan.groups = groups;
    plan.members = members;
    return plan;
  }

  plan_view head{};
  std::vector<instruction> instructions{};
  std::vector<byte_range> ranges{};
  std::vector<event_wait> waits{};
  std::vector<buffer_use> uses{};
  std::vector<std::int32_t> released{};
  std::vector<buffer> buffers{};
  std::vector<stream_info> streams{};
  std::vector<group_info> groups{};
  std::vector<std::int32_t> members{};
};

//! The n-th instruction with the action.
inline int nth(const plan_builder& plan, action act, int n = 0) {
  for (std::size_t at = 0; at < plan.instructions.size(); ++at)
    if (plan.instructions[at].act == act && n-- == 0) return static_cast<int>(at);
  throw std::out_of_range("no such instruction");
}

inline std::vector<plan_view> views(const std::vector<plan_builder>& plans) {
  std::vector<plan_view> result;
  for (const plan_builder& each : plans) result.push_back(each.view());
  return result;
}

}  // namespace stretto::test
