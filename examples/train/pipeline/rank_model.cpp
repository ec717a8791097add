#include "pipeline/rank_model.hpp"

namespace train {

using stretto::buffer_role;
using stretto::job_kind;

rank_model::rank_model(const config& model, const stretto::placement& where, int rank,
                       std::span<const stretto::assignment::layer_range> layers, std::uint64_t seed,
                       int shard)
    : where_(where), rank_(rank), batch_(model) {
  earlier_.reserve(config::size(model.slices));
  for (int chunk = 0; chunk < where.chunks; ++chunk) {
    const auto& mine = layers[config::size(where.stage_of(rank, chunk))];
    stages_.push_back(
        std::make_unique<stage>(model, mine.first, mine.first + mine.count, seed, shard));
    if (stages_.back()->has_embedding()) embedding_ = stages_.back().get();
    if (stages_.back()->has_head()) head_ = stages_.back().get();
  }
}

bool rank_model::reads_batch(const stretto::executor::context& at) const {
  const stage& here = stage_of(at.what.stage);
  if (at.what.kind != job_kind::forward && at.what.kind != job_kind::recompute) return false;
  if (at.op < 0) return here.has_embedding() || here.has_head();
  const op_code code = here.ops(at.what.kind)[config::size(at.op)].code;
  return code == op_code::embed || code == op_code::head;
}

bool rank_model::finds_loss(const stretto::executor::context& at) const {
  const stage& here = stage_of(at.what.stage);
  if (at.what.kind != job_kind::forward || !here.has_head()) return false;
  return at.op < 0 || here.ops(at.what.kind)[config::size(at.op)].code == op_code::head;
}

double rank_model::run(const stretto::executor::context& at, double loss_scale) {
  stage& here = stage_of(at.what.stage);
  const auto slice = config::size(at.what.slice);
  const auto input = at.view<float>(buffer_role::input);
  const auto output = at.view<float>(buffer_role::output);
  const auto from = at.view<float>(buffer_role::output_gradient);
  const auto to = at.view<float>(buffer_role::input_gradient);
  const auto stash = at.view<float>(buffer_role::stash);
  if (at.op >= 0)
    return here.run_op(at.what.kind, config::size(at.op),
                       {.tokens = batch_.tokens(slice),
                        .targets = batch_.targets(slice),
                        .input = input,
                        .output = output,
                        .output_gradient = from,
                        .input_gradient = to,
                        .stash = stash,
                        .sums = at.view<float>(buffer_role::workspace),
                        .loss_scale = loss_scale,
                        .earlier = earlier(at),
                        .slice = slice});
  switch (at.what.kind) {
    case job_kind::forward:
      return here.forward(batch_.tokens(slice), batch_.targets(slice), input, output, stash,
                          loss_scale, earlier(at));
    case job_kind::recompute:
      here.recompute(batch_.tokens(), batch_.targets(), input, stash, loss_scale);
      break;
    case job_kind::backward:
      here.backward(from, to, stash, earlier(at));
      break;
    case job_kind::backward_input:
      here.backward_input(from, to, stash, earlier(at));
      break;
    default:
      here.backward_weight(stash, slice);
  }
  return 0;
}

// The plan gives a job its own stash first and then those of earlier slices, in order.
earlier_slices<float> rank_model::earlier(const stretto::executor::context& at) {
  earlier_.clear();
  for (const stretto::executor::bound_buffer& each : at.buffers)
    if (each.role == buffer_role::stash && each.slice < at.what.slice)
      earlier_.push_back(
          {reinterpret_cast<float*>(each.data.data()), each.data.size() / sizeof(float)});
  return earlier_;
}

}  // namespace train
