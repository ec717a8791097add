#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <filesystem>
#include <functional>
#include <iostream>
#include <memory>
#include <numeric>
#include <thread>

#include "command.hpp"
#include "compare_svg.hpp"
#include "compare_table.hpp"
#include "errors.hpp"
#include "files.hpp"
#include "make_step.hpp"
#include "read_step.hpp"
#include "step_options.hpp"
#include "step_replicas.hpp"
#include "step_windows.hpp"

namespace stretto::tool {

namespace {

// Each holds a step, which takes 150 to 350 bytes a job of a kind: of all together no more than two
// of the largest.
constexpr unsigned most_threads = 8;
constexpr std::int64_t most_jobs_held = 2 * shape::most_jobs;
// In which costs are cut: limits and bases, up to 10^15 times that, stay in 64 bits.
constexpr std::int64_t most_parts = 1000;

//! What stands in a row: a schedule, in slices and chunks that it has, or an order that is read.
struct entrant {
  const schedule_facts* facts;
  shape cut;
  step* read;
};

struct compare_command {
  shape_options sizes;
  cost_options costs;
  window_options windows;
  std::vector<std::string> names;
  std::vector<std::string> csv;
  std::string objective = "flush";
  std::string merge = "none";
  std::string sort;
  std::string format = "table";
  std::string out = "-";

  void run() {
    common_.wanted = sizes.sizes();
    common_.spans = objective == "span";
    common_.layers = costs.layers.given();
    const std::vector<schedule_facts> chosen = chosen_schedules();
    const bool trains = std::any_of(chosen.begin(), chosen.end(), [](const schedule_facts& one) {
      return !one.forward_only;
    });
    common_.put = windows.of(trains ? std::string() : chosen.front().name);
    common_.put_searched = windows.searched();
    if (common_.put.any() && sizes.slices > 1)
      throw bad_option(
          "--slices", std::to_string(sizes.slices),
          "what forwards keep runs again, or is copied, for whole micro-batches alone");
    enter(chosen);
    read_.reserve(csv.size());  // steps are not copied
    for (const std::string& path : csv) {
      read_.push_back(read_order("--csv", path));
      fit(path, read_.back());
      entrants_.push_back({nullptr, {}, &read_.back()});
    }
    // Nor is a part of what a pair hides, of any cut.
    common_.time.times = common_.memory.times * finer_unit::of_hidden(costs.hides).times;
    const std::vector<std::int64_t> limits = costs.several_limits();
    std::vector<comparison_run> runs;
    std::vector<compared> within_less;
    for (std::size_t at = 0; at < std::max<std::size_t>(1, limits.size()); ++at) {
      if (!limits.empty()) costs.limit = limits[at];
      std::vector<compared> made = run_all();
      for (std::size_t of = 0; of < within_less.size(); ++of)
        if (beats(within_less[of], made[of])) made[of] = kept(within_less[of], limits[at - 1]);
      runs.push_back(sorted(made));
      within_less = std::move(made);
    }
    const auto gathers = [](const comparison_run& made) {
      return std::any_of(made.all.begin(), made.all.end(), std::mem_fn(&compared::gathers));
    };
    const bool empty = std::all_of(runs.begin(), runs.end(),
                                   [](const comparison_run& made) { return made.all.empty(); });
    if (!empty) costs.refuse_nothing_gathered(std::any_of(runs.begin(), runs.end(), gathers));
    if (format == "json")
      write_file("-o", out, common_.json(limits, runs));
    else if (format == "svg" && !empty)
      write_svg("-o", out, to_svg(common_, limits, runs));
    else
      write_file("-o", format == "svg" ? "-" : out, common_.table(limits, runs));
    if (empty)
      throw bad_input("no schedule serves this shape within its limits; " +
                      (format == "svg" || out == "-" ? "standard output" : out) + " says why");
  }

 private:
  //! Which schedule is being made: with many jobs the searches take their time.
  static void tell(const std::string& name) {
    static const bool terminal = isatty(STDERR_FILENO) == 1;
    if (terminal) std::cerr << "\r\x1b[K" + name + "\r" << std::flush;
  }
  bool before(const compared& one, const compared& other) const {
    if (sort == "name") return one.name < other.name;
    if (sort == "peak" && one.peak() != other.peak()) return one.peak() < other.peak();
    const double bubbles[] = {one.all.all.bubble.value(), other.all.all.bubble.value()};
    if (sort == "bubble" && bubbles[0] != bubbles[1]) return bubbles[0] < bubbles[1];
    if (sort == "makespan") return one.all.all.makespan < other.all.all.makespan;
    if (sort == "span") return one.all.all.span < other.all.all.span;
    return common_.length(one) < common_.length(other);
  }

