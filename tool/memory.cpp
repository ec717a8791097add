#include <cmath>
#include <cstdint>
#include <iostream>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "catalogue.hpp"
#include "command.hpp"
#include "errors.hpp"
#include "rank_memory.hpp"
#include "refusals.hpp"
#include "step_options.hpp"
#include "stretto/assignment/described.hpp"
#include "stretto/check/all.hpp"
#include "stretto/lowering/requested.hpp"
#include "stretto/memory/all.hpp"
#include "stretto/model/transformer_chain.hpp"
#include "stretto/model/verdict_text.hpp"
#include "stretto/plan/gathered_weights.hpp"
#include "stretto/plan/report.hpp"
#include "table.hpp"
#include "transformer_options.hpp"

namespace stretto::tool {

namespace {

constexpr double mib = 1 << 20;
constexpr double most_mib = 1e12;

struct memory_command {
  std::string name;
  shape_options sizes;
  std::string layers_text = "24";
  transformer_options of_model;
  std::string recompute = "none";
  std::optional<int> recompute_count;
  std::optional<int> recompute_period;
  std::string offload = "none";
  std::optional<int> gathered;
  std::optional<double> limit;
  std::string format = "table";

  //! What a rank needs, in bytes.
  struct rank_need {
    int layers = 0;
    std::int64_t state = 0;  // weights and, where it trains, gradients and optimizer
    std::int64_t jobs = 0;   // state and the most at once that is gathered and jobs keep and need
    std::int64_t gathered = 0;  // the most at once of gathered weights
    rank_memory step;

    std::int64_t activations() const { return step.arena + step.working; }
    std::int64_t total() const { return state + gathered + activations(); }
  };

  void add(CLI::App& command) {
    command.add_option("NAME", name, "Schedule: " + schedule_names())->required();
    sizes.add(command, true);
    command
        .add_option("--layers", layers_text,
                    "Transformer layers, and how they are dealt to stages, as `assign` has it: 24, "
                    "7,6,6,5, balanced:24, a layout")
        ->capture_default_str();
    of_model.add(command);
    of_model.add_state(command);
    command
        .add_option("--recompute", recompute,
                    "What forwards do not keep and do again: none, attention (scores, softmax, "
                    "dropout), full")
        ->check(CLI::IsMember({"none", "attention", "full"}))
        ->capture_default_str();
    command
        .add_option("--recompute-of", recompute_period,
                    "Of every so many micro-batches recompute --recompute-count")
        ->check(CLI::Range(1, std::numeric_limits<int>::max()).description(""));
    command
        .add_option("--recompute-count", recompute_count, "See --recompute-of (without both: all)")
        ->check(CLI::Range(1, std::numeric_limits<int>::max()).description(""));
    add_offload(command, offload);
    add_gathered(command, gathered);
    command.add_option(
        "--limit", limit,
        "MiB that no rank's state, gathered weights and jobs may exceed; messages and "
        "copies of gradients come on top");
    command.add_option("--format", format, "table or json")
        ->check(CLI::IsMember({"table", "json"}));
  }

