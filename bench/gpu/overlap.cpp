// How much of a communication hides behind a matmul on one GPU.
//
// The matmul is cuBLAS's, of random numbers: of zeros it would take less power and time; of the
// ways that cuBLAS proposes, in all clusters of blocks, the one that is the quickest alone, and
// with a margin the one that is so beside the communication. The communication is a kernel with the
// footprint of NCCL's that moves bytes no faster than a link would (launch_link), and, where there
// is NCCL, a message of its only rank to itself, which is NCCL's real kernel. In one row more, at
// the highest rate, each chunk that the kernel moves is late by a time of its own, up to so many
// microseconds, as what comes from elsewhere is. Caches are flushed, clocks warm; all variants of a
// row of settings alternate.
//
//   r         time of the matmul alone, whole and on all multiprocessors, over the communication's
//   hidden    (matmul + communication - both) / communication, of medians
//   ceiling   min(1, r)
//   bound     what that is when the communication takes its blocks' multiprocessors from the matmul
//
// Issued first is the matmul or the communication, and the other one comes some microseconds later
// (lead_us says how many), or the communication with a gate: the matmul then waits until all of its
// blocks run. A margin is what cuBLAS is told to leave free, in the pieces of the matmul that the
// communication is expected to lie beside. With it the matmul is measured alone, too: its tiles may
// not share out as well among fewer multiprocessors, and then no overlap makes it quicker.
//
// Usage: gpu_overlap [--json FILE] [--blocks 8,...] [--rates 50,180,370] [--ratios 0.5,1.28,2.88]
//                    [--late 20] [--cluster 1]
//
// A cluster is how many of the communication's blocks begin together, as NCCL's cgaClusterSize:
// such lie side by side. Alone they may lie one in each of the GPU's parts, and of an odd number of
// multiprocessors that are left there a matmul whose own clusters are pairs cannot use the last.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <exception>
#include <limits>
#include <map>
#include <memory>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "communication.hpp"
#include "gpu.hpp"
#include "matmul.hpp"
#include "overlap_run.hpp"
#include "overlap_table.hpp"

using namespace stretto;
using namespace stretto::bench;

namespace {

constexpr matmul_shape shapes[] = {{"bf16", CUDA_R_16BF, 2, 4096, 4096, 4096},
                                   {"bf16", CUDA_R_16BF, 2, 8192, 8192, 8192},
                                   {"fp32", CUDA_R_32F, 4, 4096, 4096, 4096}};

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
  grid(report& to, int cluster)
      : to_(to),
        table_(to),
        seen_(properties()),
        two_(seen_.multiProcessorCount, static_cast<std::size_t>(seen_.l2CacheSize)),
        room_(two_.compute_stream(), cluster) {
    if (const std::string doubt = doubt_of_timer(clock_.timer_step()); !doubt.empty())
      to_.note(doubt);
  }

  const message_room& room() const { return room_; }

  void measure(const matmul_shape& shape, const std::vector<communication>& links,
               const std::vector<double>& ratios) {
    matmul product(shape, two_.compute_stream());
    drop_slow(product, 0);
    tune(product, {}, 0, {.communicate = false});
    std::set<int> margins;
    for (const communication& link : links) {
      if (link.blocks >= seen_.multiProcessorCount) continue;
      try {
        if (margins.insert(link.blocks).second) drop_slow(product, link.blocks);
        measure(product, shape, link, ratios);
      } catch (const std::exception& wrong) {
        to_.note(std::string(shape.type) + " beside " + link.name +
                 " is not measured: " + wrong.what());
      }
    }
  }

  void look_at_paces(const std::vector<communication>& links) {
    matmul product(shapes[0], two_.compute_stream());
    for (const communication& link : links) {
      if (link.rate <= 0 || link.blocks >= seen_.multiProcessorCount) continue;
      const communication unpaced =
          room_.stand_in(std::numeric_limits<double>::infinity(), link.blocks);
      const std::string doubt = doubt_of_pace(link.blocks, link.rate, rate_of(product, link) / 1e3,
                                              rate_of(product, unpaced) / 1e3);
      if (!doubt.empty()) to_.note(doubt);
    }
  }

  void tell() {
    table_.tell();
    clock_.begin_row();  // it has rested since
    clock_.tell(to_);
  }

 private:
  static cudaDeviceProp properties() {
    cudaDeviceProp seen{};
    check(cudaGetDeviceProperties(&seen, 0), "cudaGetDeviceProperties");
    return seen;
  }

