#include "stretto/executor/cuda/device.hpp"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>

#include "current_device.hpp"
#include "issue_ranges.hpp"
#include "progress_events.hpp"
#include "progress_words.hpp"
#include "step_clock.hpp"
#include "stretto/executor/cuda/handles.hpp"
#include "stretto/executor/error.hpp"

namespace stretto::executor {
namespace {

using cuda::check;
using cuda::is_over;

class cuda_device final : public device {
 public:
  cuda_device(const plan_view& plan, const cuda_settings& settings, monitor& watch)
      : plan_(plan), settings_(settings), watch_(watch), on_(settings.device), shown_(plan) {
    check(
        cudaDeviceGetAttribute(&multiprocessors_, cudaDevAttrMultiProcessorCount, settings_.device),
        "cudaDeviceGetAttribute");
    make_streams();
    for (std::int32_t made = 0; made < plan_.events; ++made) events_.push_back(cuda::make_event());
    recorded_.assign(events_.size(), -1);
    find_starts();
    end_ = cuda::make_event();
    progress_.emplace(plan_, events_);
    cuda::owned_stream spare;
    const cudaStream_t idle = idle_stream(spare);
    if (settings_.timing) clock_.emplace(plan_.instructions.size(), idle);
    make_arena();
    host_memory_ = cuda::make_pinned_memory(static_cast<std::size_t>(plan_.host_bytes));
    clear(idle);
    on_.reset();
  }

  ~cuda_device() override {
    cuda::make_current(on_, settings_.device);
    if (!abandoned_ && join(std::chrono::steady_clock::now() + settings_.patience) > 0) abandon();
  }

  void enqueue(int /*stream*/, const command& work) override {
    make_current();
    // What was left behind before is none of the stage's.
    static_cast<void>(cudaGetLastError());
    work.call(work);
    // A kernel that could not be launched leaves an error behind, and returns nothing. So does a
    // question of the stage's own, such as a pool's for what is done with, to which the answer is
    // no.
    if (const cudaError_t left = cudaGetLastError(); left != cudaErrorNotReady)
      check(left, "a launch");
  }
  void record(int stream, int event, std::int64_t step) override {
    cuda::choose_once(settings_.device);
    check(cudaEventRecord(event_at(event), native(stream)), "cudaEventRecord");
    recorded_[static_cast<std::size_t>(event)] = step;
    if (!capturing_) progress_->recorded(event, step);
  }
  void wait(int stream, int event, std::int64_t step) override {
    // The host has seen earlier steps end.
    if (step <= ended_.load(std::memory_order_acquire)) return;
    cuda::choose_once(settings_.device);
    // CUDA would take a wait for an event that was not recorded for one that is over.
    if (recorded_[static_cast<std::size_t>(event)] < step)
      throw std::logic_error("event " + std::to_string(event) + " is waited for in step " +
                             std::to_string(step) + " before it was recorded");
    check(cudaStreamWaitEvent(native(stream), event_at(event), cudaEventWaitDefault),
          "cudaStreamWaitEvent");
    // In a graph only kernels may come behind the start of one, and here anything may.
    if (capturing_ && tells_start_[static_cast<std::size_t>(event)]) {
      make_current();
      cuda::note_progress(nullptr, 0, native(stream));
    }
  }
  void copy_to_host(int stream, const copy& work) override {
    move(stream, work, cudaMemcpyDeviceToHost);
  }
  void copy_from_host(int stream, const copy& work) override {
    move(stream, work, cudaMemcpyHostToDevice);
  }
  void poison(int stream, std::span<std::byte> bytes, std::int64_t) override {
    // A graph's nodes set memory of a GPU.
    if (capturing_ && is_of_host(bytes)) return;
    make_current();
    check(cudaMemsetAsync(bytes.data(), poison_byte, bytes.size(), native(stream)),
          "cudaMemsetAsync");
  }
  void submit() override {}

