#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "stretto/base/filled.hpp"
#include "stretto/lowering/op_sequence.hpp"
#include "stretto/model/op_graph.hpp"
#include "stretto/model/stream_type.hpp"

namespace stretto::lowering {

//! The waits of a sequence's steps, as few as do, and what each step knows to be over by them and
//! by its stream.
class step_waits {
 public:
  //! @param order  of the graph's nodes, which are the steps of `out`
  constexpr step_waits(const op_graph& graph, std::span<const std::int32_t> order, op_sequence& out)
      : graph_(graph), order_(order), out_(out) {}
  constexpr ~step_waits() = default;  // nvcc does not find it constexpr by itself

  //! Writes them, in place of any that were there.
  //! @param needs  of each node
  //! @param place  of each node in the order
  constexpr void write(const op_neighbours& needs, std::span<const std::int32_t> place) {
    known_ = filled<std::int32_t>(order_.size() * max_streams);
    out_.waits.clear();
    for (int stream = 0; stream < max_streams; ++stream)
      last_on_[stream] = holds_on_[stream] = begun_[stream] = 0;
    for (op_sequence::step& each : out_.steps) each.recorded = each.started_recorded = false;
    for (std::size_t at = 0; at < order_.size(); ++at)
      wait_for(static_cast<std::int32_t>(at), needs.of(order_[at]), place);
  }
  //! Of a stream the last step that is over when `step` is; plus one.
  constexpr std::int32_t known(std::int32_t step, int stream) const {
    return known_[index(step) * max_streams + index(stream)];
  }
  //! The last step on the stream; -1: none.
  constexpr std::int32_t last_on(int stream) const { return last_on_[stream] - 1; }

 private:
  static constexpr std::size_t index(std::int64_t at) { return static_cast<std::size_t>(at); }

  //! What is done when a step starts: by stream the latest step, plus one. Waits are for what its
  //! own stream does not know, and no other wait implies.
  constexpr void wait_for(std::int32_t at, std::span<const std::int32_t> needs,
                          std::span<const std::int32_t> place) {
    const op_node& what = graph_.nodes[index(order_[index(at)])];
    op_sequence::step& made = out_.steps[index(at)];
    std::int32_t* const known = &known_[index(at) * max_streams];
    if (const std::int32_t before = last_on_[what.stream] - 1; before >= 0) join(known, before);
    last_on_[what.stream] = at + 1;
    if (what.holds > 0) holds_on_[what.stream] = at + 1;
    made.first_wait = static_cast<std::int32_t>(out_.waits.size());
    std::int32_t latest[max_streams]{};
    for (const std::int32_t need : needs) {
      std::int32_t& last = latest[graph_.nodes[index(need)].stream];
      if (place[index(need)] >= last) last = place[index(need)] + 1;
    }
    for (int stream = 0; stream < max_streams; ++stream) {
      const std::int32_t last = latest[stream];
      if (stream == what.stream || last <= known[stream]) continue;
      bool implied = false;
      for (int other = 0; other < max_streams && !implied; ++other)
        implied = other != stream && other != what.stream && latest[other] > 0 &&
                  known_[index(latest[other] - 1) * max_streams + index(stream)] >= last;
      if (implied) continue;
      out_.waits.push_back({last - 1, false});
      out_.steps[index(last - 1)].recorded = true;
    }
    for (auto wait = index(made.first_wait); wait < out_.waits.size(); ++wait)
      join(known, out_.waits[wait].step);
    known[what.stream] = at + 1;
    if (what.stream == 0) {
      // Not before what holds multiprocessors and was issued before it, by stream the last.
      for (int stream = 1; stream < max_streams; ++stream) {
        const std::int32_t last = holds_on_[stream];
        if (last == 0 || known[stream] >= last || begun_[stream] >= last) continue;
        out_.waits.push_back({last - 1, true});
        out_.steps[index(last - 1)].started_recorded = true;
        begun_[stream] = last;
      }
    }
    made.waits = static_cast<std::int32_t>(out_.waits.size()) - made.first_wait;
  }
  constexpr void join(std::int32_t* known, std::int32_t step) {
    const std::int32_t* const theirs = &known_[index(step) * max_streams];
    for (int stream = 0; stream < max_streams; ++stream)
      if (theirs[stream] > known[stream]) known[stream] = theirs[stream];
  }

  const op_graph& graph_;
  std::span<const std::int32_t> order_;
  op_sequence& out_;
  std::vector<std::int32_t> known_;       // by step and stream
  std::int32_t last_on_[max_streams]{};   // the last step, plus one
  std::int32_t holds_on_[max_streams]{};  // the last that holds multiprocessors
  std::int32_t begun_[max_streams]{};     // known to the stream that computes
};

}  // namespace stretto::lowering
