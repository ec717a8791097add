#include "stretto/executor/cuda/loopback_transport.hpp"

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "copies.hpp"
#include "current_device.hpp"
#include "message_head.hpp"
#include "stretto/executor/cuda/handles.hpp"
#include "stretto/executor/error.hpp"
#include "sum_members.hpp"

namespace stretto::executor {
namespace {

using cuda::check;

//! One side of a message or a collective, as it was issued.
struct side {
  launch at{};
  const operation* what = nullptr;

  cudaStream_t stream() const { return static_cast<cudaStream_t>(at.on->stream(at.stream).native); }
};

message_head head_of(const side& one) {
  return head_of(*one.what, one.at.step);
}

void record(const cuda::owned_event& event, const side& on) {
  check(cudaEventRecord(event.get(), on.stream()), "cudaEventRecord");
}
void wait(const side& waits, const cuda::owned_event& event) {
  check(cudaStreamWaitEvent(waits.stream(), event.get(), cudaEventWaitDefault),
        "cudaStreamWaitEvent");
}

//! The stream on which the rank has all its messages from `peer`; -1: there are several.
int received_on(const plan_view& plan, int peer) {
  int found = -1;
  for (const instruction& each : plan.instructions) {
    if (each.act != action::receive || each.peer != peer) continue;
    if (found >= 0 && found != each.stream) return -1;
    found = each.stream;
  }
  return found;
}
//! Whether the rank does nothing else on the stream than to send to `peer`.
bool only_sends(const plan_view& plan, int stream, int peer) {
  bool any = false;
  for (const instruction& each : plan.instructions) {
    if (each.stream != stream) continue;
    if (each.act != action::send || each.peer != peer) return false;
    any = true;
  }
  return any;
}

class cuda_loopback_transport final : public transport {
 public:
  explicit cuda_loopback_transport(const cuda_loopback_settings& settings) : settings_(settings) {
    if (settings.blocks < 1)
      throw plan_error("a sum or a message on a GPU needs at least one block");
  }

  ~cuda_loopback_transport() override {
    for (rank_state& each : ranks_) {
      std::optional<cuda::current_device> held;
      if (each.gpu >= 0) cuda::make_current(held, each.gpu);
      each.events.clear();
    }
  }

  void record_steps() override { recorded_ = true; }
  void open(std::span<const plan_view> plans, monitor&) override {
    if (plans.empty()) throw plan_error("the GPUs' loopback transport needs at least one plan");
    if (static_cast<int>(plans.size()) != plans.front().ranks)
      throw plan_error("the GPUs' loopback transport joins ranks of one process: " +
                       std::to_string(plans.front().ranks) + " ranks, but " +
                       std::to_string(plans.size()) + " plans are here");
    check(cudaDriverGetVersion(&driver_), "cudaDriverGetVersion");
    plans_.assign(plans.begin(), plans.end());
    ranks_.resize(plans.size());
    for (const plan_view& plan : plans_) {
      groups_.resize(std::max(groups_.size(), plan.groups.size()));
      for (std::size_t at = 0; at < plan.groups.size(); ++at) open_group(at, plan);
      // Here, so that no step makes one.
      for (const instruction& each : plan.instructions) {
        if (each.act == action::send) channels_[{plan.rank, each.peer}] = {};
        if (each.act == action::all_gather)
          groups_[static_cast<std::size_t>(each.peer)].gathers = true;
      }
    }
  }

  void attach(int rank, device& on) override {
    rank_state& mine = ranks_[static_cast<std::size_t>(rank)];
    mine.on = &on;
    mine.gpu = on.ordinal();
    if (mine.gpu < 0)
      throw plan_error("rank " + std::to_string(rank) + " is not on a GPU: its device has none");
    reach_others(rank);
    const cuda::current_device guard(mine.gpu);
    const plan_view& plan = plan_of(rank);
    mine.events.reserve(plan.instructions.size());
    for (const instruction& each : plan.instructions) {
      // Of a collective both are the first member's: that it is there, and that all is done.
      mine.events.push_back(is_collective(each.act) ? pair{cuda::make_event(), cuda::make_event()}
                                                    : pair{});
    }
    for (const auto& [ends, unused] : channels_)
      if (ends.first == rank || ends.second == rank) join_streams(ends.first, ends.second);
  }
  bool needs_one_issuer() const override { return true; }
  bool rendezvous() const override { return true; }