  void run() {
    how_ = assignment::described(layers_text);
    if (!how_.complaint().empty()) throw bad_option("--layers", layers_text, how_.complaint());
    const shape wanted = sizes.sizes(name);
    refuse_unplanned(wanted);
    forward_only_ = is_forward_only(name);
    if (forward_only_ && of_model.data_parallel.value_or(1) > 1)
      throw bad_option("--data-parallel", std::to_string(*of_model.data_parallel),
                       name + " has no gradients to sum");
    of_model.settle(how_.layers(), layers_text, wanted.slices);
    chunks_ = wanted.chunks;
    if (forward_only_ && model_.optimizer_shards > 1)
      throw bad_option("--optimizer-shards", std::to_string(model_.optimizer_shards),
                       name + " has no optimizer");
    // Not by a range, which has nothing against NaN.
    if (limit && !(*limit > 0 && *limit <= most_mib))
      throw bad_option("--limit", (std::ostringstream() << *limit).str(),
                       "must be above 0 and at most 1e12");
    if (recompute == "attention" && model_.attention == attention_kernel::fused)
      throw bad_option("--recompute", recompute, "--attention fused keeps none of that");
    schedule_options options;
    options.recompute = window();
    options.offload = away_ = read_offload(offload, name);
    if (gathered && !gathers())
      throw bad_option("--gathered", std::to_string(*gathered),
                       "says of what only with --weight-shards");
    options.gathered = gathered.value_or(options.gathered);
    if (forward_only_ && options.recompute.any())
      throw bad_option("--recompute", recompute,
                       name + " has no backward for which a forward would run again");
    verdict unsound;
    const generated made =
        generate(name, wanted, options,
                 // Schedules that look at limits split their backwards.
                 [&](const placement& where) { return job_costs(where, unsound, true); });
    if (unsound.why == reason::too_many_ops)
      throw bad_option("--layers", layers_text,
                       "a stage of rank " + std::to_string(unsound.rank) + " gets too many: " +
                           std::string(describe(unsound.why)));
    if (!unsound.ok()) throw bad_input(std::string(to_text(unsound).view()));
    if (made.refused) refuse_shape(name, made.answer.why, wanted, options);
    const amount_text mibs = [this](std::int64_t bytes) {
      if (limit && bytes == static_cast<std::int64_t>(*limit * mib))
        return (std::ostringstream() << *limit).str() + " MiB";  // as it was given
      return static_cast<double>(bytes) < mib ? std::to_string(bytes) + " bytes"
                                              : in_mib(bytes) + " MiB";
    };
    if (!made.answer.ok())
      throw broken_schedule(
          name + ": " +
          refusal_of_search(made.answer,
                            away_.any() || made.room ? least_limit::enough : least_limit::smallest,
                            mibs));
    bool split = false;
    for (int rank = 0; rank < wanted.ranks; ++rank)
      for (const job& work : made.lists.rows().row(rank))
        split = split || work.kind == job_kind::backward_weight;
    const job_table table = split ? made.costs : job_costs(made.where, unsound, false);
    const replay_input input{
        made.lists.rows(), made.where, wanted.microbatches, wanted.slices, table.view(), false, {}};
    if (gathers() && options.gathered < least_gathered(input.rows))
      refuse_few_gathered(options.gathered, name);
    const job_lists lists =
        gathers() ? with_gathered_weights(input, options.gathered) : job_lists{};
    replay_input step = input;
    if (gathers()) step.rows = lists.rows();
    if (const verdict answer = check::schedule(step); !answer.ok())
      throw broken_schedule(name + ": " + refusal_of_order(answer, step, mibs));
    std::vector<rank_report> ranks(static_cast<std::size_t>(wanted.ranks));
    (void)measure(step, ranks);
    print(needs(step, table, ranks,
                measure_plans(input, message(), chains(made.where), summed(made.where))),
          made.where);
  }

 private:
  memory::recompute_window window() const {
    if (recompute == "none") {
      if (recompute_period)
        throw bad_option("--recompute-of", std::to_string(*recompute_period),
                         "says of what only with --recompute");
      if (recompute_count)
        throw bad_option("--recompute-count", std::to_string(*recompute_count),
                         "says of what only with --recompute");
      return {};
    }
    if (recompute_period && !recompute_count)
      throw bad_option("--recompute-of", std::to_string(*recompute_period),
                       "says of what only with --recompute-count");
    if (recompute_count && !recompute_period)
      throw bad_option("--recompute-count", std::to_string(*recompute_count),
                       "says of what only with --recompute-of");
    const int period = recompute_period.value_or(1);
    const int count = recompute_count.value_or(1);
    if (count > period)
      throw bad_option("--recompute-count", std::to_string(count),
                       "is more than --recompute-of, " + std::to_string(period));
    return {period, count};
  }
  //! Transformer layers of every stage. In a layout E and L are where embedding and head are in any
  //! case.
  std::vector<std::int32_t> dealt(const placement& where) const {
    std::vector<layer_range> ranges(static_cast<std::size_t>(where.stages()));
    const std::string letters = how_.letters();
    const auto counts = [&](std::size_t layer) {
      return letters.empty() || letters[layer] == 't' || letters[layer] == 'm';
    };
    // Balanced by multiply-adds of a token and feature, the head's with the last layer.
    const auto work = [&](int layer) {
      const std::int64_t one = model_.layer_products() / model_.hidden +
                               (layer + 1 == how_.layers() ? model_.vocabulary : 0);
      return unit_costs{.forward = one, .backward_input = one, .backward_weight = one};
    };
    const verdict answer = how_.assign(where, ranges, work);
    if (!answer.ok()) throw bad_option("--layers", layers_text, how_.explain(answer, where));
    if ((letters.starts_with('E') && ranges.front().count == 0) ||
        (letters.ends_with('L') && ranges.back().count == 0))
      throw bad_option("--layers", layers_text,
                       "has embedding or head on another than the first and the last stage, where "
                       "memory looks for them");
    std::vector<std::int32_t> held;
    for (const layer_range& range : ranges) {
      held.push_back(0);
      for (std::int32_t at = 0; at < range.count; ++at)
        held.back() += counts(static_cast<std::size_t>(range.first + at)) ? 1 : 0;
    }
    return held;
  }
  std::int64_t state_bytes(const placement& where, int rank,
                           const std::vector<std::int32_t>& counts) const {
    std::int64_t sum = 0;
    for (int chunk = 0; chunk < where.chunks; ++chunk) {
      const int stage = where.stage_of(rank, chunk);
      const std::int32_t held = counts[static_cast<std::size_t>(stage)];
      const bool first = stage == 0;
      const bool last = stage + 1 == where.stages();
      sum += forward_only_ ? model_.weight_bytes(held, first, last)
                           : model_.state_bytes(held, first, last);
    }
    return sum;
  }

