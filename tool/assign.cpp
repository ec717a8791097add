#include <charconv>
#include <iostream>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>

#include "command.hpp"
#include "stretto/assignment/all.hpp"
#include "table.hpp"

namespace stretto::tool {

namespace {

struct assign_command {
  std::string per_rank;
  int chunks = 1;
  std::string placement_name = "looped";
  std::string format = "table";

  std::vector<std::int32_t> layers() const {
    std::vector<std::int32_t> all;
    std::int64_t sum = 0;
    const char* at = per_rank.data();
    const char* const end = at + per_rank.size();
    while (true) {
      std::int32_t count = 0;
      const auto read = std::from_chars(at, end, count);
      if (read.ec != std::errc{} || count < 0 || (read.ptr != end && *read.ptr != ','))
        throw bad_option("--per-rank", per_rank, "expected layer counts between commas, as in 5,3");
      all.push_back(count);
      sum += count;
      if (sum > std::numeric_limits<std::int32_t>::max())
        throw bad_option("--per-rank", per_rank, "too many layers in all");
      if (read.ptr == end) return all;
      at = read.ptr + 1;
    }
  }

  void run() const {
    const auto counts = layers();
    // Every chunk holds a layer, so this also bounds the number of stages.
    for (std::size_t rank = 0; rank < counts.size(); ++rank)
      if (counts[rank] < chunks)
        throw bad_option("--per-rank", per_rank,
                         "rank " + std::to_string(rank) + " has " + std::to_string(counts[rank]) +
                             " layers for " + std::to_string(chunks) +
                             " chunks: " + std::string(describe(reason::empty_stage)));
    const placement where{
        .kind = placement_name == "wave" ? placement_kind::wave : placement_kind::looped,
        .ranks = static_cast<int>(counts.size()),
        .chunks = chunks};
    std::vector<assignment::layer_range> stages(static_cast<std::size_t>(where.stages()));
    const verdict answer = assignment::deal_round_robin(counts, where, stages);
    if (!answer.ok()) throw bad_option("--per-rank", per_rank, std::string(describe(answer.why)));
    if (format == "json")
      print_json(where, stages);
    else
      print(where, stages);
  }

 private:
  static void print(const placement& where, const std::vector<assignment::layer_range>& stages) {
    std::vector<std::vector<std::string>> rows{{"stage", "rank", "chunk", "layers"}};
    for (int stage = 0; stage < where.stages(); ++stage) {
      const auto& range = stages[static_cast<std::size_t>(stage)];
      const std::string first = std::to_string(range.first);
      rows.push_back(
          {std::to_string(stage), std::to_string(where.rank_of(stage, 0)),
           std::to_string(where.chunk_of(stage, 0)),
           range.count == 1 ? first : first + "-" + std::to_string(range.first + range.count - 1)});
    }
    std::cout << print_table(rows);
  }
  static void print_json(const placement& where,
                         const std::vector<assignment::layer_range>& stages) {
    nlohmann::ordered_json list = nlohmann::ordered_json::array();
    for (int stage = 0; stage < where.stages(); ++stage) {
      const auto& range = stages[static_cast<std::size_t>(stage)];
      nlohmann::ordered_json entry{{"rank", where.rank_of(stage, 0)},
                                   {"chunk", where.chunk_of(stage, 0)},
                                   {"layers", nlohmann::json::array()}};
      for (std::int32_t layer = 0; layer < range.count; ++layer)
        entry["layers"].push_back(range.first + layer);
      list.push_back(std::move(entry));
    }
    std::cout << list.dump() << '\n';
  }
};

}  // namespace

void add_assign(CLI::App& app) {
  auto* command = app.add_subcommand("assign", "Deal each rank's layers to its chunks in turn");
  const auto mine = std::make_shared<assign_command>();
  command->add_option("--per-rank", mine->per_rank, "Layers of each rank, as in 5,3")->required();
  command->add_option("--chunks", mine->chunks, "Stages per rank (default 1)")
      ->check(CLI::Range(1, std::numeric_limits<int>::max()).description(""));
  command->add_option("--placement", mine->placement_name, "looped or wave")
      ->check(CLI::IsMember({"looped", "wave"}));
  command->add_option("--format", mine->format, "table or json")
      ->check(CLI::IsMember({"table", "json"}));
  command->callback([mine] { mine->run(); });
}

}  // namespace stretto::tool
