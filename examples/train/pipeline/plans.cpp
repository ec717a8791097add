#include "pipeline/plans.hpp"

#include <algorithm>
#include <concepts>
#include <limits>
#include <optional>
#include <utility>

#include "model/layer.hpp"
#include "stretto/assignment/all.hpp"
#include "stretto/assignment/described.hpp"
#include "stretto/lowering/streams/all.hpp"
#include "stretto/memory/window_text.hpp"
#include "stretto/model/verdict_text.hpp"
#include "stretto/schedule/all.hpp"
#include "stretto/schedule/any.hpp"
#include "stretto/schedule/by_name.hpp"
#include "stretto/schedule/options.hpp"

namespace train {
namespace {

using stretto::reason;
using stretto::verdict;

// Bounds the plans' memory long before any of their sizes can overflow.
constexpr std::int64_t most_jobs = 1'000'000;
constexpr std::int64_t most_earlier_slices = 10'000'000;

//! What the settings name, with the options that they give it.
stretto::schedule::any schedule_of(const pipeline_settings& settings) {
  if (settings.order) return *settings.order;
  stretto::schedule::options told = settings.options;
  if (settings.group != 0) told.group = settings.group;
  const auto found = stretto::schedule::by_name(
      settings.schedule, told, [&](const std::string& option, const std::string& value) {
        throw bad_setting(option, value,
                          "the schedule " + settings.schedule + " has no such option");
      });
  if (!found || found->forward_only)
    throw bad_setting("schedule", settings.schedule,
                      "no such schedule trains; there are " + training_schedules());
  return *found;
}

//! Calls `visit` with the overlap policy that the settings name.
template <class Visitor>
void with_overlap(const pipeline_settings& settings, Visitor&& visit) {
  std::string names;
  bool found = false;
  stretto::overlap::for_each([&]<class Overlap>(Overlap made) {
    names += (names.empty() ? "" : ", ") + std::string(Overlap::name);
    if (settings.overlap != Overlap::name) return;
    found = true;
    visit(stretto::overlap::with_receive_lead<Overlap>{made, settings.receive_lead});
  });
  if (!found) throw bad_setting("overlap", settings.overlap, "no such policy; there are " + names);
}

std::string sentence(const verdict& answer) {
  return std::string(stretto::to_text(answer).view());
}

//! Says which setting a refused shape is about.
[[noreturn]] void refuse(const pipeline_settings& settings, const stretto::shape& sizes,
                         const verdict& answer) {
  const std::string rule(stretto::describe(answer.why));
  switch (answer.why) {
    case reason::ranks_below_one:
      throw bad_setting("ranks", std::to_string(sizes.ranks), rule);
    case reason::microbatches_below_one:
      throw bad_setting("microbatches", std::to_string(sizes.microbatches), rule);
    case reason::ranks_odd:
      throw bad_setting("ranks", std::to_string(sizes.ranks), settings.schedule + ": " + rule);
    case reason::chunks_below_one:
    case reason::chunks_not_one:
    case reason::chunks_not_two:
      throw bad_setting("chunks", std::to_string(sizes.chunks), settings.schedule + ": " + rule);
    case reason::slices_below_one:
    case reason::slices_not_one:
      throw bad_setting("slices", std::to_string(sizes.slices), settings.schedule + ": " + rule);
    case reason::slices_not_recomputed:
      throw bad_setting("recompute", stretto::memory::window_text(settings.recompute), rule);
    case reason::slices_not_offloaded:
    case reason::offload_recomputed:
      throw bad_setting("offload", stretto::memory::window_text(settings.offload), rule);
    case reason::group_below_one:
    case reason::group_below_ranks:
    case reason::group_starves_short:
    case reason::group_above_microbatches:
    case reason::group_above_ranks:
      throw bad_setting("group", std::to_string(settings.group), rule);
    case reason::warmup_not_served:
      throw bad_setting("warmup", stretto::schedule::word_for(*settings.options.warmup), rule);
    case reason::variant_out_of_range:
      throw bad_setting("variant", std::to_string(settings.options.variant.value_or(-1)), rule);
    case reason::above_limit:
      throw bad_setting(
          "limit", std::to_string(settings.limit.value_or(0)),
          settings.schedule + " needs " +
              (answer.has_job ? "more: " + sentence(answer) : std::to_string(answer.amount)));
    default:
      throw bad_setting("schedule", settings.schedule, sentence(answer));
  }
}

//! In a step or an evaluation, the larger: every slice's jobs read all earlier ones.
double earlier_slices_read(const stretto::shape& sizes, const pipeline_settings& settings) {
  const double stages = static_cast<double>(sizes.ranks) * sizes.chunks;
  const double microbatches =
      std::max(2.0 * sizes.microbatches, 1.0 * settings.evaluation_microbatches);
  return stages * microbatches * sizes.slices * (sizes.slices - 1) / 2;
}

stretto::shape shape_for(const stretto::schedule::any& made, const pipeline_settings& settings) {
  stretto::shape sizes{.ranks = settings.ranks,
                       .microbatches = settings.microbatches,
                       .chunks = settings.chunks,
                       .slices = settings.slices};
  if (sizes.chunks == 0) {
    sizes.chunks = 2;
    if (made.supports(sizes).why == reason::chunks_not_one) sizes.chunks = 1;
  }
  if (sizes.microbatches > 0 && sizes.slices > 0 &&
      std::int64_t{sizes.ranks} * sizes.chunks > most_jobs / sizes.microbatches / sizes.slices)
    throw bad_setting(
        "microbatches", std::to_string(sizes.microbatches),
        "with " + std::to_string(sizes.ranks) + " ranks of " + std::to_string(sizes.chunks) +
            " chunks" +
            (sizes.slices > 1 ? " and " + std::to_string(sizes.slices) + " slices" : "") +
            ", more than " + std::to_string(most_jobs) + " jobs of a kind in a step");
  if (const verdict answer = made.supports(sizes); !answer.ok()) refuse(settings, sizes, answer);
  if (sizes.slices > 1 && earlier_slices_read(sizes, settings) > most_earlier_slices)
    throw bad_setting("slices", std::to_string(sizes.slices),
                      "with so many micro-batches, jobs read more than " +
                          std::to_string(most_earlier_slices) + " earlier slices in a step");
  return sizes;
}

std::unique_ptr<stretto::planned> plan(const stretto::schedule::any& schedule,
                                       const stretto::shape& sizes,
                                       const pipeline_settings& settings,
                                       const stretto::job_table_view& costs,
                                       stretto::plan_request request) {
  std::unique_ptr<stretto::planned> made;
  with_overlap(settings, [&](const auto& overlap) {
    made = std::make_unique<stretto::planned>(schedule, sizes, costs, overlap, std::move(request));
  });
  if (!made->answer().ok()) refuse(settings, sizes, made->answer());
  return made;
}

}  // namespace

std::string training_schedules(std::string_view option) {
  std::string names;
  stretto::schedule::all::for_each([&]<class Schedule>(const Schedule& made) {
    bool named = option.empty();
    stretto::schedule::for_each_option([&](std::string_view one, auto, auto member) {
      named = named || (one == option && std::invocable<decltype(member), Schedule&>);
    });
    if (named && !stretto::schedule::forward_only(made))
      names += (names.empty() ? "" : ", ") + std::string(made.name);
  });
  return names;
}

stretto::shape training_shape(const pipeline_settings& settings) {
  return shape_for(schedule_of(settings), settings);
}

stretto::placement stage_placement(const pipeline_settings& settings) {
  const stretto::schedule::any schedule = schedule_of(settings);
  return stretto::place(schedule.placed(), shape_for(schedule, settings));
}

namespace {

//! As the text of --layers says.
std::vector<stretto::layer_range> deal_text(const config& model, const stretto::placement& where,
                                            const std::string& text) {
  const auto refuse_layers = [&](const std::string& rule) {
    throw bad_setting("layers", text, rule);
  };
  const stretto::assignment::described how(text);
  if (!how.complaint().empty()) refuse_layers(how.complaint());
  if (how.layers() != model.layer_count())
    refuse_layers("they are " + std::to_string(how.layers()) + ", but embedding, blocks and " +
                  model.head_words() + " make " + std::to_string(model.layer_count()));
  const std::string letters = how.letters();
  for (std::size_t layer = 0; layer < letters.size(); ++layer)
    if (letters[layer] != (layer == 0 ? 'E' : layer + 1 == letters.size() ? 'L' : 't'))
      refuse_layers("the trainer's model is E, then t, then L");
  std::vector<stretto::layer_range> stages(config::size(where.stages()));
  const verdict answer = how.assign(where, stages, [&](int layer) {
    const product_counts one = expected_products(model, layer);
    return stretto::unit_costs{.forward = static_cast<std::int64_t>(one.forward),
                               .backward_input = static_cast<std::int64_t>(one.backward_input),
                               .backward_weight = static_cast<std::int64_t>(one.backward_weight)};
  });
  if (!answer.ok()) refuse_layers(how.explain(answer, where));
  for (const stretto::layer_range& held : stages)
    if (held.count == 0) refuse_layers("each of the trainer's stages needs a layer");
  return stages;
}

}  // namespace

std::vector<stretto::assignment::layer_range> deal_layers(const config& model,
                                                          const stretto::placement& where,
                                                          const pipeline_settings& settings) {
  if (!settings.layers.empty()) return deal_text(model, where, settings.layers);
  std::vector<stretto::assignment::layer_range> stages(config::size(where.stages()));
  const std::vector<std::int32_t>& per_rank = settings.layers_per_rank;
  if (per_rank.empty()) {
    if (!stretto::assignment::deal_evenly(model.layer_count(), where, stages).ok())
      throw bad_setting("layers", std::to_string(model.layers),
                        "with embedding and " + model.head_words() + " that makes " +
                            std::to_string(model.layer_count()) + " layers, " +
                            std::to_string(where.stages()) + " stages need one each");
    return stages;
  }

  std::string typed;
  std::int64_t sum = 0;
  for (const std::int32_t count : per_rank) {
    typed += (typed.empty() ? "" : ",") + std::to_string(count);
    sum += count;
  }
  const auto refuse_layers = [&](const std::string& rule) {
    throw bad_setting("layers-per-rank", typed, rule);
  };
  if (per_rank.size() != config::size(where.ranks))
    refuse_layers("one number for each of " + std::to_string(where.ranks) + " ranks is needed");
  if (sum != model.layer_count())
    refuse_layers("they sum to " + std::to_string(sum) + ", but --layers " +
                  std::to_string(model.layers) + ", embedding and " + model.head_words() +
                  " make " + std::to_string(model.layer_count()));
  const verdict answer = stretto::assignment::deal_round_robin(per_rank, where, stages);
  if (!answer.ok()) refuse_layers(sentence(answer));
  return stages;
}

std::unique_ptr<stretto::planned> plan_training(const pipeline_settings& settings,
                                                const stretto::job_table_view& costs,
                                                stretto::plan_request request) {
  const stretto::schedule::any schedule = schedule_of(settings);
  // Of training alone: an evaluation keeps nothing.
  const std::vector<std::int64_t> limits(config::size(settings.limit ? settings.ranks : 0),
                                         settings.limit.value_or(0));
  stretto::job_table_view limited = costs;
  if (settings.limit) limited.limit = limits;
  return plan(schedule, shape_for(schedule, settings), settings, limited, std::move(request));
}

std::unique_ptr<stretto::planned> plan_evaluation(const pipeline_settings& settings,
                                                  const stretto::job_table_view& costs,
                                                  stretto::plan_request request) {
  const stretto::placement where = stage_placement(settings);
  stretto::schedule::inference forwards;
  forwards.placement = where.kind;
  const stretto::shape sizes{.ranks = where.ranks,
                             .microbatches = settings.evaluation_microbatches,
                             .chunks = training_shape(settings).chunks,
                             .slices = settings.slices};
  request.train = false;
  request.groups.clear();
  request.members.clear();
  return plan(forwards, sizes, settings, costs, std::move(request));
}

}  // namespace train
