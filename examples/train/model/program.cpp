#include "model/program.hpp"

#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "model/kernels.hpp"
#include "model/layer.hpp"
#include "stretto/model/stream_type.hpp"

namespace train {
namespace {

using stretto::job_kind;
using stretto::op_use;
using stretto::program_chain;
using stretto::reads;
using stretto::writes;

//! The weights of one product or norm, and their gradients.
struct trained {
  std::int32_t value = -1, gradient = -1;
};

//! The buffers of one layer: a block's, or as many as the other kinds need.
struct layer_buffers {
  std::int32_t normal1 = -1, deviation1 = -1, output1 = -1, joint = -1, weights = -1, mixed = -1,
               normal2 = -1, deviation2 = -1, output2 = -1, slope = -1, values = -1;
  std::int32_t hidden_gradient = -1, output2_gradient = -1, middle_gradient = -1,
               joint_gradient = -1, output1_gradient = -1, scratch = -1;
  std::int32_t values_gradient = -1, targets = -1, sums = -1;  // of the head, or a piece of it
  std::int32_t slot = -1;                                      // behind the layer
  trained norm1, qkv, mix, norm2, up, down;
  trained table, norm;  // of embedding and head
};

class chain_writer {
 public:
  chain_writer(const config& model, int first, int last, const chain_options& with)
      : model_(model),
        first_(first),
        last_(last),
        with_(with),
        scalar_bytes_(static_cast<std::int64_t>(with.scalar_bytes)) {
    const std::size_t width = config::size(model.width);
    if (first > 0) input_ = message("input");
    if (first > 0) input_gradient_ = message("input gradient");
    if (last < model.layer_count()) {
      output_ = message("output");
      output_gradient_ = message("output gradient");
    }
    if (model.shards > 1) sums_ = rows("sums", width);
    for (int layer = first; layer < last; ++layer) layers_.push_back(buffers_of(layer));
  }

  void program(job_kind kind) {
    made_.begin(kind, with_.chunk);
    for (const stage_op& op : job_ops(model_, first_, last_, kind)) add(kind, op);
  }

  program_chain made() && { return std::move(made_); }

 private:
  std::int32_t buffer(std::string_view name, std::size_t scalars) {
    return made_.buffer(name, static_cast<std::int64_t>(scalars) * scalar_bytes_);
  }
  //! So many scalars for each row.
  std::int32_t rows(std::string_view name, std::size_t columns) {
    return in_rows(buffer(name, model_.rows() * columns));
  }
  //! In whatever activations are held.
  std::int32_t held(std::string_view name, std::size_t scalars) {
    return buffer(name, model_.held_scalars(scalars));
  }
  std::int32_t held_rows(std::string_view name, std::size_t columns) {
    return in_rows(held(name, model_.rows() * columns));
  }
  //! What is between layers: an activation, and in a model whose head is in pieces room for what
  //! these hand on.
  std::int32_t message(std::string_view name) {
    return in_rows(buffer(name, model_.message_scalars()));
  }
  //! Pieces of ops that are cut by rows touch their own.
  std::int32_t in_rows(std::int32_t made) {
    made_.buffers.back().rows = static_cast<std::int64_t>(model_.rows());
    return made;
  }
  trained both(std::string_view value, std::string_view gradient, std::size_t scalars) {
    const auto bytes = static_cast<std::int64_t>(scalars) * scalar_bytes_;
    return {made_.parameter(value, bytes), made_.parameter(gradient, bytes)};
  }