  void send(const launch& at, const operation& what) override {
    message& channel = channels_[{what.rank, what.peer}];
    post(channel.sender, at, what);
    if (channel.receiver.what != nullptr) meet(channel);
  }
  void receive(const launch& at, const operation& what) override {
    message& channel = channels_[{what.peer, what.rank}];
    post(channel.receiver, at, what);
    if (channel.sender.what != nullptr) meet(channel);
  }
  void all_reduce(const launch& at, const operation& what) override { join(at, what, false); }
  void all_gather(const launch& at, const operation& what) override { join(at, what, false); }
  void reduce_scatter(const launch& at, const operation& what) override { join(at, what, true); }

  void abort() noexcept override {}

 private:
  struct pair {
    cuda::owned_event ready;
    cuda::owned_event done;
  };
  struct rank_state {
    device* on = nullptr;      // null: not attached yet
    int gpu = -1;              // negative: the same
    std::vector<pair> events;  // by instruction
  };
  struct message {
    side sender{};
    side receiver{};
  };
  struct group {
    std::vector<std::int32_t> ranks;  // ascending
    std::vector<side> sides;
    std::size_t here = 0;
    std::int64_t elements = 0;
    bool wide = false;
    bool gathers = false;
    bool scatters = false;  // what its members come to, at the moment
  };

  void open_group(std::size_t index, const plan_view& plan) {
    group& mine = groups_[index];
    if (!mine.ranks.empty()) return;
    const group_info& info = plan.groups[index];
    const std::span<const std::int32_t> members = plan.members_of(info);
    if (members.size() > cuda::most_members)
      throw plan_error("group " + std::to_string(index) + " has " + std::to_string(members.size()) +
                       " members; the GPUs' loopback transport sums over " +
                       std::to_string(cuda::most_members) + " at most");
    mine.ranks.assign(members.begin(), members.end());
    std::sort(mine.ranks.begin(), mine.ranks.end());
    mine.sides.resize(mine.ranks.size());
    mine.elements = info.elements;
    mine.wide = info.wide;
  }

