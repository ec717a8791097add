#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>
#include <thread>

#include "command.hpp"
#include "errors.hpp"
#include "finer_unit.hpp"
#include "limits.hpp"
#include "step.hpp"
#include "stretto/model/bound.hpp"
#include "stretto/model/verdict_text.hpp"
#include "table.hpp"

namespace stretto::tool {

namespace {

// Each holds a step, which takes some 150 bytes a job of a kind: of all together no more than two
// of the largest.
constexpr unsigned most_threads = 8;
constexpr std::int64_t most_jobs_held = 2 * shape::most_jobs;

struct compared {
  std::string name;
  bool forward_only = false;
  int chunks = 1;
  int slices = 1;
  verdict why;  //!< it is not there
  simulated all;
  step_bound bound;

  std::int64_t peak() const {
    std::int64_t greatest = 0;
    for (const rank_report& rank : all.ranks) greatest = std::max(greatest, rank.peak);
    return greatest;
  }
};

struct compare_command {
  shape_options sizes;
  cost_options costs;
  std::string objective = "flush";
  std::string merge = "none";
  std::string sort;
  std::string format = "table";

  void run() {
    wanted_ = sizes.sizes();
    std::vector<compared> all;
    std::vector<compared> absent;
    for (const schedule_facts& facts : catalogue())
      memory_.times = std::lcm(memory_.times, cut_of(facts));
    // Nor is a part of what a pair hides.
    time_.times = std::lcm(memory_.times, finer_unit::of_hidden(costs.hides).times);
    for (compared& one : run_all()) (one.why.ok() ? all : absent).push_back(std::move(one));
    std::stable_sort(all.begin(), all.end(), [&](const compared& one, const compared& other) {
      if (one.forward_only != other.forward_only) return other.forward_only;
      return before(one, other);
    });
    if (format == "json")
      print_json(all, absent);
    else
      print(all, absent);
    std::cout.flush();
    if (all.empty())
      throw bad_input("no schedule serves this shape within its limits; standard output says why");
  }

 private:
  //! Which schedule is being made: with many jobs the searches take their time.
  static void tell(const std::string& name) {
    static const bool terminal = isatty(STDERR_FILENO) == 1;
    if (terminal) std::cerr << "\r\x1b[K" + name + "\r" << std::flush;
  }
  bool spans() const { return objective == "span"; }
  std::int64_t length(const compared& one) const {
    return spans() ? one.all.all.span : one.all.all.makespan;
  }
  std::int64_t bound(const compared& one) const {
    return spans() ? one.bound.span : one.bound.flush;
  }
  bool before(const compared& one, const compared& other) const {
    if (sort == "name") return one.name < other.name;
    if (sort == "peak" && one.peak() != other.peak()) return one.peak() < other.peak();
    const double bubbles[] = {one.all.all.bubble.value(), other.all.all.bubble.value()};
    if (sort == "bubble" && bubbles[0] != bubbles[1]) return bubbles[0] < bubbles[1];
    return length(one) < length(other);
  }

