#pragma once

// A matmul and a communication, run in one of several ways beside one another.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <vector>

#include "communication.hpp"
#include "gpu.hpp"
#include "matmul.hpp"

namespace stretto::bench {

enum class first_issued { matmul, communication, gated_communication };
constexpr const char* name_of(first_issued what) {
  switch (what) {
    case first_issued::matmul:
      return "matmul first";
    case first_issued::communication:
      return "communication first";
    case first_issued::gated_communication:
      return "communication first, gate";
  }
  return "";
}

//! One way to run the two.
struct setting {
  bool compute = true;
  bool communicate = true;
  bool serial = false;
  first_issued order = first_issued::communication;
  int margin = 0;
  int beside = 0;  //!< pieces that leave the margin
  int pieces = 1;
};

struct times {
  std::vector<double> all, compute, communicate;
  std::vector<double> lead;  //!< from the begin of what was issued first to that of the other
};

//! On two streams, behind caches that were flushed.
class bench_of_two {
 public:
  explicit bench_of_two(int multiprocessors, std::size_t l2)
      : multiprocessors_(multiprocessors), flush_bytes_(2 * l2) {
    int least = 0;
    int greatest = 0;
    check(cudaDeviceGetStreamPriorityRange(&least, &greatest), "cudaDeviceGetStreamPriorityRange");
    compute_ = make_stream(least);
    communicate_ = make_stream(greatest);
    flush_ = make_device_memory(flush_bytes_);
  }
  cudaStream_t compute_stream() const { return compute_.get(); }
  //! That a matmul may take; 0: all.
  int multiprocessors(int margin) const { return margin > 0 ? multiprocessors_ - margin : 0; }

  //! In microseconds, from when the first of them begins until both are over. From when they may
  //! begin, the hop from another stream would count once in both together, but once in each alone.
  double run(matmul& product, const communication& link, std::size_t bytes, const setting& how,
             times* to = nullptr) {
    for (std::uint64_t delay = 200'000; delay <= 51'200'000; delay *= 4) {
      check(cudaMemsetAsync(flush_.get(), 1, flush_bytes_, gate_.get()), "cudaMemsetAsync");
      check(launch_delay(delay, gate_.get()), "a delay");
      record(go_, gate_);
      wait(compute_, go_);
      wait(communicate_, go_);
      issue(product, link, bytes, how);
      // Only what was issued before it began is not slowed by the host.
      const bool early = !executor::cuda::is_over(cudaEventQuery(go_.get()), "cudaEventQuery");
      check(cudaStreamSynchronize(gate_.get()), "cudaStreamSynchronize");
      check(cudaStreamSynchronize(compute_.get()), "cudaStreamSynchronize");
      check(cudaStreamSynchronize(communicate_.get()), "cudaStreamSynchronize");
      if (!early) continue;
      double begin = std::numeric_limits<double>::max();
      double end = 0;
      if (how.compute) {
        begin = microseconds_between(go_, compute_begin_);
        end = microseconds_between(go_, compute_end_);
      }
      if (how.communicate) {
        begin = std::min(begin, microseconds_between(go_, communicate_begin_));
        end = std::max(end, microseconds_between(go_, communicate_end_));
      }
      const double all = end - begin;
      if (to != nullptr) {
        to->all.push_back(all);
        if (how.compute) to->compute.push_back(microseconds_between(compute_begin_, compute_end_));
        if (how.communicate)
          to->communicate.push_back(microseconds_between(communicate_begin_, communicate_end_));
        if (is_beside(how))
          to->lead.push_back(how.order == first_issued::matmul
                                 ? microseconds_between(compute_begin_, communicate_begin_)
                                 : microseconds_between(communicate_begin_, compute_begin_));
      }
      return all;
    }
    throw std::runtime_error("the host does not issue fast enough to measure the GPU");
  }

 private:
  using stream = executor::cuda::owned_stream;
  using event = executor::cuda::owned_event;
  static void record(const event& what, const stream& on) {
    check(cudaEventRecord(what.get(), on.get()), "cudaEventRecord");
  }
  static void wait(const stream& on, const event& what) {
    check(cudaStreamWaitEvent(on.get(), what.get(), cudaEventWaitDefault), "cudaStreamWaitEvent");
  }

  static bool is_beside(const setting& how) {
    return how.compute && how.communicate && !how.serial;
  }
  //! One event lets both streams go, and nothing says which of them then comes first.
  static void begin_later(const setting& how, const stream& second) {
    if (is_beside(how)) check(launch_delay(2'500, second.get()), "a delay");
  }

  void issue(matmul& product, const communication& link, std::size_t bytes, const setting& how) {
    const bool gate = how.order == first_issued::gated_communication;
    const auto communicate = [&] {
      if (!how.communicate) return;
      if (how.serial) wait(communicate_, compute_end_);
      if (how.order == first_issued::matmul) begin_later(how, communicate_);
      record(communicate_begin_, communicate_);
      link.launch(bytes, gate ? begun_.get() : nullptr, communicate_.get());
      record(communicate_end_, communicate_);
    };
    if (!how.serial && how.order != first_issued::matmul) communicate();
    if (how.compute) {
      if (gate && how.communicate) wait(compute_, begun_);
      if (how.order == first_issued::communication) begin_later(how, compute_);
      record(compute_begin_, compute_);
      for (int piece = 0; piece < how.pieces; ++piece)
        product.launch(piece, how.pieces, multiprocessors(piece < how.beside ? how.margin : 0));
      record(compute_end_, compute_);
    }
    if (how.serial || how.order == first_issued::matmul) communicate();
  }

  int multiprocessors_;
  std::size_t flush_bytes_;
  stream gate_ = make_stream(0);
  stream compute_, communicate_;
  event begun_ = make_event();
  event go_ = make_event(true);
  event compute_begin_ = make_event(true);
  event compute_end_ = make_event(true);
  event communicate_begin_ = make_event(true);
  event communicate_end_ = make_event(true);
  executor::cuda::device_memory flush_;
};

}  // namespace stretto::bench
