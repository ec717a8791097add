#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "stretto/executor/checked_device.hpp"
#include "stretto/model/plan_view.hpp"
#include "stretto/model/stream_type.hpp"

namespace stretto::executor {

class race_check {
 public:
  race_check(std::span<const plan_view> plans, bool rendezvous);

  void record(std::size_t plan, int stream, int event, std::int64_t step);
  void wait(std::size_t plan, int stream, int event, std::int64_t step);
  //! Of an instruction behind its waits, and once its work is enqueued.
  void begin(std::size_t plan, int stream, int instruction, std::int64_t step);
  void end(std::size_t plan, int stream, int instruction, std::int64_t step);
  //! Whether the event is the one that is recorded when the instruction is done.
  bool ends_with(std::size_t plan, int instruction, int event) const {
    return ranks_[plan].plan.instructions[static_cast<std::size_t>(instruction)].record == event;
  }

 private:
  //! How many instructions of each stream of each rank are known to be done.
  using clock = std::span<std::int64_t>;

  //! Who touched a piece of memory last.
  struct touch {
    std::int64_t count = 0;  // done on its stream once it is over; 0: nobody
    std::int64_t step = 0;
    std::int32_t instruction = -1;
    std::uint8_t stream = 0;
    bool release = false;
  };
  struct piece {
    std::int64_t begin = 0;
    std::int64_t end = 0;
    touch written{};
    touch read[max_streams]{};
  };
  struct piece_range {
    std::size_t first = 0;
    std::size_t count = 0;
  };
  struct rank_state {
    plan_view plan{};
    std::size_t first_stream = 0;  // in clocks
    std::vector<piece> pieces{};   // of the arena and the host's memory, ascending, disjoint
    std::vector<piece_range> pieces_of{};  // by buffer
    std::vector<piece_range> used{};       // by use
    std::vector<std::int64_t> clocks{};    // of each stream
    std::vector<std::int64_t> events{};    // of each event
    std::vector<std::int64_t> recorded{};  // step of each event; -1: none
  };
  //! Clocks of messages or rounds under way, by number in turn.
  struct ring {
    std::vector<std::int64_t> clocks{};
    std::size_t size = 0;
  };
  struct channel {
    ring sent{}, received{};
    std::int64_t sends = 0, receives = 0;  // begun
    std::int64_t sends_ended = 0, receives_ended = 0;
  };
  struct group {
    ring joined{};
    std::vector<std::int64_t> begun{}, ended{};  // by rank
  };

  void lay_out(rank_state& rank);
  clock clock_of(rank_state& rank, int stream);
  clock in_ring(ring& from, std::int64_t number);
  static void join(clock to, std::span<const std::int64_t> from);
  channel& channel_of(int from, int to) {
    return channels_[static_cast<std::size_t>(from) * ranks_.size() + static_cast<std::size_t>(to)];
  }

  void access_uses(rank_state& rank, const instruction& of, const touch& by);
  void access_all(rank_state& rank, const piece_range& range, bool writes, const touch& by);
  void hold(const rank_state& rank, clock known, const piece& at, const touch& before,
            const touch& by, bool writes);
  [[noreturn]] static void complain(const rank_state& rank, const piece& at, const touch& before,
                                    bool wrote, const touch& by, bool writes);

  bool rendezvous_;
  std::size_t streams_ = 0;  // of all ranks
  std::vector<rank_state> ranks_;
  std::vector<std::size_t> rank_of_;  // its place in ranks_, by number
  std::vector<channel> channels_;
  std::vector<group> groups_;
};

}  // namespace stretto::executor
