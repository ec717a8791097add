#include "stretto/executor/cuda/nccl_transport.hpp"

#include <nccl.h>

#include <exception>
#include <map>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "after.hpp"
#include "current_device.hpp"
#include "lookout.hpp"
#include "lost_peers.hpp"
#include "nccl_comm.hpp"
#include "nccl_ending.hpp"
#include "nccl_environment.hpp"
#include "nccl_links.hpp"
#include "nccl_opening.hpp"
#include "stretto/executor/agreement.hpp"
#include "stretto/executor/cuda/handles.hpp"
#include "stretto/executor/error.hpp"

namespace stretto::executor {
namespace {

class nccl_transport final : public transport {
 public:
  nccl_transport(bootstrap& between, const nccl_settings& settings)
      : between_(between),
        settings_(settings),
        opening_(between, settings),
        lost_(between),
        ending_(settings.patience) {
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
  ~nccl_transport() override {
    lookout_.reset();
    abort();
  }

  void record_steps() override { recorded_ = true; }
  void open(std::span<const plan_view> plans, monitor& watch) override {
    plans_.assign(plans.begin(), plans.end());
    watch_ = &watch;
    const time_point until = after(settings_.opening);
    check_environment(settings_.kernels_loaded, static_cast<int>(plans_.size()));
    try {
      const component libraries[] = {
          {"NCCL", nccl_version()},
          {"CUDA", std::to_string(CUDART_VERSION)},
          {"NCCL registration of", settings_.registered ? "arenas" : "nothing"},
          {"steps", how_steps_run()}};
      agree(plans, libraries, between_, until);
      if (recorded_ && plans_.size() > 1)
        throw plan_error(
            "a graph with NCCL's operations needs a process for each GPU: those that one process "
            "launches on " +
            std::to_string(plans_.size()) + " may wait for one another");
      opening_.begin(plans, until);
    } catch (const bootstrap_error& wrong) {
      throw plan_error(std::string("the NCCL transport cannot be opened: ") + wrong.what());
    } catch (const transport_error& wrong) {
      throw plan_error(std::string("the NCCL transport cannot be opened: ") + wrong.what());
    }
  }

  void attach(int rank, device& on) override {
    opening_.check_room(rank, on);
    on_[rank] = &on;
    gpu_ = on.ordinal();
    const cuda::current_device guard(on.ordinal());  // all others are made current meanwhile
    if (on_.size() < plans_.size()) return;
    try {
      opening_.finish(on_, links_, after(settings_.opening));
      lookout_.emplace([this] { look_for_issuer(); });
    } catch (const transport_error& wrong) {
      abort();
      throw plan_error(std::string("the NCCL transport cannot be opened: ") + wrong.what());
    } catch (...) {
      abort();  // or devices would wait for what is under way on them
      throw;
    }
  }

  void send(const launch& at, const operation& what) override {
    call(links_.of_send(what), at, "ncclSend", [&](cudaStream_t on) { links_.send(what, on); });
  }
  void receive(const launch& at, const operation& what) override {
    call(links_.of_receive(what), at, "ncclRecv",
         [&](cudaStream_t on) { links_.receive(what, on); });
  }
  void all_reduce(const launch& at, const operation& what) override {
    call(links_.of_group(what), at, "ncclAllReduce",
         [&](cudaStream_t on) { links_.sum(what, on, at.step); });
  }
  void all_gather(const launch& at, const operation& what) override {
    call(links_.of_group(what), at, "ncclAllGather",
         [&](cudaStream_t on) { links_.gather(what, on); });
  }
  void reduce_scatter(const launch& at, const operation& what) override {
    call(links_.of_group(what), at, "ncclReduceScatter",
         [&](cudaStream_t on) { links_.scatter(what, on, at.step); });
  }

  bool polled() const override { return true; }
  //! NCCL is asked of a communicator by one thread at a time: by who is in a call of his own.
  void poll() noexcept override {
    if (lookout_) lookout_->heard();
    if (watch_->stopped()) return;
    const std::unique_lock no_calls(calling_, std::try_to_lock);
    no_calls ? look() : look_at_others();
  }
  void rest() noexcept override {
    if (lookout_) lookout_->rest();
  }

  void tell(std::string_view why) noexcept override { lost_.tell(why); }
  void close() noexcept override {
    std::optional<cuda::current_device> current;
    if (!on_.empty()) cuda::make_current(current, on_.begin()->second->ordinal());
    for (const auto& [key, held] : links_.all())
      for (const auto& each : held) each->deregister();
    ending_.finish(links_.release(any), gpu_);
  }
  //! Who issues in a thread of its own leaves NCCL's call first, as it does soon once the step has
  //! been stopped; what holds it up for longer is ended with the rest.
  void abort() noexcept override {
    std::unique_lock no_calls(calling_, std::defer_lock);
    const time_point limit = after(std::chrono::seconds(1));
    while (!no_calls.try_lock() && std::chrono::steady_clock::now() < limit)
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    end();
  }

 private:
  static bool any(const nccl_comm&) { return true; }

  void end() noexcept {
    const std::lock_guard lock(ending_once_);
    const auto is_calling = [](const nccl_comm& each) { return each.is_calling(); };
    const std::vector<ncclComm_t> calling = links_.release(is_calling);
    std::vector<ncclComm_t> all = links_.release(any);
    all.insert(all.end(), calling.begin(), calling.end());
    ending_.abort(std::move(all), static_cast<std::ptrdiff_t>(calling.size()), captured_, gpu_);
  }

  static cudaStream_t stream_of(const launch& at) {
    return static_cast<cudaStream_t>(at.on->stream(at.stream).native);
  }

  template <class Start>
  void call(nccl_comm& comm, const launch& at, const char* name, const Start& start) {
    const std::shared_lock lock(calling_);
    lookout_->heard();
    if (watch_->stopped()) return;
    const cudaStream_t on = stream_of(at);
    comm.note(at);
    if (recorded_ && !captured_) captured_ = cuda::is_captured(on);
    start(on);
    // Until it is done, nothing else may be put on the stream.
    comm.settle(name, watch_->deadline(), [this] {
      look_at_others();
      return watch_->stopped();
    });
    lookout_->heard();
  }

  //! Whether what is under way goes on as it should.
  void look() noexcept {
    if (watch_->stopped()) return;
    look_at_others();
    for (const auto& [key, held] : links_.all())
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
  void look_at_others() noexcept {
    const std::string text = lost_.text();
    if (!text.empty()) fail(transport_error(text));
  }
  template <class Error>
  void fail(const Error& what) noexcept {
    watch_->fail(plans_.front().rank, -1, std::make_exception_ptr(what));
  }
  //! A launch holds up the issuer, or, beside another's, who polls: they would see none of it. What
  //! is under way is ended here, and so makes room.
  void look_for_issuer() noexcept {
    const std::unique_lock lock(calling_, std::try_to_lock);
    if (!lock || watch_->stopped()) return;  // in a call it looks itself
    look();
    // Who is not held up has time to say more of it.
    constexpr auto first_say = std::chrono::milliseconds(200);
    if (!watch_->stopped() && std::chrono::steady_clock::now() - first_say >= watch_->deadline())
      fail(late_error(
          "the step has not ended in time, and who issues it is held up: by a stage that does not "
          "return, or by a launch that waits for room on a GPU's stream"));
    if (watch_->stopped()) end();
  }

  //! What one side of a message records, the other must record, too.
  std::string how_steps_run() const {
    if (!recorded_) return "issued one by one";
    return plans_.size() > 1 ? "recorded as a graph on several GPUs" : "recorded as a graph";
  }

  bootstrap& between_;
  const nccl_settings settings_;
  bool recorded_ = false;
  bool captured_ = false;  // they are part of a graph
  std::vector<plan_view> plans_;
  monitor* watch_ = nullptr;
  std::map<int, device*> on_;
  int gpu_ = -1;  // one that is the process's
  nccl_opening opening_;
  lost_peers lost_;
  nccl_links links_;
  nccl_ending ending_;
  std::shared_mutex calling_;  // by issuers
  std::mutex ending_once_;
  std::optional<lookout> lookout_;  // last: its thread uses all others
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
