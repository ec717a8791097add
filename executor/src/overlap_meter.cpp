#include "stretto/executor/overlap_meter.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <string>
#include <vector>

#include "after.hpp"
#include "cause_text.hpp"
#include "check_options.hpp"
#include "stretto/executor/error.hpp"
#include "stretto/executor/host_device.hpp"
#include "stretto/executor/monitor.hpp"

namespace stretto::executor {
namespace {

constexpr int compute_stream = 0;
constexpr int other_stream = 1;

// The events: what computes is done, what communicates is done.
constexpr int computed = 0;
constexpr int communicated = 1;

//! A plan with an instruction for each kernel and for each event, and room for as many waits.
struct two_streams {
  explicit two_streams(int pieces)
      : instructions(static_cast<std::size_t>(2 * (pieces + 3))), streams(2) {
    for (std::size_t at = 0; at < instructions.size(); ++at)
      instructions[at].stream = static_cast<std::uint8_t>(at % 2);
    // Behind those of the kernels.
    for (const int event : {computed, communicated})
      instructions[instructions.size() - 2 + static_cast<std::size_t>(event)].record = event;
    const char* const names[] = {"compute", "communicate"};
    for (std::size_t stream = 0; stream < 2; ++stream) {
      const std::string name = names[stream];
      std::copy(name.begin(), name.end(), streams[stream].name);
      streams[stream].priority = -static_cast<int>(stream);
    }
  }
  plan_view view() const {
    plan_view made;
    made.instructions = instructions;
    made.streams = streams;
    made.events = 2;
    return made;
  }
  std::vector<instruction> instructions;
  std::vector<stream_info> streams;
};

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

class meter {
 public:
  meter(const overlap_kernels& kernels, const overlap_settings& with)
      : kernels_(kernels),
        with_(with),
        plan_(with.pieces),
        watch_(1),
        calls_(static_cast<std::size_t>(with.pieces) + 1),
        stamps_(calls_.size()),
        on_(with.make_device ? with.make_device(plan_.view(), watch_)
                             : make_host_device(plan_.view(), {}, watch_)) {
    if (!on_) throw plan_error("make_device gave none to measure overlap on");
    check_timed(*on_, 0);
  }
  ~meter() {
    watch_.stop();
    on_->wake();
  }

  overlap_times run() {
    std::vector<double> compute, communicate, serial, both, compute_beside, communicate_beside;
    for (int round = -with_.warmups; round < with_.rounds; ++round) {
      const span alone = measure({.compute = true});
      const span other = measure({.communicate = true});
      const span behind = measure({.compute = true, .communicate = true, .in_turn = true});
      const span beside = measure({.compute = true, .communicate = true});
      if (round < 0) continue;
      compute.push_back(alone.compute);
      communicate.push_back(other.communicate);
      serial.push_back(behind.all);
      both.push_back(beside.all);
      compute_beside.push_back(beside.compute);
      communicate_beside.push_back(beside.communicate);
    }
    return {median(compute), median(communicate),    median(serial),
            median(both),    median(compute_beside), median(communicate_beside)};
  }

 private:
  struct span {
    double compute = 0;
    double communicate = 0;
    double all = 0;
  };
  //! What runs of the two, and how.
  struct variant {
    bool compute = false;
    bool communicate = false;
    bool in_turn = false;
  };
  struct call {
    const std::function<void(const kernel_call&)>* kernel = nullptr;
    kernel_call with{};
  };

  //! Of what runs, from the first start to the last end.
  span measure(const variant& what) {
    const auto [compute, communicate, in_turn] = what;
    const std::int64_t step = steps_++;
    watch_.begin_step();
    const std::size_t last = stamps_.size() - 1;
    if (communicate && !in_turn) put(other_stream, last, kernels_.communicate, {{}, 0, 1}, step);
    for (int piece = 0; compute && piece < with_.pieces; ++piece)
      put(compute_stream, static_cast<std::size_t>(piece), kernels_.compute,
          {{}, piece, with_.pieces}, step);
    if (communicate && in_turn) {
      on_->record(compute_stream, computed, step);
      on_->wait(other_stream, computed, step);
      put(other_stream, last, kernels_.communicate, {{}, 0, 1}, step);
    }
    on_->record(other_stream, communicated, step);
    on_->wait(compute_stream, communicated, step);
    on_->end_step(compute_stream, step, watch_);
    on_->submit();
    finish(what, step);
    span made;
    std::int64_t begin = std::numeric_limits<std::int64_t>::max();
    std::int64_t end = std::numeric_limits<std::int64_t>::min();
    // Both together take from the first start to the last end.
    const auto took = [&](std::int64_t from, std::int64_t to) {
      begin = std::min(begin, from);
      end = std::max(end, to);
      return static_cast<double>(to - from);
    };
    if (compute) made.compute = took(stamps_.front().start, stamps_[last - 1].end);
    if (communicate) made.communicate = took(stamps_[last].start, stamps_[last].end);
    made.all = static_cast<double>(end - begin);
    return made;
  }

