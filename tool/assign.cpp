#include <algorithm>
#include <iostream>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>

#include "command.hpp"
#include "cost_options.hpp"
#include "errors.hpp"
#include "files.hpp"
#include "layers.hpp"
#include "layers_svg.hpp"
#include "table.hpp"

namespace stretto::tool {

namespace {

struct assign_command {
  cost_options costs;
  int ranks = 0;
  int chunks = 0;
  std::string placement_name = "looped";
  std::string format = "table";
  std::string out = "-";

  void run() {
    if (!costs.layers.given()) throw bad_input("--layers: required");
    if (!costs.costs_file.empty())
      throw bad_option("--costs", costs.costs_file, "here --layer-costs speaks of layers");
    const assignment::described how(costs.layers.text);
    if (!how.complaint().empty()) throw bad_option("--layers", costs.layers.text, how.complaint());
    where_ = place(how);
    unit_costs layer = costs.units();
    layer.memory_weights = costs.weights;
    dealt_ = deal_layers(costs.layers, where_, layer, costs.limits(where_.ranks), true);
    for (int rank = 0; rank < where_.ranks; ++rank) {
      loads_.emplace_back();
      for (int chunk = 0; chunk < where_.chunks; ++chunk) {
        const layer_range held = held_by(where_.stage_of(rank, chunk));
        loads_.back().time += time_of(held);
        loads_.back().layers += held.count;
      }
      slowest_ = std::max(slowest_, loads_.back().time);
    }
    if (format == "json")
      write_file("-o", out, json());
    else if (format == "svg")
      write_svg("-o", out, to_svg(dealt_, where_, title(), summary()));
    else
      write_file("-o", out, table());
  }

 private:
  struct load {
    std::int64_t time = 0;
    int layers = 0;
  };

  //! Ranks and chunks, where not given, are those that the text speaks of.
  placement place(const assignment::described& how) const {
    shape sizes{.ranks = ranks > 0 ? ranks : how.ranks(), .chunks = chunks};
    if (sizes.ranks == 0 && how.stages() > 0 && chunks > 0 && how.stages() % chunks == 0)
      sizes.ranks = how.stages() / chunks;
    if (sizes.ranks == 0) throw bad_input("--ranks: required with --layers " + costs.layers.text);
    const bool both_ways = placement_name == "bidirectional";
    if (sizes.chunks == 0)
      sizes.chunks =
          how.stages() > 0 && how.stages() % sizes.ranks == 0 ? how.stages() / sizes.ranks : 1;
    // Stages without layers aside, this bounds their number.
    if (std::int64_t{sizes.ranks} * sizes.chunks > assignment::described::most_layers)
      throw bad_input("--ranks " + std::to_string(sizes.ranks) + " --chunks " +
                      std::to_string(sizes.chunks) + ": at most " +
                      std::to_string(assignment::described::most_layers) + " stages");
    // As many micro-batches as keep every stage busy in one direction or both.
    sizes.microbatches = 2 * sizes.ranks * sizes.chunks;
    return stretto::place(both_ways                  ? placement_kind::bidirectional
                          : placement_name == "wave" ? placement_kind::wave
                                                     : placement_kind::looped,
                          sizes);
  }

  layer_range held_by(int stage) const { return dealt_.stages[static_cast<std::size_t>(stage)]; }
  std::int64_t time_of(const layer_range& held) const {
    return sum_of_layers(held, dealt_.cost_of()).both_ways();
  }
  static std::string range(const layer_range& held) {
    const std::string first = std::to_string(held.first);
    if (held.count == 0) return "none";
    return held.count == 1 ? first : first + "-" + std::to_string(held.first + held.count - 1);
  }

  std::string title() const {
    return costs.layers.text + " on " + std::to_string(where_.ranks) +
           (where_.ranks == 1 ? " rank" : " ranks") +
           (where_.kind == placement_kind::bidirectional ? ", both directions" : "") +
           (where_.chunks_one_way() > 1 ? ", " + std::to_string(where_.chunks_one_way()) + " chunks"
                                        : "");
  }
  //! What the slowest rank takes of layers that are dealt evenly; 0: they cannot be.
  std::int64_t dealt_evenly() const {
    std::int64_t even = 0;
    std::vector<layer_range> stages(dealt_.stages.size());
    if (assignment::deal_evenly(dealt_.how.layers(), where_, stages).ok())
      for (int rank = 0; rank < where_.ranks; ++rank) {
        std::int64_t time = 0;
        for (int chunk = 0; chunk < where_.chunks; ++chunk)
          time += time_of(stages[static_cast<std::size_t>(where_.stage_of(rank, chunk))]);
        even = std::max(even, time);
      }
    return even;
  }
  std::string summary() const {
    const std::int64_t even = dealt_evenly();
    std::string text = "slowest rank " + std::to_string(slowest_);
    if (even > 0) text += "; dealt evenly " + std::to_string(even);
    if (dealt_.bound > 0)
      text += dealt_.bound == slowest_ ? "; none is faster"
                                       : "; none is faster than " + std::to_string(dealt_.bound);
    return text;
  }

