#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "stretto/model/plan_names.hpp"
#include "stretto/model/plan_view.hpp"

namespace stretto {

//! Where an event is recorded: by this instruction, when it is done or, of ops, as it starts.
struct event_origin {
  std::int32_t instruction = -1;  //!< -1: by none
  bool starts = false;

  constexpr bool operator==(const event_origin&) const = default;
};

//! The origin of every event of a plan, by the event's number.
inline std::vector<event_origin> origins_of(const plan_view& plan) {
  std::vector<event_origin> origins(static_cast<std::size_t>(plan.events));
  for (std::int32_t at = 0; at < static_cast<std::int32_t>(plan.instructions.size()); ++at) {
    const std::int32_t done = plan.instructions[static_cast<std::size_t>(at)].record;
    const std::int32_t started = plan.part_of(at).started;
    if (done >= 0) origins[static_cast<std::size_t>(done)] = {at, false};
    if (started >= 0) origins[static_cast<std::size_t>(started)] = {at, true};
  }
  return origins;
}

//! A digest as it is written, 16 letters of hexadecimal.
inline std::string digest_text(std::uint64_t digest) {
  std::string text(16, '0');
  for (std::size_t at = text.size(); at-- > 0; digest >>= 4U)
    text[at] = "0123456789abcdef"[digest & 15U];
  return text;
}

namespace detail {

//! One plan as text: of each instruction the cells of a line, those of a column as wide as the
//! longest, and behind them what has no width in common.
class plan_writer {
 public:
  explicit plan_writer(const plan_view& plan) : plan_(plan), origins_(origins_of(plan)) {}

  void write(std::string& out) const {
    head(out);
    std::vector<line> lines{{{"#", "job", "does", "stream", "records"},
                             "waits for (reason, event); access, buffer, role, offset+bytes; "
                             "releases before it starts"}};
    for (std::int32_t at = 0; at < count(); ++at) lines.push_back(line_of(at));
    std::array<std::size_t, columns> widths{};
    for (const line& each : lines)
      for (std::size_t at = 0; at < columns; ++at)
        widths[at] = std::max(widths[at], each.cells[at].size());
    for (const line& each : lines) {
      const std::size_t start = out.size();
      for (std::size_t at = 0; at < columns; ++at) {
        const std::string fill(widths[at] - each.cells[at].size(), ' ');
        out.append(at == 0 ? fill + each.cells[at] : each.cells[at] + fill).append("  ");
      }
      out += each.rest;
      while (out.size() > start && out.back() == ' ') out.pop_back();
      out += '\n';
    }
  }

 private:
  static constexpr std::size_t columns = 5;
  struct line {
    std::array<std::string, columns> cells;
    std::string rest;
  };

  std::int32_t count() const { return static_cast<std::int32_t>(plan_.instructions.size()); }

  static std::string counted(std::size_t count, const char* what) {
    return std::to_string(count) + ' ' + what + (count == 1 ? "" : "s");
  }
  void head(std::string& out) const {
    out += "rank " + std::to_string(plan_.rank) + " of " + std::to_string(plan_.ranks) + ": " +
           counted(plan_.instructions.size(), "instruction") + ", " +
           counted(static_cast<std::size_t>(plan_.events), "event") + ", " +
           counted(plan_.waits.size(), "wait") + ", " + counted(plan_.buffers.size(), "buffer") +
           "; arena " + std::to_string(plan_.arena_bytes) + " bytes, host " +
           std::to_string(plan_.host_bytes) + " bytes; digest " + digest_text(plan_.digest) + '\n';
    out += "streams (priority):";
    for (const stream_info& one : plan_.streams) {
      if (&one != plan_.streams.data()) out += ',';
      out.append(" ").append(name(one)) += " (" + std::to_string(one.priority) + ")";
    }
    out += '\n';
    for (std::size_t at = 0; at < plan_.groups.size(); ++at) add_group(at, out);
  }
  void add_group(std::size_t at, std::string& out) const {
    const group_info& group = plan_.groups[at];
    out += "group " + std::to_string(at) + ": ranks";
    for (const std::int32_t& member : plan_.members_of(group))
      out += (&member == plan_.members_of(group).data() ? " " : ", ") + std::to_string(member);
    if (group.data_parallel) out += ", over their data-parallel replicas";
    if (group.shared) out += ", over all of their workers";
    if (group.weights >= 0 && group.elements == 0) {
      out += "; weights of stage " + std::to_string(group.stage) + ", of " +
             std::to_string(group.weights) + " bytes, to gather\n";
      return;
    }
    out += "; " + std::to_string(group.elements) + " elements of " + (group.wide ? "8" : "4") +
           " bytes";
    if (group.stage >= 0) out += ", gradients of stage " + std::to_string(group.stage);
    if (group.weights >= 0)
      out += ", and its weights of " + std::to_string(group.weights) + " bytes to gather";
    out += '\n';
  }

