#include "step_options.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdint>
#include <functional>
#include <limits>
#include <numeric>
#include <string>

#include "errors.hpp"
#include "numbers.hpp"
#include "stretto/memory/window_text.hpp"

namespace stretto::tool {

namespace {

// Each has a table of costs: of more of them that alone takes gigabytes.
constexpr std::int64_t most_stages = 4'000'000;

//! The option that a refusal of a shape speaks of.
std::string option_of(reason why, const shape& sizes, const schedule_options& options) {
  switch (why) {
    case reason::ranks_below_one:
    case reason::ranks_odd:
      return "--ranks " + std::to_string(sizes.ranks);
    case reason::microbatches_below_one:
      return "--microbatches " + std::to_string(sizes.microbatches);
    case reason::chunks_below_one:
    case reason::chunks_not_one:
    case reason::chunks_not_two:
      if (options.variant)  // without it, others may do
        return "--variant " + std::to_string(*options.variant) + " with --chunks " +
               std::to_string(sizes.chunks);
      return "--chunks " + std::to_string(sizes.chunks);
    case reason::slices_below_one:
    case reason::slices_not_one:
      return (options.split ? "--split " + schedule::word_for(*options.split) + " with " : "") +
             "--slices " + std::to_string(sizes.slices);
    case reason::group_below_one:
    case reason::group_below_ranks:
    case reason::group_starves_short:
    case reason::group_above_microbatches:
    case reason::group_above_ranks:
      return "--group " + std::to_string(options.group.value_or(0));
    case reason::variant_out_of_range:
      return "--variant " + std::to_string(options.variant.value_or(-1));
    case reason::warmup_not_served:
      return "--warmup " + (options.warmup ? schedule::word_for(*options.warmup) : "");
    case reason::placement_not_served:
      return "--placement " +
             schedule::word_for(options.placement.value_or(placement_kind::looped)) +
             (options.group ? " --group " + std::to_string(*options.group) : "");
    default:
      return "shape";
  }
}

std::string ranks_and_chunks(const shape& sizes) {
  return "--ranks " + std::to_string(sizes.ranks) + " --chunks " + std::to_string(sizes.chunks);
}

//! Parts of a step's micro-batches with a period of no more than eight, ascending.
std::vector<memory::microbatch_window> parts_of(int microbatches) {
  std::vector<memory::microbatch_window> made;
  for (int period = 1; period <= std::min(8, microbatches); ++period)
    for (int count = 1; count <= period; ++count)
      if (std::gcd(count, period) == 1) made.push_back({.period = period, .count = count});
  std::ranges::sort(made, {}, [](const auto& part) { return 840 / part.period * part.count; });
  return made;
}

//! The options that say how many jobs there are.
std::string all_counts(const shape& sizes) {
  return ranks_and_chunks(sizes) + " --microbatches " + std::to_string(sizes.microbatches) +
         (sizes.slices > 1 ? " --slices " + std::to_string(sizes.slices) : "");
}

}  // namespace

std::string count_of(int count, const std::string& what) {
  return std::to_string(count) + " " + what +
         (count == 1              ? ""
          : what == "micro-batch" ? "es"
                                  : "s");
}

void refuse_shape(const std::string& name, reason why, const shape& sizes,
                  const schedule_options& options) {
  std::string rule = std::string(describe(why));
  if (const auto orders = orders_of(name); why == reason::variant_out_of_range && orders)
    rule += "; there are " + std::to_string(*orders) + ", numbered from 0";
  throw bad_input(option_of(why, sizes, options) + ": " + name + " does not serve this: " + rule);
}

void shape_options::add(CLI::App& command, bool required, several of) {
  constexpr int greatest = std::numeric_limits<int>::max();
  const auto add_count = [&](const std::string& name, int& one, std::vector<int>& all,
                             const std::string& what) {
    if (of != several::shapes)
      command.add_option(name, one, what)
          ->check(CLI::Range(1, greatest).description(""))
          ->required(required);
    else
      command
          .add_option_function<std::string>(
              name,
              [name, &one, &all](const std::string& text) {
                for (const std::int64_t count :
                     read_list(name, text, 1, std::numeric_limits<int>::max()))
                  all.push_back(static_cast<int>(count));
                std::ranges::sort(all);
                all.erase(std::unique(all.begin(), all.end()), all.end());
                one = all.front();
              },
              what + "; several, as in 4,8,16")
          ->required(required);
  };
  add_count("--ranks", ranks, all_ranks, "Ranks of the pipeline");
  add_count("--microbatches", microbatches, all_microbatches, "Micro-batches in a step");
  const std::string by_default = " (default 1, or 2 where a schedule needs two)";
  if (of != several::none)
    command.add_option_function<std::string>(
        "--chunks",
        [this](const std::string& text) {
          for (const std::int64_t one : read_list("--chunks", text, 1, greatest))
            if (std::find(all_chunks.begin(), all_chunks.end(), one) == all_chunks.end())
              all_chunks.push_back(static_cast<int>(one));
          chunks = all_chunks.front();
        },
        "Stages per rank; several, as in 1,2,4, are compared, costs being those of the first" +
            by_default);
  else
    command
        .add_option("--chunks", chunks,
                    "Stages per rank, of either direction where there are two" + by_default)
        ->check(CLI::Range(1, greatest).description(""));
  constexpr std::int32_t most_slices = std::numeric_limits<std::int16_t>::max();
  if (of != several::none)
    command.add_option_function<std::string>(
        "--slices",
        [this](const std::string& text) {
          for (const std::int64_t one : read_list("--slices", text, 1, most_slices))
            all_slices.push_back(static_cast<int>(one));
          std::ranges::sort(all_slices, std::greater<>{});
          all_slices.erase(std::unique(all_slices.begin(), all_slices.end()), all_slices.end());
          slices = all_slices.front();
          for (const int one : all_slices)
            if (slices % one != 0)
              throw bad_option("--slices", text,
                               std::to_string(one) + " does not divide " + std::to_string(slices) +
                                   ", of whose slices costs are");
        },
        "Slices per micro-batch; several, as in 2,4,8, are compared, costs being those of one of "
        "the most, which all divide (default 1)");
  else
    command
        .add_option("--slices", slices,
                    "Slices per micro-batch; costs are those of one (default 1)")
        ->check(CLI::Range(1, most_slices).description(""));
}

shape shape_options::sizes(const std::string& schedule) const {
  int each = chunks.value_or(1);
  for (const schedule_facts& facts : catalogue())
    if (!chunks && facts.name == schedule && !facts.chunks.empty()) each = facts.chunks.front();
  // Each is below 2^31, so two of them multiply in 64 bits.
  const std::int64_t stages = std::int64_t{ranks} * each;
  const std::int64_t parts = std::int64_t{microbatches} * slices;
  const shape made{.ranks = ranks, .microbatches = microbatches, .chunks = each, .slices = slices};
  const auto refuse = [](const std::string& words, std::int64_t most) {
    throw bad_input(words + ": their product must be at most " + std::to_string(most));
  };
  if (stages > most_stages) refuse(ranks_and_chunks(made), most_stages);
  if (parts > shape::most_jobs || stages * parts > shape::most_jobs)
    refuse(all_counts(made), shape::most_jobs);
  return made;
}

shape shape_options::named(const std::string& schedule) const {
  if (schedule.empty()) throw bad_input("NAME or --csv: one of them is required");
  if (!orders_of(schedule)) refuse_name(schedule);
  if (ranks == 0) throw bad_input("--ranks: required with a schedule's name");
  if (microbatches == 0) throw bad_input("--microbatches: required with a schedule's name");
  return sizes(schedule);
}

void refuse_unplanned(const shape& sizes, const std::string& csv) {
  const std::int64_t jobs =
      std::int64_t{sizes.ranks} * sizes.chunks * sizes.microbatches * sizes.slices;
  if (jobs > most_planned)
    throw bad_input((csv.empty() ? all_counts(sizes) : "--csv " + csv) + ": " +
                    std::to_string(jobs) + " jobs of a kind, at most " +
                    std::to_string(most_planned) + " can be planned");
}

CLI::Option* add_merge(CLI::App& command, std::string& word) {
  return command
      .add_option("--merge", word,
                  "Backwards that a schedule splits and that are whole again: none, adjacent "
                  "(wherever both halves stand side by side) or shortest (as many as the shortest "
                  "step has that is found)")
      ->check(CLI::IsMember({"none", "adjacent", "shortest"}))
      ->capture_default_str();
}

CLI::Option* add_offload(CLI::App& command, std::string& text) {
  return command
      .add_option("--offload", text,
                  "What forwards save and the host keeps until shortly before their backward: "
                  "none, all, or 2/3 for two of every three micro-batches; 2/3,lag=1,prefetch=1 "
                  "also says for how many jobs the copy there may take, and how many jobs ahead "
                  "the copy back begins")
      ->capture_default_str();
}

memory::offload_window read_offload(const std::string& text, const std::string& schedule) {
  const auto made = memory::read_offload(text);
  if (!made)
    throw bad_option("--offload", text,
                     "is not none, all or a part as 2/3, and ,lag=1 or ,prefetch=1 behind it");
  if (made->any() && is_forward_only(schedule))
    throw bad_option("--offload", text,
                     schedule + " has no backward, and so its forwards save nothing to copy");
  return *made;
}

std::array<CLI::Option*, 2> window_options::add(CLI::App& command) {
  auto* again = command
                    .add_option("--recompute", recompute,
                                "Of which micro-batches forwards run again right before their "
                                "backward, and keep less until then: none, all, 2/3 for two of "
                                "every three, or auto for what makes the step shortest within "
                                "--limit")
                    ->capture_default_str();
  CLI::Option* const away = add_offload(command, offload);
  away->description(away->get_description() +
                    "; auto is what makes the step shortest within --limit");
  return {again, away};
}

std::vector<memory::windows> window_options::choices(const std::string& schedule, int microbatches,
                                                     const cost_options& costs) const {
  const memory::windows given = of(schedule);
  if (!searched()) return {given};
  const bool again = recompute == automatic;
  const char* const option = again ? "--recompute" : "--offload";
  if (again && offload == automatic)
    throw bad_option("--offload", automatic,
                     "one of --recompute and --offload can be found, not both");
  if (!costs.limit && costs.costs_file.empty())
    throw bad_option(option, automatic, "without --limit none is the best");
  std::vector<memory::windows> made(1, given);
  made[0].recompute = again ? memory::recompute_window{} : given.recompute;
  made[0].offload = again ? given.offload : memory::offload_window{};
  for (const memory::microbatch_window& part : parts_of(microbatches)) {
    memory::windows one = made[0];
    if (again) {
      one.recompute = part;
      made.push_back(one);
      continue;
    }
    for (const int jobs : {0, 1, 2, 4, 8}) {
      one.offload = {.which = part, .lag = jobs, .prefetch = jobs};
      made.push_back(one);
    }
  }
  return made;
}

memory::windows window_options::of(const std::string& schedule) const {
  const auto again = memory::read_window(recompute == automatic ? "all" : recompute);
  if (!again) throw bad_option("--recompute", recompute, "is not none, all or a part as 2/3");
  if (again->any() && is_forward_only(schedule))
    throw bad_option("--recompute", recompute,
                     schedule + " has no backward before which a forward could run again");
  return {.recompute = *again,
          .offload = read_offload(offload == automatic ? "all" : offload, schedule)};
}

void step_options::add(CLI::App& command, bool sums, bool gathers) {
  command.add_option("NAME", name, "Schedule: " + schedule_names());
  sizes.add(command, false);
  command
      .add_option("--placement", placement,
                  "How stages are laid over ranks: looped, wave or bidirectional")
      ->check(CLI::IsMember({"looped", "wave", "bidirectional"}));
  command
      .add_option("--group", group,
                  "Micro-batches per group (where `list` says so); with --remainder even at least")
      ->check(CLI::Range(1, std::numeric_limits<int>::max()).description(""));
  command
      .add_option("--remainder", remainder,
                  "Where micro-batches go that fill no group: even, first or last")
      ->check(CLI::IsMember({"even", "first", "last"}));
  command
      .add_option("--warmup", warmup,
                  "Forwards before the first backward: standard, half or all (interleaved), half "
                  "or standard (interleaved_zb)")
      ->check(CLI::IsMember({"standard", "half", "all"}));
  command
      .add_option("--backwards", backwards,
                  "Where groups are not all as long: groups (backwards as forwards) or early (the "
                  "last chunk's as soon as they can be)")
      ->check(CLI::IsMember({"groups", "early"}));
  command.add_option("--split", split, "Which backwards are split (zb_h1): full or partial")
      ->check(CLI::IsMember({"full", "partial"}));
  command
      .add_option("--objective", objective,
                  "What a search makes short: flush (the makespan) or span (the longest rank's "
                  "first to last job)")
      ->check(CLI::IsMember({"flush", "span"}));
  command.add_option("--variant", variant, "One variant of a search, from 0 (default: the best)")
      ->check(CLI::Range(0, std::numeric_limits<int>::max()).description(""));
  add_merge(command, merge);
  windows.add(command);
  command
      .add_option(
          "--receive-lead", receive_lead,
          "How many jobs (or pairs) of its rank may still be to run before the one that a "
          "message is for when its receive is posted (default: any number); a message leaves "
          "no sooner")
      ->check(CLI::Range(0, std::numeric_limits<int>::max() - 1).description(""));
  auto* file = command.add_option("--csv", csv, "A schedule in PyTorch's CSV instead of a name");
  for (const char* other :
       {"NAME", "--ranks", "--microbatches", "--chunks", "--slices", "--placement", "--group",
        "--remainder", "--warmup", "--backwards", "--split", "--objective", "--variant", "--merge",
        "--recompute", "--offload"})
    file->excludes(command.get_option(other));
  costs.add(command, {.windows = true, .pairs = true, .sums = sums, .gathers = gathers});
}

schedule_options step_options::schedule() const {
  schedule_options made;
  made.group = group;
  made.variant = variant;
  made.gathered = costs.gathered.value_or(made.gathered);
  static_cast<memory::windows&>(made) = windows.of(name);
  made.placement = schedule::spelt<placement_kind>(placement);
  made.remainder = schedule::spelt<schedule::remainder_kind>(remainder);
  made.warmup = schedule::spelt<schedule::warmup_kind>(warmup);
  made.backwards = schedule::spelt<schedule::backwards_kind>(backwards);
  made.split = schedule::spelt<schedule::split_kind>(split);
  made.objective = schedule::spelt<schedule::objective_kind>(objective);
  made.merge = schedule::spelt<schedule::merge_kind>(merge);
  return made;
}

void step_options::refuse_of_backwards(const std::string& schedule) const {
  if (merge != "none")
    throw bad_option("--merge", merge, schedule + " has no backward whose halves could be one");
  if (costs.whole_saves > 0)
    throw bad_option("--whole-saves", std::to_string(costs.whole_saves),
                     schedule + " has no backward that could take less");
  if (costs.reduce_grad > 0)
    throw bad_option("--reduce-grad", std::to_string(costs.reduce_grad),
                     schedule + " has no gradients to sum");
}

}  // namespace stretto::tool