  //! @param again  with the recomputes that are asked for
  program_chain chain_of(const placement& where, int rank, const std::vector<std::int32_t>& counts,
                         bool split, bool again) const {
    constexpr std::string_view core[] = {"scores", "softmax", "attention dropout"};
    program_chain chain = transformer_chain(model_, where, rank, counts, split);
    // Without backwards nothing outlives the last op of a forward that reads it.
    if (forward_only_)
      std::erase_if(chain.programs,
                    [](const program& job) { return job.kind != job_kind::forward; });
    if (again && recompute == "full") return memory::recompute(chain, memory::recompute_full{});
    if (again && recompute == "attention")
      return memory::recompute(chain, memory::recompute_ops{core});
    return chain;
  }

  chain_maker chains(const placement& where) const {
    return [this, where, counts = dealt(where)](int rank, bool split, bool again) {
      return chain_of(where, rank, counts, split, again);
    };
  }
  //! In single precision, whatever gradients are in.
  summed_gradients summed(const placement& where) const {
    summed_gradients made{.bytes = {}, .data_parallel = of_model.replicas > 1};
    int stage = 0;
    for (const std::int32_t held : dealt(where)) {
      const bool first = stage == 0, last = stage + 1 == where.stages();
      // Those of a stage on two ranks are all summed, by these.
      const std::int64_t weights =
          where.kind == placement_kind::bidirectional
              ? model_.stage_weights(held, first, last)
              : model_.summed_weights(held, first, last, of_model.replicas);
      made.bytes.push_back(sums(where) ? 4 * weights : 0);
      if (made.bytes.back() > lowering::most_bytes)
        throw bad_option("--layers", layers_text,
                         "the gradients of stage " + std::to_string(stage) + " take " +
                             std::to_string(made.bytes.back()) +
                             " bytes in single precision, in which replicas sum them, and may "
                             "take 2^40");
      ++stage;
    }
    return made;
  }
  bool sums(const placement& where) const {
    return !forward_only_ && (of_model.replicas > 1 || where.kind == placement_kind::bidirectional);
  }
  std::int64_t message() const {
    program_chain none_yet;
    return transformer_writer(model_, none_yet).message_bytes();
  }

  //! Each buffer may be small enough, and all of a job's not.
  void refuse_huge_jobs(const placement& where, int rank, const job_table& table) const {
    constexpr std::int64_t most = job_table_view::most_memory;
    const job_table_view costs = table.view();
    for (int chunk = 0; chunk < where.chunks; ++chunk)
      for (int kind = 0; kind < cost_kinds; ++kind) {
        const job_cost& cost = costs.at(rank, chunk, static_cast<job_kind>(kind));
        const std::int64_t needed = std::max({cost.peak, cost.change, -cost.change});
        if (needed > most)
          throw bad_option("--layers", layers_text,
                           "a job of stage " + std::to_string(where.stage_of(rank, chunk)) +
                               " takes " + std::to_string(needed) + " bytes, and may take 2^46");
      }
  }

  //! @param split  whether backwards are, for what copies move
  job_table job_costs(const placement& where, verdict& unsound, bool split) const {
    const std::vector<std::int32_t> counts = dealt(where);
    job_table table(where.ranks, where.chunks);
    for (int rank = 0; rank < where.ranks; ++rank) {
      for (const bool halves : {false, true}) {
        const program_chain chain = chain_of(where, rank, counts, halves, true);
        of_model.refuse_huge(chain);
        const verdict answer = memory::estimate(chain, rank, table);
        if (!answer.ok()) unsound = answer;
      }
      for (int chunk = 0; chunk < where.chunks; ++chunk) {
        const int stage = where.stage_of(rank, chunk);
        table.at(rank, chunk, job_kind::unshard).change = model_.gathered_bytes(
            counts[static_cast<std::size_t>(stage)], stage == 0, stage + 1 == where.stages());
      }
      refuse_huge_jobs(where, rank, table);
      table.base.push_back(state_bytes(where, rank, counts));
      if (!away_.any() || !unsound.ok()) continue;
      const std::vector<std::int64_t> stashes =
          stash_by_chunk(where, rank, message(), chains(where), split);
      for (int chunk = 0; chunk < where.chunks; ++chunk) {
        const std::int64_t moved = stashes[static_cast<std::size_t>(chunk)];
        table.at(rank, chunk, job_kind::offload).change = -moved;
        table.at(rank, chunk, job_kind::reload).change = moved;
      }
    }
    if (limit)
      table.limit.assign(static_cast<std::size_t>(where.ranks),
                         static_cast<std::int64_t>(*limit * mib));
    return table;
  }

