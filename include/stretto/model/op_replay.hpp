#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "stretto/base/filled.hpp"
#include "stretto/model/op_graph.hpp"
#include "stretto/model/stream_type.hpp"
#include "stretto/model/verdict.hpp"

namespace stretto {

//! When ops run that are issued one by one, each to its stream. A stream runs its ops in the order
//! of issue, an op begins when its stream is free and what it needs has ended, a message when its
//! link is free (op_form::link).
//!
//! Where communication holds multiprocessors, an op that computes and was issued behind it begins
//! no sooner than it (the plan makes it so: wait_reason::starts_before), and has only the rest of
//! them from beginning to end, as persistent kernels do; and communication that was not there
//! when such a kernel began waits for its end. With communication that holds none (copy engines,
//! threads of their own) ops do not touch one another.
class op_times {
 public:
  //! @param multiprocessors  of the device; 0: communication holds none
  constexpr op_times(int nodes, int multiprocessors)
      : multiprocessors_(multiprocessors),
        end_(filled<std::int64_t>(static_cast<std::size_t>(nodes))) {}

  constexpr ~op_times() = default;  // nvcc does not find it constexpr by itself

  //! How an op would run.
  struct run {
    std::int64_t start = 0;
    std::int64_t end = 0;
    std::int32_t taken = 0;  //!< multiprocessors that communication holds while it computes
  };

  //! How the op runs if it is issued next.
  //! @param needs  what must end before it; all issued
  constexpr run run_of(const op_node& node, std::span<const std::int32_t> needs) const {
    std::int64_t start = lanes_[static_cast<std::size_t>(node.stream)].end;
    if (node.link > 0 && links_[node.link] > start) start = links_[node.link];
    for (const std::int32_t need : needs)
      if (end(need) > start) start = end(need);
    std::int64_t time = node.time;
    std::int32_t taken = 0;
    if (multiprocessors_ > 0 && node.stream == 0) {
      for (const lane& other : lanes_)
        if (other.holds > 0 && other.start > start) start = other.start;
      taken = resident_at(start);
      if (taken > 0) {
        const std::int64_t left = taken < multiprocessors_ ? multiprocessors_ - taken : 1;
        time = (time * multiprocessors_ + left - 1) / left;
      }
    } else if (multiprocessors_ > 0 && node.holds > 0 && lanes_[0].end > start) {
      const lane& busy = lanes_[0];
      std::int64_t from = busy.start > start ? busy.start : start;
      // Of each stream but the last op is known: it must not begin before that.
      for (std::size_t stream = 1; stream < lanes_.size(); ++stream)
        if (lanes_[stream].holds > 0 && lanes_[stream].start > from) from = lanes_[stream].start;
      const bool fits = from < busy.end && resident_at(from) + node.holds <= busy.holds;
      start = fits ? from : busy.end;
    }
    return {start, start + time, taken};
  }
  //! @param when  what run_of says of it
  constexpr void issue(int number, const op_node& node, const run& when) {
    lane& mine = lanes_[static_cast<std::size_t>(node.stream)];
    mine.end = when.end;
    const std::int32_t holds = node.stream == 0 ? when.taken : node.holds;
    if (node.link > 0) links_[node.link] = when.end;
    end_[static_cast<std::size_t>(number)] = when.end;
    if (when.end > last_) last_ = when.end;
    if (node.stream == 0 || holds > 0) {
      mine.start = when.start;
      mine.until = when.end;
      mine.holds = holds;
    }
  }
  //! Of an op that was issued.
  constexpr std::int64_t end(int number) const { return end_[static_cast<std::size_t>(number)]; }
  //! When the stream's last op ends.
  constexpr std::int64_t stream_end(int stream) const {
    return lanes_[static_cast<std::size_t>(stream)].end;
  }
  //! When a link is free. @param link  from 1 on
  constexpr std::int64_t link_end(int link) const { return links_[static_cast<std::size_t>(link)]; }
  //! When all that was issued has ended.
  constexpr std::int64_t makespan() const { return last_; }