  std::string table() const {
    std::vector<std::vector<std::string>> rows{{"stage", "rank", "chunk", "layers", "time"}};
    for (int stage = 0; stage < where_.stages(); ++stage)
      rows.push_back({std::to_string(stage), std::to_string(where_.rank_of(stage, 0)),
                      std::to_string(where_.chunk_of(stage, 0)), range(held_by(stage)),
                      std::to_string(time_of(held_by(stage)))});
    std::string text = print_table(rows) + "\n";
    rows = {{"rank", "layers", "time", "of the slowest"}};
    for (std::size_t rank = 0; rank < loads_.size(); ++rank)
      rows.push_back({std::to_string(rank), std::to_string(loads_[rank].layers),
                      std::to_string(loads_[rank].time),
                      percent(static_cast<double>(loads_[rank].time) /
                              static_cast<double>(std::max<std::int64_t>(1, slowest_)))});
    return text + print_table(rows) + "\n" + summary() + "\n";
  }

  std::string json() const {
    nlohmann::ordered_json list = nlohmann::ordered_json::array();
    const std::string letters = dealt_.how.letters();
    for (int stage = 0; stage < where_.stages(); ++stage) {
      const layer_range held = held_by(stage);
      nlohmann::ordered_json entry{{"rank", where_.rank_of(stage, 0)},
                                   {"chunk", where_.chunk_of(stage, 0)},
                                   {"layers", nlohmann::json::array()}};
      for (std::int32_t layer = 0; layer < held.count; ++layer)
        entry["layers"].push_back(held.first + layer);
      if (!letters.empty())
        entry["letters"] = letters.substr(static_cast<std::size_t>(held.first),
                                          static_cast<std::size_t>(held.count));
      entry["time"] = time_of(held);
      list.push_back(std::move(entry));
    }
    nlohmann::ordered_json all{{"slowest", slowest_}};
    if (const std::int64_t even = dealt_evenly(); even > 0) all["dealt_evenly"] = even;
    if (dealt_.bound > 0) all["bound"] = dealt_.bound;
    all["stages"] = std::move(list);
    return all.dump() + "\n";
  }

  placement where_;
  dealt_layers dealt_;
  std::vector<load> loads_;
  std::int64_t slowest_ = 0;
};

}  // namespace

void add_assign(CLI::App& app) {
  auto* command = app.add_subcommand("assign",
                                     "Deal layers to ranks and chunks, and draw who holds "
                                     "what and how long it takes");
  const auto mine = std::make_shared<assign_command>();
  constexpr int greatest = std::numeric_limits<int>::max();
  command
      ->add_option("--ranks", mine->ranks, "Ranks of the pipeline (where --layers leaves it open)")
      ->check(CLI::Range(1, greatest).description(""));
  command
      ->add_option("--chunks", mine->chunks,
                   "Stages per rank, of either direction where there are two (default: as --layers "
                   "has, or 1)")
      ->check(CLI::Range(1, greatest).description(""));
  command->add_option("--placement", mine->placement_name, "looped, wave or bidirectional")
      ->check(CLI::IsMember({"looped", "wave", "bidirectional"}));
  mine->costs.add(*command, {.windows = false, .pairs = false});
  command->add_option("--format", mine->format, "table, json or svg")
      ->check(CLI::IsMember({"table", "json", "svg"}));
  command->add_option("-o,--output", mine->out, "File to write (default standard output)");
  command->footer(
      "Times are those of one micro-batch through all that a rank holds, forwards and whole "
      "backwards,\n"
      "by --cost for each layer. balanced makes the slowest rank as fast as can be, within "
      "--limit\n"
      "if given, and what else takes more is refused: --weights and --memory of its layers,\n"
      "activations as 1F1B keeps them.\n" +
      exits);
  command->callback([mine] { mine->run(); });
}

}  // namespace stretto::tool
