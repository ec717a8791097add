#pragma once

// What the benchmark of overlap prints and writes of each row of settings.

#include <cstddef>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "communication.hpp"
#include "harness.hpp"
#include "matmul.hpp"
#include "overlap_run.hpp"
#include "stretto/executor/overlap_meter.hpp"

namespace stretto::bench {

//! What was measured of one matmul and one communication.
struct overlap_row {
  matmul_shape shape;
  const communication* link;
  std::size_t bytes;
  int multiprocessors;
  double clock;                         //!< in MHz
  double compute, communicate, serial;  //!< alone, alone, one behind the other, in microseconds
  double compute_in_margin;  //!< alone, on the multiprocessors that the communication leaves
  std::size_t proposal, proposal_in_margin;  //!< of cuBLAS's, which of them these are, from 0
  std::string cluster, cluster_in_margin;    //!< and their clusters, "2x1" blocks
  int rounds;
  //! And the two at once, in one way each.
  struct way {
    setting how;
    summary both;
    double compute, communicate, lead;  //!< medians
  };
  std::vector<way> ways;
};

class overlap_table {
 public:
  explicit overlap_table(report& to) : to_(to) {}

  void add(const overlap_row& row) {
    executor::overlap_times made;
    made.compute = row.compute;
    made.communicate = row.communicate;
    made.serial = row.serial;
    const matmul_shape& shape = row.shape;
    const communication& link = *row.link;
    const double r = made.compute / made.communicate;
    const double bound = most_hidden(r, link.blocks, row.multiprocessors);
    const double speed = static_cast<double>(row.bytes) / made.communicate / 1e3;
    std::printf(
        "\n%s %d x %d x %d, %s, %d blocks, %.1f MiB at %.0f GB/s, r = %.2f, %.0f MHz, %d rounds\n"
        "alone: matmul %.1f us in clusters of %s (with the margin %.1f, %s), communication %.1f "
        "us, one behind the other "
        "%.1f us\n"
        "ceiling %.1f%%, bound %.1f%%, with the margin throughout %.1f%%\n",
        shape.type, shape.m, shape.n, shape.k, link.name.c_str(), link.blocks,
        static_cast<double>(row.bytes) / (1 << 20), speed, r, row.clock, row.rounds, made.compute,
        row.cluster.c_str(), row.compute_in_margin, row.cluster_in_margin.c_str(), made.communicate,
        made.serial, 100 * made.ceiling(), 100 * bound,
        100 * most_hidden_with_margin(r, link.blocks, row.multiprocessors));
    std::printf("%-26s %6s %7s %10s %8s %8s %9s %9s\n", "issued", "margin", "pieces", "both us",
                "spread", "hidden", "m. slows", "c. slows");
    nlohmann::ordered_json ways = nlohmann::ordered_json::array();
    double most = -1e9;
    std::string best;
    for (const overlap_row::way& each : row.ways) {
      const setting& how = each.how;
      made.both = each.both.median;
      made.compute_beside = each.compute;
      made.communicate_beside = each.communicate;
      std::printf("%-26s %6d %7d %10.1f %7.1f%% %7.1f%% %8.2fx %8.2fx\n", name_of(how.order),
                  how.margin, how.pieces, made.both, 100 * each.both.spread, 100 * made.hidden(),
                  made.compute_slowdown(), made.communicate_slowdown());
      ways.push_back({{"order", name_of(how.order)},
                      {"margin", how.margin},
                      {"pieces", how.pieces},
                      {"both_us", rounded(made.both)},
                      {"spread", rounded(each.both.spread)},
                      {"lead_us", rounded(each.lead)},
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
             {"late_us", link.late},
             {"bytes", row.bytes},
             {"gb_s", rounded(speed)},
             {"r", rounded(r)},
             {"matmul_us", rounded(made.compute)},
             {"matmul_in_margin_us", rounded(row.compute_in_margin)},
             {"proposal", row.proposal},
             {"proposal_in_margin", row.proposal_in_margin},
             {"cluster", row.cluster},
             {"cluster_in_margin", row.cluster_in_margin},
             {"communication_us", rounded(made.communicate)},
             {"serial_us", rounded(made.serial)},
             {"ceiling", rounded(made.ceiling())},
             {"bound", rounded(bound)},
             {"most_hidden", rounded(most)},
             {"samples", row.rounds},
             {"clock_mhz", rounded(row.clock)},
             {"ways", std::move(ways)}});
    char line[200];
    std::snprintf(line, sizeof line, "%-5s %6d  %-15s %7d %6.0f %6.2f %7.1f%% %7.1f%% %7.1f%%  %s",
                  shape.type, shape.m, link.name.c_str(), link.blocks, speed, r,
                  100 * made.ceiling(), 100 * bound, 100 * most, best.c_str());
    best_.emplace_back(line);
  }

  //! What is best, of each row.
  void tell() const {
    std::printf("\n%-5s %6s  %-15s %7s %6s %6s %8s %8s %8s  %s\n", "", "size", "communication",
                "blocks", "GB/s", "r", "ceiling", "bound", "hidden", "at its best");
    for (const std::string& each : best_) std::puts(each.c_str());
  }

 private:
  report& to_;
  std::vector<std::string> best_;
};

}  // namespace stretto::bench