  double quick(matmul& product, const communication& link, std::size_t bytes, const setting& how) {
    return alternate({[&] { return two_.run(product, link, bytes, how); }},
                     {.least = 5, .most = 5})[0]
        .median;
  }

  //! Leaves of all ways, for each number of pieces, those that alone take little more than the
  //! quickest that goes back to the same proposal: more than there are to measure beside every
  //! communication. Proposals are not measured by one another: of those for fewer multiprocessors
  //! some take all nevertheless, which makes them quick until they are beside something.
  void drop_slow(matmul& product, int margin) {
    const int multiprocessors = two_.multiprocessors(margin);
    for (const int pieces : piece_counts) {
      const setting how{.communicate = false, .margin = margin, .beside = pieces, .pieces = pieces};
      std::vector<double> taken;
      std::map<std::size_t, double> least;  // by proposal
      for (std::size_t at = 0; at < product.ways(pieces, multiprocessors); ++at) {
        product.choose(pieces, multiprocessors, at);
        double best = std::numeric_limits<double>::infinity();
        try {
          two_.run(product, {}, 0, how);  // its kernel is loaded
          best = std::min(two_.run(product, {}, 0, how), two_.run(product, {}, 0, how));
        } catch (const cublas_error&) {  // it had found nothing against this cluster
        }
        double& own =
            least.try_emplace(product.proposal(pieces, multiprocessors), best).first->second;
        own = std::min(own, best);
        taken.push_back(best);
      }
      std::vector<std::size_t> kept;
      for (std::size_t at = 0; at < taken.size(); ++at) {
        product.choose(pieces, multiprocessors, at);
        if (taken[at] <= 1.03 * least[product.proposal(pieces, multiprocessors)])
          kept.push_back(at);
      }
      product.keep(pieces, multiprocessors, kept);
    }
  }

  //! Chooses of the ways that are left, for each number of pieces, what takes least: until all is
  //! over, and, where that is the communication's affair, by itself.
  void tune(matmul& product, const communication& link, std::size_t bytes, setting how) {
    const int multiprocessors = two_.multiprocessors(how.margin);
    for (const int pieces : piece_counts) {
      how.pieces = pieces;
      how.beside = pieces;
      std::size_t best = 0;
      double least = std::numeric_limits<double>::infinity();
      for (std::size_t at = 0; at < product.ways(pieces, multiprocessors); ++at) {
        product.choose(pieces, multiprocessors, at);
        times seen;
        for (int round = 0; round < 7; ++round) two_.run(product, link, bytes, how, &seen);
        const double taken = quantile(seen.all, 0.5) + quantile(seen.compute, 0.5);
        if (taken >= least) continue;
        least = taken;
        best = at;
      }
      product.choose(pieces, multiprocessors, best);
    }
  }

  //! Alone, in bytes a microsecond.
  double rate_of(matmul& product, const communication& link) {
    // Long enough that its beginning does not count, short enough for whatever room there is.
    const std::size_t some = std::min<std::size_t>(room_.bytes(), std::size_t{128} << 20);
    return static_cast<double>(some) / quick(product, link, some, {.compute = false});
  }

  void measure(matmul& product, const matmul_shape& shape, const communication& link,
               const std::vector<double>& ratios) {
    const double alone = quick(product, link, 0, {.communicate = false});
    const double rate = rate_of(product, link);
    for (const double ratio : ratios) {
      const double wanted = rate * alone / ratio;
      if (wanted > static_cast<double>(room_.bytes())) {
        to_.note("too little memory for " + std::string(shape.type) +
                 " at r = " + std::to_string(ratio));
        continue;
      }
      measure(product, shape, link, static_cast<std::size_t>(wanted) & ~std::size_t{4095}, ratio);
    }
  }