 private:
  //! When a stream is free, and from when until when the last op on it that holds multiprocessors
  //! does; on the stream that computes, the last one and what it was left without.
  struct lane {
    std::int64_t end = 0;
    std::int64_t start = 0;
    std::int64_t until = 0;
    std::int32_t holds = 0;
  };
  constexpr std::int32_t resident_at(std::int64_t time) const {
    std::int32_t taken = 0;
    for (std::size_t stream = 1; stream < lanes_.size(); ++stream)
      if (lanes_[stream].start <= time && time < lanes_[stream].until)
        taken += lanes_[stream].holds;
    return taken;
  }

  std::int32_t multiprocessors_;
  std::array<lane, max_streams> lanes_{};
  std::array<std::int64_t, max_links + 1> links_{};  // when each is free
  std::int64_t last_ = 0;
  std::vector<std::int64_t> end_;
};

//! One op of a replayed order.
struct op_span {
  std::int64_t start = 0;
  std::int64_t end = 0;

  constexpr bool operator==(const op_span&) const = default;
};

//! Runs the ops in an order of issue.
//! @param order  every node once
//! @param spans  by node
//! @return fault::disordered when the order has an op before one that it needs, fault::incomplete
//!         when it has not every op once, fault::unsound_program for an op on a stream that plans
//!         cannot have, or a link; `step` is the place in the order
constexpr verdict replay_ops(const op_graph& graph, std::span<const std::int32_t> order,
                             int multiprocessors, std::span<op_span> spans) {
  const op_neighbours needs(graph, true);
  op_times times(graph.size(), multiprocessors);
  std::vector<char> issued = filled<char>(graph.nodes.size());
  if (spans.size() < graph.nodes.size()) return refuse(fault::capacity, reason::buffer_full);
  int step = 0;
  for (const std::int32_t node : order) {
    const auto refused = [&](fault what, reason why) {
      verdict answer = refuse(what, why);
      answer.step = step;
      return answer;
    };
    if (node < 0 || node >= graph.size()) return refused(fault::incomplete, reason::out_of_range);
    const auto at = static_cast<std::size_t>(node);
    if (issued[at] != 0) return refused(fault::incomplete, reason::duplicate);
    for (const std::int32_t need : needs.of(node))
      if (issued[static_cast<std::size_t>(need)] == 0)
        return refused(fault::disordered, reason::op_needs_earlier);
    if (graph.nodes[at].stream >= max_streams)
      return refused(fault::unsound_program, reason::no_such_stream);
    if (graph.nodes[at].link > max_links)
      return refused(fault::unsound_program, reason::op_out_of_range);
    issued[at] = 1;
    const op_times::run when = times.run_of(graph.nodes[at], needs.of(node));
    times.issue(node, graph.nodes[at], when);
    spans[at] = {when.start, when.end};
    ++step;
  }
  if (step < graph.size()) {
    verdict answer = refuse(fault::incomplete, reason::missing);
    answer.step = step;
    return answer;
  }
  return {};
}

//! What a graph's ops take together, and how much of it lies side by side.
struct op_report {
  std::int64_t makespan = 0;
  std::int64_t computes = 0;      //!< sum of the times of what computes, alone
  std::int64_t communicates = 0;  //!< and of the rest

  //! The part of communication that cost no time: (computes + communicates - makespan) of
  //! communicates. Negative where it slowed computation more than it gained.
  constexpr double hidden() const {
    return communicates == 0 ? 1.0
                             : static_cast<double>(computes + communicates - makespan) /
                                   static_cast<double>(communicates);
  }
};

//! @param spans  of replay_ops
constexpr op_report measure_ops(const op_graph& graph, std::span<const op_span> spans) {
  op_report made;
  for (std::size_t at = 0; at < graph.nodes.size(); ++at) {
    const op_node& node = graph.nodes[at];
    (node.communicates() ? made.communicates : made.computes) += node.time;
    if (spans[at].end > made.makespan) made.makespan = spans[at].end;
  }
  return made;
}

}  // namespace stretto
