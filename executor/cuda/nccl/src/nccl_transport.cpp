#include "stretto/executor/cuda/nccl_transport.hpp"

#include <nccl.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <map>
#include <set>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "message_head.hpp"
#include "nccl_comm.hpp"
#include "nccl_ending.hpp"
#include "plan_ends.hpp"
#include "stretto/executor/agreement.hpp"
#include "stretto/executor/cuda/handles.hpp"
#include "stretto/executor/error.hpp"

namespace stretto::executor {
namespace {

//! Which communicator: a channel from one rank to another, or a group (and 0). Their order is that
//! in which every process goes through them.
struct comm_key {
  bool group = false;
  int first = 0;
  int second = 0;
  auto operator<=>(const comm_key&) const = default;
};

std::string version_text(int code) {
  return std::to_string(code / 10000) + '.' + std::to_string(code / 100 % 100) + '.' +
         std::to_string(code % 100);
}

time_point after(std::chrono::nanoseconds length) {
  const time_point now = std::chrono::steady_clock::now();
  return length > time_point::max() - now ? time_point::max() : now + length;
}

class nccl_transport final : public transport {
 public:
  nccl_transport(bootstrap& between, const nccl_settings& settings)
      : between_(between), settings_(settings), ending_(settings.patience) {
    if (settings.message_blocks < 1 || settings.sum_blocks < 1 || settings.message_blocks > 32 ||
        settings.sum_blocks > 32)
      throw plan_error("NCCL's kernels have from 1 to 32 blocks");
    if (settings.cluster < 0 || settings.cluster > 8)
      throw plan_error("NCCL's clusters have from 0 to 8 blocks");
    const auto zero = std::chrono::nanoseconds::zero();
    if (settings.opening <= zero || settings.patience < zero)
      throw plan_error("NCCL's deadlines must be positive");
  }

  //! Of what was opened and never used.
  ~nccl_transport() override { abort(); }

  void record_steps() override { recorded_ = true; }
  void open(std::span<const plan_view> plans, monitor& watch) override {
    plans_.assign(plans.begin(), plans.end());
    watch_ = &watch;
    opened_until_ = after(settings_.opening);
    check_launches();
    int version = 0;
    ncclGetVersion(&version);
    try {
      const component libraries[] = {
          {"NCCL", version_text(version)},
          {"CUDA", std::to_string(CUDART_VERSION)},
          {"NCCL registration of", settings_.registered ? "arenas" : "nothing"},
          {"steps", how_steps_run()}};
      agree(plans, libraries, between_, opened_until_);
      if (recorded_ && plans_.size() > 1)
        throw plan_error(
            "a graph with NCCL's operations needs a process for each GPU: those that one process "
            "launches on " + std::to_string(plans_.size()) + " may wait for one another");
      for (const plan_view& plan : plans) note_rank(plan);
      exchange_ids();
    } catch (const bootstrap_error& wrong) {
      throw plan_error(std::string("the NCCL transport cannot be opened: ") + wrong.what());
    } catch (const transport_error& wrong) {
      throw plan_error(std::string("the NCCL transport cannot be opened: ") + wrong.what());
    }
  }

  void attach(int rank, device& on) override {
    check_room(rank, on);
    on_[rank] = &on;
    if (on_.size() < plans_.size()) return;
    try {
      connect();
      warm_up();
    } catch (const transport_error& wrong) {
      abort();
      throw plan_error(std::string("the NCCL transport cannot be opened: ") + wrong.what());
    }
  }

  void send(const launch& at, const operation& what) override {
    nccl_comm& comm = *sends_.at({what.rank, what.peer});
    note(comm, at);
    start_send(comm, what, stream_of(at));
    finish(comm, "ncclSend");
  }
  void receive(const launch& at, const operation& what) override {
    nccl_comm& comm = *receives_.at({what.peer, what.rank});
    note(comm, at);
    start_receive(comm, what, stream_of(at));
    finish(comm, "ncclRecv");
  }
  void all_reduce(const launch& at, const operation& what) override {
    const group_side& side = groups_.at({what.peer, what.rank});
    note(*side.comm, at);
    start_sum(side, what, stream_of(at), at.step);
    finish(*side.comm, "ncclAllReduce");
  }

  bool polled() const override { return true; }
  void poll() noexcept override {
    if (watch_->stopped()) return;
    look_at_others();
    for (auto& [key, held] : held_)
      for (const auto& each : held) {
        try {
          static_cast<void>(each->ready());
        } catch (...) {
          const int rank = each->where().holder;
          watch_->fail(rank, each->first_missing(*on_.at(rank)), std::current_exception());
          return;
        }
      }
  }