  void measure(matmul& product, const matmul_shape& shape, const communication& link,
               std::size_t bytes, double ratio) {
    // What leaves multiprocessors free when it is told to shows only when they are taken.
    tune(product, link, bytes, {.order = first_issued::matmul, .margin = link.blocks});
    std::vector<setting> settings = {{.communicate = false},
                                     {.compute = false},
                                     {.serial = true},
                                     {.communicate = false, .margin = link.blocks, .beside = 1}};
    const std::size_t alone = settings.size();
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
    const stop_rule rule{.least = 15, .most = 30, .seconds = 3};
    clock_.begin_row();
    int rounds = 0;
    for (std::size_t at = 0; at < settings.size(); ++at)
      variants.push_back([&, at] {
        if (at == 0 && rounds++ > rule.warmups) clock_.look();  // behind the round before
        return two_.run(product, link, bytes, settings[at], &seen[at]);
      });
    const std::vector<summary> all = alternate(variants, rule);
    for (times& each : seen)  // without the rounds that warmed up
      for (auto* const list : {&each.all, &each.compute, &each.communicate, &each.lead})
        if (!list->empty()) list->erase(list->begin(), list->begin() + rule.warmups);

    overlap_row row{.shape = shape,
                    .link = &link,
                    .bytes = bytes,
                    .multiprocessors = seen_.multiProcessorCount,
                    .clock = clock_.look(),
                    .compute = all[0].median,
                    .communicate = all[1].median,
                    .serial = all[2].median,
                    .compute_in_margin = all[3].median,
                    .proposal = product.proposal(1, two_.multiprocessors(0)),
                    .proposal_in_margin = product.proposal(1, two_.multiprocessors(link.blocks)),
                    .cluster = product.cluster(1, two_.multiprocessors(0)),
                    .cluster_in_margin = product.cluster(1, two_.multiprocessors(link.blocks)),
                    .rounds = all[0].count,
                    .ways = {}};
    for (std::size_t at = alone; at < settings.size(); ++at)
      row.ways.push_back({settings[at], all[at], quantile(seen[at].compute, 0.5),
                          quantile(seen[at].communicate, 0.5), quantile(seen[at].lead, 0.5)});
    table_.add(row);
  }

  report& to_;
  overlap_table table_;
  cudaDeviceProp seen_;
  bench_of_two two_;
  clock_check clock_;
  message_room room_;
};

}  // namespace

int main(int count, char** arguments) {
  std::setvbuf(stdout, nullptr, _IOLBF, 0);  // in a pipe, too
  std::vector<std::string> words(arguments + 1, arguments + count);
  try {
    const std::string path = take_option(words, "--json");
    const std::vector<double> blocks = numbers(take_option(words, "--blocks", "8"), 32);
    const std::vector<double> rates = numbers(take_option(words, "--rates", "50,180,370"), 1e5);
    const std::vector<double> ratios =
        numbers(take_option(words, "--ratios", "0.5,1.28,2.88"), 1e3);
    const std::vector<double> late = numbers(take_option(words, "--late", "20"), 1e6);
    const int cluster = static_cast<int>(numbers(take_option(words, "--cluster", "1"), 8)[0]);
    for (const double each : blocks)
      if (cluster < 1 || static_cast<int>(each) % cluster != 0)
        throw std::invalid_argument("--cluster is a divisor of all --blocks");
    if (!words.empty())
      throw std::invalid_argument("'" + words[0] +
                                  "'; usage: gpu_overlap [--json FILE] [--blocks 8,...] "
                                  "[--rates 50,180,370] [--ratios 0.5,1.28,2.88] [--late 20] "
                                  "[--cluster 1]");
    if (there_is_no_gpu()) return 0;
    report made("overlap", about_gpu());
    made.about()["cluster"] = cluster;
    grid all(made, cluster);
    std::vector<communication> links;
    for (const double each : blocks)
      for (const double rate : rates)
        links.push_back(all.room().stand_in(rate, static_cast<int>(each)));
#ifdef STRETTO_BENCH_NCCL
    std::vector<std::unique_ptr<lone_rank>> ranks;
    int version = 0;
    static_cast<void>(ncclGetVersion(&version));
    made.about()["nccl"] = version;
    try {
      for (const double each : blocks) {
        ncclConfig_t with = NCCL_CONFIG_INITIALIZER;
        with.maxCTAs = static_cast<int>(each);
        with.cgaClusterSize = cluster;
        ranks.push_back(std::make_unique<lone_rank>(with));
        links.push_back(all.room().by_nccl(*ranks.back(), static_cast<int>(each)));
      }
    } catch (const std::exception& wrong) {
      made.note(std::string("NCCL is not measured: ") + wrong.what());
    }
#else
    made.note("NCCL is not measured: there was none to build with");
#endif
    all.look_at_paces(links);
    // Written as it comes: what ends this early leaves what was measured before.
    for (const matmul_shape& shape : shapes) {
      all.measure(shape, links, ratios);
      made.write(path);
    }
    for (const double most : late)
      all.measure(shapes[1],
                  {all.room().stand_in(rates.back(), static_cast<int>(blocks.front()), most)},
                  {ratios[ratios.size() / 2]});
    all.tell();
    made.write(path);
  } catch (const std::exception& wrong) {
    std::fprintf(stderr, "gpu_overlap: %s\n", wrong.what());
    return 1;
  }
}