  line line_of(std::int32_t at) const {
    const instruction& mine = plan_.instructions[static_cast<std::size_t>(at)];
    std::string records = mine.record < 0 ? "-" : "event " + std::to_string(mine.record);
    if (const std::int32_t started = plan_.part_of(at).started; started >= 0)
      records += ", at its start " + std::to_string(started);
    std::string rest;
    for (const std::string& phrase : {waits(mine), uses(mine), releases(mine)})
      if (!phrase.empty()) rest += (rest.empty() ? "" : "; ") + phrase;
    return {{std::to_string(at), std::string(to_text(plan_, at).view()), does(mine),
             stream_of(mine), records},
            rest};
  }
  static std::string does(const instruction& mine) {
    const std::string peer = std::to_string(mine.peer);
    std::string text(name(mine.act));
    if (mine.act == action::send) text += " to rank " + peer;
    if (mine.act == action::receive) text += " from rank " + peer;
    if (is_collective(mine.act)) text += " of group " + peer;
    if (mine.what.paired) text += ", paired";
    return text;
  }
  std::string stream_of(const instruction& mine) const {
    if (mine.stream >= plan_.streams.size()) return "stream " + std::to_string(mine.stream);
    return std::string(name(plan_.streams[mine.stream]));
  }

  std::string waits(const instruction& mine) const {
    std::string text;
    for (const event_wait& wait : plan_.waits_of(mine)) {
      const event_origin from = origins_[static_cast<std::size_t>(wait.event)];
      text += text.empty() ? "waits for " : ", ";
      if (from.instruction >= 0) {
        if (from.starts) text += "the start of ";
        text += std::to_string(from.instruction) + ' ';
        text.append(to_text(plan_, from.instruction).view());
      }
      if (wait.previous_step) text += " of the step before";
      text.append(" (").append(name(wait.why)) += ", event " + std::to_string(wait.event) + ')';
    }
    return text;
  }
  std::string uses(const instruction& mine) const {
    std::string text;
    const std::span<const buffer_use> all = plan_.uses_of(mine);
    for (std::size_t at = 0; at < all.size(); ++at) {
      const buffer& of = plan_.buffers[static_cast<std::size_t>(all[at].buffer)];
      const byte_range part = plan_.range_of(mine.first_use + static_cast<std::int32_t>(at));
      text += at == 0 ? "" : ", ";
      text.append(name(all[at].mode)) += ' ' + std::to_string(all[at].buffer) + ' ';
      text.append(name(all[at].role)) +=
          ' ' + std::to_string(of.offset + part.first) + '+' + std::to_string(part.bytes);
    }
    return text;
  }
  std::string releases(const instruction& mine) const {
    std::string text;
    for (const std::int32_t id : plan_.released_before(mine))
      text += (text.empty() ? "releases " : ", ") + std::to_string(id);
    return text;
  }

  const plan_view& plan_;
  std::vector<event_origin> origins_;
};

}  // namespace detail

//! Appends a rank's plan as text for people: what it is made of, then a line for each instruction,
//! in order. An instruction has its number, what it does (`paired`: as one with the next one's
//! job), its stream and the event that it records when it is done; what it waits for, which is who
//! records the event, why and which event; the buffers that it touches, each as
//! `read 3 stash 64+128`: of its 128 bytes from the arena's 64th on (of the host's memory from
//! arena_bytes on); and which are released before it starts (see plan_view::released_as_ends).
//! @param plan  a sound one: its indices are not looked at
inline void write_plan(const plan_view& plan, std::string& out) {
  detail::plan_writer(plan).write(out);
}

}  // namespace stretto