  bool marked() const override { return true; }
  bool capturable() const override { return true; }
  void capture(bool under_way) override { capturing_ = under_way; }
  void follow_replays() override {
    const cuda::current_device guard(settings_.device);
    words_.emplace(streams_.size(), streams_.front());
  }
  void replay() override {
    at_rest_.store(false, std::memory_order_relaxed);
    if (!words_) return;
    words_->reset();
    progress_->follow(*words_);
  }
  void replayed() override { at_rest_.store(true, std::memory_order_relaxed); }
  void begin(int stream, const mark& what) override {
    shown_.begin(what.instruction);
    if (capturing_) return;
    at_rest_.store(false, std::memory_order_relaxed);
    cuda::choose_once(settings_.device);
    progress_->begin(stream, what);
    if (what.stamp != nullptr) clock_->begin(native(stream), what);
  }
  void end(int stream, const mark& what) override {
    shown_.end(what.instruction);
    if (capturing_) {
      note_recorded(stream, what.step);
      return;
    }
    if (what.stamp != nullptr) clock_->end(native(stream), what);
    progress_->end(stream, native(stream), what);
  }
  void end_step(int stream, std::int64_t step, monitor&) override {
    if (capturing_) return;
    check(cudaEventRecord(end_.get(), native(stream)), "cudaEventRecord");
    ending_.store(step, std::memory_order_release);
  }
  bool polled() const override { return true; }
  void poll() noexcept override {
    if (failed_) return;
    try {
      cuda::choose_once(settings_.device);
      const std::int64_t step = ending_.load(std::memory_order_acquire);
      const bool to_end = step != ended_.load(std::memory_order_relaxed);
      // Of a step that is over nobody asks how far it is.
      if (!to_end || !is_over(cudaEventQuery(end_.get()), "cudaEventQuery")) {
        progress_->look();
        return;
      }
      if (clock_) clock_->resolve();
      progress_->step_ended(step);
      ended_.store(step, std::memory_order_release);
      at_rest_.store(true, std::memory_order_relaxed);
      watch_.rank_ended();
    } catch (...) {
      failed_ = true;
      watch_.fail(plan_.rank, progress_->first_missing(), std::current_exception());
    }
  }

  std::span<std::byte> arena() override {
    return {static_cast<std::byte*>(arena_.get()), static_cast<std::size_t>(plan_.arena_bytes)};
  }
  std::span<std::byte> host_memory() override {
    return {static_cast<std::byte*>(host_memory_.get()),
            static_cast<std::size_t>(plan_.host_bytes)};
  }
  stream_handle stream(int index) const override {
    return {index, plan_.streams[static_cast<std::size_t>(index)].priority, native(index)};
  }
  bool merge(int stream, const device& with, int its) override {
    if (with.ordinal() != settings_.device || is_lent(stream)) return false;
    streams_[static_cast<std::size_t>(stream)] =
        static_cast<cudaStream_t>(with.stream(its).native);
    return true;
  }
  void* native_event(int event) const override { return event_at(event); }
  bool timed() const override { return settings_.timing; }
  int ordinal() const override { return settings_.device; }
  int multiprocessors() const override { return multiprocessors_; }
  int streams() const override { return static_cast<int>(streams_.size()); }
  progress progress_of(int stream) const override { return progress_->of(stream); }

  void wake() noexcept override {}
  int join(time_point limit) noexcept override {
    std::optional<cuda::current_device> held;
    cuda::make_current(held, settings_.device);
    while (true) {
      // Not those of others, which may be gone; nor lent ones where the last step was seen to end:
      // what runs there is the lender's.
      int busy = 0;
      for (const cuda::owned_stream& each : own_streams_) busy += is_busy(each.get());
      if (!at_rest_.load(std::memory_order_relaxed))
        for (const lent_stream& each : settings_.lent) busy += is_busy(each.native);
      static_cast<void>(cudaGetLastError());  // what it found is no error of a later launch
      if (busy > 0 && std::chrono::steady_clock::now() < limit) {
        std::this_thread::sleep_for(std::chrono::microseconds(50));
        continue;
      }
      if (busy == 0) note_the_rest();
      return busy;
    }
  }
  void abandon() noexcept override {
    abandoned_ = true;
    std::fprintf(stderr,
                 "stretto: work on the GPU of rank %d does not end; its memory is not given back\n",
                 plan_.rank);
    for (cuda::owned_stream& each : own_streams_) static_cast<void>(each.release());
    static_cast<void>(arena_.release());
    static_cast<void>(host_memory_.release());
    if (words_) words_->abandon();
  }

