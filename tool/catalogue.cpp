#include "catalogue.hpp"

#include <string_view>

#include "errors.hpp"
#include "stretto/memory/window_text.hpp"
#include "stretto/schedule/by_name.hpp"

namespace stretto::tool {

namespace {

template <class Schedule>
constexpr bool has_placement = requires(Schedule made) {
  made.placement;
};
template <class Schedule>
constexpr bool has_group = requires(Schedule made) {
  made.group;
};
template <class Schedule>
constexpr bool has_remainder = requires(Schedule made) {
  made.remainder;
};
template <class Schedule>
constexpr bool has_warmup = requires(Schedule made) {
  made.warmup;
};
template <class Schedule>
constexpr bool has_objective = requires(Schedule made) {
  made.objective;
};
template <class Schedule>
constexpr bool has_variant = requires(Schedule made) {
  made.variant;
};
template <class Schedule>
constexpr bool has_split = requires(Schedule made) {
  made.split;
};

std::string spell(int value) {
  return std::to_string(value);
}
std::string spell(placement_kind value) {
  return placement_name(value);
}
std::string spell(schedule::remainder_kind value) {
  return value == schedule::remainder_kind::first ? "first" : "last";
}
std::string spell(schedule::warmup_kind value) {
  return value == schedule::warmup_kind::all ? "all" : "standard";
}
std::string spell(schedule::objective_kind value) {
  return value == schedule::objective_kind::flush ? "flush" : "span";
}
std::string spell(schedule::split_kind value) {
  return value == schedule::split_kind::full ? "full" : "partial";
}

//! Sets a schedule's option, or says that it has none. Generic in the schedule, so that an absent
//! member is not looked at.
template <bool Has, class Schedule, class Value, class Assign>
void set(Schedule& made, const std::string& option, const std::optional<Value>& value,
         Assign assign) {
  if (!value) return;
  if constexpr (Has)
    assign(made, *value);
  else
    throw bad_option(option, spell(*value), std::string(Schedule::name) + " has no such option");
}

template <class Schedule>
schedule::any configured(Schedule made, const schedule_options& options) {
  // A schedule that is laid one way only may be asked for just that.
  const bool as_is = options.placement && *options.placement == made.placed();
  if (!as_is)
    set<has_placement<Schedule>>(made, "--placement", options.placement,
                                 [](auto& one, auto value) { one.placement = value; });
  set<has_group<Schedule>>(made, "--group", options.group,
                           [](auto& one, auto value) { one.group = value; });
  set<has_remainder<Schedule>>(made, "--remainder", options.remainder,
                               [](auto& one, auto value) { one.remainder = value; });
  set<has_warmup<Schedule>>(made, "--warmup", options.warmup,
                            [](auto& one, auto value) { one.warmup = value; });
  set<has_split<Schedule>>(made, "--split", options.split,
                           [](auto& one, auto value) { one.split = value; });
  set<has_objective<Schedule>>(made, "--objective", options.objective,
                               [](auto& one, auto value) { one.objective = value; });
  set<has_variant<Schedule>>(made, "--variant", options.variant,
                             [](auto& one, auto value) { one.variant = value; });
  return made;
}

template <class Schedule>
schedule_facts facts_of(const Schedule& made) {
  schedule_facts facts;
  facts.name = Schedule::name;
  for (int chunks = 1; chunks <= 3; ++chunks)
    if (made.supports({.ranks = 2, .microbatches = 4, .chunks = chunks}).ok())
      facts.chunks.push_back(chunks);
  facts.slices = made.supports({.ranks = 2, .microbatches = 4, .slices = 2}).ok();
  facts.forward_only = schedule::forward_only(made);
  if constexpr (has_placement<Schedule>) {
    Schedule other = made;
    other.placement = placement_kind::wave;
    if (other.supports({.ranks = 2, .microbatches = 4, .chunks = 2}).ok())
      facts.options.emplace_back("--placement");
  }
  if constexpr (has_group<Schedule>) facts.options.emplace_back("--group");
  if constexpr (has_remainder<Schedule>) facts.options.emplace_back("--remainder");
  if constexpr (has_warmup<Schedule>) facts.options.emplace_back("--warmup");
  if constexpr (has_split<Schedule>) facts.options.emplace_back("--split");
  if constexpr (has_objective<Schedule>) facts.options.emplace_back("--objective");
  if constexpr (has_variant<Schedule>) facts.options.emplace_back("--variant");
  return facts;
}

//! Puts recomputes and copies into the lists.
void insert_windows(generated& made, const schedule_options& options, int slices) {
  const auto insert = [&](const std::string& option, const std::string& window, int stride,
                          const auto& into) {
    job_lists lists(made.where.ranks, stride);
    job_sink sink = lists.sink();
    if (const verdict answer = into(sink); !answer.ok())
      throw bad_option(option, window, std::string(describe(answer.why)));
    made.lists = std::move(lists);
  };
  if (const auto& again = options.recompute; again.any())
    insert("--recompute", memory::window_text(again),
           memory::with_recomputes(again, made.lists.rows().stride), [&](job_sink& out) {
             return memory::insert_recomputes(again, made.lists.rows(), made.where, slices, out);
           });
  if (const auto& away = options.offload; away.any())
    insert("--offload", memory::window_text(away),
           memory::with_offloads(away, made.lists.rows().stride), [&](job_sink& out) {
             return memory::insert_offloads(away, options.recompute, made.lists.rows(), made.where,
                                            slices, out);
           });
}

}  // namespace

std::string placement_name(placement_kind kind) {
  if (kind == placement_kind::bidirectional) return "bidirectional";
  return kind == placement_kind::wave ? "wave" : "looped";
}

std::vector<schedule_facts> catalogue() {
  std::vector<schedule_facts> all;
  schedule::all::for_each([&](const auto& made) { all.push_back(facts_of(made)); });
  return all;
}

std::string schedule_names() {
  std::string names;
  for (const auto& facts : catalogue()) names += (names.empty() ? "" : ", ") + facts.name;
  return names;
}

bool is_forward_only(const std::string& name) {
  for (const schedule_facts& facts : catalogue())
    if (facts.name == name) return facts.forward_only;
  return false;
}

verdict serves(const std::string& name, const shape& sizes) {
  const std::optional<schedule::any> found = schedule::by_name(name);
  return found ? found->supports(sizes) : verdict{};
}

generated generate(const std::string& name, const shape& sizes, const schedule_options& options,
                   const std::function<job_table(const placement&)>& costs) {
  std::optional<schedule::any> found;
  schedule::all::for_each([&](const auto& made) {
    if (name == made.name) found = configured(made, options);
  });
  if (!found) throw bad_option("NAME", name, "no such schedule; there are " + schedule_names());
  const schedule::any& made = *found;
  generated result;
  result.answer = made.supports(sizes);
  result.refused = !result.answer.ok();
  if (result.refused) return result;
  result.where = place(made.placed(), sizes);
  result.costs = costs(result.where);
  result.lists = job_lists(sizes.ranks, made.capacity(sizes));
  job_sink sink = result.lists.sink();
  job_table seen = result.costs;
  memory::fold_recompute(options.recompute, seen.entries, seen.chunks);
  memory::fold_offload(options.offload, seen.entries, seen.chunks, seen.limit);
  result.answer =
      memory::unfolded(made.emit(sizes, seen.view(), sink), result.costs.limit, seen.limit);
  if (result.answer.ok()) insert_windows(result, options, sizes.slices);
  return result;
}

}  // namespace stretto::tool
