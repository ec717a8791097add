#include "step.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>
#include <span>
#include <string_view>
#include <utility>

#include "dealing.hpp"
#include "errors.hpp"
#include "files.hpp"
#include "limits.hpp"
#include "stretto/check/all.hpp"
#include "stretto/lowering/communication.hpp"
#include "stretto/memory/window_text.hpp"
#include "stretto/model/verdict_text.hpp"
#include "stretto/plan/csv_comms.hpp"
#include "stretto/plan/gathered_weights.hpp"
#include "stretto/plan/gradient_sums.hpp"
#include "stretto/plan/standing_still.hpp"

namespace stretto::tool {

namespace {

//! A file's name as pictures and JSON can hold it: UTF-8, without control characters.
std::string printable(const std::string& name) {
  using nlohmann::json;
  const std::string text = json(name).dump(-1, ' ', false, json::error_handler_t::replace);
  return shown(json::parse(text).get<std::string>());
}

bool forwards_alone(const imported_schedule& read) {
  const job_rows rows = read.lists.rows();
  for (int rank = 0; rank < rows.ranks; ++rank)
    for (const job& work : rows.row(rank))
      if (is_input_gradient(work.kind)) return false;
  return true;
}

}  // namespace

step read_order(const std::string& option, const std::string& path) {
  const std::string file = read_file(option, path);
  const std::string_view text = without_mark(file);
  step made;
  made.schedule = printable(path);
  if (text.empty()) throw broken_schedule(made.schedule + ": the file is empty");
  csv_result read = read_csv(text);
  if (!read.answer.ok()) throw broken_schedule(made.schedule + ": " + read.answer.sentence());
  made.imported = std::move(read.schedule);
  made.made.where = made.imported->where();
  made.microbatches = made.imported->microbatches;
  made.chunks = made.imported->chunks;
  made.messages = made.imported->format == csv_format::compute_comms;
  made.forward_only = forwards_alone(*made.imported);
  made.title = printable(std::filesystem::path(path).filename().string()) + ": " +
               count_of(made.made.where.ranks, "rank") + ", " +
               count_of(made.microbatches, "micro-batch");
  if (made.chunks > 1) made.title += ", " + count_of(made.chunks, "chunk");
  return made;
}

namespace {

bool has(const job_rows& rows, job_kind kind) {
  for (int rank = 0; rank < rows.ranks; ++rank)
    for (const job& work : rows.row(rank))
      if (work.kind == kind) return true;
  return false;
}

//! Where costs say what data-parallel replicas do together, gathers of weights and sums of
//! gradients, the step has it.
//! @param gathered  of how many stages at once a rank has the weights
//! @return what rule sharded says of so few
verdict add_replicas(step& made, int gathered) {
  made.with_replicas.reset();
  const job_table_view costs = made.made.costs.view();
  made.gathers = takes(costs, job_kind::unshard);
  made.sums = !made.forward_only && takes(costs, job_kind::reduce_grad);
  if (made.gathers && !has(made.input().rows, job_kind::unshard)) {
    if (const int least = least_gathered(made.input().rows); gathered < least) {
      verdict few = refuse(fault::missharded, reason::too_many_gathered);
      few.amount = least;
      few.limit = gathered;
      return few;
    }
    made.with_replicas = with_gathered_weights(made.input(), gathered);
  }
  if (made.sums && !has(made.input().rows, job_kind::reduce_grad))
    made.with_replicas = with_gradient_sums(made.input());
  return {};
}

//! What is to be short.
std::int64_t length_of(const step& made, schedule::objective_kind objective) {
  const report all = simulate(made, false).all;
  return objective == schedule::objective_kind::span ? all.span : all.makespan;
}

//! @throws bad_input where rule sharded does not let so few be there at once
void refuse_too_few(const step& made, const verdict& found) {
  if (found.why == reason::too_many_gathered && !found.has_job)
    refuse_few_gathered(static_cast<int>(found.limit), made.schedule);
}

//! What is found in the lists with what replicas do, told of those that were read.
verdict as_read(const step& made, verdict found) {
  if (!made.with_replicas || found.rank < 0 || found.step < 0) return found;
  const std::span<const job> with = made.with_replicas->rows().row(found.rank);
  const std::span<const job> read = made.imported->lists.rows().row(found.rank);
  std::size_t at = 0;
  for (const job& work : with.first(static_cast<std::size_t>(found.step)))
    if (at < read.size() && read[at] == work) ++at;
  found.step = static_cast<int>(std::min(at, read.size() - 1));
  return found;
}

void prove_by(step& read, job_table costs, no_step* why, std::optional<int> gathered) {
  read.made.costs = std::move(costs);
  csv_fault found = verify(*read.imported, read.made.costs.view(),
                           gathered.value_or(std::numeric_limits<int>::max()));
  if (found.ok() || found.what.what == fault::over_limit) {
    verdict with = add_replicas(read, gathered.value_or(default_gathered));
    if (why == nullptr) refuse_too_few(read, with);
    if (with.ok()) with = check::bounded(read.input());
    if (with.ok()) return;
    found = read.imported->locate(as_read(read, with));
  }
  const replay_input order = read.input();
  const bool above = found.what.what == fault::over_limit;
  if (why != nullptr && (above || found.what.why == reason::too_many_gathered)) {
    *why = {above ? fullest(order, found.what) : found.what};
    return;
  }
  // It is the costs', or what is asked of them.
  if (found.what.what == fault::unsupported)
    throw bad_input(read.schedule + ": " + found.sentence());
  throw broken_schedule(read.schedule + ": " + found.sentence() +
                        (above ? "; the order " + needs_in_words(fullest(order, found.what))
                               : standing_still(order, found.what)));
}

}  // namespace

void prove_order(step& read, const cost_options& given, const cost_cut& cut, no_step* why,
                 schedule::objective_kind objective) {
  const cost_options costs = given.for_step(read.forward_only, false);  // no cell can say a copy
  const auto prove = [&](const cost_options& way, no_step* told) {
    prove_by(read, make_costs(way, read.made.where, cut, &read.layers), told, costs.gathered);
  };
  if (!costs.deals_by_limit()) return prove(costs, why);
  best_way best(costs);
  const auto attempt = [&](const cost_options& way) {
    no_step told;
    prove(way, &told);
    if (told.found.ok())
      best.fits(way, length_of(read, objective));
    else
      best.refused(way, told.found);
  };
  attempt(without_limit(costs));
  const bool free = best.any();
  attempt(costs);
  if (!free) try_as_kept_by(read.input(), costs, best, attempt);
  prove(best.way(), why);
}

void leave_out_replicas(step& made) {
  made.with_replicas.reset();
  made.sums = made.gathers = false;
  leave_out_replicas(made.made.costs);
}

replay_input step::input() const {
  replay_input input = imported ? imported->input(made.costs.view())
                                : replay_input{.rows = made.lists.rows(),
                                               .where = made.where,
                                               .microbatches = microbatches,
                                               .slices = slices,
                                               .costs = made.costs.view()};
  if (with_replicas) input.rows = with_replicas->rows();
  input.receive_lead = receive_lead;
  return input;
}

std::optional<step> make_step(const std::string& name, const shape& sizes,
                              const schedule_options& options,
                              const std::function<job_table(const placement&)>& costs,
                              no_step* why) {
  step made;
  made.schedule = name;
  made.microbatches = sizes.microbatches;
  made.chunks = sizes.chunks;
  made.slices = sizes.slices;
  made.forward_only = is_forward_only(name);
  made.put = options;
  made.made = generate(name, sizes, options, costs);
  made.title = name + ": " + count_of(sizes.ranks, "rank") + ", " +
               count_of(sizes.microbatches, "micro-batch");
  if (sizes.chunks > 1) made.title += ", " + count_of(sizes.chunks, "chunk");
  if (sizes.slices > 1) made.title += ", " + count_of(sizes.slices, "slice");
  if (options.merge && *options.merge != schedule::merge_kind::none)
    made.title += ", merge " + schedule::word_for(*options.merge);
  if (options.recompute.any())
    made.title += ", recompute " + memory::window_text(options.recompute);
  if (options.offload.any()) made.title += ", offload " + memory::window_text(options.offload);
  verdict answer = made.made.answer;
  if (made.made.refused) {
    if (why == nullptr) refuse_shape(name, answer.why, sizes, options);
    *why = {answer};
    return std::nullopt;
  }
  if (answer.ok()) {
    answer = add_replicas(made, options.gathered);
    if (answer.ok()) answer = check::schedule(made.input());
    if (answer.ok()) return made;
  }
  const bool searched = !made.made.answer.ok();
  if (why == nullptr) refuse_too_few(made, answer);
  const bool merges = options.merge && *options.merge != schedule::merge_kind::none;
  const least_limit least =
      least_of(made.input().costs, !options.any() && !merges && !made.made.room);
  if (why == nullptr && answer.what == fault::unsupported)
    throw bad_input(name + ": " + std::string(to_text(answer).view()));
  if (why == nullptr)
    throw broken_schedule(
        name + ": " +
        (searched ? refusal_of_search(answer, least) : refusal_of_order(answer, made.input())));
  *why = {answer};
  if (answer.what == fault::over_limit) {
    if (searched)
      why->searched = least;
    else
      why->found = fullest(made.input(), answer);
    if (why->searched == least_limit::unknown) why->found.amount = 0;
  }
  return std::nullopt;
}

std::optional<step> make_step(const std::string& name, const shape& sizes,
                              const schedule_options& options, const cost_options& costs,
                              const cost_cut& cut, no_step* why) {
  const auto make = [&](const cost_options& way, no_step* told) {
    std::vector<std::int32_t> layers;
    std::optional<step> made = make_step(
        name, sizes, options,
        [&](const placement& where) { return make_costs(way, where, cut, &layers); }, told);
    if (made) made->layers = std::move(layers);
    return made;
  };
  if (!costs.deals_by_limit()) return make(costs, why);
  const auto objective = options.objective.value_or(schedule::objective_kind::flush);
  best_way best(costs);
  std::optional<step> made;
  const auto attempt = [&](const cost_options& way) {
    no_step told;
    std::optional<step> one = make(way, &told);
    if (!one)
      best.refused(way, told.found);
    else if (best.fits(way, length_of(*one, objective)))
      made = std::move(one);
  };
  attempt(without_limit(costs));
  const bool free = best.any();
  attempt(costs);
  if (searches(name)) {
    // What a search keeps is what it is let, but for one micro-batch a stage.
    const std::vector<std::int32_t> one_each(
        static_cast<std::size_t>(sizes.ranks) * static_cast<std::size_t>(sizes.chunks), 1);
    if (!best.any()) attempt(as_kept(costs, one_each));
  } else if (!free) {
    cost_options unlimited = costs;
    unlimited.limit.reset();
    no_step told;
    const std::optional<step> order = make(unlimited, &told);
    if (order) try_as_kept_by(order->input(), costs, best, attempt);
  }
  if (made) return made;
  no_step told;
  if (why != nullptr || !searches(name) || make(best.way(), &told) ||
      told.found.what != fault::over_limit || told.found.amount == 0)
    return make(best.way(), why);
  // Within more, layers are dealt in another way.
  cost_options more = costs;
  more.limit = told.found.amount;
  no_step again;
  if (!make_step(name, sizes, options, more, cut, &again)) make(without_limit(costs), &told);
  throw broken_schedule(name + ": " + refusal_of_search(told.found, least_limit::enough));
}

std::optional<step> make_shortest(const std::string& name, const shape& sizes,
                                  schedule_options options,
                                  std::span<const memory::windows> choices,
                                  const cost_options& costs, const cost_cut& cut, no_step* why) {
  const auto with = [&](const memory::windows& put, no_step* told) {
    static_cast<memory::windows&>(options) = put;
    return make_step(name, sizes, options, costs, cut, told);
  };
  if (choices.size() == 1) return with(choices[0], why);
  const auto objective = options.objective.value_or(schedule::objective_kind::flush);
  std::optional<step> shortest;
  const memory::windows* nearest = choices.data();  // while none fits, that which needs least
  std::int64_t least = unlimited;
  for (const memory::windows& put : choices) {
    no_step told;
    std::optional<step> one = with(put, &told);
    if (one && (!shortest || length_of(*one, objective) < length_of(*shortest, objective))) {
      shortest = std::move(one);
    } else if (!one && told.found.what == fault::over_limit && told.found.amount > 0 &&
               told.found.amount < least) {
      least = told.found.amount;
      nearest = &put;
    }
  }
  if (shortest) return shortest;
  try {
    return with(*nearest, why);
  } catch (const broken_schedule& refused) {
    throw broken_schedule(std::string(refused.what()) + "; nothing needs less than --recompute " +
                          memory::window_text(nearest->recompute) + " --offload " +
                          memory::window_text(nearest->offload));
  }
}

namespace {

//! Times are integers, and a part that a pair hides would be lost without a word.
void refuse_hidden_parts(const step& made) {
  const replay_input input = made.input();
  const int hides = input.costs.pair_hides;
  const auto time = [&](int rank, const job& work) {
    return input.costs.of(rank, input.where.chunk_of(work.stage, work.microbatch), work).time;
  };
  for (int rank = 0; rank < input.rows.ranks; ++rank) {
    const std::span<const job> row = input.rows.row(rank);
    for (std::size_t at = 0; at + 1 < row.size(); ++at) {
      if (!row[at].paired) continue;
      const std::int64_t shorter = std::min(time(rank, row[at]), time(rank, row[at + 1]));
      if (shorter * hides % 100 != 0)
        throw bad_option("--hides", std::to_string(hides),
                         "hides " + std::to_string(hides) + " % of " + std::to_string(shorter) +
                             ", which is no integer; give times in a finer unit (" +
                             std::to_string(finer_unit::of_hidden(hides).times) +
                             " times the numbers will do)");
      ++at;
    }
  }
}

//! @param kind    of the jobs that take away, or bring back, some of what a forward keeps: no more
//!                than that, and nothing below 0
//! @param option  that says how much, with its value as typed
//! @param words   (where, amount, kept): what to say of the first that does not
template <class Words>
void refuse_beyond_kept(const step& made, job_kind kind, const char* option,
                        const std::string& value, const amount_text& text, const Words& words) {
  const job_table_view table = made.made.costs.view();
  for (std::int64_t number = 0; number < table.class_count(); ++number)
    for (int rank = 0; rank < table.ranks; ++rank)
      for (int chunk = 0; chunk < table.chunks; ++chunk) {
        const job_table_view of = table.of_class(number);
        const std::int64_t change = of.at(rank, chunk, kind).change;
        const std::int64_t amount = kind == job_kind::offload ? -change : change;
        const std::int64_t kept = of.at(rank, chunk, job_kind::forward).change;
        if (amount >= 0 && amount <= std::max<std::int64_t>(0, kept)) continue;
        throw bad_option(option, value,
                         words("rank " + std::to_string(rank) + ", chunk " + std::to_string(chunk),
                               text(amount), text(kept)));
      }
}

//! What --copy says must be of something, and no copy moves more than there is.
void refuse_copies(const cost_options& costs, const window_options& windows, const step& made,
                   const amount_text& text) {
  const job_rows rows = made.input().rows;
  if (!has(rows, job_kind::offload)) {
    // Where no backward is far enough behind its forward, no copy is made of all that might be.
    if (costs.copy.empty() || windows.of(made.schedule).offload.any()) return;
    throw bad_option("--copy", costs.copy, "says of what only with --offload");
  }
  const bool told = costs.copies_told();
  refuse_beyond_kept(
      made, job_kind::offload, told ? "--copy" : "--costs", told ? costs.copy : costs.costs_file,
      text, [](const std::string& where, const std::string& moved, const std::string& kept) {
        return "a copy of " + where + " moves " + moved + ", and its forward keeps " + kept;
      });
}

//! Nor does a second run bring back more than there is, and --again must be of something.
void refuse_second_runs(const cost_options& costs, const window_options& windows, const step& made,
                        const amount_text& text) {
  if (!has(made.input().rows, job_kind::recompute)) {
    // Where every backward stands right behind its forward, none runs again of all that might.
    if (costs.again.empty() || windows.of(made.schedule).recompute.any()) return;
    throw bad_option("--again", costs.again, "says of what only with --recompute");
  }
  const bool told = costs.second().memory.has_value() || costs.costs_file.empty();
  refuse_beyond_kept(
      made, job_kind::recompute, told ? "--again" : "--costs",
      told ? costs.again : costs.costs_file, text,
      [](const std::string& where, const std::string& back, const std::string& kept) {
        return "a forward of " + where + " brings back " + back +
               " when it runs again, and it keeps " + kept;
      });
}

}  // namespace

void refuse_windows(const cost_options& costs, const window_options& windows, const step& made,
                    const amount_text& text) {
  refuse_copies(costs, windows, made, text);
  refuse_second_runs(costs, windows, made, text);
}

namespace {

step plain_step(const step_options& options, finer_unit time) {
  if (!options.csv.empty()) {
    step read = read_order(options.csv_option, options.csv);
    prove_order(read, options.costs, {.times = time.times}, nullptr,
                schedule::objective_kind::flush);
    return read;
  }
  if (options.name.empty()) throw bad_input("NAME or --csv: one of them is required");
  if (options.sizes.ranks == 0) throw bad_input("--ranks: required with a schedule's name");
  if (options.sizes.microbatches == 0)
    throw bad_input("--microbatches: required with a schedule's name");
  const shape sizes = options.sizes.sizes(options.name);
  const cost_options costs = options.costs.for_step(is_forward_only(options.name),
                                                    options.windows.of(options.name).offload.any());
  return *make_shortest(options.name, sizes, options.schedule(),
                        options.windows.choices(options.name, sizes.microbatches, costs), costs,
                        {.slices = sizes.slices, .times = time.times});
}

}  // namespace

step make_step(const step_options& options, bool finer) {
  const finer_unit whole = finer_unit::of_hidden(options.costs.hides);
  step made = plain_step(options, finer ? whole : finer_unit{});
  refuse_windows(options.costs, options.windows, made,
                 plain_amount);
  if (finer)
    made.time = whole;
  else if (options.costs.hides > 0)
    refuse_hidden_parts(made);
  if (!options.receive_lead) return made;
  if (made.messages)
    throw bad_input("--receive-lead: " + options.csv + " says itself where its receives stand");
  made.receive_lead = *options.receive_lead;
  made.title += ", receive lead " + std::to_string(made.receive_lead);
  return made;
}

namespace {

//! @throws broken_schedule when lists with messages break a rule
void check_messages(const step& from, const replay_input& compute, verdict answer,
                    const job_lists& lists, int gathered = std::numeric_limits<int>::max()) {
  if (answer.ok()) {
    replay_input lowered = compute;
    lowered.rows = lists.rows();
    lowered.messages = true;
    answer = check::schedule(lowered);
    if (answer.ok()) answer = check::sharded(lowered, gathered);
  }
  if (!answer.ok())
    throw broken_schedule(from.schedule +
                          ", with messages: " + std::string(to_text(answer).view()));
}

}  // namespace

job_lists with_messages(const step& from) {
  const replay_input compute = from.input();
  if (from.messages) return from.imported->lists;
  job_lists lists(compute.rows.ranks, lowering::with_messages(compute.rows.stride));
  job_sink sink = lists.sink();
  check_messages(from, compute, lowering::add_messages(compute, sink), lists);
  return lists;
}

job_lists with_pytorch_comms(const step& from, int gathered) {
  const replay_input compute = from.input();
  job_lists lists = stretto::with_pytorch_comms(compute, gathered);
  check_messages(from, compute, {}, lists, gathered);
  return lists;
}

simulated simulate(const step& from, bool with_timeline) {
  const replay_input input = from.input();
  const auto ranks = static_cast<std::size_t>(input.rows.ranks);
  const std::size_t places = ranks * static_cast<std::size_t>(input.rows.stride);
  simulated made{
      {}, std::vector<rank_report>(ranks), std::vector<job_time>(with_timeline ? places : 0)};
  made.all = measure(input, made.ranks, made.timeline);
  if (!made.all.answer.ok())
    throw broken_schedule(from.schedule + ": " + std::string(to_text(made.all.answer).view()));
  return made;
}

std::int64_t by_gathers(const step& from, const report& all) {
  if (!from.gathers) return 0;
  job_table at_once = from.made.costs;
  for (int rank = 0; rank < at_once.ranks; ++rank)
    for (int chunk = 0; chunk < at_once.chunks; ++chunk)
      at_once.at(rank, chunk, job_kind::unshard).time = 0;
  replay_input without = from.input();
  without.costs = at_once.view();
  std::vector<rank_report> ranks(static_cast<std::size_t>(without.rows.ranks));
  return all.makespan - measure(without, ranks).makespan;
}

void refuse_nothing_gathered(const step_options& options, const step& made) {
  options.costs.refuse_nothing_gathered(has(made.input().rows, job_kind::unshard));
}

}  // namespace stretto::tool