  //! Stamps come from the command where the call does the work, from marks around it where it
  //! launches it.
  void put(int stream, std::size_t at, const std::function<void(const kernel_call&)>& kernel,
           kernel_call with, std::int64_t step) {
    with.stream = on_->stream(stream);
    calls_[at] = {&kernel, with};
    stamps_[at] = {};
    const std::int64_t ticket = ticket_of(stream, at, step);
    const mark what{static_cast<int>(ticket % instructions()), step, ticket, &stamps_[at]};
    if (on_->marked()) on_->begin(stream, what);
    try {
      on_->enqueue(stream, {run_kernel, nullptr, &calls_[at], 0, step, ticket, &stamps_[at]});
    } catch (...) {
      watch_.fail(0, ticket, std::current_exception());
    }
    if (on_->marked()) on_->end(stream, what);
  }

  std::int64_t instructions() const { return std::ssize(plan_.instructions); }
  std::int64_t ticket_of(int stream, std::size_t at, std::int64_t step) const {
    return step * instructions() + 2 * static_cast<std::int64_t>(at) + stream;
  }

  static std::string text_of(const variant& how) {
    if (!how.compute || !how.communicate) return ", alone,";
    return how.in_turn ? ", one behind the other," : ", both at once,";
  }
  //! Of a kernel, by the instruction that it is.
  std::string name_of(std::int64_t ticket) const {
    const std::int64_t number = ticket % instructions();
    if (number % 2 == other_stream) return "the communication";
    if (with_.pieces == 1) return "the computation";
    return "piece " + std::to_string(number / 2) + " of the computation's " +
           std::to_string(with_.pieces);
  }
  //! Those that have not ended.
  std::string missing(const variant& how, std::int64_t step) const {
    const auto is_missing = [&](int stream, std::size_t at) {
      return on_->progress_of(stream).finished < ticket_of(stream, at, step);
    };
    std::string text;
    for (std::size_t piece = 0; how.compute && text.empty() && piece + 1 < stamps_.size(); ++piece)
      if (is_missing(compute_stream, piece)) text = name_of(ticket_of(compute_stream, piece, step));
    if (how.communicate && is_missing(other_stream, stamps_.size() - 1))
      text += (text.empty() ? "" : " and ") + std::string("the communication");
    return text.empty() ? "what is measured" : text;
  }

  void finish(const variant& how, std::int64_t step) {
    const auto limit = after(with_.deadline);
    auto outcome = monitor::outcome::late;
    if (!on_->polled()) outcome = watch_.wait_until(limit);
    while (on_->polled() && outcome == monitor::outcome::late) {
      const auto now = std::chrono::steady_clock::now();
      if (now >= limit) break;
      on_->poll();
      outcome = watch_.wait_until(now);
    }
    if (outcome == monitor::outcome::ended) return;
    const bool late = outcome == monitor::outcome::late;
    const std::exception_ptr cause = late ? nullptr : watch_.first_failure().cause;
    const std::string text = late ? missing(how, step) + text_of(how) + " has not ended in time"
                                  : name_of(watch_.first_failure().ticket) + text_of(how) +
                                        " has failed: " + cause_text(cause);
    watch_.stop();
    on_->wake();
    const int left = on_->join(std::chrono::steady_clock::now() + std::chrono::seconds(10));
    // On the host the device waits for them, and so does this error.
    if (left > 0 && !on_->polled())
      std::fprintf(stderr, "stretto: waiting for a kernel that does not return; %s\n",
                   text.c_str());
    throw execution_error(late ? failure::deadline : failure::stage, {}, text, cause, left);
  }

  static void run_kernel(const command& work) {
    const call& what = *static_cast<const call*>(work.payload);
    (*what.kernel)(what.with);
  }

  const overlap_kernels& kernels_;
  overlap_settings with_;
  two_streams plan_;
  monitor watch_;
  std::vector<call> calls_;     // of the pieces, then of the communication
  std::vector<timing> stamps_;  // of the same
  std::unique_ptr<device> on_;  // ends before what its streams may still use
  std::int64_t steps_ = 0;
};

}  // namespace

overlap_times measure_overlap(const overlap_kernels& kernels, const overlap_settings& with) {
  if (!kernels.compute || !kernels.communicate)
    throw plan_error("overlap is measured of two kernels: one is missing");
  if (with.pieces < 1 || with.pieces > 999)
    throw plan_error("a computation is measured in 1 to 999 pieces");
  if (with.rounds < 1 || with.warmups < 0)
    throw plan_error("overlap is measured in at least one round, and warmups are not negative");
  if (with.deadline <= std::chrono::nanoseconds::zero())
    throw plan_error("the deadline must be positive");
  return meter(kernels, with).run();
}

}  // namespace stretto::executor
