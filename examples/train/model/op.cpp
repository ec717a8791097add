#include "model/op.hpp"

#include <initializer_list>
#include <span>
#include <stdexcept>

namespace train {
namespace {

using stretto::job_kind;

constexpr op_code block_back[] = {
    op_code::down_back,      op_code::up_back,  op_code::up_back_sum,  op_code::middle_back,
    op_code::attention_back, op_code::qkv_back, op_code::qkv_back_sum, op_code::input_back};
constexpr op_code block_weight[] = {op_code::down_weight,  op_code::up_weight,
                                    op_code::norm2_weight, op_code::mix_weight,
                                    op_code::qkv_weight,   op_code::norm1_weight};
constexpr op_code embedding_forward[] = {op_code::embed};
constexpr op_code embedding_weight[] = {op_code::embed_weight};
constexpr op_code head_forward[] = {op_code::head};
constexpr op_code head_back[] = {op_code::head_back};
constexpr op_code head_weight[] = {op_code::head_weight};

//! A layer's ops for a forward, or one half of a backward.
std::span<const op_code> layer_ops(layer_kind layer, job_kind half) {
  const bool forward = half == job_kind::forward;
  const bool weight = half == job_kind::backward_weight;
  using codes = std::span<const op_code>;
  switch (layer) {
    case layer_kind::embedding:
      return forward ? codes(embedding_forward) : weight ? codes(embedding_weight) : codes();
    case layer_kind::block:
      return forward ? codes(block_forward_ops) : weight ? codes(block_weight) : codes(block_back);
    case layer_kind::head:
      break;
  }
  return forward ? codes(head_forward) : weight ? codes(head_weight) : codes(head_back);
}

}  // namespace

std::string_view name(op_code code) {
  constexpr std::string_view names[] = {"embed",
                                        "attention norm",
                                        "qkv",
                                        "attention",
                                        "mix",
                                        "mix sum",
                                        "middle",
                                        "up",
                                        "down",
                                        "down sum",
                                        "output",
                                        "head",
                                        "receive gradient",
                                        "head back",
                                        "down back",
                                        "up back",
                                        "up back sum",
                                        "middle back",
                                        "attention back",
                                        "qkv back",
                                        "qkv back sum",
                                        "input back",
                                        "head weights",
                                        "down weights",
                                        "up weights",
                                        "norm weights",
                                        "mix weights",
                                        "qkv weights",
                                        "attention norm weights",
                                        "embed weights"};
  static_assert(std::size(names) == op_code_count);
  return names[static_cast<std::size_t>(code)];
}

op_cut cut_of(const config& model, op_code code) {
  using stretto::pieces_of;
  const std::size_t width = config::size(model.width), share = model.share();
  switch (code) {
    case op_code::qkv_weight:
      return {pieces_of::result, 3 * share};
    case op_code::up_weight:
      return {pieces_of::result, share * config::size(model.expansion)};
    case op_code::mix_weight:
    case op_code::down_weight:
      return {pieces_of::result, width};
    case op_code::norm1:
    case op_code::qkv:
    case op_code::mix:
    case op_code::mix_sum:
    case op_code::middle:
    case op_code::up:
    case op_code::down:
    case op_code::down_sum:
    case op_code::output:
    case op_code::down_back:
    case op_code::up_back:
    case op_code::up_back_sum:
    case op_code::middle_back:
    case op_code::qkv_back:
    case op_code::qkv_back_sum:
    case op_code::input_back:
      return {pieces_of::rows, model.rows()};
    default:
      return {};  // attention, whose rows need one another, and what stands once in a job
  }
}

std::uint64_t expected_products(const config& model, op_code code, std::size_t slice) {
  const std::uint64_t rows = model.rows(slice), width = config::size(model.width);
  const std::uint64_t share = model.share();
  const std::uint64_t seen = model.cut().begin(slice + 1);  // by every row: what lies ahead, too
  switch (code) {
    case op_code::qkv:
    case op_code::qkv_back:
    case op_code::qkv_weight:
      return rows * width * 3 * share;
    case op_code::attention:
      return 2 * rows * seen * share;
    case op_code::attention_back:
      return 4 * rows * seen * share;
    case op_code::mix:
    case op_code::middle_back:
    case op_code::mix_weight:
      return rows * width * share;
    case op_code::up:
    case op_code::down:
    case op_code::down_back:
    case op_code::up_back:
    case op_code::down_weight:
    case op_code::up_weight:
      return rows * width * share * config::size(model.expansion);
    case op_code::head:
    case op_code::head_back:
    case op_code::head_weight:
      return rows * width * model.piece_tokens();
    default:
      return 0;
  }
}

std::vector<stage_op> job_ops(const config& model, int first, int last, job_kind kind) {
  std::vector<stage_op> made;
  const auto add = [&](int layer, job_kind half) {
    for (const op_code code : layer_ops(model.kind(layer), half))
      if (model.shards > 1 || !is_sum(code)) made.push_back({code, layer});
  };
  switch (kind) {
    case job_kind::forward:
    case job_kind::recompute:
      for (int layer = first; layer < last; ++layer) add(layer, job_kind::forward);
      return made;
    case job_kind::backward:
    case job_kind::backward_input:
      if (last < model.layer_count()) made.push_back({op_code::receive_gradient, last - 1});
      for (int layer = last; layer-- > first;) {
        add(layer, job_kind::backward_input);
        if (kind == job_kind::backward) add(layer, job_kind::backward_weight);
      }
      return made;
    case job_kind::backward_weight:
      for (int layer = last; layer-- > first;) add(layer, job_kind::backward_weight);
      return made;
    default:
      throw std::invalid_argument("stage: only forwards, backwards and recomputations have ops");
  }
}

}  // namespace train