 private:
  cudaStream_t native(int stream) const { return streams_[static_cast<std::size_t>(stream)]; }
  cudaEvent_t event_at(int event) const { return events_[static_cast<std::size_t>(event)].get(); }

  static bool is_busy(cudaStream_t stream) { return cudaStreamQuery(stream) == cudaErrorNotReady; }
  bool is_lent(int stream) const {
    return std::ranges::any_of(settings_.lent,
                               [&](const lent_stream& each) { return each.index == stream; });
  }
  bool is_of_host(std::span<const std::byte> bytes) const {
    const auto* const first = static_cast<const std::byte*>(host_memory_.get());
    return bytes.data() >= first && bytes.data() < first + plan_.host_bytes;
  }

  //! As what is launched or set asks for; the thread may issue for other GPUs, too.
  void make_current() const { check(cudaSetDevice(settings_.device), "cudaSetDevice"); }

  void make_streams() {
    int least = 0;
    int greatest = 0;
    check(cudaDeviceGetStreamPriorityRange(&least, &greatest), "cudaDeviceGetStreamPriorityRange");
    std::int32_t largest = plan_.streams.front().priority;
    for (const stream_info& each : plan_.streams) largest = std::max(largest, each.priority);
    streams_.resize(plan_.streams.size());
    for (const lent_stream& each : settings_.lent) take(each);
    own_streams_.reserve(streams_.size());
    for (std::size_t index = 0; index < streams_.size(); ++index) {
      if (streams_[index] != nullptr) continue;
      const int wanted = least + plan_.streams[index].priority - largest;
      own_streams_.push_back(cuda::make_stream(std::max(wanted, greatest)));
      streams_[index] = own_streams_.back().get();
      cuda::name_stream(streams_[index], plan_, index);
    }
  }

  //! One without work, as a lent one may have: where all are lent, `spare`.
  cudaStream_t idle_stream(cuda::owned_stream& spare) const {
    if (!own_streams_.empty()) return own_streams_.front().get();
    spare = cuda::make_stream(0);
    return spare.get();
  }

  void take(const lent_stream& lent) {
    const auto refuse = [&](const std::string& why) {
      throw plan_error("stream " + std::to_string(lent.index) + ", which is lent, is " + why);
    };
    if (lent.index < 0 || static_cast<std::size_t>(lent.index) >= streams_.size())
      refuse("none of the " + std::to_string(streams_.size()) + " of rank " +
             std::to_string(plan_.rank));
    if (lent.native == nullptr || lent.native == cudaStreamLegacy)
      refuse("the default stream, which others wait for");
    if (lent.native == cudaStreamPerThread)
      refuse(
          "cudaStreamPerThread, which is another stream to each thread that uses it, and several "
          "threads use a lent one");
    if (native(lent.index) != nullptr) refuse("lent twice");
    if (std::ranges::count(streams_, lent.native) > 0)
      refuse("another of the plan's, too, and what is ordered between them would not be");
    streams_[static_cast<std::size_t>(lent.index)] = lent.native;
  }

  void make_arena() {
    const arena_memory& by = settings_.arena;
    if ((by.allocate == nullptr) != (by.release == nullptr))
      throw plan_error("who gives the arena's memory must take it back");
    const auto bytes = static_cast<std::size_t>(plan_.arena_bytes);
    if (by.allocate == nullptr)
      arena_ = {cuda::make_device_memory(bytes).release(), give_back};
    else if (bytes > 0)
      arena_ = {by.allocate(bytes), by.release};
    if (reinterpret_cast<std::uintptr_t>(arena_.get()) % 64 != 0)
      throw plan_error("the arena's memory does not begin at a multiple of 64 bytes");
  }
  static void give_back(void* memory) { static_cast<void>(cudaFree(memory)); }