  layer_buffers buffers_of(int layer) {
    layer_buffers made;
    const std::size_t width = config::size(model_.width), share = model_.share();
    const std::size_t hidden = share * config::size(model_.expansion);
    const layer_kind kind = model_.kind(layer);
    if (kind == layer_kind::embedding) {
      // The tokens are the one thing that is kept as bytes.
      made.values = in_rows(made_.buffer("tokens", static_cast<std::int64_t>(model_.rows())));
      made.table = both("embedding tables", "embedding tables gradient",
                        (config::size(model_.vocabulary) + config::size(model_.context)) * width);
    } else if (kind == layer_kind::block) {
      const std::size_t weights =
          config::size(model_.heads / model_.shards) * model_.rows() * config::size(model_.context);
      made.normal1 = held_rows("attention normal", width);
      made.deviation1 = rows("attention norm's deviations", 1);
      made.output1 = held_rows("attention norm", width);
      made.joint = held_rows("qkv", 3 * share);
      made.weights = held("attention weights", weights);
      made.mixed = held_rows("mixed", share);
      made.normal2 = held_rows("normal", width);
      made.deviation2 = rows("norm's deviations", 1);
      made.output2 = held_rows("norm", width);
      made.slope = held_rows("slope", hidden);
      made.values = held_rows("hidden", hidden);
      made.hidden_gradient = held_rows("hidden gradient", hidden);
      made.output2_gradient = held_rows("norm gradient", width);
      made.middle_gradient = held_rows("middle gradient", width);
      made.joint_gradient = held_rows("qkv gradient", 3 * share);
      made.output1_gradient = held_rows("attention norm gradient", width);
      made.scratch = buffer("scores gradient", model_.length() * config::size(model_.context));
      made.norm1 =
          both("attention norm parameters", "attention norm parameters gradient", 2 * width);
      made.qkv = both("qkv weights", "qkv weights gradient", 3 * share * (width + 1));
      made.mix = both("mix weights", "mix weights gradient", width * (share + 1));
      made.norm2 = both("norm parameters", "norm parameters gradient", 2 * width);
      made.up = both("up weights", "up weights gradient", hidden * (width + 1));
      made.down = both("down weights", "down weights gradient", width * (hidden + 1));
    } else {
      const bool whole = model_.head_pieces == 1, first = model_.piece(layer) == 0;
      made.output1 = held_rows("head norm", width);
      made.values = whole ? held_rows("logits", model_.piece_tokens())
                          : rows("logits", model_.piece_tokens());
      made.values_gradient = whole || !model_.in_bf16()
                                 ? made.values
                                 : held_rows("logits gradient", model_.piece_tokens());
      made.table = both("head table", "head table gradient", model_.piece_tokens() * width);
      if (first) {
        made.normal1 = held_rows("head normal", width);
        made.deviation1 = rows("head norm's deviations", 1);
        made.output1_gradient = held_rows("head norm gradient", width);
        made.norm = both("head norm parameters", "head norm parameters gradient", 2 * width);
      }
      if (!whole)  // kept as bytes
        made.targets = in_rows(made_.buffer("targets", static_cast<std::int64_t>(model_.rows())));
      if (!whole && layer + 1 == model_.layer_count())
        made.sums = rows("row sums", sums_of_row);
    }
    if (layer + 1 < model_.layer_count()) made.slot = message("between layers");
    return made;
  }

  //! The layer's input, which is the slot before it, and its input's gradient, later in the same.
  std::int32_t before(int layer, std::int32_t message) const {
    return layer == first_ ? message : layers_[config::size(layer - 1 - first_)].slot;
  }

