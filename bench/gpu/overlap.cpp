// How much of a communication hides behind a matmul on one GPU.
//
// The matmul is cuBLAS's, of random numbers: of zeros it would take less power and time. The
// communication is a kernel with the footprint of NCCL's that moves bytes no faster than a link
// would (launch_link), and, where there is NCCL, a message of its only rank to itself, which is
// NCCL's real kernel. Caches are flushed, clocks warm; all variants of a row of settings alternate.
//
//   r         time of the matmul alone, whole and on all multiprocessors, over the communication's
//   hidden    (matmul + communication - both) / communication, of medians
//   ceiling   min(1, r)
//   bound     what that is when the communication takes its blocks' multiprocessors from the matmul
//
// Issued first is the matmul (the communication comes some microseconds later), or the
// communication, or the communication with a gate: the matmul then waits until all of its blocks
// run. A margin is what cuBLAS is told to leave free, in the pieces of the matmul that the
// communication is expected to lie beside.
//
// Usage: gpu_overlap [--json FILE] [--blocks 8,...] [--rates 50,180,370] [--ratios 0.5,1.28,2.88]
#include <cublas_v2.h>
#ifdef STRETTO_BENCH_NCCL
#include <nccl.h>
#endif

#include <array>
#include <cstdio>
#include <exception>
#include <functional>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "gpu.hpp"
#include "stretto/executor/overlap_meter.hpp"

using namespace stretto;
using namespace stretto::bench;
using executor::overlap_times;

namespace {

void check_cublas(cublasStatus_t status, const char* call) {
  if (status != CUBLAS_STATUS_SUCCESS)
    throw std::runtime_error(std::string(call) + ": " + cublasGetStatusString(status));
}

struct matmul_shape {
  const char* type;
  cudaDataType_t element;
  int bytes;
  int m, n, k;
};
constexpr matmul_shape shapes[] = {{"bf16", CUDA_R_16BF, 2, 4096, 4096, 4096},
                                   {"bf16", CUDA_R_16BF, 2, 8192, 8192, 8192},
                                   {"fp32", CUDA_R_32F, 4, 4096, 4096, 4096}};

//! C = A B, by pieces of B's and C's columns.
class matmul {
 public:
  matmul(const matmul_shape& shape, cudaStream_t on) : shape_(shape) {
    cublasHandle_t made = nullptr;
    check_cublas(cublasCreate(&made), "cublasCreate");
    cublas_ = made;
    check_cublas(cublasSetStream(cublas_, on), "cublasSetStream");
    const auto fill = shape.element == CUDA_R_32F ? fill_random_floats : fill_random_bf16;
    const auto make = [&](int rows, int columns, std::uint32_t seed) {
      const std::size_t count = static_cast<std::size_t>(rows) * static_cast<std::size_t>(columns);
      auto memory = make_device_memory(count * static_cast<std::size_t>(shape.bytes));
      check(fill(memory.get(), count, seed, on), "random numbers");
      return memory;
    };
    a_ = make(shape.m, shape.k, 1);
    b_ = make(shape.k, shape.n, 2);
    c_ = make(shape.m, shape.n, 3);
    check(cudaStreamSynchronize(on), "cudaStreamSynchronize");
  }
  ~matmul() { static_cast<void>(cublasDestroy(cublas_)); }
  matmul(const matmul&) = delete;
  matmul& operator=(const matmul&) = delete;

  //! @param multiprocessors  that it may take; 0: all
  void launch(int piece, int pieces, int multiprocessors) {
    const int first = shape_.n / pieces * piece;
    const int columns = piece + 1 == pieces ? shape_.n - first : shape_.n / pieces;
    const float one = 1;
    const float none = 0;
    check_cublas(cublasSetSmCountTarget(cublas_, multiprocessors), "cublasSetSmCountTarget");
    check_cublas(cublasGemmEx(cublas_, CUBLAS_OP_N, CUBLAS_OP_N, shape_.m, columns, shape_.k, &one,
                              a_.get(), shape_.element, shape_.m, column(b_, shape_.k, first),
                              shape_.element, shape_.k, &none, column(c_, shape_.m, first),
                              shape_.element, shape_.m, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT),
                 "cublasGemmEx");
  }

