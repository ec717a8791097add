// The trainer's kernels, but for products. Each is a plain struct that does one item or one row of
// the work, on a GPU or on the host: what it computes is train::math's function of the same name.
// What is held between ops it reads and leaves as Held: float, or bfloat16, of which it computes in
// float.
#pragma once

#include "cuda/item_kernels.hpp"
#include "cuda/row_kernels.hpp"

namespace train::cuda {

//! All of them: where they are launched, and run without a GPU. The first list's do items, the
//! second one's rows.
template <class... Kernel>
struct kernel_list {};
using item_kernels =
    kernel_list<add_bias<float>, add_bias<bfloat16>, round, round_batch, residual<float, float>,
                residual<bfloat16, bfloat16>, residual<bfloat16, float>, multiply<float>,
                multiply<bfloat16>, gelu<float>, gelu<bfloat16>, add_rows<float>,
                add_rows<bfloat16>, norm_weights<float>, norm_weights<bfloat16>, add_parts,
                embed<float>, embed<bfloat16>, embed_tokens<float>, embed_tokens<bfloat16>,
                embed_positions<float>, embed_positions<bfloat16>, add, summed_loss, update,
                finish>;
using row_kernels =
    kernel_list<norm<float, float>, norm<bfloat16, bfloat16>, norm<float, bfloat16>,
                norm_back<float>, norm_back<bfloat16>, softmax<float>, softmax<bfloat16>,
                softmax_back<float>, softmax_back<bfloat16>, cross_entropy<float>,
                cross_entropy<bfloat16>, row_sums, logits_back<float>,
                logits_back<bfloat16>, add_losses, add_squares, add_squared>;

}  // namespace train::cuda