  std::vector<op_use> uses_of(job_kind kind, const stage_op& op) const {
    const layer_buffers& at = layers_[config::size(op.layer - first_)];
    const std::int32_t x = before(op.layer, input_);
    const bool leaves = op.layer == last_ - 1 && output_ >= 0 && kind == job_kind::forward;
    const std::int32_t y = leaves ? output_ : at.slot;
    const std::int32_t to = before(op.layer, input_gradient_);
    // What is summed forwards, and before and behind the norms backwards.
    const bool summed = sums_ >= 0;
    const std::int32_t sum = summed ? sums_ : at.output2_gradient;
    const std::int32_t sum1 = summed ? sums_ : at.output1_gradient;
    const auto add_to = [](std::vector<op_use> uses, const trained& what) {
      uses.insert(uses.end(), {reads(what.gradient), writes(what.gradient)});
      return uses;
    };
    const auto keeping = [&](std::vector<op_use> uses, std::int32_t kept) {
      if (summed) uses.push_back(writes(kept));
      return uses;
    };
    switch (op.code) {
      case op_code::embed:
        return {reads(at.table.value), writes(at.values), writes(y)};
      case op_code::norm1:
        return {reads(x), reads(at.norm1.value), writes(at.normal1), writes(at.deviation1),
                writes(at.output1)};
      case op_code::qkv:
        return {reads(at.output1), reads(at.qkv.value), writes(at.joint)};
      case op_code::attention:
        return {reads(at.joint), writes(at.weights), writes(at.mixed)};
      case op_code::mix:
        return {reads(at.mixed), reads(at.mix.value), writes(sum)};
      case op_code::middle:
        return {reads(x),          reads(sum),         reads(at.norm2.value),
                writes(y),         writes(at.normal2), writes(at.deviation2),
                writes(at.output2)};
      case op_code::up:
        return {reads(at.output2), reads(at.up.value), writes(at.hidden_gradient),
                writes(at.values), writes(at.slope)};
      case op_code::down:
        return {reads(at.values), reads(at.down.value), writes(sum)};
      case op_code::output:
        return {reads(sum), reads(y), writes(y)};
      case op_code::head: {
        std::vector<op_use> uses{reads(x), reads(at.table.value), writes(at.output1),
                                 writes(at.values)};
        if (at.norm.value >= 0)
          uses.insert(uses.end(),
                      {reads(at.norm.value), writes(at.normal1), writes(at.deviation1)});
        for (const std::int32_t made : {at.targets, at.sums, y})
          if (made >= 0) uses.push_back(writes(made));
        return uses;
      }
      case op_code::mix_sum:
      case op_code::down_sum:
      case op_code::up_back_sum:
      case op_code::qkv_back_sum:
        return {reads(sum), writes(sum)};
      case op_code::receive_gradient:
        return {reads(output_gradient_), writes(at.slot)};
      case op_code::head_back: {
        std::vector<op_use> uses{reads(at.values), reads(at.table.value), writes(to)};
        if (at.norm.value >= 0)
          uses.insert(uses.end(), {reads(at.norm.value), reads(at.normal1), reads(at.deviation1),
                                   writes(at.output1_gradient)});
        for (const std::int32_t read : {at.targets, at.sums, at.slot})
          if (read >= 0) uses.push_back(reads(read));
        if (at.targets >= 0)
          uses.insert(uses.end(), {writes(at.values), writes(at.values_gradient)});
        return uses;
      }
      case op_code::down_back:
        return {reads(at.slot), reads(at.down.value), reads(at.slope), writes(at.hidden_gradient)};
      case op_code::up_back:
        return {reads(at.hidden_gradient), reads(at.up.value), writes(sum)};
      case op_code::middle_back:
        return keeping(
            {reads(sum), reads(at.normal2), reads(at.deviation2), reads(at.slot),
             reads(at.norm2.value), reads(at.mix.value), writes(at.middle_gradient), writes(to)},
            at.output2_gradient);
      case op_code::attention_back:
        return {reads(at.joint), reads(at.weights), reads(to), writes(at.scratch),
                writes(at.joint_gradient)};
      case op_code::qkv_back:
        return {reads(at.joint_gradient), reads(at.qkv.value), writes(sum1)};
      case op_code::input_back:
        return keeping({reads(sum1), reads(at.normal1), reads(at.deviation1),
                        reads(at.middle_gradient), reads(at.norm1.value), writes(to)},
                       at.output1_gradient);
      case op_code::head_weight: {
        auto uses = add_to({reads(at.values_gradient), reads(at.output1)}, at.table);
        if (at.norm.value < 0) return uses;
        uses.insert(uses.end(), {reads(at.normal1), reads(at.output1_gradient)});
        return add_to(std::move(uses), at.norm);
      }
      case op_code::down_weight:
        return add_to({reads(at.values), reads(at.slot)}, at.down);
      case op_code::up_weight:
        return add_to({reads(at.output2), reads(at.hidden_gradient)}, at.up);
      case op_code::norm2_weight:
        return add_to({reads(at.normal2), reads(at.output2_gradient)}, at.norm2);
      case op_code::mix_weight:
        return add_to({reads(at.mixed), reads(at.middle_gradient)}, at.mix);
      case op_code::qkv_weight:
        return add_to({reads(at.output1), reads(at.joint_gradient)}, at.qkv);
      case op_code::norm1_weight:
        return add_to({reads(at.normal1), reads(at.output1_gradient)}, at.norm1);
      case op_code::embed_weight:
        break;
    }
    return add_to({reads(at.values), reads(at.slot)}, at.table);
  }

