// What a GPU and its runtime ask for the things a step is made of: launches, events, hops from
// stream to stream, nodes of a graph, memory from a pool.
//
//   host      the calling thread's time for one
//   device    the GPU's, from one to the next, all of them issued beforehand
//
// Beside each what others have measured, and where. About the GPU is told besides how many launches
// a stream takes until one waits. Usage: gpu_launch [--json FILE]
#include <cstdio>
#include <exception>
#include <iterator>
#include <string>
#include <vector>

#include "gpu.hpp"

using namespace stretto;
using namespace stretto::bench;

namespace {

struct figure {
  const char* name;
  const char* where;
  sampler once;
  const char* reference;
  const char* source;
};

//! Fewer than a launch queue holds.
constexpr int many = 200;

class things {
 public:
  //! Host time of one call of many, from an idle GPU on.
  template <class Call>
  double on_host(const Call& call) {
    const double begin = seconds_now();
    for (int at = 0; at < many; ++at) call();
    const double time = (seconds_now() - begin) * 1e6 / many;
    finish();
    return time;
  }
  //! Device time of all that is issued behind a delay which the host is faster than.
  template <class Issue>
  double on_device(const Issue& issue) {
    for (std::uint64_t delay = 2'000'000; delay <= 128'000'000; delay *= 4) {
      finish();
      const double begin = seconds_now();
      check(launch_delay(delay, first.get()), "a delay");
      check(cudaEventRecord(start.get(), first.get()), "cudaEventRecord");
      issue();
      check(cudaEventRecord(stop.get(), first.get()), "cudaEventRecord");
      const double issued = (seconds_now() - begin) * 1e9;
      finish();
      if (issued < static_cast<double>(delay)) return microseconds_between(start, stop);
    }
    throw std::runtime_error("the host does not issue fast enough to measure the GPU");
  }
  //! How many launches a stream takes behind what runs before a call waits for that; at most
  //! `most`.
  int queued(int most) {
    launch(first);  // which CUDA may load only now, and wait for what runs
    finish();
    check(launch_delay(200'000'000, first.get()), "a delay");
    record(plain, first);
    int taken = 0;
    for (; taken < most; ++taken) {
      launch(first);
      // A call that has waited comes back behind it.
      if (executor::cuda::is_over(cudaEventQuery(plain.get()), "cudaEventQuery")) break;
    }
    finish();
    return taken;
  }
  //! Of the runtime's, within the GPU.
  void copy(const executor::cuda::owned_stream& on) {
    check(cudaMemcpyAsync(into.get(), from.get(), 16, cudaMemcpyDeviceToDevice, on.get()),
          "cudaMemcpyAsync");
  }
  void finish() {
    check(cudaStreamSynchronize(first.get()), "cudaStreamSynchronize");
    check(cudaStreamSynchronize(second.get()), "cudaStreamSynchronize");
  }

  void launch(const executor::cuda::owned_stream& on) {
    check(launch_nothing(on.get()), "a launch");
  }
  void record(const executor::cuda::owned_event& what, const executor::cuda::owned_stream& on) {
    check(cudaEventRecord(what.get(), on.get()), "cudaEventRecord");
  }
  void wait(const executor::cuda::owned_event& what, const executor::cuda::owned_stream& on) {
    check(cudaStreamWaitEvent(on.get(), what.get(), cudaEventWaitDefault), "cudaStreamWaitEvent");
  }

  executor::cuda::owned_stream first = make_stream(0);
  executor::cuda::owned_stream second = make_stream(0);
  executor::cuda::owned_event plain = make_event();
  executor::cuda::owned_event back = make_event();
  executor::cuda::owned_event timed = make_event(true);
  executor::cuda::owned_event start = make_event(true);
  executor::cuda::owned_event stop = make_event(true);
  executor::cuda::device_memory from = executor::cuda::make_device_memory(16);
  executor::cuda::device_memory into = executor::cuda::make_device_memory(16);
};

//! A chain of small kernels as a graph.
class chain {
 public:
  chain(const executor::cuda::owned_stream& on, int nodes) {
    check(cudaStreamBeginCapture(on.get(), cudaStreamCaptureModeThreadLocal),
          "cudaStreamBeginCapture");
    for (int at = 0; at < nodes; ++at) check(launch_nothing(on.get()), "a launch");
    cudaGraph_t made = nullptr;
    check(cudaStreamEndCapture(on.get(), &made), "cudaStreamEndCapture");
    graph_ = executor::cuda::owned<cudaGraph_t, cudaGraphDestroy>(made);
    cudaGraphExec_t ready = nullptr;
    check(cudaGraphInstantiate(&ready, made, 0), "cudaGraphInstantiate");
    ready_ = executor::cuda::owned<cudaGraphExec_t, cudaGraphExecDestroy>(ready);
    check(cudaGraphUpload(ready, on.get()), "cudaGraphUpload");
  }
  void launch(const executor::cuda::owned_stream& on) const {
    check(cudaGraphLaunch(ready_.get(), on.get()), "cudaGraphLaunch");
  }

