#include "make_step.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "dealing.hpp"
#include "errors.hpp"
#include "read_step.hpp"
#include "refusals.hpp"
#include "simulated.hpp"
#include "step_replicas.hpp"
#include "step_windows.hpp"
#include "stretto/check/all.hpp"
#include "stretto/memory/window_text.hpp"
#include "stretto/model/verdict_text.hpp"

namespace stretto::tool {

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
  if (!costs.deals()) return make(costs, why);
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
  if (costs.limit) {
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
  }
  // Last, as others are tried until one fits; and not where it is what there is.
  bool tries_even = sizes.chunks > 1;
  if (made) {
    std::vector<std::int32_t> even;
    (void)make_costs(evenly(costs), made->made.where, cut, &even);
    tries_even = made->made.where.chunks > 1 && made->layers != even;
  }
  if (tries_even) attempt(evenly(costs));
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
    if (least == unlimited) throw;  // more memory is not known to help
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

step plain_step(const step_options& options, finer_unit time) {
  if (!options.csv.empty()) {
    step read = read_order(options.csv_option, options.csv);
    if (read.forward_only) options.refuse_of_backwards(read.schedule);
    prove_order(read, options.costs, {.slices = read.slices, .times = time.times}, nullptr,
                schedule::objective_kind::flush);
    return read;
  }
  const shape sizes = options.sizes.named(options.name);
  if (is_forward_only(options.name)) options.refuse_of_backwards(options.name);
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
  refuse_windows(options.costs, options.windows, made, plain_amount);
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

}  // namespace stretto::tool