  void close() noexcept override {
    for (auto& [key, held] : held_)
      for (const auto& each : held) each->deregister();
    ending_.finish(release(any));
  }
  void abort() noexcept override {
    const auto is_calling = [](const nccl_comm& each) { return each.is_calling(); };
    const std::vector<ncclComm_t> calling = release(is_calling);
    std::vector<ncclComm_t> all = release(any);
    all.insert(all.end(), calling.begin(), calling.end());
    ending_.abort(std::move(all), static_cast<std::ptrdiff_t>(calling.size()), captured_);
  }

 private:
  struct group_side {
    nccl_comm* comm = nullptr;
    std::int64_t elements = 0;
    bool wide = false;
  };

  static bool any(const nccl_comm&) { return true; }

  static cudaStream_t stream_of(const launch& at) {
    return static_cast<cudaStream_t>(at.on->stream(at.stream).native);
  }

  void note(nccl_comm& comm, const launch& at) {
    comm.note(at);
    if (recorded_ && !captured_) captured_ = cuda::is_captured(stream_of(at));
  }
  static void start_send(nccl_comm& comm, const operation& what, cudaStream_t on) {
    comm.must(
        ncclSend(what.data, static_cast<std::size_t>(what.bytes), ncclInt8, 1, comm.call(), on),
        "ncclSend");
  }
  static void start_receive(nccl_comm& comm, const operation& what, cudaStream_t on) {
    comm.must(
        ncclRecv(what.data, static_cast<std::size_t>(what.bytes), ncclInt8, 0, comm.call(), on),
        "ncclRecv");
  }
  static void start_sum(const group_side& side, const operation& what, cudaStream_t on,
                        std::int64_t step) {
    must_hold(what.peer, head_of(what, step), side.elements * (side.wide ? 8 : 4));
    side.comm->must(
        ncclAllReduce(what.data, what.data, static_cast<std::size_t>(side.elements),
                      side.wide ? ncclDouble : ncclFloat, ncclSum, side.comm->call(), on),
        "ncclAllReduce");
  }
  //! Until it is done, nothing else may be put on the stream.
  void finish(nccl_comm& comm, const char* call) {
    comm.settle(call, watch_->deadline(), [this] {
      look_at_others();
      return watch_->stopped();
    });
  }
  //! As long as it takes while a transport is opened.
  void finish_opening(nccl_comm& comm, const char* call) {
    comm.settle(call, opened_until_, [this] { return must_be_there(), false; });
  }

  void look_at_others() noexcept {
    const std::string text = lost();
    if (!text.empty())
      watch_->fail(plans_.front().rank, -1, std::make_exception_ptr(transport_error(text)));
  }
  void must_be_there() {
    const std::string text = lost();
    if (!text.empty()) throw transport_error(text);
  }
  //! What is known of a process that has gone, looked for now and then: NCCL alone does not always
  //! notice.
  std::string lost() noexcept {
    constexpr auto pause = std::chrono::milliseconds(20);
    const time_point now = std::chrono::steady_clock::now();
    if (now < looked_.load(std::memory_order_relaxed) + pause) return {};
    looked_.store(now, std::memory_order_relaxed);
    return between_.failure();
  }

  //! What one side of a message records, the other must record, too.
  std::string how_steps_run() const {
    if (!recorded_) return "issued one by one";
    return plans_.size() > 1 ? "recorded as a graph on several GPUs" : "recorded as a graph";
  }

  //! Launches that wait for others may wait for a kernel that waits for what they would launch.
  void check_launches() const {
    const char* const blocking = std::getenv("CUDA_LAUNCH_BLOCKING");
    if (blocking != nullptr && std::strcmp(blocking, "0") != 0)
      throw plan_error("CUDA_LAUNCH_BLOCKING is set, and NCCL's kernels wait for one another");
    const char* const loading = std::getenv("CUDA_MODULE_LOADING");
    if (settings_.kernels_loaded || (loading != nullptr && std::strcmp(loading, "EAGER") == 0))
      return;
    throw plan_error(
        "a kernel that is loaded at its first launch may wait for NCCL's, which wait for other "
        "ranks: start the process with CUDA_MODULE_LOADING=EAGER, or let every kernel of the "
        "stages run once and say so (nccl_settings::kernels_loaded)");
  }

