#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "stretto/executor/describe.hpp"
#include "stretto/executor/error.hpp"
#include "stretto/executor/validate.hpp"
#include "stretto/model/shape.hpp"
#include "stretto/model/stream_type.hpp"

namespace stretto::executor {
namespace {

//! The checks of one plan; refuse() is their only way to fail.
class plan_check {
 public:
  explicit plan_check(const plan_view& plan)
      : plan_(plan), count_(static_cast<int>(plan.instructions.size())) {}

  void run() {
    check_header();
    recorder_.assign(static_cast<std::size_t>(plan_.events), -1);
    check_buffers();
    check_groups();
    for (int index = 0; index < count_; ++index) check_shape(index);
    for (int index = 0; index < count_; ++index) {
      check_waits(index);
      check_uses(index);
      check_action(index);
    }
    check_end();
  }

 private:
  [[noreturn]] void refuse(const std::string& rule) const {
    throw plan_error("plan of rank " + std::to_string(plan_.rank) + ": " + rule);
  }
  [[noreturn]] void refuse(int index, const std::string& rule) const {
    throw plan_error("plan of " + describe(plan_, index) + ": " + rule);
  }
  const instruction& at(int index) const {
    return plan_.instructions[static_cast<std::size_t>(index)];
  }
  static bool inside(std::int64_t first, std::int64_t count, std::size_t size) {
    return first >= 0 && count >= 0 && first + count <= static_cast<std::int64_t>(size);
  }

  void check_header() const {
    if (plan_.ranks < 1) refuse("there must be at least one rank");
    if (plan_.rank < 0 || plan_.rank >= plan_.ranks)
      refuse("the rank must be below the number of ranks, " + std::to_string(plan_.ranks));
    if (count_ == 0) refuse("there is no instruction");
    // What is sized by them, here and later, asks for no more memory than a step can need.
    if (plan_.ranks > shape::most_jobs)
      refuse("there are " + std::to_string(plan_.ranks) + " ranks, at most " +
             std::to_string(shape::most_jobs));
    if (plan_.events < 0) refuse("the number of events is negative");
    if (plan_.events > 2 * std::int64_t{count_})
      refuse("there are " + std::to_string(plan_.events) + " events, and its " +
             std::to_string(count_) + " instructions record two each at most");
    if (plan_.arena_bytes < 0) refuse("the size of the arena is negative");
    if (plan_.host_bytes < 0) refuse("the size of the host's memory is negative");
    if (plan_.arena_bytes > std::numeric_limits<std::int64_t>::max() - plan_.host_bytes)
      refuse("arena and host's memory are too large together");
    if (plan_.streams.empty()) refuse("there is no stream");
    if (plan_.streams.size() > max_streams)
      refuse("there are " + std::to_string(plan_.streams.size()) + " streams, at most " +
             std::to_string(max_streams));
    if (!plan_.parts.empty() && plan_.parts.size() != plan_.instructions.size())
      refuse("its ops are not one for each instruction");
    if (!plan_.ranges.empty() && plan_.ranges.size() != plan_.uses.size())
      refuse("its ranges of bytes are not one for each use of a buffer");
  }

  void check_buffers() const {
    for (std::size_t index = 0; index < plan_.buffers.size(); ++index) {
      const buffer& each = plan_.buffers[index];
      const std::string name = "buffer " + std::to_string(index);
      const bool host = each.role == buffer_role::host;
      const std::int64_t begin = host ? plan_.arena_bytes : 0;
      const std::int64_t end = plan_.arena_bytes + (host ? plan_.host_bytes : 0);
      if (each.offset < begin || each.bytes < 0 || each.offset > end ||
          each.bytes > end - each.offset)
        refuse(name + " lies outside the " + (host ? "host's memory of " : "arena of ") +
               std::to_string(end - begin) + " bytes");
      if (each.offset % 64 != 0) refuse(name + " is not aligned to 64 bytes");
      if (each.first < 0 || each.release < each.first || each.release > count_)
        refuse(name + " has a life outside the plan: instructions " + std::to_string(each.first) +
               " to " + std::to_string(each.release));
    }
  }

  void check_groups() const {
    for (std::size_t index = 0; index < plan_.groups.size(); ++index) {
      const group_info& group = plan_.groups[index];
      const std::string name = "group " + std::to_string(index);
      if (!inside(group.first, group.count, plan_.members.size()) || group.count < 1)
        refuse(name + " has members outside the plan's list, or none");
      if (group.elements < 0) refuse(name + " has a negative number of elements");
      std::vector<bool> seen(static_cast<std::size_t>(plan_.ranks));
      for (const std::int32_t member : plan_.members_of(group)) {
        if (member < 0 || member >= plan_.ranks)
          refuse(name + " has member " + std::to_string(member) + ", which is no rank");
        if (seen[static_cast<std::size_t>(member)])
          refuse(name + " has member " + std::to_string(member) + " twice");
        seen[static_cast<std::size_t>(member)] = true;
      }
    }
  }