  //! Of those that have come so far: who gives another something reaches its memory, where it can.
  void reach_others(int rank) {
    for (const auto& [ends, unused] : channels_)
      if (ends.first == rank || ends.second == rank) reach(ends.first, ends.second);
    for (const group& each : groups_) {
      if (!std::binary_search(each.ranks.begin(), each.ranks.end(), rank)) continue;
      if (each.gathers)
        for (const std::int32_t other : each.ranks) reach(rank, other);
      if (each.elements == 0) continue;
      // The kernel runs on the first member's GPU and touches every member's memory.
      const std::int32_t first = each.ranks.front();
      for (const std::int32_t other : each.ranks)
        if (both_here(first, other) && !cuda::reach(gpu_of(first), gpu_of(other)))
          throw plan_error("ranks " + std::to_string(first) + " and " + std::to_string(other) +
                           " sum, but " + which_cannot(first, other));
    }
  }
  bool both_here(int one, int other) const { return gpu_of(one) >= 0 && gpu_of(other) >= 0; }
  //! For copies, which go by way of the host else, but not in a graph.
  void reach(int one, int other) const {
    if (!both_here(one, other)) return;
    const bool there = cuda::reach(gpu_of(one), gpu_of(other));
    const bool back = cuda::reach(gpu_of(other), gpu_of(one));
    if (recorded_ && !(there && back))
      throw plan_error("ranks " + std::to_string(one) + " and " + std::to_string(other) +
                       " are to copy as part of a graph, but " +
                       (there ? which_cannot(other, one) : which_cannot(one, other)));
  }
  //! When both are here. A stream that only sends to the one, which receives that on one stream, is
  //! given to the latter: its operations begin and end with those there, in their order, so nothing
  //! is ordered that was not. Between streams that stay two, events tell when both are there and
  //! done.
  void join_streams(int sender, int receiver) {
    rank_state& from = ranks_[static_cast<std::size_t>(sender)];
    rank_state& to = ranks_[static_cast<std::size_t>(receiver)];
    if (from.on == nullptr || to.on == nullptr) return;
    const plan_view& sends = plan_of(sender);
    const plan_view& receives = plan_of(receiver);
    const int theirs = received_on(receives, sender);
    std::vector<bool> merged(sends.streams.size());
    for (int stream = 0; stream < from.on->streams(); ++stream)
      merged[static_cast<std::size_t>(stream)] = theirs >= 0 && sender != receiver &&
                                                 only_sends(sends, stream, receiver) &&
                                                 from.on->merge(stream, *to.on, theirs);
    bool apart = false;
    for (std::size_t at = 0; at < sends.instructions.size(); ++at) {
      const instruction& each = sends.instructions[at];
      if (each.act != action::send || each.peer != receiver ||
          merged[static_cast<std::size_t>(each.stream)])
        continue;
      from.events[at].ready = make_event_on(from.gpu);
      apart = true;
    }
    for (std::size_t at = 0; apart && at < receives.instructions.size(); ++at)
      if (receives.instructions[at].act == action::receive &&
          receives.instructions[at].peer == sender)
        to.events[at].done = make_event_on(to.gpu);
  }
  static cuda::owned_event make_event_on(int gpu) {
    const cuda::current_device guard(gpu);
    return cuda::make_event();
  }
  const plan_view& plan_of(int rank) const {
    return *std::ranges::find(plans_, rank, &plan_view::rank);
  }
  std::string which_cannot(int one, int other) const {
    return "GPU " + std::to_string(gpu_of(one)) + " cannot reach the memory of GPU " +
           std::to_string(gpu_of(other));
  }
  int gpu_of(int rank) const { return ranks_[static_cast<std::size_t>(rank)].gpu; }

  static void post(side& to, const launch& at, const operation& what) {
    if (to.what != nullptr)
      throw transport_error(text_of(head_of(what, at.step)) + " is issued before " +
                            text_of(head_of(to)) + " has met its other side");
    to = {at, &what};
  }

  void meet(message& channel) {
    const side from = std::exchange(channel.sender, {});
    const side to = std::exchange(channel.receiver, {});
    must_meet(from.what->rank, to.what->rank, head_of(from), head_of(to));
    const bool merged = from.stream() == to.stream();
    const cuda::owned_event& ready = events_of(from).ready;
    const cuda::owned_event& done = events_of(to).done;
    if (!merged) {
      record(ready, from);
      wait(to, ready);
    }
    copy_bytes(from, to, 0, from.what->bytes, to);
    if (merged) return;
    record(done, to);
    wait(from, done);
  }

  //! From `first` on, to the same place.
  void copy_bytes(const side& from, const side& to, std::int64_t first, std::int64_t count,
                  const side& on) {
    cuda::copy({to.what->data + first, rank_of(to).gpu},
               {from.what->data + first, rank_of(from).gpu}, count, {on.stream(), rank_of(on).gpu},
               settings_.blocks);
  }
  //! Each member's part of what they gather to all others, on the first one's stream.
  void copy_parts(const std::vector<side>& sides) {
    const std::int64_t part = sides.front().what->bytes / static_cast<std::int64_t>(sides.size());
    for (std::size_t own = 0; own < sides.size(); ++own)
      for (std::size_t other = 0; other < sides.size(); ++other)
        if (other != own)
          copy_bytes(sides[own], sides[other], static_cast<std::int64_t>(own) * part, part,
                     sides.front());
  }