  //! The communicators that the rank needs, and how many operations of a step each carries.
  void note_rank(const plan_view& plan) {
    for (const bool sends : {true, false})
      for (const auto& [name, list] : channels_of(plan, sends ? action::send : action::receive))
        wanted_[{false, name.first, name.second}].push_back(
            {.name = "pp:" + std::to_string(name.first) + "->" + std::to_string(name.second),
             .subject =
                 "channel " + std::to_string(name.first) + " -> " + std::to_string(name.second),
             .holder = plan.rank,
             .rank = sends ? 0 : 1,
             .size = 2,
             .blocks = settings_.message_blocks,
             .cluster = settings_.cluster,
             .operations = static_cast<int>(list.size()),
             .first = list.front().instruction});
    for (const int group : groups_of(plan)) {
      group_part part = group_of(plan, group);
      std::sort(part.members.begin(), part.members.end());
      const auto place = std::find(part.members.begin(), part.members.end(), plan.rank);
      wanted_[{true, group, part.members.front()}].push_back(
          {.name = "group:" + std::to_string(group),
           .subject = "group " + std::to_string(group),
           .holder = plan.rank,
           .rank = static_cast<int>(place - part.members.begin()),
           .size = static_cast<int>(part.members.size()),
           .blocks = settings_.sum_blocks,
           .cluster = settings_.cluster,
           .operations = static_cast<int>(part.instructions.size()),
           .first = part.instructions.front()});
    }
  }

  //! Whoever holds a communicator's first rank makes its id.
  void exchange_ids() {
    std::string mine;
    for (const auto& [key, places] : wanted_)
      for (const nccl_comm::place& each : places) {
        if (each.rank != 0) continue;
        ncclUniqueId id;
        const ncclResult_t code = ncclGetUniqueId(&id);
        if (code != ncclSuccess)
          throw transport_error(each.subject + ": " + nccl_text(code, "ncclGetUniqueId", nullptr));
        mine.append(reinterpret_cast<const char*>(&key), sizeof key);
        mine.append(id.internal, sizeof id.internal);
      }
    for (const std::string& all : between_.all_gather("nccl ids", mine, opened_until_))
      for (std::size_t at = 0; at + sizeof(comm_key) + sizeof(ncclUniqueId) <= all.size();
           at += sizeof(comm_key) + sizeof(ncclUniqueId)) {
        comm_key key;
        std::memcpy(&key, all.data() + at, sizeof key);
        std::memcpy(ids_[key].internal, all.data() + at + sizeof key, sizeof(ncclUniqueId));
      }
  }

  const plan_view& plan_of(int rank) const {
    return *std::find_if(plans_.begin(), plans_.end(),
                         [rank](const plan_view& each) { return each.rank == rank; });
  }

  //! Kernels that wait for their peers hold multiprocessors: were they to take all, what the peers
  //! wait for could not run.
  void check_room(int rank, const device& on) const {
    if (on.stream(0).native == nullptr)
      throw plan_error("the NCCL transport needs a GPU for rank " + std::to_string(rank));
    // NCCL rounds up what messages get; sums get what they are given.
    const int message =
        static_cast<int>(std::bit_ceil(static_cast<unsigned>(settings_.message_blocks)));
    std::map<int, int> blocks;  // by stream, which runs one after the other
    for (const instruction& each : plan_of(rank).instructions) {
      int& most = blocks[each.stream];
      if (each.act == action::send || each.act == action::receive)
        most = std::max(most, message);
      if (each.act == action::all_reduce) most = std::max(most, settings_.sum_blocks);
    }
    int sum = 1;
    for (const auto& [stream, most] : blocks) sum += most;
    if (on.multiprocessors() > 0 && sum > on.multiprocessors())
      throw plan_error("rank " + std::to_string(rank) + ": communication that waits may take " +
                       std::to_string(sum - 1) + " multiprocessors, and the GPU has " +
                       std::to_string(on.multiprocessors()));
  }

  static void make_current(const device& on) {
    cuda::check(cudaSetDevice(on.ordinal()), "cudaSetDevice");
  }

  void connect() {
    for (const auto& [key, places] : wanted_)
      for (const nccl_comm::place& each : places) {
        make_current(*on_.at(each.holder));
        const auto id = ids_.find(key);
        if (id == ids_.end()) throw transport_error(each.subject + ": no process has made its id");
        held_[key].push_back(std::make_unique<nccl_comm>(each, id->second));
        nccl_comm& made = *held_[key].back();
        made.begin();
        if (!key.group) {
          (each.rank == 0 ? sends_ : receives_)[{key.first, key.second}] = &made;
          continue;
        }
        const group_info& info = plan_of(each.holder).groups[static_cast<std::size_t>(key.first)];
        groups_[{key.first, each.holder}] = {&made, info.elements, info.wide};
      }
    for (const auto& [key, held] : held_)
      for (const auto& each : held) {
        finish_opening(*each, "connecting");
        if (!settings_.registered) continue;
        each->register_arena(on_.at(each->where().holder)->arena());
        finish_opening(*each, "ncclCommRegister");
      }
  }