  //! Whether what was made for less memory is shorter: layers that are dealt within a greater
  //! limit, and what searches find within it, can be worse.
  bool beats(const compared& for_less, const compared& other) const {
    return for_less.why.found.ok() &&
           (!other.why.found.ok() || common_.length(for_less) < common_.length(other));
  }
  //! What was made for less, or for less than that, told of the limit at hand.
  compared kept(compared for_less, std::int64_t less) const {
    if (!for_less.made_for) for_less.made_for = less;
    std::ranges::fill(for_less.costs.limit, *costs.limit * common_.memory.times);
    for_less.find_bound();
    return for_less;
  }

  //! Those that are named, or all, in the catalogue's order.
  std::vector<schedule_facts> chosen_schedules() const {
    std::vector<schedule_facts> all = catalogue();
    for (const std::string& name : names)
      if (std::none_of(all.begin(), all.end(),
                       [&](const schedule_facts& one) { return one.name == name; }))
        refuse_name(name);
    std::erase_if(all, [&](const schedule_facts& one) {
      return !names.empty() && std::find(names.begin(), names.end(), one.name) == names.end();
    });
    return all;
  }
  //! Each with every number of chunks that is asked for and that it has; where it has none of
  //! these, with one that it has. What can be sliced stands there whole, too.
  void enter(const std::vector<schedule_facts>& chosen) {
    std::vector<shape> asked;
    for (const int chunks : sizes.all_chunks.empty() ? std::vector<int>{1} : sizes.all_chunks) {
      shape_options one = sizes;
      one.chunks = chunks;
      asked.push_back(one.sizes());
    }
    common_.several_chunks = asked.size() > 1;
    for (const shape& one : asked)
      jobs_ = std::max(jobs_, std::int64_t{one.ranks} * one.chunks * one.microbatches * one.slices);
    for (const schedule_facts& facts : chosen) {
      const std::size_t before = entrants_.size();
      for (const shape& one : asked) {
        const shape tried = shape_of(facts, one.chunks);
        if (serves(facts.name, tried).ok()) entrants_.push_back({&facts, tried, nullptr});
      }
      if (entrants_.size() == before) entrants_.push_back({&facts, own_shape_of(facts), nullptr});
      for (std::size_t at = before, end = entrants_.size(); at < end; ++at) {
        entrant whole = entrants_[at];
        whole.cut.slices = 1;
        if (whole.cut.slices != entrants_[at].cut.slices) entrants_.push_back(whole);
      }
      for (std::size_t at = before; at < entrants_.size(); ++at)
        cut_costs(entrants_[at].cut.chunks, [&](const std::string& rule) {
          throw bad_option("--chunks", std::to_string(entrants_[at].cut.chunks),
                           rule + "; leave some out");
        });
    }
  }