 private:
  void* column(const executor::cuda::device_memory& of, int rows, int number) const {
    return static_cast<std::byte*>(of.get()) + static_cast<std::size_t>(rows) *
                                                   static_cast<std::size_t>(number) *
                                                   static_cast<std::size_t>(shape_.bytes);
  }
  matmul_shape shape_;
  cublasHandle_t cublas_ = nullptr;
  executor::cuda::device_memory a_, b_, c_;
};

//! What communicates: bytes from one buffer to another.
struct communication {
  std::string name;
  int blocks = 0;
  double rate = 0;  //!< GB/s that it keeps below; 0: as fast as it can
  bool gated = false;
  std::function<void(std::size_t bytes, cudaEvent_t begun, cudaStream_t on)> launch{};
};

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
};

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

  //! In microseconds, from when both may begin.
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
      const bool early = cudaEventQuery(go_.get()) == cudaErrorNotReady;
      static_cast<void>(cudaGetLastError());
      check(cudaStreamSynchronize(gate_.get()), "cudaStreamSynchronize");
      check(cudaStreamSynchronize(compute_.get()), "cudaStreamSynchronize");
      check(cudaStreamSynchronize(communicate_.get()), "cudaStreamSynchronize");
      if (!early) continue;
      double all = 0;
      if (how.compute) all = std::max(all, microseconds_between(go_, compute_end_));
      if (how.communicate) all = std::max(all, microseconds_between(go_, communicate_end_));
      if (to != nullptr) {
        to->all.push_back(all);
        if (how.compute) to->compute.push_back(microseconds_between(compute_begin_, compute_end_));
        if (how.communicate)
          to->communicate.push_back(microseconds_between(communicate_begin_, communicate_end_));
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

  void issue(matmul& product, const communication& link, std::size_t bytes, const setting& how) {
    const bool gate = how.order == first_issued::gated_communication;
    const auto communicate = [&] {
      if (!how.communicate) return;
      if (how.serial) wait(communicate_, compute_end_);
      // Issued later, it would begin later.
      if (how.compute && !how.serial && how.order == first_issued::matmul)
        check(launch_delay(5'000, communicate_.get()), "a delay");
      record(communicate_begin_, communicate_);
      link.launch(bytes, gate ? begun_.get() : nullptr, communicate_.get());
      record(communicate_end_, communicate_);
    };
    if (!how.serial && how.order != first_issued::matmul) communicate();
    if (how.compute) {
      if (gate && how.communicate) wait(compute_, begun_);
      record(compute_begin_, compute_);
      for (int piece = 0; piece < how.pieces; ++piece)
        product.launch(piece, how.pieces,
                       how.margin > 0 && piece < how.beside ? multiprocessors_ - how.margin : 0);
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

#ifdef STRETTO_BENCH_NCCL
//! NCCL's communicator of one rank, whose messages to itself run on its usual kernels. (A sum over
//! one rank would do nothing.)
class lone_rank {
 public:
  explicit lone_rank(int blocks) {
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.maxCTAs = blocks;
    config.cgaClusterSize = 1;
    ncclUniqueId id;
    must(ncclGetUniqueId(&id), "ncclGetUniqueId");
    must(ncclCommInitRankConfig(&comm_, 1, id, 0, &config), "ncclCommInitRankConfig");
  }
  ~lone_rank() { static_cast<void>(ncclCommDestroy(comm_)); }
  lone_rank(const lone_rank&) = delete;
  lone_rank& operator=(const lone_rank&) = delete;

  void pass(const void* from, void* to, std::size_t bytes, cudaStream_t on) const {
    must(ncclGroupStart(), "ncclGroupStart");
    must(ncclSend(from, bytes, ncclInt8, 0, comm_, on), "ncclSend");
    must(ncclRecv(to, bytes, ncclInt8, 0, comm_, on), "ncclRecv");
    must(ncclGroupEnd(), "ncclGroupEnd");
  }

 private:
  static void must(ncclResult_t code, const char* call) {
    if (code != ncclSuccess)
      throw std::runtime_error(std::string(call) + ": " + ncclGetErrorString(code));
  }
  ncclComm_t comm_ = nullptr;
};
#endif

std::vector<double> numbers(const std::string& text, double most) {
  std::vector<double> made;
  std::istringstream words(text);
  for (std::string word; std::getline(words, word, ',');) {
    std::size_t end = 0;
    try {
      made.push_back(std::stod(word, &end));
    } catch (const std::exception&) {
      end = 0;
    }
    if (end != word.size() || word.empty() || !(made.back() > 0) || made.back() > most)
      throw std::invalid_argument("'" + word + "' is no number above 0 and up to " +
                                  std::to_string(static_cast<long>(most)));
  }
  if (made.empty()) throw std::invalid_argument("an empty list of numbers");
  return made;
}

constexpr std::array piece_counts = {1, 2, 4};

class grid {
 public:
  grid(report& to, std::vector<double> ratios) : to_(to), ratios_(std::move(ratios)) {
    cudaDeviceProp seen{};
    check(cudaGetDeviceProperties(&seen, 0), "cudaGetDeviceProperties");
    multiprocessors_ = seen.multiProcessorCount;
    two_.emplace(multiprocessors_, static_cast<std::size_t>(seen.l2CacheSize));
    std::size_t free = 0;
    std::size_t total = 0;
    check(cudaMemGetInfo(&free, &total), "cudaMemGetInfo");
    most_bytes_ = std::min<std::size_t>(std::size_t{4} << 30, free / 8);
    from_ = make_device_memory(most_bytes_);
    into_ = make_device_memory(most_bytes_);
    check(fill_random_floats(from_.get(), most_bytes_ / 4, 4, two_->compute_stream()),
          "random numbers");
    check(cudaStreamSynchronize(two_->compute_stream()), "cudaStreamSynchronize");
  }

  communication stand_in(double rate, int blocks) {
    return {"stand-in", blocks, rate, true,
            [this, rate, blocks](std::size_t bytes, cudaEvent_t begun, cudaStream_t on) {
              check(launch_link({into_.get(), from_.get(), bytes, rate, blocks}, begun, on),
                    "the stand-in of a link");
            }};
  }
#ifdef STRETTO_BENCH_NCCL
  communication by_nccl(const lone_rank& rank, int blocks) {
    return {"NCCL to itself", blocks, 0, false,
            [this, &rank](std::size_t bytes, cudaEvent_t, cudaStream_t on) {
              rank.pass(from_.get(), into_.get(), bytes, on);
            }};
  }
#endif

  void measure(const matmul_shape& shape, const std::vector<communication>& links) {
    matmul product(shape, two_->compute_stream());
    for (const communication& link : links) {
      if (link.blocks >= multiprocessors_) continue;
      const double alone = quick(product, link, 0, {.communicate = false});
      // Long enough that its beginning does not count, short enough for whatever room there is.
      const std::size_t some = std::min<std::size_t>(most_bytes_, std::size_t{128} << 20);
      const double rate =
          static_cast<double>(some) / quick(product, link, some, {.compute = false});
      for (const double ratio : ratios_) {
        const double wanted = rate * alone / ratio;
        if (wanted > static_cast<double>(most_bytes_)) {
          to_.note("too little memory for " + std::string(shape.type) +
                   " at r = " + std::to_string(ratio));
          continue;
        }
        measure(product, shape, link, static_cast<std::size_t>(wanted) & ~std::size_t{4095}, ratio);
      }
    }
  }

  //! What is best, of each row of settings.
  void tell() const {
    std::printf("\n%-5s %6s  %-15s %7s %6s %6s %8s %8s %8s  %s\n", "", "size", "communication",
                "blocks", "GB/s", "r", "ceiling", "bound", "hidden", "at its best");
    for (const std::string& each : best_) std::puts(each.c_str());
  }

 private:
  double quick(matmul& product, const communication& link, std::size_t bytes, const setting& how) {
    return alternate({[&] { return two_->run(product, link, bytes, how); }},
                     {.least = 5, .most = 5})[0]
        .median;
  }

  void measure(matmul& product, const matmul_shape& shape, const communication& link,
               std::size_t bytes, double ratio) {
    std::vector<setting> settings = {{.communicate = false}, {.compute = false}, {.serial = true}};
    for (const first_issued order :
         {first_issued::matmul, first_issued::communication, first_issued::gated_communication})
      for (const int margin : {0, link.blocks})
        for (const int pieces : piece_counts)
          if (link.gated || order != first_issued::gated_communication)
            settings.push_back(
                {.order = order,
                 .margin = margin,
                 .beside = static_cast<int>(std::ceil(pieces * std::min(1.0, 1 / ratio) - 1e-9)),
                 .pieces = pieces});
    std::vector<times> seen(settings.size());
    std::vector<sampler> variants;
    for (std::size_t at = 0; at < settings.size(); ++at)
      variants.push_back(
          [&, at] { return two_->run(product, link, bytes, settings[at], &seen[at]); });
    const stop_rule rule{.least = 15, .most = 30, .seconds = 3};
    const std::vector<summary> all = alternate(variants, rule);
    const double clock = clock_.look();
    for (times& each : seen)  // without the rounds that warmed up
      for (auto* const list : {&each.all, &each.compute, &each.communicate})
        if (!list->empty()) list->erase(list->begin(), list->begin() + rule.warmups);

    overlap_times made;
    made.compute = all[0].median;
    made.communicate = all[1].median;
    made.serial = all[2].median;
    const double r = made.compute / made.communicate;
    const double bound = most_hidden(r, link.blocks, multiprocessors_);
    const double speed = static_cast<double>(bytes) / made.communicate / 1e3;
    std::printf(
        "\n%s %d x %d x %d, %s, %d blocks, %.1f MiB at %.0f GB/s, r = %.2f, %.0f MHz, %d rounds\n"
        "alone: matmul %.1f us, communication %.1f us, one behind the other %.1f us\n"
        "ceiling %.1f%%, bound %.1f%%, with the margin throughout %.1f%%\n",
        shape.type, shape.m, shape.n, shape.k, link.name.c_str(), link.blocks,
        static_cast<double>(bytes) / (1 << 20), speed, r, clock, all[0].count, made.compute,
        made.communicate, made.serial, 100 * made.ceiling(), 100 * bound,
        100 * most_hidden_with_margin(r, link.blocks, multiprocessors_));
    std::printf("%-26s %6s %7s %10s %8s %8s %9s %9s\n", "issued", "margin", "pieces", "both us",
                "spread", "hidden", "m. slows", "c. slows");
    nlohmann::ordered_json ways = nlohmann::ordered_json::array();
    double most = -1e9;
    std::string best;
    for (std::size_t at = 3; at < settings.size(); ++at) {
      const setting& how = settings[at];
      made.both = all[at].median;
      made.compute_beside = quantile(seen[at].compute, 0.5);
      made.communicate_beside = quantile(seen[at].communicate, 0.5);
      std::printf("%-26s %6d %7d %10.1f %7.1f%% %7.1f%% %8.2fx %8.2fx\n", name_of(how.order),
                  how.margin, how.pieces, made.both, 100 * all[at].spread, 100 * made.hidden(),
                  made.compute_slowdown(), made.communicate_slowdown());
      ways.push_back({{"order", name_of(how.order)},
                      {"margin", how.margin},
                      {"pieces", how.pieces},
                      {"both_us", rounded(made.both)},
                      {"spread", rounded(all[at].spread)},
                      {"hidden", rounded(made.hidden())},
                      {"matmul_slowdown", rounded(made.compute_slowdown())},
                      {"communication_slowdown", rounded(made.communicate_slowdown())}});
      if (made.hidden() <= most) continue;
      most = made.hidden();
      best = std::string(name_of(how.order)) + ", margin " + std::to_string(how.margin) + ", " +
             std::to_string(how.pieces) + (how.pieces == 1 ? " piece" : " pieces");
    }
    to_.row({{"type", shape.type},
             {"m", shape.m},
             {"n", shape.n},
             {"k", shape.k},
             {"communication", link.name},
             {"blocks", link.blocks},
             {"pace_gb_s", link.rate},
             {"bytes", bytes},
             {"gb_s", rounded(speed)},
             {"r", rounded(r)},
             {"matmul_us", rounded(made.compute)},
             {"communication_us", rounded(made.communicate)},
             {"serial_us", rounded(made.serial)},
             {"ceiling", rounded(made.ceiling())},
             {"bound", rounded(bound)},
             {"most_hidden", rounded(most)},
             {"samples", all[0].count},
             {"clock_mhz", rounded(clock)},
             {"ways", std::move(ways)}});
    char line[200];
    std::snprintf(line, sizeof line, "%-5s %6d  %-15s %7d %6.0f %6.2f %7.1f%% %7.1f%% %7.1f%%  %s",
                  shape.type, shape.m, link.name.c_str(), link.blocks, speed, r,
                  100 * made.ceiling(), 100 * bound, 100 * most, best.c_str());
    best_.emplace_back(line);
  }

  report& to_;
  std::vector<double> ratios_;
  int multiprocessors_ = 0;
  std::optional<bench_of_two> two_;
  clock_check clock_;
  std::size_t most_bytes_ = 0;
  executor::cuda::device_memory from_, into_;
  std::vector<std::string> best_;

 public:
  clock_check& clock() {
    return clock_;
  }
};

}  // namespace

int main(int count, char** arguments) {
  std::vector<std::string> words(arguments + 1, arguments + count);
  try {
    const std::string path = take_option(words, "--json");
    const std::vector<double> blocks = numbers(take_option(words, "--blocks", "8"), 32);
    const std::vector<double> rates = numbers(take_option(words, "--rates", "50,180,370"), 1e5);
    const std::vector<double> ratios =
        numbers(take_option(words, "--ratios", "0.5,1.28,2.88"), 1e3);
    if (!words.empty())
      throw std::invalid_argument("'" + words[0] +
                                  "'; usage: gpu_overlap [--json FILE] [--blocks 8,...] "
                                  "[--rates 50,180,370] [--ratios 0.5,1.28,2.88]");
    if (there_is_no_gpu()) return 0;
    report made("overlap", about_gpu());
    grid all(made, ratios);
    std::vector<communication> links;
    for (const double each : blocks)
      for (const double rate : rates) links.push_back(all.stand_in(rate, static_cast<int>(each)));
#ifdef STRETTO_BENCH_NCCL
    std::vector<std::unique_ptr<lone_rank>> ranks;
    for (const double each : blocks) {
      ranks.push_back(std::make_unique<lone_rank>(static_cast<int>(each)));
      links.push_back(all.by_nccl(*ranks.back(), static_cast<int>(each)));
    }
    int version = 0;
    static_cast<void>(ncclGetVersion(&version));
    made.about()["nccl"] = version;
#endif
    for (const matmul_shape& shape : shapes) all.measure(shape, links);
    all.tell();
    all.clock().tell(made);
    made.write(path);
  } catch (const std::exception& wrong) {
    std::fprintf(stderr, "gpu_overlap: %s\n", wrong.what());
    return 1;
  }
}
