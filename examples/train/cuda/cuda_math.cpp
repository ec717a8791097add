#include "cuda/cuda_math.hpp"

#include <type_traits>

#include "cuda/launch.hpp"
#include "cuda/parts.hpp"
#include "model/scratch.hpp"

namespace train::cuda {
namespace {

using stretto::executor::cuda::check;

//! Calls use with the matrix as what it is held in.
template <class Scalar, class Use>
void with_type(const held_matrix<Scalar>& of, Use&& use) {
  if (of.in_bf16())
    use(on_gpu(of.narrow()));
  else
    use(on_gpu(of.wide()));
}
//! Which is that.
template <class Matrix>
using held_as = std::remove_const_t<std::remove_pointer_t<decltype(Matrix::data)>>;
//! The matrix, which is held in the same as another.
template <class Held, class Scalar>
auto as(const held_matrix<Scalar>& of) {
  if constexpr (std::is_same_v<Held, bfloat16>)
    return on_gpu(of.narrow());
  else
    return on_gpu(of.wide());
}

}  // namespace

cuda_math::cuda_math(const config& model, precision read) : parts_(std::make_unique<parts>()) {
  check(cudaGetDevice(&parts_->gpu), "cudaGetDevice");
  check_products(cublasCreate(&parts_->products), "cublasCreate");
  // Parts of a sum, too, which it would else be free to round to bf16 before it adds them up.
  check_products(
      cublasSetMathMode(parts_->products, CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION),
      "cublasSetMathMode");
  parts_->aside = stretto::executor::cuda::make_stream(0);
  parts_->workspace = stretto::executor::cuda::make_device_memory(workspace_bytes);
  parts_->row_losses = stretto::executor::cuda::make_device_memory(model.rows() * sizeof(double));
  parts_->vocabulary = config::size(model.vocabulary);
  parts_->sums = stretto::executor::cuda::make_device_memory(sums_bytes(largest_row(model)));
  check_products(cublasSetWorkspace(parts_->products, parts_->workspace.get(), workspace_bytes),
                 "cublasSetWorkspace");
  for (int which = 0; which < rooms; ++which) {
    const std::size_t scalars = room_scalars(model, which, batches());
    parts_->rooms[which] = stretto::executor::cuda::make_device_memory(scalars * sizeof(float));
    parts_->room_sizes[which] = scalars;
  }
  parts_->rounds = read == precision::bf16;
  if (!parts_->rounds) return;
  parts_->room = largest_rounded(model, batches());
  parts_->left = stretto::executor::cuda::make_device_memory(parts_->room * sizeof(bfloat16));
  parts_->right = stretto::executor::cuda::make_device_memory(parts_->room * sizeof(bfloat16));
}

cuda_math::~cuda_math() = default;

void cuda_math::on_stream(void* native, int multiprocessors) const {
  parts& my = *parts_;
  auto* const stream = static_cast<cudaStream_t>(native);
  if (stream != my.stream) {
    check_products(cublasSetStream(my.products, stream), "cublasSetStream");
    // Which has taken the workspace away.
    check_products(cublasSetWorkspace(my.products, my.workspace.get(), workspace_bytes),
                   "cublasSetWorkspace");
    my.stream = stream;
  }
  if (multiprocessors != my.multiprocessors) {
    check_products(cublasSetSmCountTarget(my.products, multiprocessors), "cublasSetSmCountTarget");
    my.multiprocessors = multiprocessors;
  }
}

bool cuda_math::rounds() const {
  return parts_->rounds;
}
std::size_t cuda_math::rounding_bytes() const {
  std::size_t sum = 2 * parts_->room * sizeof(bfloat16);
  for (const std::size_t scalars : parts_->room_sizes) sum += scalars * sizeof(float);
  return sum;
}
void cuda_math::round(matrix_span<const float> from, matrix_span<bfloat16> to) const {
  launch_items(cuda::round{on_gpu(from), on_gpu(to)}, items(from), parts_->stream);
}
std::span<float> cuda_math::room(int which) const {
  return {static_cast<float*>(parts_->rooms[which].get()), parts_->room_sizes[which]};
}

void cuda_math::add_bias(const held& out, matrix_span<const float> from, const float* bias) const {
  with_type(out, [&](auto to) {
    launch_items(cuda::add_bias<held_as<decltype(to)>>{to, on_gpu(from), bias}, items(from),
                 parts_->stream);
  });
}
void cuda_math::residual(const held& out, const held_constant& from, const float* bias,
                         const held_constant& more, matrix_span<float> exact) const {
  const std::size_t count = out.rows() * out.columns();
  if (!out.in_bf16())
    launch_items(
        cuda::residual<float, float>{
            on_gpu(out.wide()), on_gpu(from.wide()), bias, on_gpu(more.wide()), {}},
        count, parts_->stream);
  else
    with_type(more, [&](auto summed) {
      launch_items(
          cuda::residual<bfloat16, held_as<decltype(summed)>>{
              on_gpu(out.narrow()), on_gpu(from.narrow()), bias, summed, on_gpu(exact)},
          count, parts_->stream);
    });
}
void cuda_math::multiply(const held& out, matrix_span<const float> from,
                         const held_constant& by) const {
  with_type(out, [&](auto to) {
    using Held = held_as<decltype(to)>;
    launch_items(cuda::multiply<Held>{to, on_gpu(from), as<Held>(by)}, items(from), parts_->stream);
  });
}
void cuda_math::gelu(matrix_span<const float> input, const held& value, const held& slope) const {
  with_type(value, [&](auto to) {
    using Held = held_as<decltype(to)>;
    launch_items(cuda::gelu<Held>{on_gpu(input), to, as<Held>(slope)}, items(input),
                 parts_->stream);
  });
}
void cuda_math::add_rows(float* sums, const held_constant& values) const {
  const parts_of_many rows = parts_of_rows(values.rows());
  const std::size_t columns = values.columns();
  auto* const of_parts = static_cast<float*>(parts_->sums.get());
  with_type(values, [&](auto from) {
    launch_items(cuda::add_rows<held_as<decltype(from)>>{from, rows, of_parts},
                 rows.parts * columns, parts_->stream);
  });
  launch_items(cuda::add_parts{of_parts, rows.parts, columns, sums}, columns, parts_->stream);
}

void cuda_math::norm(const float* gamma, const float* beta, const held_constant& input,
                     const held& normalised, float* inverse_deviation, const held& output) const {
  const auto launch = [&](auto from, auto unit, auto to) {
    launch_rows(cuda::norm<held_as<decltype(from)>, held_as<decltype(to)>>{gamma, beta, from, unit,
                                                                           inverse_deviation, to},
                input.rows(), input.columns(), parts_->stream);
  };
  if (!output.in_bf16())
    launch(on_gpu(input.wide()), on_gpu(normalised.wide()), on_gpu(output.wide()));
  else
    with_type(input, [&](auto from) {
      launch(from, on_gpu(normalised.narrow()), on_gpu(output.narrow()));
    });
}
void cuda_math::norm_back(const float* gamma, const held_constant& normalised,
                          const float* inverse_deviation, const held_constant& output_gradient,
                          const held_constant& residual_gradient,
                          const held& input_gradient) const {
  with_type(input_gradient, [&](auto to) {
    using Held = held_as<decltype(to)>;
    launch_rows(cuda::norm_back<Held>{gamma, as<Held>(normalised), inverse_deviation,
                                      as<Held>(output_gradient), as<Held>(residual_gradient), to},
                normalised.rows(), normalised.columns(), parts_->stream);
  });
}
void cuda_math::norm_weights(const held_constant& normalised, const held_constant& output_gradient,
                             float* gamma_gradient, float* beta_gradient) const {
  const parts_of_many rows = parts_of_rows(normalised.rows());
  const std::size_t columns = normalised.columns();
  auto* const gammas = static_cast<float*>(parts_->sums.get());
  float* const betas = gammas + rows.parts * columns;
  with_type(normalised, [&](auto unit) {
    using Held = held_as<decltype(unit)>;
    launch_items(cuda::norm_weights<Held>{unit, as<Held>(output_gradient), rows, gammas, betas},
                 rows.parts * columns, parts_->stream);
  });
  launch_items(cuda::add_parts{gammas, rows.parts, columns, gamma_gradient}, columns,
               parts_->stream);
  launch_items(cuda::add_parts{betas, rows.parts, columns, beta_gradient}, columns, parts_->stream);
}

void cuda_math::softmax(matrix_span<float> scores, std::size_t rows, std::size_t before,
                        float scale, const held& weights) const {
  with_type(weights, [&](auto to) {
    launch_rows(cuda::softmax<held_as<decltype(to)>>{on_gpu(scores), to, rows, before, scale},
                scores.rows, scores.columns, parts_->stream);
  });
}
void cuda_math::softmax_back(matrix_span<float> gradients, const held_constant& weights,
                             std::size_t rows, std::size_t before, float scale,
                             const held& score_gradients) const {
  with_type(score_gradients, [&](auto to) {
    using Held = held_as<decltype(to)>;
    launch_rows(cuda::softmax_back<Held>{on_gpu(matrix_span<const float>(gradients)),
                                         as<Held>(weights), to, rows, before, scale},
                gradients.rows, gradients.columns, parts_->stream);
  });
}

void cuda_math::embed(const held& output, const float* table, const float* positions,
                      const std::uint8_t* tokens, std::size_t length) const {
  with_type(output, [&](auto to) {
    launch_items(cuda::embed<held_as<decltype(to)>>{to, table, positions, tokens, length},
                 output.rows() * output.columns(), parts_->stream);
  });
}
void cuda_math::embed_weights(const held_constant& output_gradient, float* table, float* positions,
                              const std::uint8_t* tokens, std::size_t length) const {
  with_type(output_gradient, [&](auto from) {
    using Held = held_as<decltype(from)>;
    const std::size_t rows = output_gradient.rows(), columns = output_gradient.columns();
    launch_items(cuda::embed_tokens<Held>{from, table, tokens, rows}, parts_->vocabulary * columns,
                 parts_->stream);
    launch_items(cuda::embed_positions<Held>{from, positions, rows, length}, length * columns,
                 parts_->stream);
  });
}
void cuda_math::cross_entropy(matrix_span<float> logits, const std::uint8_t* targets, double factor,
                              double* loss, const held& gradient) const {
  auto* const losses = static_cast<double*>(parts_->row_losses.get());
  with_type(gradient, [&](auto to) {
    launch_rows(
        cuda::cross_entropy<held_as<decltype(to)>>{on_gpu(logits), to, targets, factor, losses},
        logits.rows, logits.columns, parts_->stream);
  });
  launch_rows(cuda::add_losses{losses, logits.rows, factor, loss}, 1, logits.rows, parts_->stream);
}

void cuda_math::row_sums(matrix_span<const float> logits, const std::uint8_t* targets,
                         std::size_t first, const float* before, float* sums) const {
  launch_rows(cuda::row_sums{on_gpu(logits), targets, first, before, sums}, logits.rows,
              logits.columns, parts_->stream);
}
void cuda_math::summed_loss(float* sums, std::size_t rows, double factor, double* loss) const {
  auto* const losses = static_cast<double*>(parts_->row_losses.get());
  launch_items(cuda::summed_loss{sums, factor, losses}, rows, parts_->stream);
  launch_rows(cuda::add_losses{losses, rows, factor, loss}, 1, rows, parts_->stream);
}
void cuda_math::logits_back(matrix_span<float> logits, const std::uint8_t* targets,
                            std::size_t first, const float* sums,
                            const held& gradient) const {
  with_type(gradient, [&](auto to) {
    launch_rows(cuda::logits_back<held_as<decltype(to)>>{on_gpu(matrix_span<const float>(logits)),
                                                         to, targets, first, sums},
                logits.rows, logits.columns, parts_->stream);
  });
}

void cuda_math::copy(const void* from, void* to, std::size_t bytes) const {
  if (bytes > 0)
    check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, parts_->stream), "cudaMemcpyAsync");
}
void cuda_math::zero(void* to, std::size_t bytes) const {
  if (bytes > 0) check(cudaMemsetAsync(to, 0, bytes, parts_->stream), "cudaMemsetAsync");
}
void cuda_math::add(std::span<const float> left, std::span<const float> right,
                    std::span<float> to) const {
  launch_items(cuda::add{left.data(), right.data(), to.data()}, to.size(), parts_->stream);
}
void cuda_math::add_squares(std::span<const float> values, double* sum) const {
  const parts_of_many of = parts_of_values(values.size());
  auto* const of_parts = static_cast<double*>(parts_->sums.get());
  launch_rows(cuda::add_squares{values.data(), of, of_parts}, of.parts, values.size() / of.parts,
              parts_->stream);
  launch_rows(cuda::add_squared{of_parts, of.parts, sum}, 1, of.parts, parts_->stream);
}

