// The operations on tensors on a GPU: products by cuBLAS, the rest by kernels of its own.
#pragma once

#include <cstddef>
#include <memory>

#include "model/config.hpp"
#include "model/math.hpp"

namespace train::cuda {

//! In single precision (no TF32), so that results differ from the host's by rounding only; products
//! sum in cuBLAS's order. Products of bf16 sum in single precision, too (cublasGemmEx); what they
//! read that is in no bf16 yet, a kernel rounds before each; they leave either. All other kernels
//! read and leave either, too. Work goes to one stream at a time: the caller's events stand between
//! work on different ones. After construction nothing is allocated but by allocate().
class cuda_math final : public math<float> {
 public:
  //! On the current device, which later calls find current, too.
  //! @param model  the largest that it will work on
  //! @param read   what products read
  //! @throws stretto::executor::cuda::error, std::runtime_error for an error of cuBLAS
  explicit cuda_math(const config& model, precision read = precision::fp32);
  ~cuda_math() override;

  bool on_host() const override { return false; }
  //! Only products keep to the number of multiprocessors.
  void on_stream(void* native, int multiprocessors) const override;
  bool rounds() const override;
  std::size_t rounding_bytes() const override;
  void round(matrix_span<const float> from, matrix_span<bfloat16> to) const override;
  std::span<float> room(int which) const override;
  bool batches() const override { return true; }
  void product(matrix_span<float> out, factor<float> left, factor<float> right, bool add,
               const product_batch& of) const override;
  void rounded_product(matrix_span<bfloat16> out, factor<float> left, factor<float> right, bool add,
                       const product_batch& of) const override;
  void add_bias(const held& out, matrix_span<const float> from, const float* bias) const override;
  void residual(const held& out, const held_constant& from, const float* bias,
                const held_constant& more, matrix_span<float> exact) const override;
  void multiply(const held& out, matrix_span<const float> from,
                const held_constant& by) const override;
  void gelu(matrix_span<const float> input, const held& value, const held& slope) const override;
  void add_rows(float* sums, const held_constant& values) const override;
  void norm(const float* gamma, const float* beta, const held_constant& input,
            const held& normalised, float* inverse_deviation, const held& output) const override;
  void norm_back(const float* gamma, const held_constant& normalised,
                 const float* inverse_deviation, const held_constant& output_gradient,
                 const held_constant& residual_gradient, const held& input_gradient) const override;
  void norm_weights(const held_constant& normalised, const held_constant& output_gradient,
                    float* gamma_gradient, float* beta_gradient) const override;
  void softmax(matrix_span<float> scores, std::size_t rows, std::size_t before, float scale,
               const held& weights) const override;
  void softmax_back(matrix_span<float> gradients, const held_constant& weights, std::size_t rows,
                    std::size_t before, float scale, const held& score_gradients) const override;
  void embed(const held& output, const float* table, const float* positions,
             const std::uint8_t* tokens, std::size_t length) const override;
  void embed_weights(const held_constant& output_gradient, float* table, float* positions,
                     const std::uint8_t* tokens, std::size_t length) const override;
  void cross_entropy(matrix_span<float> logits, const std::uint8_t* targets, double factor,
                     double* loss, const held& gradient) const override;
  void row_sums(matrix_span<const float> logits, const std::uint8_t* targets, std::size_t first,
                const float* before, float* sums) const override;
  void summed_loss(float* sums, std::size_t rows, double factor, double* loss) const override;
  void logits_back(matrix_span<float> logits, const std::uint8_t* targets, std::size_t first,
                   const float* sums, const held& gradient) const override;
  //! The memory may also be pinned memory of the host.
  void copy(const void* from, void* to, std::size_t bytes) const override;
  void zero(void* to, std::size_t bytes) const override;
  void add(std::span<const float> left, std::span<const float> right,
           std::span<float> to) const override;
  void add_squares(std::span<const float> values, double* sum) const override;
  void finish(std::span<const double> norms, std::span<const double> losses, double norm_limit,
              step_result* to) const override;
  void update(const adamw_factors<float>* by, const double* clip_factor, bool decayed,
              std::span<float> parameters, std::span<const float> gradients, std::span<float> mean,
              std::span<float> square) const override;
  std::shared_ptr<void> allocate(std::size_t bytes) const override;
  std::shared_ptr<void> allocate_staging(std::size_t bytes) const override;
  void put(const void* host, void* to, std::size_t bytes) const override;
  void get(const void* from, void* host, std::size_t bytes) const override;

 private:
  struct result;
  void multiply(const result& out, const factor<float>& left, const factor<float>& right, bool add,
                const product_batch& of) const;

  struct parts;
  std::unique_ptr<parts> parts_;
};

}  // namespace train::cuda