  //! All schedules, in the order of the catalogue, by as many threads as the machine runs at once:
  //! none knows of another. Searches take longest and begin first.
  std::vector<compared> run_all() const {
    const std::vector<schedule_facts>& every = catalogue();
    std::vector<std::size_t> order(every.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_partition(order.begin(), order.end(),
                          [&](std::size_t at) { return searches(every[at]); });
    std::vector<compared> made(every.size());
    std::vector<std::exception_ptr> failed(every.size());
    std::atomic<std::size_t> next = 0;
    const auto work = [&] {
      for (std::size_t taken = next++; taken < order.size(); taken = next++) {
        const std::size_t at = order[taken];
        tell(every[at].name);
        try {
          made[at] = run(every[at]);
        } catch (...) {
          failed[at] = std::current_exception();
        }
      }
    };
    {
      const std::int64_t jobs = std::int64_t{wanted_.ranks} * wanted_.chunks *
                                wanted_.microbatches * wanted_.slices;
      const auto most = static_cast<unsigned>(
          std::clamp<std::int64_t>(most_jobs_held / jobs, 1, most_threads));
      const unsigned threads = std::clamp(std::thread::hardware_concurrency(), 1u, most);
      std::vector<std::jthread> others;
      for (unsigned other = 1; other < threads; ++other) others.emplace_back(work);
      work();
    }
    tell("");
    for (const std::exception_ptr& one : failed)
      if (one) std::rethrow_exception(one);
    return made;
  }
  static bool searches(const schedule_facts& facts) {
    return std::count(facts.options.begin(), facts.options.end(), "--variant") > 0;
  }

  //! The shape that a schedule runs with: the one asked for, in slices and chunks that it has.
  shape shape_of(const schedule_facts& facts) const {
    shape tried = wanted_;
    if (!facts.slices) tried.slices = 1;
    if (serves(facts.name, tried).ok()) return tried;
    for (const int chunks : facts.chunks) {
      tried.chunks = chunks;
      if (serves(facts.name, tried).ok()) return tried;
    }
    tried.chunks = wanted_.chunks;
    return tried;
  }
  //! What its costs must be multiplied by lest a part of them be rounded.
  std::int64_t cut_of(const schedule_facts& facts) const {
    const int chunks = shape_of(facts).chunks;
    return chunks == wanted_.chunks || costs.layers.given() ? 1 : chunks;
  }

  compared run(const schedule_facts& facts) const {
    compared result;
    result.name = facts.name;
    result.forward_only = facts.forward_only;
    const shape cut = shape_of(facts);
    result.chunks = cut.chunks;
    result.slices = cut.slices;
    schedule_options options;
    options.merge = schedule::spelt<schedule::merge_kind>(merge);
    if (spans() && (merge != "none" ||
                    std::count(facts.options.begin(), facts.options.end(), "--objective") > 0))
      options.objective = schedule::objective_kind::span;
    const cost_options mine = costs.for_step(facts.forward_only);
    std::optional<step> made;
    try {
      made = make_step(
          facts.name, cut, options,
          [&](const placement& where) {
            return make_costs(mine, where,
                              {.given = wanted_.chunks,
                               .slices = cut.slices,
                               .joined = wanted_.slices / cut.slices,
                               .times = time_.times,
                               .amounts = memory_.times});
          },
          &result.why);
    } catch (const layers_refused& refused) {
      result.why = refused.why;
    }
    if (!made) return result;
    result.all = simulate(*made, false);
    // Slices run as micro-batches would, but for what more orders them.
    placement parts = made->made.where;
    parts.microbatches *= cut.slices;
    if (!facts.forward_only) result.bound = lower_bound(parts, made->made.costs.view());
    return result;
  }

  //! `1/2`: its job's cost over that of a job of the shape.
  std::string scale(const compared& one) const {
    const int above = wanted_.chunks * (wanted_.slices / one.slices);
    const int common = std::gcd(above, one.chunks);
    const int below = one.chunks / common;
    return std::to_string(above / common) + (below == 1 ? "" : "/" + std::to_string(below));
  }
  std::string reason_of(const compared& one) const {
    if (one.why.what == fault::unsupported) return std::string(describe(one.why.why));
    if (one.why.what == fault::misassigned) return std::string(to_text(one.why).view());
    if (one.why.what == fault::over_limit)
      return needs_in_words(one.why, [&](std::int64_t amount) { return memory_.text(amount); });
    return std::string(to_text(one.why).view());
  }
  double above(const compared& one) const {
    return static_cast<double>(length(one) - bound(one)) / static_cast<double>(bound(one));
  }

  void print(const std::vector<compared>& all, const std::vector<compared>& absent) const {
    std::vector<std::vector<std::string>> rows{
        {"schedule", "chunks", "job", "makespan", "bubble", "peak", "bound", "above it"}};
    const bool sliced = wanted_.slices > 1;
    if (spans()) rows[0].insert(rows[0].begin() + 4, "span");
    if (sliced) rows[0].insert(rows[0].begin() + 2, "slices");
    // Dealt layers are not cut anew: the sum of all jobs is the model's whatever the chunks.
    const std::ptrdiff_t job = costs.layers.given() ? (sliced ? 3 : 2) : 0;
    if (job > 0) rows[0].erase(rows[0].begin() + job);
    for (const compared& one : all) {
      const bool bounded = !one.forward_only && bound(one) > 0;
      rows.push_back({one.name, std::to_string(one.chunks), "x " + scale(one),
                      time_.text(one.all.all.makespan), percent(one.all.all.bubble.value()),
                      memory_.text(one.peak()), bounded ? time_.text(bound(one)) : "-",
                      bounded ? percent(above(one)) : "-"});
      if (spans()) rows.back().insert(rows.back().begin() + 4, time_.text(one.all.all.span));
      if (sliced) rows.back().insert(rows.back().begin() + 2, std::to_string(one.slices));
      if (job > 0) rows.back().erase(rows.back().begin() + job);
    }
    std::cout << print_table(rows);
    for (const compared& one : absent) std::cout << one.name << ": " << reason_of(one) << '\n';
  }
  void print_json(const std::vector<compared>& all, const std::vector<compared>& absent) const {
    nlohmann::ordered_json list = nlohmann::ordered_json::array();
    for (const compared& one : all) {
      nlohmann::ordered_json entry{{"schedule", one.name},
                                   {"chunks", one.chunks},
                                   {"makespan", time_.json(one.all.all.makespan)},
                                   {"span", time_.json(one.all.all.span)},
                                   {"bubble", one.all.all.bubble.value()}};
      if (wanted_.slices > 1) entry["slices"] = one.slices;
      if (!one.forward_only) {
        entry["bound"] = time_.json(one.bound.flush);
        entry["span_bound"] = time_.json(one.bound.span);
      }
      for (const rank_report& rank : one.all.ranks) {
        entry["idle"].push_back(time_.json(rank.idle));
        entry["peak"].push_back(memory_.json(rank.peak));
      }
      list.push_back(std::move(entry));
    }
    for (const compared& one : absent)
      list.push_back({{"schedule", one.name}, {"chunks", one.chunks}, {"refused", reason_of(one)}});
    std::cout << list.dump(1) << '\n';
  }

  shape wanted_;
  // Of all that is compared.
  finer_unit time_;
  finer_unit memory_;
};

}  // namespace

void add_compare(CLI::App& app) {
  auto* command = app.add_subcommand(
      "compare", "All schedules on one model, the shortest first, beside what no order can beat");
  const auto mine = std::make_shared<compare_command>();
  mine->sizes.add(*command, true);
  mine->costs.add(*command, {.copies = false, .pairs = true});
  command
      ->add_option("--objective", mine->objective,
                   "What is to be short: flush (the makespan) or span (the longest rank's first to "
                   "last job, for steps that no barrier separates)")
      ->check(CLI::IsMember({"flush", "span"}));
  add_merge(*command, mine->merge);
  command
      ->add_option("--sort", mine->sort, "makespan (or span, by --objective), bubble, peak or name")
      ->check(CLI::IsMember({"makespan", "span", "bubble", "peak", "name"}));
  command->add_option("--format", mine->format, "table or json")
      ->check(CLI::IsMember({"table", "json"}));
  command->footer(
      "Costs are those of a job of one of --chunks chunks. A schedule that has another number of\n"
      "chunks cuts the same model anew: column `job` says how many times that its jobs take, in\n"
      "time and memory; a hop between ranks and the limit stay. With --chunks 1 the costs are a\n"
      "whole rank's, and a schedule of two chunks has jobs of half of them. With --slices, costs "
      "are\n"
      "those of one slice, and a schedule that does not slice has jobs of all of a micro-batch's.\n"
      "bubble and peak are those of the worst rank. bound: no order on this placement and within\n"
      "this limit is shorter, its backwards whole or split. Forward-only schedules stand last,\n"
      "schedules that do not serve the shape or fit the limit below the table, with the reason; when\n"
      "there are no others, that is wrong input.\n"
      "With --layers, costs are those of a layer, and each schedule gets the layers dealt to its\n"
      "own stages: --layers even:34 beside --layers balanced:34 shows what balancing gains.\n" +
      std::string(exits));
  command->callback([mine] { mine->run(); });
}

}  // namespace stretto::tool
