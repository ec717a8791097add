#include "cost_table.hpp"

#include <algorithm>
#include <limits>
#include <vector>

#include "cost_rules.hpp"
#include "costs_file.hpp"
#include "errors.hpp"
#include "numbers.hpp"

namespace stretto::tool {

namespace {

// Of what a copy moves, or a second run takes and brings back, that nothing is said of yet.
constexpr std::int64_t untold = std::numeric_limits<std::int64_t>::min();

//! @param act  gets every class, rank and chunk
template <class Act>
void for_each_cell(const job_table& table, const Act& act) {
  for (int number = 0; number < table.view().class_count(); ++number)
    for (int rank = 0; rank < table.ranks; ++rank)
      for (int chunk = 0; chunk < table.chunks; ++chunk) act(number, rank, chunk);
}

void leave_copies_untold(job_table& table) {
  for_each_cell(table, [&](int number, int rank, int chunk) {
    for (const job_kind kind : {job_kind::offload, job_kind::reload})
      table.at(number, rank, chunk, kind).change = untold;
  });
}
//! What is untold moves what its forward keeps.
void move_what_is_kept(job_table& table) {
  for_each_cell(table, [&](int number, int rank, int chunk) {
    const std::int64_t kept =
        std::max<std::int64_t>(0, table.at(number, rank, chunk, job_kind::forward).change);
    job_cost& away = table.at(number, rank, chunk, job_kind::offload);
    job_cost& back = table.at(number, rank, chunk, job_kind::reload);
    if (away.change == untold) away.change = -kept;
    if (back.change == untold) back.change = kept;
  });
}

//! What forwards take that run again, by --again or untold.
void tell_second_runs(job_table& table, const cost_options::second_run& told) {
  for_each_cell(table, [&](int number, int rank, int chunk) {
    table.at(number, rank, chunk, job_kind::recompute) = {told.time.value_or(untold),
                                                          told.memory.value_or(untold), 0};
  });
}
//! What is untold is as the first run has it.
void run_as_first(job_table& table) {
  for_each_cell(table, [&](int number, int rank, int chunk) {
    const job_cost& first = table.at(number, rank, chunk, job_kind::forward);
    job_cost& second = table.at(number, rank, chunk, job_kind::recompute);
    if (second.time == untold) second.time = first.time;
    if (second.change == untold) second.change = std::max<std::int64_t>(0, first.change);
  });
}

//! Searches plan by class 0: that which keeps most, of such the longest, of such that of the most,
//! of such that of the first, whatever their numbers are.
void put_largest_first(job_table& table) {
  const std::int64_t each = table.view().class_entries();
  struct class_size {
    std::int64_t kept = 0, time = 0, cells = 0, later = 0;
    auto operator<=>(const class_size&) const = default;
  };
  std::vector<class_size> sizes(static_cast<std::size_t>(table.view().class_count()));
  for (std::size_t cell = 0; cell < table.classes.size(); ++cell) {
    class_size& of = sizes[static_cast<std::size_t>(table.classes[cell])];
    if (++of.cells == 1) of.later = static_cast<std::int64_t>(table.classes.size() - cell);
  }
  for (std::size_t at = 0; at < table.entries.size(); at += cost_kinds) {
    class_size& of = sizes[at / static_cast<std::size_t>(each)];
    of.kept += table.entries[at].change;
    of.time += table.entries[at].time + table.entries[at + 1].time;  // F and B
  }
  const auto largest = std::max_element(sizes.begin(), sizes.end()) - sizes.begin();
  if (largest == 0) return;
  std::swap_ranges(table.entries.begin(), table.entries.begin() + each,
                   table.entries.begin() + largest * each);
  for (std::int32_t& one : table.classes)
    one = one == 0 ? static_cast<std::int32_t>(largest) : one == largest ? 0 : one;
}

//! The loss falls on the last stage.
void add_loss(job_table& table, const placement& where, std::int64_t time) {
  const int ways = where.direction(where.microbatches - 1) + 1;
  for (int way = 0; way < ways; ++way) {
    const int microbatch = way == 0 ? 0 : where.microbatches - 1;
    const int last = where.stages() - 1;
    const int rank = where.rank_of(last, microbatch);
    const int chunk = where.chunk_of(last, microbatch);
    for (int number = 0; number < table.view().class_count(); ++number) {
      for (const job_kind kind : {job_kind::forward, job_kind::backward_input,
                                  job_kind::backward_weight, job_kind::recompute})
        table.at(number, rank, chunk, kind).time += time;
      table.at(number, rank, chunk, job_kind::backward).time += 2 * time;
    }
  }
}

//! What both ends of the model have is there once on a rank with both; where two ranks have it they
//! sum its gradients.
void share_ends(job_table& table, const placement& where, const dealt_layers& dealt) {
  for (int rank = 0; rank < where.ranks; ++rank) {
    const dealt_layers::end_chunks ends = dealt.ends_on(where, rank);
    if (ends.both())
      table.base[static_cast<std::size_t>(rank)] -= dealt.shared_ends;
    else if (const int end = std::max(ends.first, ends.last); end >= 0)
      for (int number = 0; number < table.view().class_count(); ++number)
        table.at(number, rank, end, job_kind::reduce_grad).time += dealt.reduce_ends;
  }
}

//! Layers that take the same for every slice: those that a job does together take so many times
//! that.
void join_alike(dealt_layers& dealt, int joined) {
  for (unit_costs& one : dealt.costs)
    for (const auto member :
         {&unit_costs::forward, &unit_costs::backward_input, &unit_costs::backward_weight,
          &unit_costs::whole_saves, &unit_costs::memory_forward, &unit_costs::memory_backward_input,
          &unit_costs::memory_backward_weight, &unit_costs::offload, &unit_costs::memory_offload,
          &unit_costs::recompute_saves, &unit_costs::memory_recompute})
      one.*member *= joined;
}

//! Classes of the jobs of each slice, or of those that a job does together, one after another.
void write_slices(job_table& table, const dealt_layers& dealt, const placement& where,
                  const cost_cut& cut) {
  const auto many = static_cast<std::size_t>(cut.joined);
  std::vector<job_cost> one(static_cast<std::size_t>(table.view().class_entries()));
  std::vector<std::int64_t> base(table.base.size());
  for (int of = 1; of < cut.slices; ++of) table.add_class();
  std::fill(table.entries.begin(), table.entries.end(), job_cost{});
  const auto add = [&](int of, std::size_t slice, bool backwards) {
    write_layer_costs(where, dealt.stages, dealt.cost_of_slice(slice), one, base);
    for (std::size_t at = 0; at < one.size(); ++at) {
      const auto kind = static_cast<job_kind>(at % cost_kinds);
      const bool once = is_of_stage(kind) && slice % many != 0;
      if ((kind >= job_kind::backward && kind <= job_kind::backward_weight) == backwards && !once)
        add_behind(table.entries[static_cast<std::size_t>(of) * one.size() + at], one[at]);
    }
  };
  for (int of = 0; of < cut.slices; ++of)
    for (std::size_t at = 0; at < many; ++at) {
      const std::size_t first = static_cast<std::size_t>(of) * many;
      add(of, first + at, false);
      add(of, first + many - 1 - at, true);
    }
  table.slices = cut.slices;
  if (cut.slices == 1) return;
  for (int microbatch = 0; microbatch < where.microbatches; ++microbatch)
    for (int slice = 0; slice < cut.slices; ++slice) table.classes.push_back(slice);
}

//! The table of dealt layers.
job_table layer_table(const cost_options& options, const placement& where, const cost_cut& cut,
                      std::vector<std::int32_t>* counts) {
  if (!options.costs_file.empty())
    throw bad_option("--costs", options.costs_file,
                     "speaks of ranks and chunks; with --layers, --layer-costs speaks of layers");
  unit_costs layer = options.units();
  layer.memory_weights = options.weights;
  job_table table(where.ranks, where.chunks, layer);
  table.limit = options.limits(where.ranks);
  dealt_layers dealt = deal_layers(options.layers, where, layer, table.limit, false);
  if (counts != nullptr) {
    counts->clear();
    for (const layer_range& stage : dealt.stages) counts->push_back(stage.count);
  }
  const std::size_t slices =
      static_cast<std::size_t>(cut.slices) * static_cast<std::size_t>(cut.joined);
  if (!dealt.slices.empty() && dealt.slices.size() != slices)
    throw bad_option("--layer-costs", options.layers.file,
                     "tells " + std::to_string(dealt.slices.size()) +
                         " slices apart, and a micro-batch has " + std::to_string(slices));
  if (!dealt.slices.empty() && cut.slices * table.view().class_entries() > most_entries)
    throw bad_option("--layer-costs", options.layers.file,
                     "tells " + std::to_string(dealt.slices.size()) +
                         " slices apart, which is too many for so many stages");
  if (dealt.slices.empty()) join_alike(dealt, cut.joined);
  write_layer_costs(where, dealt.stages, dealt.cost_of(), table);
  if (!dealt.slices.empty()) write_slices(table, dealt, where, cut);
  share_ends(table, where, dealt);
  if (!options.copies_told()) {
    leave_copies_untold(table);
    move_what_is_kept(table);
  }
  const cost_options::second_run told = options.second();
  for_each_cell(table, [&](int number, int rank, int chunk) {
    const int stage = where.stage_of(rank, chunk);
    const std::int64_t count = stage < 0 ? 0 : dealt.stages[static_cast<std::size_t>(stage)].count;
    job_cost& second = table.at(number, rank, chunk, job_kind::recompute);
    if (told.time) second.time = *told.time * count;
    if (told.memory) second.change = *told.memory * count;
  });
  refuse_saving_too_much(options, table);
  refuse_long_sums(options, table, where,
                   {.slices = cut.slices, .times = cut.times, .amounts = cut.amounts}, 0);
  refine(table, cut);
  join_messages(table, cut);
  put_largest_first(table);
  return table;
}

job_table table_of(const cost_options& options, const placement& where, const cost_cut& cut,
                   std::vector<std::int32_t>* dealt) {
  if (options.layers.given()) return layer_table(options, where, cut, dealt);
  const unit_costs units = options.units();
  job_table table(where.ranks, cut.given > 0 ? cut.given : where.chunks, units);
  std::int64_t loss = 0;
  if (!options.copies_told()) leave_copies_untold(table);
  tell_second_runs(table, options.second());
  if (!options.costs_file.empty()) {
    costs_file file(options.costs_file, table, where.microbatches, cut.slices * cut.joined,
                    options.whole_saves);
    file.apply();
    loss = file.loss();
  }
  move_what_is_kept(table);
  run_as_first(table);
  if (options.weights > 0) {
    // Those of every chunk that the options speak of, on a rank of replicas twice, but for the one
    // in the midst; else of each that it has.
    const bool both_ways = where.kind == placement_kind::bidirectional;
    table.base.resize(static_cast<std::size_t>(where.ranks));
    for (int rank = 0; rank < where.ranks; ++rank) {
      int chunks = cut.given * (both_ways && !where.is_midst(rank) ? 2 : 1);
      const int own = where.is_midst(rank) ? where.chunks_one_way() : where.chunks;
      for (int chunk = 0; cut.given == 0 && chunk < own; ++chunk)
        chunks += where.stage_of(rank, chunk) >= 0 ? 1 : 0;
      table.base[static_cast<std::size_t>(rank)] += options.weights * chunks;
    }
  }
  if (options.limit) table.limit = options.limits(where.ranks);
  refuse_saving_too_much(options, table);
  refuse_long_sums(options, table, where, cut, loss);
  refine(table, cut);
  if (cut.given > 0) table = cut_anew(table, where, cut);
  join_messages(table, cut);
  add_loss(table, where, loss * cut.joined * cut.times);
  put_largest_first(table);
  return table;
}

//! What a forward keeps for its backward, a step of forwards alone does not.
void leave_kept_for_backward(job_table& table) {
  constexpr std::int64_t none = 0;
  for (std::size_t at = 0; at < table.entries.size(); at += cost_kinds) {
    job_cost& forward = table.entries[at + static_cast<std::size_t>(job_kind::forward)];
    const job_cost& backward = table.entries[at + static_cast<std::size_t>(job_kind::backward)];
    if (forward.peak <= forward.change) forward.peak = none;  // it says no more than that
    forward.change =
        std::max(std::min(none, forward.change), forward.change + std::min(none, backward.change));
  }
}

}  // namespace

void leave_out_replicas(job_table& table) {
  for (std::size_t at = 0; at < table.entries.size(); ++at)
    if (is_of_stage(static_cast<job_kind>(at % cost_kinds))) table.entries[at] = {};
}

job_table make_costs(const cost_options& options, const placement& where, const cost_cut& cut,
                     std::vector<std::int32_t>* dealt) {
  job_table table = table_of(options, where, cut, dealt);
  if (!options.replicas) leave_out_replicas(table);
  if (options.layers.forward_only) leave_kept_for_backward(table);
  return table;
}

}  // namespace stretto::tool