  //! The first operation of every communicator, of its own size and where it will lie, because NCCL
  //! connects what an operation takes when it first meets one such. By all processes in one order,
  //! and each alone: connecting allocates, which may wait for a kernel that waits for a peer.
  //! Arenas are zero before the first step, and remain so; nothing is made here that would have to
  //! be freed while a peer that has died is waited for.
  void warm_up() {
    std::map<int, cuda::owned_event> done;
    for (const auto& [rank, on] : on_) {
      make_current(*on);
      done[rank] = cuda::make_event();
    }
    for (const auto& [key, held] : held_) {
      // Where one thread holds both ends, neither call may wait for the other.
      held.front()->must(ncclGroupStart(), "ncclGroupStart");
      for (const auto& each : held) start_first(*each);
      held.front()->must(ncclGroupEnd(), "ncclGroupEnd");
      for (const auto& each : held) finish_opening(*each, "the first use");
      for (const auto& each : held) {
        const int rank = each->where().holder;
        make_current(*on_.at(rank));
        cuda::check(cudaEventRecord(done.at(rank).get(), first_stream(rank)), "cudaEventRecord");
      }
      for (const auto& each : held) wait_for(*each, done.at(each->where().holder).get());
    }
  }

  cudaStream_t first_stream(int rank) const {
    return static_cast<cudaStream_t>(on_.at(rank)->stream(0).native);
  }

  void start_first(nccl_comm& comm) {
    const nccl_comm::place& at = comm.where();
    const plan_view& plan = plan_of(at.holder);
    const instruction& from = plan.instructions[static_cast<std::size_t>(at.first)];
    const byte_range part = plan.range_of(from.first_use);
    const buffer_use& use = plan.uses[static_cast<std::size_t>(from.first_use)];
    const std::int64_t offset = plan.buffers[static_cast<std::size_t>(use.buffer)].offset;
    std::byte* const data = on_.at(at.holder)->arena().data() + offset + part.first;
    const operation first{at.holder, from.peer, at.first, from.what, data, part.bytes};
    const cudaStream_t stream = first_stream(at.holder);
    if (from.act == action::send)
      start_send(comm, first, stream);
    else if (from.act == action::receive)
      start_receive(comm, first, stream);
    else
      start_sum(groups_.at({from.peer, at.holder}), first, stream, 0);
  }

  //! Until the GPU has done the communicator's first operation.
  void wait_for(const nccl_comm& comm, cudaEvent_t done) {
    while (!cuda::is_over(cudaEventQuery(done), "cudaEventQuery")) {
      static_cast<void>(comm.ready());
      must_be_there();
      if (std::chrono::steady_clock::now() >= opened_until_)
        throw transport_error(comm.where().subject + ": the first use does not end");
    }
  }

  template <class Which>
  std::vector<ncclComm_t> release(Which which) noexcept {
    std::vector<ncclComm_t> given;
    for (auto& [key, held] : held_)
      for (auto& each : held)
        if (which(*each))
          if (ncclComm_t const comm = each->release(); comm != nullptr) given.push_back(comm);
    return given;
  }

  bootstrap& between_;
  const nccl_settings settings_;
  bool recorded_ = false;
  bool captured_ = false;  // they are part of a graph
  std::vector<plan_view> plans_;
  monitor* watch_ = nullptr;
  time_point opened_until_{};
  std::atomic<time_point> looked_{time_point{}};  // for others
  std::map<int, device*> on_;
  std::map<comm_key, std::vector<nccl_comm::place>> wanted_;
  std::map<comm_key, ncclUniqueId> ids_;
  std::map<comm_key, std::vector<std::unique_ptr<nccl_comm>>> held_;  // one for each rank here
  std::map<std::pair<int, int>, nccl_comm*> sends_;
  std::map<std::pair<int, int>, nccl_comm*> receives_;
  std::map<std::pair<int, int>, group_side> groups_;  // by group and rank
  nccl_ending ending_;
};

}  // namespace

arena_memory nccl_memory() {
  return {[](std::size_t bytes) {
            void* made = nullptr;
            const ncclResult_t code = ncclMemAlloc(&made, bytes);
            if (code != ncclSuccess)
              throw transport_error("an arena of " + std::to_string(bytes) +
                                    " bytes: " + nccl_text(code, "ncclMemAlloc", nullptr));
            return made;
          },
          [](void* memory) { static_cast<void>(ncclMemFree(memory)); }};
}

std::unique_ptr<transport> make_nccl_transport(bootstrap& between, const nccl_settings& settings) {
  return std::make_unique<nccl_transport>(between, settings);
}

}  // namespace stretto::executor