  //! @param scatters  of a sum each gets its part; all members say so, or none (validate)
  void join(const launch& at, const operation& what, bool scatters) {
    group& mine = groups_[static_cast<std::size_t>(what.peer)];
    mine.scatters = scatters;
    const auto found = std::lower_bound(mine.ranks.begin(), mine.ranks.end(), what.rank);
    post(mine.sides[static_cast<std::size_t>(found - mine.ranks.begin())], at, what);
    if (++mine.here == mine.ranks.size()) join_all(mine, what.peer);
  }

  void join_all(group& mine, int index) {
    mine.here = 0;
    std::vector<side>& sides = mine.sides;
    const side first = sides.front();
    const std::int64_t size = mine.wide ? 8 : 4;
    const bool gathers = first.what->what.kind == job_kind::all_gather;
    for (const side& each : sides) {
      must_meet(index, head_of(first), head_of(each));
      if (!gathers) must_hold(index, head_of(each), mine.elements * size);
    }
    for (std::size_t at = 1; at < sides.size(); ++at) {
      record(events_of(sides[at]).ready, sides[at]);
      wait(first, events_of(sides[at]).ready);
    }
    if (gathers)
      copy_parts(sides);
    else if (mine.elements > 0)
      add_up(mine, first);
    const cuda::owned_event& done = events_of(first).done;
    record(done, first);
    for (std::size_t at = 1; at < sides.size(); ++at) wait(sides[at], done);
    std::fill(sides.begin(), sides.end(), side{});
  }

  void add_up(const group& mine, const side& first) {
    cuda::member_list members{};
    members.count = static_cast<int>(mine.sides.size());
    for (std::size_t at = 0; at < mine.sides.size(); ++at)
      members.data[at] = mine.sides[at].what->data;
    auto elements = static_cast<long long>(mine.elements);
    auto part = mine.scatters ? elements / members.count : 0LL;
    void* arguments[] = {&members, &elements, &part};
    cudaLaunchConfig_t config{};
    config.gridDim = dim3(static_cast<unsigned>(settings_.blocks));
    config.blockDim = dim3(512);
    config.stream = first.stream();
    cudaLaunchAttribute started{};
    if (tells_start(first)) {
      started.id = cudaLaunchAttributeLaunchCompletionEvent;
      started.val.launchCompletionEvent.event =
          static_cast<cudaEvent_t>(first.at.on->native_event(first.at.started));
      config.attrs = &started;
      config.numAttrs = 1;
    }
    check(cudaSetDevice(rank_of(first).gpu), "cudaSetDevice");  // as a stage's launches do
    check(cudaLaunchKernelExC(&config,
                              mine.wide ? reinterpret_cast<const void*>(stretto_sum_doubles)
                                        : reinterpret_cast<const void*>(stretto_sum_floats),
                              arguments),
          "cudaLaunchKernelExC");
  }

  //! Whether the sum's kernel records its start: not with a driver before 12.3, which does not know
  //! how, nor into a graph with one before 12.9, with which NCCL does not either. The event then
  //! stays as it was recorded before: where all is done that the sum waits for.
  bool tells_start(const side& first) const {
    if (first.at.started < 0) return false;
    return driver_ >= 12090 || (driver_ >= 12030 && !cuda::is_captured(first.stream()));
  }

  rank_state& rank_of(const side& one) { return ranks_[static_cast<std::size_t>(one.what->rank)]; }
  pair& events_of(const side& one) {
    return rank_of(one).events[static_cast<std::size_t>(one.what->instruction)];
  }

  const cuda_loopback_settings settings_;
  bool recorded_ = false;  // steps are
  int driver_ = 0;         // the newest CUDA that it serves
  std::vector<plan_view> plans_;
  std::vector<rank_state> ranks_;
  std::map<std::pair<int, int>, message> channels_;
  std::vector<group> groups_;
};

}  // namespace

std::unique_ptr<transport> make_cuda_loopback_transport(const cuda_loopback_settings& settings) {
  return std::make_unique<cuda_loopback_transport>(settings);
}

}  // namespace stretto::executor