  //! All rows, in the order of the entrants, by as many threads as the machine runs at once: none
  //! knows of another. Searches take longest and begin first.
  std::vector<compared> run_all() {
    std::vector<std::size_t> order(entrants_.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_partition(order.begin(), order.end(), [&](std::size_t at) {
      return entrants_[at].facts != nullptr && entrants_[at].facts->searches;
    });
    std::vector<compared> made(order.size());
    std::vector<std::exception_ptr> failed(order.size());
    std::atomic<std::size_t> next = 0;
    const auto work = [&] {
      for (std::size_t taken = next++; taken < order.size(); taken = next++) {
        const std::size_t at = order[taken];
        try {
          const entrant& one = entrants_[at];
          if (one.facts != nullptr) tell(one.facts->name);
          made[at] = one.facts != nullptr ? run(*one.facts, one.cut) : run(*one.read);
        } catch (...) {
          failed[at] = std::current_exception();
        }
      }
    };
    {
      const auto most =
          static_cast<unsigned>(std::clamp<std::int64_t>(most_jobs_held / jobs_, 1, most_threads));
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
  comparison_run sorted(const std::vector<compared>& made) const {
    comparison_run run;
    for (const compared& one : made) (one.why.found.ok() ? run.all : run.absent).push_back(one);
    std::stable_sort(run.all.begin(), run.all.end(),
                     [&](const compared& one, const compared& other) {
                       if (one.forward_only != other.forward_only) return other.forward_only;
                       return before(one, other);
                     });
    return run;
  }
  //! The shape asked for, in slices that the schedule has and so many chunks.
  shape shape_of(const schedule_facts& facts, int chunks) const {
    shape made = common_.wanted;
    if (!facts.slices) made.slices = 1;
    made.chunks = chunks;
    return made;
  }
  //! The same in chunks that it has, if there are any.
  shape own_shape_of(const schedule_facts& facts) const {
    for (const int chunks : facts.chunks) {
      const shape tried = shape_of(facts, chunks);
      if (serves(facts.name, tried).ok()) return tried;
    }
    return shape_of(facts, common_.wanted.chunks);
  }
  //! Multiplies costs, lest a part of them be rounded of so many chunks.
  //! @param refuse  is told why where that makes too many parts; throws
  template <class Refuse>
  void cut_costs(int chunks, const Refuse& refuse) {
    if (chunks == common_.wanted.chunks || costs.layers.given()) return;
    common_.memory.times = std::lcm(common_.memory.times, chunks);
    if (common_.memory.times > most_parts)
      refuse("costs would be cut in " + std::to_string(common_.memory.times) + " parts, at most " +
             std::to_string(most_parts));
  }
  cost_cut cut_into(int slices) const {
    return {.given = common_.wanted.chunks,
            .slices = slices,
            .joined = common_.wanted.slices / slices,
            .times = common_.time.times,
            .amounts = common_.memory.times};
  }

  //! @throws bad_input for an order of another shape, and where it cannot be cut
  void fit(const std::string& path, const step& read) {
    const placement& where = read.made.where;
    const auto refuse = [&](const std::string& rule) { throw bad_option("--csv", path, rule); };
    const auto same = [&](int has, const char* what, const char* option, int asked) {
      if (has != asked)
        refuse("has " + count_of(has, what) + ", not the " + std::to_string(asked) + " of " +
               option);
    };
    same(where.ranks, "rank", "--ranks", common_.wanted.ranks);
    same(read.microbatches, "micro-batch", "--microbatches", common_.wanted.microbatches);
    if (!costs.layers.given() && where.stages() != where.ranks * read.chunks)
      refuse("has " + count_of(where.stages(), "stage") + " on " + count_of(where.ranks, "rank") +
             ", not as many on each; --layers says what uneven ones take");
    cut_costs(read.chunks, [&](const std::string& rule) {
      refuse("has " + count_of(read.chunks, "chunk") + ", for which " + rule +
             "; give costs of one by --chunks " + std::to_string(read.chunks));
    });
  }

  compared run(const schedule_facts& facts, const shape& cut) const {
    compared result;
    result.name = facts.name;
    result.forward_only = facts.forward_only;
    result.chunks = cut.chunks;
    result.slices = cut.slices;
    schedule_options options;
    options.merge = schedule::spelt<schedule::merge_kind>(merge);
    options.gathered = costs.gathered.value_or(options.gathered);
    result.choices = facts.forward_only ? std::vector<memory::windows>(1)
                                        : windows.choices(facts.name, cut.microbatches, costs);
    if (common_.spans && (merge != "none" ||
                    std::count(facts.options.begin(), facts.options.end(), "--objective") > 0))
      options.objective = schedule::objective_kind::span;
    const cost_options mine =
        costs.for_step(facts.forward_only, result.choices.back().offload.any());
    std::optional<step> made;
    try {
      made = make_shortest(facts.name, cut, options, result.choices, mine, cut_into(cut.slices),
                           &result.why);
    } catch (const layers_refused& refused) {
      result.why = {refused.why};
    }
    if (!made) return result;
    if (!facts.forward_only)
      refuse_windows(costs, windows, *made,
                     [&](std::int64_t amount) { return common_.memory.text(amount); });
    measure(*made, result);
    return result;
  }
  //! An order of one's own, which is as it is.
  compared run(step& read) const {
    compared result;
    result.name = std::filesystem::path(read.schedule).filename().string();
    result.file = read.schedule;
    result.forward_only = read.forward_only;
    result.chunks = read.chunks;
    try {
      prove_order(read, costs, cut_into(1), &result.why,
                  common_.spans ? schedule::objective_kind::span : schedule::objective_kind::flush);
    } catch (const layers_refused& refused) {
      result.why = {refused.why};
    }
    if (result.why.found.ok()) measure(read, result);
    return result;
  }
  void measure(const step& made, compared& result) const {
    result.put = made.put;
    result.all = simulate(made, false);
    result.by_gathers = by_gathers(made, result.all.all);
    result.layers = made.layers;
    // Slices run as micro-batches would, but for what more orders them.
    result.sums = made.sums;
    result.gathers = made.gathers;
    result.parts = made.made.where;
    result.parts.microbatches *= made.slices;
    result.costs = made.made.costs;
    result.find_bound();
  }

  std::vector<entrant> entrants_;
  std::vector<step> read_;
  std::int64_t jobs_ = 0;  // of a kind, of the largest shape that is asked for
  comparison common_;
};

}  // namespace

void add_compare(CLI::App& app) {
  auto* command = app.add_subcommand(
      "compare", "Schedules on one model, the shortest first, beside what no order can beat");
  const auto mine = std::make_shared<compare_command>();
  command->add_option("NAME", mine->names, "Schedules (default all): " + schedule_names());
  mine->sizes.add(*command, true, true);
  mine->costs.add(*command,
                  {.windows = true, .pairs = true, .limits = true, .sums = true, .gathers = true});
  command
      ->add_option("--objective", mine->objective,
                   "What is to be short: flush (the makespan) or span (the longest rank's first to "
                   "last job, for steps that no barrier separates)")
      ->check(CLI::IsMember({"flush", "span"}));
  auto* merge = add_merge(*command, mine->merge);
  auto* file = command
                   ->add_option("--csv", mine->csv,
                                "A schedule in PyTorch's CSV to stand beside them; may be given "
                                "several times")
                   ->allow_extra_args(false)
                   ->excludes(merge);
  for (CLI::Option* put_in : mine->windows.add(*command)) file->excludes(put_in);
  command
      ->add_option(
          "--sort", mine->sort,
          "makespan, span, bubble, peak or name (default makespan, or span, by --objective)")
      ->check(CLI::IsMember({"makespan", "span", "bubble", "peak", "name"}));
  command->add_option("--format", mine->format, "table, json or svg")
      ->check(CLI::IsMember({"table", "json", "svg"}));
  command->add_option("-o,--output", mine->out, "File to write (default standard output)");
  command->footer(
      "Costs are those of a job of one of --chunks chunks. A schedule that has another number of\n"
      "chunks cuts the same model anew: column `job` says how many times that its jobs take, in\n"
      "time and memory; a hop between ranks and the limit stay. With --chunks 1 the costs are a\n"
      "whole rank's, and a schedule of two chunks has jobs of half of them.\n"
      "Of several --chunks a schedule stands there with each that it has, and costs are those of "
      "a\n"
      "job of the first.\n"
      "With --slices, costs are those of one slice. What can be sliced stands there twice, in\n"
      "slices and whole, and a whole micro-batch's jobs take all of its slices'.\n"
      "Forwards alone hold all of --weights, and of --layer-costs memory_weights_alone where that\n"
      "is given.\n"
      "bubble and peak are those of the worst rank. bound: no order on this placement and within\n"
      "this limit is shorter, its backwards whole or split. Forward-only schedules stand last,\n"
      "schedules that do not serve the shape or fit the limit below the table, with the reason; "
      "when\n"
      "there are no others, that is wrong input.\n"
      "With --reduce-grad the makespan ends with the last sum of gradients; sums behind: how long\n"
      "after the last job that is. The sum of a chunk is cut as its jobs are.\n"
      "With --unshard ranks have the weights of --gathered stages at once; by gathers: how much\n"
      "longer the step is for it. What a chunk's gather takes is cut as its jobs are.\n"
      "With --recompute and --offload what is put in is put into each schedule that trains, and "
      "the\n"
      "bound is that of such steps. auto puts into each what makes it shortest within --limit.\n"
      "With several limits the table says what is to be short within each. What keeps to a\n"
      "smaller one of them keeps to a greater: where that is shorter, it stands there, too.\n"
      "With --csv, an order of one's own stands beside them: its ranks and micro-batches are\n"
      "those asked for, and its chunks cut the model as a schedule's do.\n"
      "What --costs says of chunks by their number each takes an equal part of where a schedule "
      "has\n"
      "another number of them.\n"
      "--format svg draws the peak and the makespan (or span) of each schedule that trains, "
      "within\n"
      "every limit, and a line through those that none of the others beats in both.\n"
      "With --layers, costs are those of a layer, and each schedule gets the layers dealt to its\n"
      "own stages: --layers even:34 beside --layers balanced:34 shows what balancing gains.\n" +
      exits);
  command->callback([mine] { mine->run(); });
}

}  // namespace stretto::tool