  bool gathers() const { return model_.weight_shards > 1; }
  //! The most at once of weights that a rank gathers.
  static std::int64_t most_gathered(const replay_input& step, int rank) {
    std::int64_t held = 0;
    std::int64_t most = 0;
    for (const job& work : step.rows.row(rank)) {
      if (!is_gather(work.kind)) continue;
      const int chunk = step.where.chunk_on(rank, work.stage);
      const std::int64_t bytes = step.costs.at(rank, chunk, job_kind::unshard).change;
      held += work.kind == job_kind::unshard ? bytes : -bytes;
      most = std::max(most, held);
    }
    return most;
  }

  //! @param step  with its gathers
  std::vector<rank_need> needs(const replay_input& step, const job_table& table,
                               const std::vector<rank_report>& ranks,
                               const std::vector<rank_memory>& steps) const {
    const placement& where = step.where;
    const std::vector<std::int32_t> counts = dealt(where);
    std::vector<rank_need> all;
    for (int rank = 0; rank < where.ranks; ++rank) {
      rank_need need;
      for (int chunk = 0; chunk < where.chunks; ++chunk)
        need.layers += counts[static_cast<std::size_t>(where.stage_of(rank, chunk))];
      need.state = table.base[static_cast<std::size_t>(rank)];
      need.gathered = most_gathered(step, rank);
      need.jobs = ranks[static_cast<std::size_t>(rank)].peak;
      need.step = steps[static_cast<std::size_t>(rank)];
      all.push_back(need);
    }
    return all;
  }

  assignment::described how_;
  memory::offload_window away_{};
  int chunks_ = 1;
  bool forward_only_ = false;
  const transformer& model_ = of_model.model;

  static std::string in_mib(std::int64_t bytes) {
    char text[40];
    std::snprintf(text, sizeof text, "%.0f", std::ceil(static_cast<double>(bytes) / mib));
    return text;
  }
  void print(const std::vector<rank_need>& all, const placement& where) const {
    if (format == "json") {
      nlohmann::ordered_json text{{"schedule", name},
                                  {"ranks", where.ranks},
                                  {"microbatches", sizes.microbatches},
                                  {"chunks", chunks_},
                                  {"slices", model_.slices}};
      for (const rank_need& need : all) {
        text["need"].push_back({{"layers", need.layers},
                                {"state", need.state},
                                {"gathered", need.gathered},
                                {"saved", need.step.saved},
                                {"messages", need.step.messages},
                                {"sums", need.step.sums},
                                {"arena", need.step.arena},
                                {"working", need.step.working},
                                {"activations", need.activations()},
                                {"jobs", need.jobs},
                                {"total", need.total()}});
        if (away_.any()) text["need"].back()["host"] = need.step.host;
      }
      std::cout << text.dump(1) << '\n';
      return;
    }
    std::vector<std::vector<std::string>> rows{
        {"rank", "layers", "state", "saved", "messages", "working", "total"}};
    if (gathers()) rows[0].insert(rows[0].begin() + 3, "gathered");
    if (sums(where)) rows[0].insert(rows[0].end() - 2, "sums");
    if (away_.any()) rows[0].push_back("host");
    std::int64_t most = 0;
    for (std::size_t rank = 0; rank < all.size(); ++rank) {
      const rank_need& need = all[rank];
      rows.push_back({std::to_string(rank), std::to_string(need.layers), in_mib(need.state),
                      in_mib(need.step.saved), in_mib(need.step.messages),
                      in_mib(need.step.working), in_mib(need.total())});
      if (gathers()) rows.back().insert(rows.back().begin() + 3, in_mib(need.gathered));
      if (sums(where)) rows.back().insert(rows.back().end() - 2, in_mib(need.step.sums));
      if (away_.any()) rows.back().push_back(in_mib(need.step.host));
      most = std::max(most, need.total());
    }
    std::cout << name << ", MiB: "
              << (forward_only_ ? "weights alone" : "weights, gradients and optimizer state")
              << "; the most that " << (gathers() ? "gathered weights take, that " : "")
              << "forwards save, that messages take, "
              << (sums(where) ? "that copies of gradients take to be summed, " : "")
              << "that a job needs beside; all, as a plan lays it"
              << (away_.any() ? "; what the host keeps beside it\n" : "\n") << print_table(rows)
              << "the most: " << in_mib(most) << '\n';
  }
};

}  // namespace

void add_memory(CLI::App& app) {
  auto* command =
      app.add_subcommand("memory", "What each rank needs for a transformer, before it runs");
  const auto mine = std::make_shared<memory_command>();
  mine->add(*command);
  command->callback([mine] { mine->run(); });
}

}  // namespace stretto::tool
