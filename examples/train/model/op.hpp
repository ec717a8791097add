// The ops that a stage's jobs are made of. Between them stand the sums over the shards.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "model/config.hpp"
#include "stretto/model/job.hpp"
#include "stretto/model/program.hpp"

namespace train {

//! One op of a layer. Those of forwards stand first, then those of backwards for the input, then
//! those for the weights; each part in the order in which a job runs them.
enum class op_code : std::uint8_t {
  embed,
  norm1,
  qkv,
  attention,
  mix,
  mix_sum,
  middle,  //!< the first residual, and the norm behind it
  up,
  down,
  down_sum,
  output,  //!< the second residual
  head,

  receive_gradient,  //!< takes the message over
  head_back,
  down_back,
  up_back,
  up_back_sum,
  middle_back,
  attention_back,
  qkv_back,
  qkv_back_sum,
  input_back,

  head_weight,
  down_weight,
  up_weight,
  norm2_weight,
  mix_weight,
  qkv_weight,
  norm1_weight,
  embed_weight,
};
inline constexpr int op_code_count = static_cast<int>(op_code::embed_weight) + 1;

std::string_view name(op_code code);

//! Whether it sums over the shards what the op before it left in the caller's buffer for sums. It
//! is then the caller's to do.
constexpr bool is_sum(op_code code) {
  return code == op_code::mix_sum || code == op_code::down_sum || code == op_code::up_back_sum ||
         code == op_code::qkv_back_sum;
}
//! Whether it leaves something in that buffer, or takes the sum from there.
constexpr bool is_beside_sum(op_code code) {
  switch (code) {
    case op_code::mix:
    case op_code::middle:
    case op_code::down:
    case op_code::output:
    case op_code::up_back:
    case op_code::middle_back:
    case op_code::qkv_back:
    case op_code::input_back:
      return true;
    default:
      return false;
  }
}
constexpr bool is_forward(op_code code) {
  return code < op_code::receive_gradient;
}
constexpr bool is_weight(op_code code) {
  return code >= op_code::head_weight;
}

//! Which piece of an op, of how many.
struct op_piece {
  int index = 0, count = 1;
};

//! What pieces of an op are made of: rows of its activations or, for a product's weights, columns
//! of these.
struct op_cut {
  stretto::pieces_of what = stretto::pieces_of::whole;
  std::size_t parts = 0;  //!< how many rows or columns there are
};
op_cut cut_of(const config& model, op_code code);

//! The multiply-adds of an op's matrix products in a slice's job: an earlier one sees less.
std::uint64_t expected_products(const config& model, op_code code, std::size_t slice = 0);

//! A block's forward.
inline constexpr op_code block_forward_ops[] = {
    op_code::norm1,  op_code::qkv, op_code::attention, op_code::mix,      op_code::mix_sum,
    op_code::middle, op_code::up,  op_code::down,      op_code::down_sum, op_code::output};

//! An op of a stage's job.
struct stage_op {
  op_code code = op_code::embed;
  int layer = 0;

  bool operator==(const stage_op&) const = default;
};

//! The ops of a job of the stage with layers [first, last), in the order of its program. A model in
//! one piece has no sums.
//! @param kind  a forward, a backward or half of one, or a recomputation, which has a forward's ops
//! @throws std::invalid_argument for any other
std::vector<stage_op> job_ops(const config& model, int first, int last, stretto::job_kind kind);

}  // namespace train
