#include "pipeline/step_plans.hpp"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "pipeline/stage_ops.hpp"
#include "stretto/lowering/streams/concept.hpp"
#include "stretto/model/verdict_text.hpp"

namespace train {
namespace {

// Bounds the plans' memory.
constexpr std::size_t most_instructions = 4'000'000;

std::size_t ops_of(const stretto::program_chain& chain) {
  std::size_t most = 0;
  for (const stretto::program& job : chain.programs)
    most = std::max(most, static_cast<std::size_t>(job.op_count));
  return most;
}

}  // namespace

step_plans::step_plans(std::unique_ptr<stretto::planned> whole, const config& model,
                       std::span<const stretto::assignment::layer_range> layers,
                       const pipeline_settings& settings, int replicas)
    : whole_(std::move(whole)) {
  if (runs_ops(settings)) expand(model, layers, settings);
  if (settings.tensor_parallel > 1 || replicas > 1)
    shared_ = std::make_unique<stretto::shared>(plans(), settings.tensor_parallel, replicas);
}

void step_plans::expand(const config& model,
                        std::span<const stretto::assignment::layer_range> layers,
                        const pipeline_settings& settings) {
  std::vector<stretto::stream_info> streams(whole_->plans().front().streams.begin(),
                                            whole_->plans().front().streams.end());
  constexpr std::string_view name = "tensor_parallel";
  // A policy may have a stream for sums already.
  const auto found = std::ranges::find(
      streams, name, [](const stretto::stream_info& one) { return std::string_view(one.name); });
  const auto stream = static_cast<int>(found - streams.begin());
  if (found == streams.end() && settings.tensor_parallel > 1)
    streams.push_back(stretto::overlap::named_stream(name, -1));
  const stage_ops ops(model, whole_->where(), {layers.begin(), layers.end()}, settings, stream);
  std::size_t instructions = 0;
  for (const stretto::plan_view& plan : whole_->plans())
    instructions += plan.instructions.size() * ops_of(ops.programs(plan.rank)) *
                    config::size(most_pieces(settings));
  if (instructions > most_instructions)
    throw bad_setting("microbatches", std::to_string(settings.microbatches),
                      "with jobs in ops, a step may have more than " +
                          std::to_string(most_instructions) + " instructions");
  expanded_ = std::make_unique<stretto::expanded>(*whole_, streams, ops);
  if (!expanded_->answer().ok())
    throw bad_setting("ops", ops.name(),
                      std::string(stretto::to_text(expanded_->answer()).view()));
}

}  // namespace train