void cuda_math::finish(std::span<const double> norms, std::span<const double> losses,
                       double norm_limit, step_result* to) const {
  launch_items(cuda::finish{norms.data(), norms.size(), losses.data(), losses.size(), norm_limit,
                            &to->loss, &to->gradient_norm, &to->clip_factor},
               1, parts_->stream);
}
void cuda_math::update(const adamw_factors<float>* by, const double* clip_factor, bool decayed,
                       std::span<float> parameters, std::span<const float> gradients,
                       std::span<float> mean, std::span<float> square) const {
  launch_items(cuda::update{parameters.data(), gradients.data(), mean.data(), square.data(),
                            clip_factor, by, decayed},
               parameters.size(), parts_->stream);
}

std::shared_ptr<void> cuda_math::allocate(std::size_t bytes) const {
  auto memory = std::make_shared<stretto::executor::cuda::device_memory>(
      stretto::executor::cuda::make_device_memory(bytes));
  if (bytes > 0) {
    check(cudaMemsetAsync(memory->get(), 0, bytes, parts_->aside.get()), "cudaMemsetAsync");
    parts_->finish_aside();
  }
  return {memory, memory->get()};
}
std::shared_ptr<void> cuda_math::allocate_staging(std::size_t bytes) const {
  auto memory = std::make_shared<stretto::executor::cuda::pinned_memory>(
      stretto::executor::cuda::make_pinned_memory(bytes));
  return {memory, memory->get()};
}
void cuda_math::put(const void* host, void* to, std::size_t bytes) const {
  get(host, to, bytes);
}
void cuda_math::get(const void* from, void* host, std::size_t bytes) const {
  if (bytes == 0) return;
  check(cudaMemcpyAsync(host, from, bytes, cudaMemcpyDefault, parts_->aside.get()),
        "cudaMemcpyAsync");
  parts_->finish_aside();
}

}  // namespace train::cuda
