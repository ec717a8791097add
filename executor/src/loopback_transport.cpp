#include "stretto/executor/loopback_transport.hpp"

#include <algorithm>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "loopback_channel.hpp"
#include "loopback_group.hpp"
#include "wake_signal.hpp"

namespace stretto::executor {
namespace {

class loopback_transport final : public transport {
 public:
  explicit loopback_transport(int capacity) : capacity_(capacity) {
    if (capacity < 0)
      throw plan_error("the loopback transport's capacity is " + std::to_string(capacity) +
                       ": it cannot be negative");
  }

  void open(std::span<const plan_view> plans, monitor& watch) override {
    if (plans.empty()) throw plan_error("the loopback transport needs at least one plan");
    ranks_ = plans.front().ranks;
    if (static_cast<int>(plans.size()) != ranks_)
      throw plan_error(
          "the loopback transport joins ranks of one process: " + std::to_string(ranks_) +
          " ranks, but " + std::to_string(plans.size()) + " plans are here");
    int threads = 0;
    for (const plan_view& plan : plans) threads += static_cast<int>(plan.streams.size());
    const int spins = spins_for(threads);
    channels_.resize(static_cast<std::size_t>(ranks_) * static_cast<std::size_t>(ranks_));
    for (const plan_view& plan : plans) {
      open_channels(plan, spins, watch.stop_flag());
      open_groups(plan, spins, watch.stop_flag());
    }
  }

  bool rendezvous() const override { return capacity_ == 0; }

  void send(const launch& at, const operation& what) override {
    loopback_channel& channel = channel_of(what.rank, what.peer);
    enqueue(at, what, do_send, &channel, channel.next_send());
  }
  void receive(const launch& at, const operation& what) override {
    loopback_channel& channel = channel_of(what.peer, what.rank);
    enqueue(at, what, do_receive, &channel, channel.next_receive());
  }
  void all_reduce(const launch& at, const operation& what) override {
    loopback_group& group = *groups_[static_cast<std::size_t>(what.peer)];
    enqueue(at, what, do_all_reduce, &group, group.next(what.rank));
  }
  void all_gather(const launch& at, const operation& what) override {
    loopback_group& group = *groups_[static_cast<std::size_t>(what.peer)];
    enqueue(at, what, do_all_gather, &group, group.next(what.rank));
  }
  void reduce_scatter(const launch& at, const operation& what) override {
    loopback_group& group = *groups_[static_cast<std::size_t>(what.peer)];
    enqueue(at, what, do_reduce_scatter, &group, group.next(what.rank));
  }

  void abort() noexcept override {
    for (const auto& each : channels_)
      if (each) each->wake();
    for (const auto& each : groups_)
      if (each) each->wake();
  }

 private:
  static void do_send(const command& work) {
    static_cast<loopback_channel*>(work.self)->send(operation_of(work), work.step, work.argument);
  }
  static void do_receive(const command& work) {
    static_cast<loopback_channel*>(work.self)->receive(operation_of(work), work.step,
                                                       work.argument);
  }
  static void do_all_reduce(const command& work) {
    static_cast<loopback_group*>(work.self)->all_reduce(operation_of(work), work.step,
                                                        work.argument);
  }
  static void do_all_gather(const command& work) {
    static_cast<loopback_group*>(work.self)->all_gather(operation_of(work), work.step,
                                                        work.argument);
  }
  static void do_reduce_scatter(const command& work) {
    static_cast<loopback_group*>(work.self)->reduce_scatter(operation_of(work), work.step,
                                                            work.argument);
  }

  void open_channels(const plan_view& plan, int spins, const std::atomic<bool>& stop) {
    struct sent {
      int messages = 0;
      std::int64_t largest = 0;
    };
    std::vector<sent> to(static_cast<std::size_t>(ranks_));
    for (const instruction& each : plan.instructions) {
      if (each.act != action::send) continue;
      const buffer_use& use = plan.uses_of(each).front();
      sent& all = to[static_cast<std::size_t>(each.peer)];
      ++all.messages;
      all.largest = std::max(all.largest, plan.buffers[static_cast<std::size_t>(use.buffer)].bytes);
    }
    for (int peer = 0; peer < ranks_; ++peer) {
      const auto [messages, largest] = to[static_cast<std::size_t>(peer)];
      if (messages == 0) continue;
      // No step leaves a message behind, so a channel never holds more than one step's.
      const int capacity = std::min(capacity_, messages);
      try {
        channels_[index_of(plan.rank, peer)] =
            std::make_unique<loopback_channel>(plan.rank, peer, capacity, largest, spins, stop);
      } catch (const std::bad_alloc&) {
        throw plan_error("channel " + std::to_string(plan.rank) + " -> " + std::to_string(peer) +
                         ": there is no memory for the " + std::to_string(capacity) +
                         " messages of up to " + std::to_string(largest) +
                         " bytes that the transport's capacity lets it hold");
      }
    }
  }

  void open_groups(const plan_view& plan, int spins, const std::atomic<bool>& stop) {
    groups_.resize(std::max(groups_.size(), plan.groups.size()));
    for (const instruction& each : plan.instructions) {
      if (!is_collective(each.act)) continue;
      const auto index = static_cast<std::size_t>(each.peer);
      if (groups_[index]) continue;
      const group_info& info = plan.groups[index];
      const std::span<const std::int32_t> members = plan.members_of(info);
      groups_[index] = std::make_unique<loopback_group>(
          each.peer, std::vector<int>(members.begin(), members.end()), info.elements, info.wide,
          spins, stop);
    }
  }

  std::size_t index_of(int from, int to) const {
    return static_cast<std::size_t>(from) * static_cast<std::size_t>(ranks_) +
           static_cast<std::size_t>(to);
  }
  loopback_channel& channel_of(int from, int to) { return *channels_[index_of(from, to)]; }

  int capacity_;
  int ranks_ = 0;
  std::vector<std::unique_ptr<loopback_channel>> channels_;
  std::vector<std::unique_ptr<loopback_group>> groups_;
};

}  // namespace

std::unique_ptr<transport> make_loopback_transport(int capacity) {
  return std::make_unique<loopback_transport>(capacity);
}

}  // namespace stretto::executor