  //! Ranges, indices, and who records which event: what the other checks rely on.
  void check_shape(int index) {
    const instruction& each = at(index);
    if (static_cast<int>(each.what.kind) >= job_kind_count ||
        static_cast<int>(each.act) >= action_count)
      refuse(index, "job kind or action is unknown");
    if (each.stream >= plan_.streams.size())
      refuse(index, "stream " + std::to_string(each.stream) + " does not exist");
    if (!inside(each.first_wait, each.wait_count, plan_.waits.size()))
      refuse(index, "its waits lie outside the plan's list");
    if (!inside(each.first_use, each.use_count, plan_.uses.size()))
      refuse(index, "its buffers lie outside the plan's list");
    if (!inside(each.first_release, each.release_count, plan_.released.size()))
      refuse(index, "its released buffers lie outside the plan's list");
    for (const std::int32_t freed : plan_.released_before(each)) {
      const std::string name = "released buffer " + std::to_string(freed);
      if (!inside(freed, 1, plan_.buffers.size())) refuse(index, name + " does not exist");
      const int until = plan_.buffers[static_cast<std::size_t>(freed)].release;
      if (until != index)
        refuse(index, name + " lives until instruction " + std::to_string(until));
    }
    const op_part part = plan_.part_of(index);
    if (part.own_uses < -1 || part.own_uses > each.use_count)
      refuse(index, "more of its buffers are its own than it has");
    if (each.act != action::run && part.own_uses >= 0 && part.own_uses < each.use_count)
      refuse(index, "only what is run has buffers that are not its own");
    if (part.pieces < 1 || part.piece < 0 || part.piece >= part.pieces)
      refuse(index, "piece " + std::to_string(part.piece) + " of " + std::to_string(part.pieces) +
                        " does not exist");
    check_record(index, each.record);
    check_record(index, part.started);
  }
  void check_record(int index, std::int32_t event) {
    if (event == -1) return;
    if (!inside(event, 1, recorder_.size()))
      refuse(index, "recorded event " + std::to_string(event) + " does not exist");
    int& recorder = recorder_[static_cast<std::size_t>(event)];
    if (recorder >= 0)
      refuse(index, "event " + std::to_string(event) +
                        " is already recorded by instruction " + std::to_string(recorder));
    recorder = index;
  }

  void check_waits(int index) const {
    for (const event_wait& each : plan_.waits_of(at(index))) {
      const std::string name = "event " + std::to_string(each.event);
      if (!inside(each.event, 1, recorder_.size()))
        refuse(index, name + ", waited for, does not exist");
      const int recorder = recorder_[static_cast<std::size_t>(each.event)];
      if (recorder < 0) refuse(index, name + ", waited for, is never recorded");
      if (!each.previous_step && recorder >= index)
        refuse(index, name + " is waited for before instruction " + std::to_string(recorder) +
                          " records it");
    }
  }

  void check_uses(int index) const {
    for (int use = at(index).first_use; use < at(index).first_use + at(index).use_count; ++use) {
      const buffer_use& each = plan_.uses[static_cast<std::size_t>(use)];
      const std::string name = "buffer " + std::to_string(each.buffer);
      if (!inside(each.buffer, 1, plan_.buffers.size())) refuse(index, name + " does not exist");
      if (static_cast<int>(each.role) >= buffer_role_count)
        refuse(index, name + " is used in an unknown role");
      const buffer& used = plan_.buffers[static_cast<std::size_t>(each.buffer)];
      if (index < used.first || index >= used.release)
        refuse(index, name + " is used outside its life, instructions " +
                          std::to_string(used.first) + " to " + std::to_string(used.release));
      const action act = at(index).act;
      if (used.role == buffer_role::host && act != action::offload && act != action::reload)
        refuse(index, name + " is on the host, which only copies reach");
      const byte_range range = plan_.range_of(use);
      if (range.first < 0 || range.bytes < 0 || range.first > used.bytes ||
          range.bytes > used.bytes - range.first)
        refuse(index, name + " of " + std::to_string(used.bytes) + " bytes is used beyond its end");
      if (act != action::run && act != action::all_reduce && act != action::share_sum &&
          range.bytes != used.bytes)
        refuse(index, name + " is moved in part, which only sums are");
    }
  }

  void check_action(int index) const {
    const instruction& each = at(index);
    switch (each.act) {
      case action::run:
        return;
      case action::send:
      case action::receive:
        return check_message(index);
      case action::offload:
      case action::reload:
        return check_copy(index);
      case action::all_reduce:
      case action::all_gather:
      case action::reduce_scatter:
        return check_collective(index);
      case action::share_sum:
        refuse(index, "it sums over the workers that share the rank: see stretto::shared");
      case action::end_step:
        if (index + 1 != count_) refuse(index, "the end of the step must be the last instruction");
    }
  }