  //! The events of starts, and the kernel that a graph has behind one, which is loaded here.
  void find_starts() {
    tells_start_.resize(events_.size());
    bool any = false;
    for (const op_part& each : plan_.parts) {
      if (each.started < 0) continue;
      tells_start_[static_cast<std::size_t>(each.started)] = any = true;
    }
    if (any) cuda::note_progress(nullptr, 0, streams_.front());
  }

  //! Whoever gets the device finds it done, on whatever stream he looks.
  //! @param idle  a stream without work
  void clear(cudaStream_t idle) {
    std::fill_n(static_cast<char*>(host_memory_.get()), plan_.host_bytes, '\0');
    if (plan_.arena_bytes == 0) return;
    const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    check(cudaMemsetAsync(arena_.get(), 0, static_cast<std::size_t>(plan_.arena_bytes), idle),
          "cudaMemsetAsync");
    while (!is_over(cudaStreamQuery(idle), "cudaStreamQuery")) {
      if (std::chrono::steady_clock::now() >= limit)
        throw cuda::error(cudaErrorNotReady, "cudaStreamQuery");
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
  }

  void move(int stream, const copy& work, cudaMemcpyKind way) {
    if (work.to.empty()) return;
    make_current();
    check(cudaMemcpyAsync(work.to.data(), work.from.data(), work.to.size(), way, native(stream)),
          "cudaMemcpyAsync");
  }

  //! Before the instruction's record: whoever waits for it then finds its end noted.
  void note_recorded(int stream, std::int64_t step) {
    if (!words_) return;
    make_current();
    words_->add(stream, native(stream), step);
  }

  //! Of a step that failed, the times of what ended.
  void note_the_rest() noexcept {
    if (!clock_ || ending_.load(std::memory_order_acquire) == ended_) return;
    try {
      clock_->resolve();
    } catch (const cuda::error&) {
      // What the trace would show is lost with the context.
    }
  }

  const plan_view plan_;
  const cuda_settings settings_;
  monitor& watch_;
  std::optional<cuda::current_device> on_;  // while it is made, and while it ends
  int multiprocessors_ = 0;
  cuda::issue_ranges shown_;
  std::vector<cuda::owned_stream> own_streams_;
  std::vector<cudaStream_t> streams_;  // own, lent, or another device's, see merge()
  std::vector<cuda::owned_event> events_;
  std::vector<std::int64_t> recorded_;  // by event: the step of its last record
  std::vector<bool> tells_start_;       // by event: a kernel may record it as its blocks run
  cuda::owned_event end_;
  std::optional<cuda::progress_events> progress_;
  std::optional<cuda::progress_words> words_;  // of replayed steps
  std::optional<cuda::step_clock> clock_;
  std::unique_ptr<void, void (*)(void*)> arena_{nullptr, give_back};
  cuda::pinned_memory host_memory_;
  std::atomic<std::int64_t> ending_{-1};  // the last step whose end is enqueued
  std::atomic<std::int64_t> ended_{-1};   // the last step seen to end
  std::atomic<bool> at_rest_{true};       // no step has begun since one was seen to end
  bool failed_ = false;
  bool capturing_ = false;
  bool abandoned_ = false;
};

}  // namespace

int cuda_device_count() {
  int count = 0;
  const cudaError_t code = cudaGetDeviceCount(&count);
  if (code == cudaErrorNoDevice || code == cudaErrorInsufficientDriver ||
      code == cudaErrorStubLibrary) {
    (void)cudaGetLastError();
    return 0;
  }
  cuda::check(code, "cudaGetDeviceCount");
  return count;
}

std::unique_ptr<device> make_cuda_device(const plan_view& plan, const cuda_settings& settings,
                                         monitor& watch) {
  if (settings.patience < std::chrono::nanoseconds::zero())
    throw plan_error("cuda_settings::patience cannot be negative");
  try {
    return std::make_unique<cuda_device>(plan, settings, watch);
  } catch (const cuda::error& wrong) {
    if (wrong.code() != cudaErrorInvalidDevice) throw;
    throw plan_error("rank " + std::to_string(plan.rank) + " is to run on GPU " +
                     std::to_string(settings.device) + ", and this process has " +
                     std::to_string(cuda_device_count()) + ", counted from 0");
  }
}

}  // namespace stretto::executor