 private:
  executor::cuda::owned<cudaGraph_t, cudaGraphDestroy> graph_;
  executor::cuda::owned<cudaGraphExec_t, cudaGraphExecDestroy> ready_;
};

//! Memory in the order of a stream.
class pool {
 public:
  //! @param threshold  bytes that it keeps when a stream is waited for
  explicit pool(std::uint64_t threshold) {
    cudaMemPoolProps wanted{};
    wanted.allocType = cudaMemAllocationTypePinned;
    wanted.location.type = cudaMemLocationTypeDevice;
    wanted.location.id = 0;
    cudaMemPool_t made = nullptr;
    check(cudaMemPoolCreate(&made, &wanted), "cudaMemPoolCreate");
    pool_ = executor::cuda::owned<cudaMemPool_t, cudaMemPoolDestroy>(made);
    check(cudaMemPoolSetAttribute(made, cudaMemPoolAttrReleaseThreshold, &threshold),
          "cudaMemPoolSetAttribute");
  }
  //! Takes, gives back and waits.
  double cycle(std::size_t bytes, const executor::cuda::owned_stream& on) {
    const double begin = seconds_now();
    void* taken = nullptr;
    check(cudaMallocFromPoolAsync(&taken, bytes, pool_.get(), on.get()), "cudaMallocFromPoolAsync");
    check(cudaFreeAsync(taken, on.get()), "cudaFreeAsync");
    check(cudaStreamSynchronize(on.get()), "cudaStreamSynchronize");
    return (seconds_now() - begin) * 1e6;
  }

