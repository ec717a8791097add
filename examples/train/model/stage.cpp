#include "model/stage.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>
#include <utility>

namespace train {

using stretto::job_kind;

namespace {

config checked(const config& model, int first, int last, int shard) {
  check_stage_layers(model, first, last);
  if (shard < 0 || shard >= model.shards) {
    throw std::invalid_argument("stage: shard " + std::to_string(shard) +
                                " does not exist: the model has " + std::to_string(model.shards));
  }
  return model;
}

//! @param readable  whether the host can look at them
void check_tokens(const char* name, const config& model, std::span<const std::uint8_t> tokens,
                  std::size_t slice, bool readable) {
  if (tokens.size() != model.rows(slice)) {
    throw std::invalid_argument(std::string(name) + " has " + std::to_string(tokens.size()) +
                                " bytes, it needs " + std::to_string(model.rows(slice)));
  }
  if (!readable || model.vocabulary == 256) return;
  for (const std::uint8_t token : tokens) {
    if (token >= model.vocabulary) {
      throw std::invalid_argument(std::string(name) + " has the byte " + std::to_string(token) +
                                  ", the vocabulary ends at " +
                                  std::to_string(model.vocabulary - 1));
    }
  }
}

}  // namespace

template <class Scalar>
basic_stage<Scalar>::basic_stage(const config& model, int first, int last, std::uint64_t seed,
                                 int shard, const math<Scalar>& by, bool held)
    : model_(checked(model, first, last, shard)),
      first_(first),
      last_(last),
      shard_(shard),
      embedding_(model),
      block_(model),
      by_(&by) {
  for (int piece = 0; piece < model.head_pieces; ++piece) heads_.emplace_back(model, piece);
  tensor_layout parameters;
  if (has_embedding()) {
    tokens_ = stash_.take((model_.rows() + sizeof(Scalar) - 1) / sizeof(Scalar));
  }
  for (int layer = first; layer < last; ++layer) {
    place here;
    here.parameters = parameters.take(parameter_scalars(model, layer));
    here.stash = stash_.take(train::stash_scalars(model, layer));
    if (layer + 1 < model.layer_count()) here.slot = stash_.take(model.message_scalars());
    here.tensors = parameter_tensors(model, layer);
    places_.push_back(std::move(here));
  }
  scalars_ = parameters.end();
  if (!held) return;
  if (model.in_bf16() && !by.rounds())
    throw std::invalid_argument("stage: the model's activations are bf16, the math does not round");
  memory_ = by.allocate(4 * parameters.end() * sizeof(Scalar));
  const std::span<Scalar> all(static_cast<Scalar*>(memory_.get()), 4 * parameters.end());
  const auto quarter = [&](std::size_t at) {
    return all.subspan(at * parameters.end(), parameters.end());
  };
  parameters_ = quarter(0);
  gradients_ = quarter(1);
  mean_ = quarter(2);
  square_ = quarter(3);
  if (by.rounds()) {
    copies_memory_ = by.allocate(parameters.end() * sizeof(bfloat16));
    copies_ = {static_cast<bfloat16*>(copies_memory_.get()), parameters.end()};
  }
  for (int layer = first; layer < last; ++layer) {
    const std::span<Scalar> to = this->parameters(layer);
    aligned_array<Scalar> values(to.size());
    initialise<Scalar>(model, layer, seed, values.span(), shard);
    by.put(values.span().data(), to.data(), to.size_bytes());
  }
  for (const job_kind kind : {job_kind::forward, job_kind::backward, job_kind::backward_input,
                              job_kind::backward_weight}) {
    ops_[static_cast<int>(kind)] = job_ops(model, first, last, kind);
  }
}

template <class Scalar>
template <class Value>
std::span<Value> basic_stage<Scalar>::part(std::span<Value> whole, int layer) const {
  if (layer < first_ || layer >= last_) {
    throw std::invalid_argument("stage: layer " + std::to_string(layer) + " is not in [" +
                                std::to_string(first_) + ", " + std::to_string(last_) + ")");
  }
  if (whole.empty()) {
    throw std::invalid_argument("stage: layer " + std::to_string(layer) +
                                " is held by another process");
  }
  return at(layer).parameters.of(whole);
}

template <class Scalar>
std::span<const std::uint8_t> basic_stage<Scalar>::stashed_tokens(std::span<const Scalar> stash,
                                                                  std::size_t slice) const {
  return {reinterpret_cast<const std::uint8_t*>(&stash[tokens_.offset]), model_.rows(slice)};
}

template <class Scalar>
void basic_stage<Scalar>::check_slice(std::size_t slice) const {
  if (slice >= config::size(model_.slices)) {
    throw std::invalid_argument("slice " + std::to_string(slice) +
                                " does not exist: the model has " + std::to_string(model_.slices));
  }
}

template <class Scalar>
void basic_stage<Scalar>::check_earlier(const job_arguments<Scalar>& with) const {
  if (with.earlier.size() != with.slice)
    throw std::invalid_argument("slice " + std::to_string(with.slice) + " has stashes of " +
                                std::to_string(with.earlier.size()) + " slices before it");
  for (const std::span<Scalar> stash : with.earlier)
    check_buffer("the stash of an earlier slice", stash, stash_scalars(), false);
}

template <class Scalar>
void basic_stage<Scalar>::refuse_shards() const {
  if (model_.shards > 1) {
    throw std::invalid_argument("stage: a job of a shard runs op by op, with the sums over the " +
                                std::to_string(model_.shards) + " shards between them");
  }
}

template <class Scalar>
void basic_stage<Scalar>::check(job_kind kind, const job_arguments<Scalar>& with) const {
  check_buffer("stash", with.stash, stash_scalars(), false);
  check_slice(with.slice);
  if (kind == job_kind::backward_weight) return;
  check_earlier(with);
  if (kind == job_kind::forward || kind == job_kind::recompute) {
    if (kind == job_kind::forward && !has_head()) {
      check_buffer("output", with.output, model_.message_scalars());
    }
    if (has_embedding()) {
      check_tokens("tokens", model_, with.tokens, with.slice, by_->on_host());
    } else {
      check_buffer("input", with.input, model_.message_scalars());
    }
    if (has_piece()) check_tokens("targets", model_, with.targets, with.slice, by_->on_host());
    return;
  }
  if (!has_embedding()) {
    check_buffer("input_gradient", with.input_gradient, model_.message_scalars());
  }
  if (!has_head()) {
    check_buffer("output_gradient", with.output_gradient, model_.message_scalars());
  }
}

template <class Scalar>
std::span<const stage_op> basic_stage<Scalar>::ops(job_kind kind) const {
  if (kind == job_kind::recompute) kind = job_kind::forward;
  if (kind > job_kind::backward_weight) job_ops(model_, first_, last_, kind);  // refuses it
  return ops_[static_cast<int>(kind)];
}

// After a backward's first op, every layer finds the gradient of its output in its slot, and the
// caller's buffer is free.
template <class Scalar>
double basic_stage<Scalar>::run(job_kind kind, const stage_op& op,
                                const job_arguments<Scalar>& with, op_piece piece) {
  const int layer = op.layer;
  const std::span<const Scalar> from = parameters(layer);
  const std::span<Scalar> own = at(layer).stash.of(with.stash);
  const std::span<Scalar> slot = at(layer).slot.of(with.stash);
  const bool leaves = layer == last_ - 1 && kind == job_kind::forward;
  const std::span<Scalar> output = leaves ? with.output : slot;
  const std::span<const Scalar> input =
      layer == first_ ? with.input : at(layer - 1).slot.of(std::span<const Scalar>(with.stash));
  const std::span<Scalar> input_gradient =
      layer == first_ ? with.input_gradient : at(layer - 1).slot.of(with.stash);
  const std::span<Scalar> sums = model_.shards > 1 ? with.sums : std::span<Scalar>();
  const counted_math<Scalar> by(*by_, is_weight(op.code)    ? products_.backward_weight
                                      : is_forward(op.code) ? products_.forward
                                                            : products_.backward_input,
                                {parameters_, copies_.data()});
  double loss = 0;
  switch (op.code) {
    case op_code::embed:
      by->copy(with.tokens.data(), &with.stash[tokens_.offset], with.tokens.size());
      embedding_.forward(by, from, with.tokens, output, with.slice);
      break;
    case op_code::head:
      head_of(layer).forward(by, from, input, output, with.targets, with.loss_scale, own,
                             with.loss == nullptr ? &loss : with.loss, with.logits);
      break;
    case op_code::receive_gradient:
      by->copy(with.output_gradient.data(), slot.data(), slot.size_bytes());
      break;
    case op_code::head_back:
      head_of(layer).backward_input(by, from, slot, input_gradient, own, model_.rows(with.slice));
      break;
    default:
      if (is_weight(op.code)) {
        run_weight(op, by, with.stash, with.slice, piece);
      } else if (is_forward(op.code)) {
        block_.run(op.code, {by, from, input, output, own, sums, with.earlier,
                             at(layer).stash.offset, with.slice, piece});
      } else {
        block_.run(op.code, {by, from, slot, input_gradient, own, sums, with.earlier,
                             at(layer).stash.offset, with.slice, piece});
      }
  }
  return loss;
}

template <class Scalar>
void basic_stage<Scalar>::run_weight(const stage_op& op, const counted_math<Scalar>& by,
                                     std::span<const Scalar> stash, std::size_t slice,
                                     op_piece piece) {
  const std::span<Scalar> to = gradients(op.layer);
  const std::span<const Scalar> own = at(op.layer).stash.of(stash);
  const std::span<const Scalar> output_gradient = at(op.layer).slot.of(stash);
  switch (op.code) {
    case op_code::embed_weight:
      embedding_.backward_weight(by, stashed_tokens(stash, slice), output_gradient, to, slice);
      break;
    case op_code::head_weight:
      head_of(op.layer).backward_weight(by, own, to, model_.rows(slice));
      break;
    default:
      block_.run_weight(op.code, by, output_gradient, own, to, slice, piece);
  }
}

template <class Scalar>
void basic_stage<Scalar>::check_piece(op_code code, op_piece piece) const {
  if (piece.count == 1 && piece.index == 0) return;
  const op_cut cut = cut_of(model_, code);
  const auto refuse = [&](const std::string& rule) {
    throw std::invalid_argument("stage: piece " + std::to_string(piece.index) + " of " +
                                std::to_string(piece.count) + " of the op \"" +
                                std::string(name(code)) + "\": " + rule);
  };
  if (cut.what == stretto::pieces_of::whole) refuse("it runs in one");
  if (piece.index < 0 || piece.index >= piece.count) refuse("it does not exist");
  if (config::size(piece.count) > cut.parts)
    refuse("it has " + std::to_string(cut.parts) +
           (cut.what == stretto::pieces_of::rows ? " rows" : " columns"));
}

template <class Scalar>
double basic_stage<Scalar>::run_op(job_kind kind, std::size_t op,
                                   const job_arguments<Scalar>& with, op_piece piece) {
  const std::span<const stage_op> all = ops(kind);
  if (op >= all.size()) {
    throw std::invalid_argument("stage: op " + std::to_string(op) +
                                " does not exist: the job has " + std::to_string(all.size()));
  }
  if (is_sum(all[op].code)) {
    throw std::invalid_argument("stage: op " + std::to_string(op) + ", \"" +
                                std::string(name(all[op].code)) +
                                "\", is a sum over the shards, which a single one cannot do");
  }
  check_piece(all[op].code, piece);
  check(kind, with);
  if (model_.shards > 1 && is_beside_sum(all[op].code))
    check_buffer("sums", with.sums, model_.activation_scalars());
  return run(kind, all[op], with, piece);
}

template <class Scalar>
double basic_stage<Scalar>::run_job(job_kind kind, const job_arguments<Scalar>& with) {
  refuse_shards();
  check(kind, with);
  double loss = 0;
  for (const stage_op& op : ops(kind)) loss += run(kind, op, with);
  return loss;
}

template <class Scalar>
double basic_stage<Scalar>::forward(std::span<const std::uint8_t> tokens,
                                    std::span<const std::uint8_t> targets,
                                    std::span<const Scalar> input, std::span<Scalar> output,
                                    std::span<Scalar> stash, double loss_scale,
                                    earlier_slices<Scalar> earlier) {
  return run_job(job_kind::forward, {.tokens = tokens,
                                     .targets = targets,
                                     .input = input,
                                     .output = output,
                                     .stash = stash,
                                     .loss_scale = loss_scale,
                                     .earlier = earlier,
                                     .slice = earlier.size()});
}

template <class Scalar>
void basic_stage<Scalar>::recompute(std::span<const std::uint8_t> tokens,
                                    std::span<const std::uint8_t> targets,
                                    std::span<const Scalar> input, std::span<Scalar> stash,
                                    double loss_scale) {
  run_job(job_kind::recompute, {.tokens = tokens,
                                .targets = targets,
                                .input = input,
                                .stash = stash,
                                .loss_scale = loss_scale});
}

template <class Scalar>
void basic_stage<Scalar>::backward_input(std::span<const Scalar> output_gradient,
                                         std::span<Scalar> input_gradient, std::span<Scalar> stash,
                                         earlier_slices<Scalar> earlier) {
  run_job(job_kind::backward_input, {.output_gradient = output_gradient,
                                     .input_gradient = input_gradient,
                                     .stash = stash,
                                     .earlier = earlier,
                                     .slice = earlier.size()});
}

template <class Scalar>
void basic_stage<Scalar>::backward_weight(std::span<const Scalar> stash, std::size_t slice) {
  refuse_shards();
  check_buffer("stash", stash, stash_scalars(), false);
  check_slice(slice);
  const counted_math<Scalar> by(*by_, products_.backward_weight);
  for (const stage_op& op : ops(job_kind::backward_weight)) run_weight(op, by, stash, slice);
}

template <class Scalar>
void basic_stage<Scalar>::backward(std::span<const Scalar> output_gradient,
                                   std::span<Scalar> input_gradient, std::span<Scalar> stash,
                                   earlier_slices<Scalar> earlier) {
  run_job(job_kind::backward, {.output_gradient = output_gradient,
                               .input_gradient = input_gradient,
                               .stash = stash,
                               .earlier = earlier,
                               .slice = earlier.size()});
}

template <class Scalar>
void basic_stage<Scalar>::zero_gradients() {
  by_->zero(gradients_.data(), gradients_.size_bytes());
}

template <class Scalar>
void basic_stage<Scalar>::round_weights() {
  if (by_->rounds())
    by_->round({parameters_.data(), 1, parameters_.size()}, {copies_.data(), 1, copies_.size()});
}

template <class Scalar>
std::span<Scalar> basic_stage<Scalar>::tied_gradient(layer_kind side, int piece) {
  if (!model_.tied) return {};
  const int layer = side == layer_kind::embedding ? 0 : model_.layers + 1 + piece;
  if (layer < first_ || layer >= last_) return {};
  const std::size_t part = head_of(model_.layers + 1 + piece).table().size;
  if (side == layer_kind::head) return head_of(layer).table().of(gradients(layer));
  return embedding_.table().of(gradients(layer)).subspan(static_cast<std::size_t>(piece) * part,
                                                         part);
}

template <class Scalar>
void basic_stage<Scalar>::join_tied(std::span<const Scalar> from_embedding,
                                    std::span<const Scalar> from_head, int piece) {
  const std::size_t part =
      model_.tied ? head_of(model_.layers + 1 + piece).table().size : 0;
  for (const layer_kind side : {layer_kind::embedding, layer_kind::head}) {
    const auto given = side == layer_kind::embedding ? from_embedding : from_head;
    if (!model_.tied || given.size() != part) {
      throw std::invalid_argument(
          std::string("join_tied: the ") + (side == layer_kind::embedding ? "embedding" : "head") +
          "'s gradient has " + std::to_string(given.size()) + " scalars, the tied table has " +
          std::to_string(part));
    }
  }
  const std::span<Scalar> embedding_side = tied_gradient(layer_kind::embedding, piece);
  const std::span<Scalar> head_side = tied_gradient(layer_kind::head, piece);
  const std::span<Scalar> sum = embedding_side.empty() ? head_side : embedding_side;
  if (sum.empty()) return;
  by_->add(from_embedding, from_head, sum);
  if (!head_side.empty() && head_side.data() != sum.data())
    by_->copy(sum.data(), head_side.data(), sum.size_bytes());
}

template <class Scalar>
void basic_stage<Scalar>::squared_norms(std::span<double> slots) const {
  if (slots.size() != config::size(model_.layer_count())) {
    throw std::invalid_argument("squared_norms: " + std::to_string(slots.size()) +
                                " slots for a model of " + std::to_string(model_.layer_count()) +
                                " layers");
  }
  for (int layer = first_; layer < last_; ++layer) {
    const bool skip_table = model_.tied && model_.kind(layer) == layer_kind::head;
    double* const sum = &slots[config::size(layer)];
    by_->zero(sum, sizeof(double));
    for (const tensor& each : at(layer).tensors) {
      if (skip_table && each.offset == head_of(layer).table().offset) continue;
      if (shard_ > 0 && each.pieces == 0) continue;
      by_->add_squares(each.of(gradients(layer)), sum);
    }
  }
}

template <class Scalar>
void basic_stage<Scalar>::clip_and_update(const adamw_factors<Scalar>* by,
                                          const double* clip_factor) {
  for (int layer = first_; layer < last_; ++layer) {
    for (const tensor& each : at(layer).tensors) {
      by_->update(by, clip_factor, each.decayed, each.of(parameters(layer)),
                  each.of(std::as_const(*this).gradients(layer)), each.of(mean(layer)),
                  each.of(square(layer)));
    }
  }
}

template class basic_stage<float>;
template class basic_stage<double>;

}  // namespace train
