#include <algorithm>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "command.hpp"
#include "step.hpp"
#include "table.hpp"

namespace stretto::tool {

namespace {

//! The table of a rank whose chunks are one stage: what its chunks do one after another.
job_table merged(const job_table& chunked) {
  job_table table(chunked.ranks, 1);
  table.communication = chunked.communication;
  table.base = chunked.base;
  table.limit = chunked.limit;
  for (int rank = 0; rank < chunked.ranks; ++rank)
    for (int at = 0; at < cost_kinds; ++at) {
      const auto kind = static_cast<job_kind>(at);
      job_cost sum;
      for (int chunk = 0; chunk < chunked.chunks; ++chunk) {
        const job_cost& one = chunked.view().at(rank, chunk, kind);
        sum.peak = std::max({sum.peak, sum.change + one.peak, sum.change + one.change});
        sum.time += one.time;
        sum.change += one.change;
      }
      table.at(rank, 0, kind) = sum;
    }
  return table;
}

struct compared {
  std::string name;
  int chunks = 1;
  std::string why;  //!< it is not there
  simulated all;
};

struct compare_command {
  shape_options sizes;
  cost_options costs;
  std::string format = "table";

  //! A schedule for one chunk per rank runs the same model with its rank's chunks as one.
  compared run(const schedule_facts& facts, shape wanted) const {
    compared result;
    result.name = facts.name;
    const placement split = place(placement_kind::looped, wanted);
    const cost_options mine = costs.for_schedule(facts.name);
    const bool merges = wanted.chunks > 1 && !facts.chunks;
    if (merges) wanted.chunks = 1;
    result.chunks = wanted.chunks;
    const auto made = make_step(
        facts.name, wanted, {},
        [&](const placement& where) {
          return merges ? merged(make_costs(mine, split)) : make_costs(mine, where);
        },
        &result.why);
    if (made) result.all = simulate(*made);
    return result;
  }

  void run() const {
    std::vector<compared> all;
    for (const schedule_facts& facts : catalogue()) all.push_back(run(facts, sizes.sizes()));
    if (format == "json")
      print_json(all);
    else
      print(all);
  }

 private:
  static std::int64_t most(const simulated& all, std::int64_t rank_report::*part) {
    std::int64_t greatest = 0;
    for (const rank_report& rank : all.ranks) greatest = std::max(greatest, rank.*part);
    return greatest;
  }
  static void print(const std::vector<compared>& all) {
    std::vector<std::vector<std::string>> rows{
        {"schedule", "chunks", "makespan", "bubble", "idle", "peak"}};
    std::string absent;
    for (const compared& one : all) {
      if (!one.why.empty()) {
        absent += one.name + ": " + one.why + "\n";
        continue;
      }
      rows.push_back({one.name, std::to_string(one.chunks), std::to_string(one.all.all.makespan),
                      percent(one.all.all.bubble.value()),
                      std::to_string(most(one.all, &rank_report::idle)),
                      std::to_string(most(one.all, &rank_report::peak))});
    }
    std::cout << print_table(rows) << absent;
  }
  static void print_json(const std::vector<compared>& all) {
    nlohmann::ordered_json list = nlohmann::ordered_json::array();
    for (const compared& one : all) {
      nlohmann::ordered_json entry{{"schedule", one.name}, {"chunks", one.chunks}};
      if (!one.why.empty()) {
        entry["refused"] = one.why;
      } else {
        entry["makespan"] = one.all.all.makespan;
        entry["bubble"] = one.all.all.bubble.value();
        for (const rank_report& rank : one.all.ranks) {
          entry["idle"].push_back(rank.idle);
          entry["peak"].push_back(rank.peak);
        }
      }
      list.push_back(std::move(entry));
    }
    std::cout << list.dump(1) << '\n';
  }
};

}  // namespace

void add_compare(CLI::App& app) {
  auto* command = app.add_subcommand(
      "compare", "All schedules on one model; idle and peak are those of the worst rank");
  const auto mine = std::make_shared<compare_command>();
  mine->sizes.add(*command, true);
  mine->costs.add(*command);
  command->add_option("--format", mine->format, "table or json")
      ->check(CLI::IsMember({"table", "json"}));
  command->footer("A schedule for one chunk per rank runs with the rank's chunks as one.");
  command->callback([mine] { mine->run(); });
}

}  // namespace stretto::tool