  void check_message(int index) const {
    const instruction& each = at(index);
    const bool sends = each.act == action::send;
    if (sends ? !is_send(each.what.kind) : !is_receive(each.what.kind))
      refuse(index,
             sends ? "it sends, but its job is no send" : "it receives, but its job does not");
    // Its other end is a stage on or back.
    if (each.what.stage < 0 || each.what.stage == std::numeric_limits<std::int32_t>::max())
      refuse(index, "its stage " + std::to_string(each.what.stage) + " does not exist");
    if (each.peer < 0 || each.peer >= plan_.ranks || each.peer == plan_.rank)
      refuse(index, "its peer " + std::to_string(each.peer) + " is no other rank");
    if (each.use_count != 1) refuse(index, "a message has exactly one buffer");
  }

  void check_copy(int index) const {
    const instruction& each = at(index);
    const bool away = each.act == action::offload;
    if (each.what.kind != (away ? job_kind::offload : job_kind::reload))
      refuse(index, away ? "it copies to the host, but its job is no offload"
                         : "it copies from the host, but its job is no reload");
    if (each.use_count != 2) refuse(index, "a copy has exactly two buffers");
    const std::span<const buffer_use> uses = plan_.uses_of(each);
    const buffer& from = plan_.buffers[static_cast<std::size_t>(uses[0].buffer)];
    const buffer& to = plan_.buffers[static_cast<std::size_t>(uses[1].buffer)];
    if (uses[0].mode != access::read || uses[1].mode != access::write)
      refuse(index, "a copy reads its first buffer and writes its second");
    if ((from.role == buffer_role::host) == away || (to.role == buffer_role::host) != away)
      refuse(index, away ? "it copies to the host from the arena, and these buffers are not there"
                         : "it copies from the host to the arena, and these buffers are not there");
    if (from.bytes != to.bytes)
      refuse(index, "it copies " + std::to_string(from.bytes) + " bytes into " +
                        std::to_string(to.bytes));
  }

  void check_collective(int index) const {
    const instruction& each = at(index);
    if (!inside(each.peer, 1, plan_.groups.size()))
      refuse(index, "its group " + std::to_string(each.peer) + " does not exist");
    const bool sums = is_sum(each.act);
    if (each.use_count != 1)
      refuse(index, sums ? "a sum has exactly one buffer" : "an all-gather has exactly one buffer");
    const group_info& group = plan_.groups[static_cast<std::size_t>(each.peer)];
    bool member = false;
    for (const std::int32_t rank : plan_.members_of(group)) member = member || rank == plan_.rank;
    if (!member) refuse(index, "the rank is no member of its group " + std::to_string(each.peer));
    const auto [first, bytes] = plan_.range_of(each.first_use);
    if (!sums) {
      if (bytes % group.count != 0)
        refuse(index, "its buffer of " + std::to_string(bytes) +
                          " bytes is not dealt evenly to the " + std::to_string(group.count) +
                          " members of its group");
      return;
    }
    const bool deals = each.act == action::reduce_scatter;
    if (deals && group.elements % group.count != 0)
      refuse(index, "the " + std::to_string(group.elements) +
                        " elements that it sums are not dealt evenly to the " +
                        std::to_string(group.count) + " members of its group");
    const std::int64_t size = group.wide ? 8 : 4;
    if (first % size != 0)
      refuse(index, "what it sums begins within an element of " + std::to_string(size) + " bytes");
    if (bytes / size < group.elements)
      refuse(index, "its buffer of " + std::to_string(bytes) + " bytes does not hold the group's " +
                        std::to_string(group.elements) + " elements of " + std::to_string(size));
    // Or what the stage is given of it would be another part.
    if (deals && bytes != group.elements * size)
      refuse(index, "its buffer of " + std::to_string(bytes) +
                        " bytes holds more than the group's " + std::to_string(group.elements) +
                        " elements of " + std::to_string(size) +
                        ", of which each member gets a part");
  }

  //! The step is over when end_step is done: nothing may be left running then.
  void check_end() const {
    if (at(count_ - 1).act != action::end_step)
      refuse(count_ - 1, "the last instruction must be the end of the step");
    // Backwards in issue order, each instruction's followers are known before it: the next one on
    // its stream, and those that wait for its event.
    std::vector<bool> before_end(static_cast<std::size_t>(count_));
    std::vector<bool> stream_reached(plan_.streams.size());
    std::vector<bool> event_reached(recorder_.size());
    for (int index = count_ - 1; index >= 0; --index) {
      const instruction& each = at(index);
      const bool reached =
          index == count_ - 1 || stream_reached[each.stream] ||
          (each.record >= 0 && event_reached[static_cast<std::size_t>(each.record)]);
      if (!reached) refuse(index, "the end of the step does not wait for it");
      stream_reached[each.stream] = true;
      for (const event_wait& wait : plan_.waits_of(each))
        if (!wait.previous_step) event_reached[static_cast<std::size_t>(wait.event)] = true;
    }
  }

  const plan_view& plan_;
  int count_;
  std::vector<int> recorder_;  // of each event; -1: none
};

}  // namespace

void validate(const plan_view& plan) {
  plan_check(plan).run();
}

}  // namespace stretto::executor
