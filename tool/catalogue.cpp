#include "catalogue.hpp"

#include <algorithm>
#include <concepts>
#include <functional>
#include <type_traits>

#include "errors.hpp"
#include "stretto/base/reason_text.hpp"
#include "stretto/memory/window_text.hpp"
#include "stretto/plan/emit_jobs.hpp"
#include "stretto/schedule/by_name.hpp"
#include "stretto/schedule/options.hpp"

namespace stretto::tool {

namespace {

template <class Schedule>
schedule_facts facts_of(const Schedule& made) {
  schedule_facts facts;
  facts.name = Schedule::name;
  for (int chunks = 1; chunks <= 3; ++chunks)
    if (made.supports({.ranks = 2, .microbatches = 4, .chunks = chunks}).ok())
      facts.chunks.push_back(chunks);
  facts.slices = made.supports({.ranks = 2, .microbatches = 4, .slices = 2}).ok();
  facts.forward_only = schedule::forward_only(made);
  facts.searches = requires {
    made.variant;
  };
  schedule::for_each_option([&](const std::string& option, auto, auto member) {
    if constexpr (std::invocable<decltype(member), Schedule&>) {
      Schedule other = made;
      if constexpr (std::same_as<std::remove_reference_t<decltype(member(other))>,
                                 placement_kind>) {
        member(other) = placement_kind::wave;
        if (!other.supports({.ranks = 2, .microbatches = 4, .chunks = 2}).ok()) return;
      }
      facts.options.push_back("--" + option);
    }
  });
  return facts;
}

//! What is wrong with the windows that are put in, by the option that asks for them.
bad_input refused_window(const memory::windows& put, reason why) {
  const bool recompute =
      why == reason::slices_not_recomputed || why == reason::bad_recompute_window;
  return bad_option(
      recompute ? "--recompute" : "--offload",
      recompute ? memory::window_text(put.recompute) : memory::window_text(put.offload),
      std::string(describe(why)));
}

}  // namespace

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

void refuse_name(const std::string& name) {
  throw bad_option("NAME", name, "no such schedule; there are " + schedule_names());
}

std::optional<int> orders_of(const std::string& name) {
  const std::optional<schedule::any> found = schedule::by_name(name);
  return found ? std::optional<int>(found->orders()) : std::nullopt;
}

bool is_forward_only(const std::string& name) {
  for (const schedule_facts& facts : catalogue())
    if (facts.name == name) return facts.forward_only;
  return false;
}

bool searches(const std::string& name) {
  for (const schedule_facts& facts : catalogue())
    if (facts.name == name) return facts.searches;
  return false;
}

verdict serves(const std::string& name, const shape& sizes, const schedule::options& told) {
  const std::optional<schedule::any> found =
      schedule::by_name(name, told, [](const auto&, const auto&) {});
  return found ? found->supports(sizes) : verdict{};
}

//! Whether any job of a kind takes time or memory.
bool takes(const job_table_view& costs, job_kind kind) {
  for (int rank = 0; rank < costs.ranks; ++rank)
    for (int chunk = 0; chunk < costs.chunks; ++chunk)
      if (const job_cost& one = costs.at(rank, chunk, kind); one.time > 0 || one.change > 0)
        return true;
  return false;
}

namespace {

//! Costs whose ranks have from beginning to end the most that gathered weights take.
job_table with_room(job_table costs, int gathered) {
  costs.base.resize(static_cast<std::size_t>(costs.ranks));
  std::vector<std::int64_t> each(static_cast<std::size_t>(costs.chunks));
  for (int rank = 0; rank < costs.ranks; ++rank) {
    for (int chunk = 0; chunk < costs.chunks; ++chunk)
      each[static_cast<std::size_t>(chunk)] = costs.at(rank, chunk, job_kind::unshard).change;
    std::ranges::sort(each, std::greater{});
    for (int one = 0; one < std::min(gathered, costs.chunks); ++one)
      costs.base[static_cast<std::size_t>(rank)] += each[static_cast<std::size_t>(one)];
  }
  return costs;
}

}  // namespace

generated generate(const std::string& name, const shape& sizes, const schedule_options& options,
                   const std::function<job_table(const placement&)>& costs) {
  const std::optional<schedule::any> found =
      schedule::by_name(name, options, [&](const std::string& option, const std::string& value) {
        throw bad_option("--" + option, value, name + " has no such option");
      });
  if (!found) refuse_name(name);
  const schedule::any& made = *found;
  generated result;
  result.answer = made.supports(sizes);
  result.refused = !result.answer.ok();
  if (result.refused) return result;
  result.where = place(made.placed(), sizes);
  result.costs = costs(result.where);
  const bool gathers = takes(result.costs.view(), job_kind::unshard);
  const job_table costs_there = gathers ? with_room(result.costs, options.gathered) : result.costs;
  result.answer = emit_jobs(made, sizes, options, costs_there.view(), result.lists);
  result.room = gathers && options.gathered < result.costs.chunks;
  if (result.answer.what == fault::unsupported) throw refused_window(options, result.answer.why);
  return result;
}

}  // namespace stretto::tool
