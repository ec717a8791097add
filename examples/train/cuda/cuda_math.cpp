#include "cuda/cuda_math.hpp"

#include <cublas_v2.h>

#include <chrono>
#include <limits>
#include <stdexcept>
#include <string>
#include <thread>

#include "cuda/launch.hpp"
#include "model/scratch.hpp"
#include "stretto/executor/cuda/error.hpp"
#include "stretto/executor/cuda/handles.hpp"

namespace train::cuda {
namespace {

using stretto::executor::cuda::check;

void check_products(cublasStatus_t status, const char* call) {
  if (status != CUBLAS_STATUS_SUCCESS)
    throw std::runtime_error(std::string(call) + " failed: " + cublasGetStatusString(status) +
                             " (" + std::to_string(static_cast<int>(status)) + ")");
}

//! cuBLAS counts in int.
int number(std::size_t size) {
  if (size > static_cast<std::size_t>(std::numeric_limits<int>::max()))
    throw std::invalid_argument("a product of matrices with " + std::to_string(size) +
                                " rows, columns or scalars between rows: cuBLAS counts to " +
                                std::to_string(std::numeric_limits<int>::max()));
  return static_cast<int>(size);
}

template <class Value>
matrix_on_gpu<Value> on_gpu(const matrix_span<Value>& of) {
  return {of.data, of.columns, of.stride};
}
std::size_t items(const auto& of) {
  return of.rows * of.columns;
}

//! What NVIDIA recommends since Hopper.
constexpr std::size_t workspace_bytes = std::size_t{32} << 20;

//! Of whoever waits for a copy outside a step.
constexpr std::chrono::seconds patience{60};

}  // namespace

struct cuda_math::parts {
  cublasHandle_t products = nullptr;
  stretto::executor::cuda::device_memory workspace, row_losses;
  stretto::executor::cuda::owned_stream aside;  // for what is done outside steps
  cudaStream_t stream = nullptr;
  int multiprocessors = 0;
  // Where both sides of a product are rounded; empty where they are not.
  stretto::executor::cuda::device_memory left, right;
  std::size_t room = 0;  // scalars of either
  // See math::room().
  stretto::executor::cuda::device_memory rooms[math<float>::rooms];
  std::size_t room_sizes[math<float>::rooms] = {};  // scalars of each

  ~parts() {
    if (products != nullptr) static_cast<void>(cublasDestroy(products));
  }