  //! Whether a micro-batch touches more than what caches keep.
  bool afar() const {
    std::int64_t bytes = 0;
    for (const stretto::program_buffer& each : made_.buffers) bytes += each.bytes;
    return bytes > 8 << 20;
  }

  std::int64_t products_of(op_code code) const {
    const auto in = [&](int slice) {
      return static_cast<std::int64_t>(expected_products(model_, code, config::size(slice)));
    };
    if (with_.slice >= 0) return in(with_.slice);
    std::int64_t sum = 0;
    for (int slice = 0; slice < model_.slices; ++slice) sum += in(slice);
    return sum / model_.slices;
  }

  void add(job_kind kind, const stage_op& op) {
    const std::vector<op_use> uses = uses_of(kind, op);
    std::int64_t bytes = 0;
    for (const op_use& use : uses) bytes += made_.buffers[config::size(use.buffer)].bytes;
    const std::int64_t products = products_of(op.code);
    stretto::op_form form;
    const op_cut cut = cut_of(model_, op.code);
    form.cut = cut.what;
    form.parts = static_cast<std::int32_t>(cut.parts);
    if (is_sum(op.code)) {
      // Round a ring: the sum of a part of its own, then the parts of all others.
      const std::int64_t message = bytes * (model_.shards - 1) / model_.shards;
      form.stream = static_cast<std::uint8_t>(stretto::stream_type::tensor_parallel);
      form.time = with_.on == nullptr ? bytes / scalar_bytes_ : with_.on->time({0, 0, message});
      form.holds = static_cast<std::int16_t>(with_.on == nullptr ? 0 : with_.on->collective);
    } else if (with_.on != nullptr && with_.on->kernels.empty()) {
      form.time = with_.on->time({2 * products, bytes, 0});
    } else if (with_.on != nullptr) {
      for (const stretto::kernel_call& call : kernels_of(model_, op.code, with_.slice, afar()))
        form.time += with_.on->kernel_time(call);
    } else {
      form.time = products > 0 ? products : bytes / scalar_bytes_;
    }
    made_.add(name(op.code), uses, form);
  }

  config model_;
  int first_, last_;
  chain_options with_;
  std::int64_t scalar_bytes_;
  program_chain made_;
  std::vector<layer_buffers> layers_;
  std::int32_t input_ = -1, output_ = -1, output_gradient_ = -1, input_gradient_ = -1, sums_ = -1;
};

}  // namespace

stretto::program_chain stage_chain(const config& model, int first, int last,
                                   const chain_options& with) {
  check_stage_layers(model, first, last);
  chain_writer write(model, first, last, with);
  write.program(job_kind::forward);
  if (with.recompute) write.program(job_kind::recompute);
  if (with.split) {
    write.program(job_kind::backward_input);
    write.program(job_kind::backward_weight);
  } else {
    write.program(job_kind::backward);
  }
  return std::move(write).made();
}

}  // namespace train