 private:
  executor::cuda::owned<cudaMemPool_t, cudaMemPoolDestroy> pool_;
};

void measure(report& to) {
  things with;
  constexpr int most_queued = 16384;  // by a host that takes up to ten microseconds for one
  const int queued = with.queued(most_queued);
  to.about()["queued_launches"] = queued;
  std::printf("launches that a stream takes until one waits: %d%s\n", queued,
              queued == most_queued ? " or more" : "");
  const chain one(with.first, 1);
  const chain some(with.first, 80);
  const chain long_one(with.first, 1000);
  pool forgetful(0);
  pool keeping(~std::uint64_t{0});
  constexpr std::size_t gibibyte = std::size_t{1} << 30;
  const auto replay = [&](const chain& what) {
    return [&with, &what] {
      const double begin = seconds_now();
      what.launch(with.first);
      const double time = (seconds_now() - begin) * 1e6;
      with.finish();
      return time;
    };
  };
  const auto by_node = [&](const chain& what, int nodes) {
    return
        [&with, &what, nodes] { return with.on_device([&] { what.launch(with.first); }) / nodes; };
  };
  const figure figures[] = {
      {"kernel launch", "host", [&] { return with.on_host([&] { with.launch(with.first); }); },
       "2.6-3.3", "RTX 5070 Ti, ocannl#488; CUDA.jl's manual"},
      {"copy of 16 bytes on the GPU", "host",
       [&] { return with.on_host([&] { with.copy(with.first); }); }, "", ""},
      {"kernel behind kernel", "device",
       [&] {
         return with.on_device([&] {
           for (int at = 0; at < many; ++at) with.launch(with.first);
         }) / many;
       },
       "", ""},
      {"launch, run, wait for it", "host",
       [&] {
         return with.on_host([&] {
           with.launch(with.first);
           check(cudaStreamSynchronize(with.first.get()), "cudaStreamSynchronize");
         });
       },
       "6.4", "RTX 5070 Ti, ocannl#488"},
      {"event record, without times", "host",
       [&] { return with.on_host([&] { with.record(with.plain, with.first); }); }, "0.25",
       "V100, harrism/cuda_event_benchmark"},
      {"event record, with times", "host",
       [&] { return with.on_host([&] { with.record(with.timed, with.first); }); }, "2.5",
       "V100, harrism/cuda_event_benchmark"},
      {"wait for an event", "host",
       [&] {
         // Of one that has not been yet.
         check(launch_delay(2'000'000, with.first.get()), "a delay");
         with.record(with.plain, with.first);
         return with.on_host([&] { with.wait(with.plain, with.second); });
       },
       "", ""},
      {"hop to a stream, with its kernel", "device",
       [&] {
         return with.on_device([&] {
           for (int at = 0; at < many / 2; ++at) {
             with.record(with.plain, with.first);
             with.wait(with.plain, with.second);
             with.launch(with.second);
             with.record(with.back, with.second);
             with.wait(with.back, with.first);
             with.launch(with.first);
           }
         }) / many;
       },
       "3", "RTX 3080, velox#6096"},
      {"graph of 1 kernel, launched", "host", replay(one), "", ""},
      {"graph of 80 kernels, launched", "host", replay(some), "3.5", "CUDA.jl's manual"},
      {"graph of 1000 kernels, launched", "host", replay(long_one), "", ""},
      {"node, in a graph of 80", "device", by_node(some, 80), "0.58-0.88",
       "RTX 5070 Ti, ocannl#488; CUDA.jl's manual"},
      {"node, in a graph of 1000", "device", by_node(long_one, 1000), "", ""},
      {"call of the host, and wait for it", "host",
       [&] {
         const double begin = seconds_now();
         check(cudaLaunchHostFunc(
                   with.first.get(), [](void*) {}, nullptr),
               "cudaLaunchHostFunc");
         with.finish();
         return (seconds_now() - begin) * 1e6;
       },
       "100", "RTX 3080, velox#6096"},
      {"1 MiB of a pool that keeps nothing", "host",
       [&] { return forgetful.cycle(1 << 20, with.first); }, "", ""},
      {"1 MiB of a pool that keeps all", "host", [&] { return keeping.cycle(1 << 20, with.first); },
       "1.9", "in Python, cuda-python#756"},
      {"1 GiB of a pool that keeps nothing", "host",
       [&] { return forgetful.cycle(gibibyte, with.first); }, "31200", "vortex#7831"},
      {"1 GiB of a pool that keeps all", "host",
       [&] { return keeping.cycle(gibibyte, with.first); }, "1.37", "vortex#7831"},
  };
  // What one of them lacks must not take the others with it.
  std::vector<std::string> wrong(std::size(figures));
  std::vector<sampler> variants;
  for (std::size_t at = 0; at < wrong.size(); ++at)
    variants.push_back([&what = figures[at], &lacks = wrong[at]] {
      if (!lacks.empty()) return 0.0;
      try {
        return what.once();
      } catch (const std::exception& seen) {
        lacks = seen.what();
        return 0.0;
      }
    });
  const std::vector<summary> seen =
      alternate(variants, {.most = 100, .error = 0.01, .seconds = 10});
  std::printf("microseconds, medians of %d rounds; spread: between quartiles\n", seen[0].count);
  std::printf("%-36s %-7s %10s %8s %12s  %s\n", "", "", "", "spread", "reference", "measured on");
  for (std::size_t at = 0; at < seen.size(); ++at) {
    const figure& what = figures[at];
    if (!wrong[at].empty()) {
      to.note(std::string(what.name) + " is not measured: " + wrong[at]);
      continue;
    }
    std::printf("%-36s %-7s %10.2f %7.1f%% %12s  %s\n", what.name, what.where, seen[at].median,
                100 * seen[at].spread, what.reference, what.source);
    to.row({{"what", what.name},
            {"on", what.where},
            {"microseconds", rounded(seen[at].median)},
            {"spread", rounded(seen[at].spread)},
            {"samples", seen[at].count},
            {"reference", what.reference},
            {"source", what.source}});
  }
}

}  // namespace

int main(int count, char** arguments) {
  std::setvbuf(stdout, nullptr, _IOLBF, 0);  // in a pipe, too
  std::vector<std::string> words(arguments + 1, arguments + count);
  try {
    const std::string path = take_option(words, "--json");
    if (!words.empty()) throw std::invalid_argument("usage: gpu_launch [--json FILE]");
    if (there_is_no_gpu()) return 0;
    report made("launch", about_gpu());
    clock_check clock;
    measure(made);
    clock.tell(made);
    made.write(path);
  } catch (const std::exception& wrong) {
    std::fprintf(stderr, "gpu_launch: %s\n", wrong.what());
    return 1;
  }
}