  //! Until the stream's work is done.
  void finish_aside() const {
    const auto limit = std::chrono::steady_clock::now() + patience;
    for (;;) {
      const cudaError_t status = cudaStreamQuery(aside.get());
      if (status == cudaSuccess) return;
      if (status != cudaErrorNotReady) check(status, "cudaStreamQuery");
      static_cast<void>(cudaGetLastError());  // that it is not ready is no error of a later launch
      if (std::chrono::steady_clock::now() > limit)
        throw std::runtime_error("a copy to or from the GPU has not ended within " +
                                 std::to_string(patience.count()) + " s");
      std::this_thread::yield();
    }
  }
};

cuda_math::cuda_math(const config& model, precision read) : parts_(std::make_unique<parts>()) {
  check_products(cublasCreate(&parts_->products), "cublasCreate");
  parts_->aside = stretto::executor::cuda::make_stream(0);
  parts_->workspace = stretto::executor::cuda::make_device_memory(workspace_bytes);
  parts_->row_losses = stretto::executor::cuda::make_device_memory(model.rows() * sizeof(double));
  check_products(cublasSetWorkspace(parts_->products, parts_->workspace.get(), workspace_bytes),
                 "cublasSetWorkspace");
  for (int which = 0; which < rooms; ++which) {
    const std::size_t scalars = room_scalars(model, which, batches());
    parts_->rooms[which] = stretto::executor::cuda::make_device_memory(scalars * sizeof(float));
    parts_->room_sizes[which] = scalars;
  }
  if (read != precision::bf16) return;
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
  return parts_->room > 0;
}
std::size_t cuda_math::rounding_bytes() const {
  std::size_t sum = 2 * parts_->room * sizeof(bfloat16);
  for (const std::size_t scalars : parts_->room_sizes) sum += scalars * sizeof(float);
  return sum;
}
void cuda_math::round(matrix_span<const float> from, matrix_span<bfloat16> to) const {
  launch_items(cuda::round{on_gpu(from), on_gpu(to)}, items(from), parts_->stream);
}
void cuda_math::widen(matrix_span<const bfloat16> from, matrix_span<float> to) const {
  launch_items(cuda::widen{on_gpu(from), on_gpu(to)}, items(from), parts_->stream);
}
std::span<float> cuda_math::room(int which) const {
  return {static_cast<float*>(parts_->rooms[which].get()), parts_->room_sizes[which]};
}

//! Where a product goes, in which type.
struct cuda_math::result {
  void* data;
  cudaDataType type;
  std::size_t stride;
};

void cuda_math::product(matrix_span<float> out, factor<float> left, factor<float> right, bool add,
                        const product_batch& of) const {
  multiply({out.data, CUDA_R_32F, out.stride}, left, right, add, of);
}
void cuda_math::rounded_product(matrix_span<bfloat16> out, factor<float> left, factor<float> right,
                                const product_batch& of) const {
  multiply({out.data, CUDA_R_16BF, out.stride}, left, right, false, of);
}

// cuBLAS has columns one after the other, so it sees every matrix transposed: right^T * left^T.
void cuda_math::multiply(const result& out, const factor<float>& left, const factor<float>& right,
                         bool add, const product_batch& of) const {
  const auto form = [](const factor<float>& side) {
    return side.transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
  };
  // A side as it is read. A copy lies as what it is of, what is rounded here row by row.
  struct side {
    const void* data;
    cudaDataType type;
    std::size_t stride, apart;
  };
  const auto read = [&](const factor<float>& from, std::size_t apart, const auto& scratch) -> side {
    const auto& its = from.of;
    if (!rounds()) return {its.data, CUDA_R_32F, its.stride, apart};
    if (from.copy != nullptr) return {from.copy, CUDA_R_16BF, its.stride, apart};
    check_scratch(items(its) * of.count, parts_->room);
    launch_items(cuda::round_batch{on_gpu(its), items(its), apart,
                                   static_cast<bfloat16*>(scratch.get())},
                 items(its) * of.count, parts_->stream);
    return {scratch.get(), CUDA_R_16BF, its.columns, items(its)};
  };
  const side first = read(left, of.left, parts_->left), second = read(right, of.right, parts_->right);
  const int rows = number(left.rows()), columns = number(right.columns());
  const int inner = number(left.columns());
  const float one = 1.0f, kept = add ? 1.0f : 0.0f;
  if (of.count != 1)
    check_products(
        cublasGemmStridedBatchedEx(
            parts_->products, form(right), form(left), columns, rows, inner, &one, second.data,
            second.type, number(second.stride), static_cast<long long>(second.apart), first.data,
            first.type, number(first.stride), static_cast<long long>(first.apart), &kept, out.data,
            out.type, number(out.stride), static_cast<long long>(of.out), number(of.count),
            CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT),
        "cublasGemmStridedBatchedEx");
  else if (rounds())
    check_products(cublasGemmEx(parts_->products, form(right), form(left), columns, rows, inner,
                                &one, second.data, second.type, number(second.stride), first.data,
                                first.type, number(first.stride), &kept, out.data, out.type,
                                number(out.stride), CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT),
                   "cublasGemmEx");
  else
    check_products(cublasSgemm(parts_->products, form(right), form(left), columns, rows, inner,
                               &one, right.of.data, number(second.stride), left.of.data,
                               number(first.stride), &kept, static_cast<float*>(out.data),
                               number(out.stride)),
                   "cublasSgemm");
}

void cuda_math::add_bias(matrix_span<float> out, const float* bias) const {
  launch_items(cuda::add_bias{on_gpu(out), bias}, items(out), parts_->stream);
}
void cuda_math::residual(matrix_span<float> out, matrix_span<const float> from, const float* bias,
                         matrix_span<const float> more) const {
  launch_items(cuda::residual{on_gpu(out), on_gpu(from), bias, on_gpu(more)}, items(out),
               parts_->stream);
}
void cuda_math::multiply(matrix_span<float> out, matrix_span<const float> by) const {
  launch_items(cuda::multiply{on_gpu(out), on_gpu(by)}, items(out), parts_->stream);
}
void cuda_math::gelu(matrix_span<const float> input, matrix_span<float> value,
                     matrix_span<float> slope) const {
  launch_items(cuda::gelu{on_gpu(input), on_gpu(value), on_gpu(slope)}, items(input),
               parts_->stream);
}
void cuda_math::add_rows(float* sums, matrix_span<const float> values) const {
  launch_items(cuda::add_rows{sums, on_gpu(values), values.rows}, values.columns, parts_->stream);
}

void cuda_math::norm(const float* gamma, const float* beta, matrix_span<const float> input,
                     matrix_span<float> normalised, float* inverse_deviation,
                     matrix_span<float> output) const {
  launch_rows(cuda::norm{gamma, beta, on_gpu(input), on_gpu(normalised), inverse_deviation,
                         on_gpu(output)},
              input.rows, input.columns, parts_->stream);
}
void cuda_math::norm_back(const float* gamma, matrix_span<const float> normalised,
                          const float* inverse_deviation,
                          matrix_span<const float> output_gradient,
                          matrix_span<const float> residual_gradient,
                          matrix_span<float> input_gradient) const {
  launch_rows(cuda::norm_back{gamma, on_gpu(normalised), inverse_deviation,
                              on_gpu(output_gradient), on_gpu(residual_gradient),
                              on_gpu(input_gradient)},
              normalised.rows, normalised.columns, parts_->stream);
}
void cuda_math::norm_weights(matrix_span<const float> normalised,
                             matrix_span<const float> output_gradient, float* gamma_gradient,
                             float* beta_gradient) const {
  launch_items(cuda::norm_weights{on_gpu(normalised), on_gpu(output_gradient), gamma_gradient,
                                  beta_gradient, normalised.rows},
               normalised.columns, parts_->stream);
}

void cuda_math::softmax(matrix_span<float> scores, std::size_t rows, std::size_t before,
                        float scale) const {
  launch_rows(cuda::softmax{on_gpu(scores), rows, before, scale}, scores.rows, scores.columns,
              parts_->stream);
}
void cuda_math::softmax_back(matrix_span<float> gradients, matrix_span<const float> weights,
                             std::size_t rows, std::size_t before, float scale) const {
  launch_rows(cuda::softmax_back{on_gpu(gradients), on_gpu(weights), rows, before, scale},
              gradients.rows, gradients.columns, parts_->stream);
}

void cuda_math::embed(matrix_span<float> output, const float* table, const float* positions,
                      const std::uint8_t* tokens, std::size_t length) const {
  launch_items(cuda::embed{on_gpu(output), table, positions, tokens, length}, items(output),
               parts_->stream);
}
void cuda_math::embed_weights(matrix_span<const float> output_gradient, float* table,
                              float* positions, const std::uint8_t* tokens,
                              std::size_t length) const {
  launch_items(cuda::embed_weights{on_gpu(output_gradient), table, positions, tokens,
                                   output_gradient.rows, length},
               output_gradient.columns, parts_->stream);
}
void cuda_math::cross_entropy(matrix_span<float> logits, const std::uint8_t* targets,
                              double factor, double* loss) const {
  auto* const losses = static_cast<double*>(parts_->row_losses.get());
  launch_rows(cuda::cross_entropy{on_gpu(logits), targets, factor, losses}, logits.rows,
              logits.columns, parts_->stream);
  launch_rows(cuda::add_losses{losses, logits.rows, factor, loss}, 1, logits.rows,
              parts_->stream);
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
  launch_rows(cuda::add_squares{values.data(), values.size(), sum}, 1, values.size(),
              parts_->stream);
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
