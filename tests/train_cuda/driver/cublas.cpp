// The functions of cuBLAS that the trainer calls, on simulated GPUs.
#include <cublas_v2.h>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>

#include "cuda/driver/simulated_gpu.hpp"

// What a handle points to.
struct cublasContext {
  cudaStream_t stream = nullptr;
  int device = 0;
  int multiprocessors = 0;  // that it may take; 0: all
  cublasMath_t mode = CUBLAS_DEFAULT_MATH;
  bool has_workspace = false;  // of the caller's
};

namespace {

namespace gpu = stretto::test::gpu;

float in_float(float value) {
  return value;
}
using bfloat16 = std::uint16_t;  // the upper half of a float
float in_float(bfloat16 value) {
  return std::bit_cast<float>(std::uint32_t{value} << 16);
}

// The nearest, of two the even one.
void put(float value, float& to) {
  to = value;
}
void put(float value, bfloat16& to) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  to = static_cast<bfloat16>((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}

// Columns one after the other.
template <class Value>
struct side {
  const Value* data;
  cublasOperation_t form;
  int stride;
  float at(int row, int column) const {
    return in_float(form == CUBLAS_OP_N ? data[std::ptrdiff_t{column} * stride + row]
                                        : data[std::ptrdiff_t{row} * stride + column]);
  }
};

//! How many there are, and the scalars from one to the next.
struct apart {
  long long left = 0, right = 0, out = 0;
  int count = 1;
};

template <class Value, class Out>
cublasStatus_t enqueue(const char* name, cublasHandle_t handle, side<Value> left, side<Value> right,
                       int rows, int columns, int inner, float scale, float kept, Out* out,
                       int out_stride, apart from_next = {}) {
  if (handle->stream == nullptr) return CUBLAS_STATUS_NOT_INITIALIZED;
  // It would take one of its own for each stream, of a graph, too, and then differ in its last
  // bits.
  if (!handle->has_workspace) return CUBLAS_STATUS_ALLOC_FAILED;
  // It might round parts of each sum as it rounds the sum.
  if (sizeof(Out) < sizeof(float) &&
      (handle->mode & CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION) == 0)
    return CUBLAS_STATUS_NOT_SUPPORTED;
  int current = -1;
  static_cast<void>(cudaGetDevice(&current));
  if (current != handle->device) return CUBLAS_STATUS_INVALID_VALUE;
  const std::string product = std::string(name) + ' ' + std::to_string(left.form) +
                              std::to_string(right.form) + ", " + std::to_string(rows) + " x " +
                              std::to_string(columns) + " x " + std::to_string(inner) + " on " +
                              std::to_string(handle->multiprocessors);
  gpu::enqueue(handle->stream, product, [=] {
    for (int one = 0; one < from_next.count; ++one) {
      const side<Value> first{left.data + one * from_next.left, left.form, left.stride};
      const side<Value> second{right.data + one * from_next.right, right.form, right.stride};
      for (int column = 0; column < columns; ++column)
        for (int row = 0; row < rows; ++row) {
          float sum = 0;
          for (int at = 0; at < inner; ++at) sum += first.at(row, at) * second.at(at, column);
          Out& to = out[one * from_next.out + std::ptrdiff_t{column} * out_stride + row];
          put(scale * sum + (kept == 0 ? 0 : kept * in_float(to)), to);
        }
    }
  });
  return CUBLAS_STATUS_SUCCESS;
}

}  // namespace

extern "C" {

cublasStatus_t cublasCreate_v2(cublasHandle_t* handle) {
  *handle = new cublasContext;
  static_cast<void>(cudaGetDevice(&(*handle)->device));
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasDestroy_v2(cublasHandle_t handle) {
  // It waits for the GPU, which is to be the one that was current when the handle was made.
  int now = -1;
  static_cast<void>(cudaGetDevice(&now));
  if (now != handle->device) gpu::complain("a cuBLAS handle ends on another GPU than its own");
  delete handle;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasSetStream_v2(cublasHandle_t handle, cudaStream_t stream) {
  handle->stream = stream;
  handle->has_workspace = false;  // which cuBLAS documents
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasSetMathMode(cublasHandle_t handle, cublasMath_t mode) {
  handle->mode = mode;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasSetWorkspace_v2(cublasHandle_t handle, void* workspace, std::size_t) {
  handle->has_workspace =
      workspace != nullptr && reinterpret_cast<std::uintptr_t>(workspace) % 256 == 0;
  return handle->has_workspace ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_INVALID_VALUE;
}
cublasStatus_t cublasSetSmCountTarget(cublasHandle_t handle, int count) {
  handle->multiprocessors = count;
  return CUBLAS_STATUS_SUCCESS;
}
const char* cublasGetStatusString(cublasStatus_t) {
  return "a status";
}

cublasStatus_t cublasSgemm_v2(cublasHandle_t handle, cublasOperation_t left_form,
                              cublasOperation_t right_form, int rows, int columns, int inner,
                              const float* scale, const float* left, int left_stride,
                              const float* right, int right_stride, const float* kept, float* out,
                              int out_stride) {
  return enqueue("cublasSgemm", handle, side<float>{left, left_form, left_stride},
                 side<float>{right, right_form, right_stride}, rows, columns, inner, *scale, *kept,
                 out, out_stride);
}

// Of what it can, this alone.
cublasStatus_t cublasGemmEx(cublasHandle_t handle, cublasOperation_t left_form,
                            cublasOperation_t right_form, int rows, int columns, int inner,
                            const void* scale, const void* left, cudaDataType left_type,
                            int left_stride, const void* right, cudaDataType right_type,
                            int right_stride, const void* kept, void* out, cudaDataType out_type,
                            int out_stride, cublasComputeType_t sums, cublasGemmAlgo_t) {
  if (left_type != CUDA_R_16BF || right_type != CUDA_R_16BF || sums != CUBLAS_COMPUTE_32F ||
      (out_type != CUDA_R_32F && out_type != CUDA_R_16BF))
    return CUBLAS_STATUS_NOT_SUPPORTED;
  const auto into = [&](auto* to) {
    return enqueue("cublasGemmEx", handle,
                   side<bfloat16>{static_cast<const bfloat16*>(left), left_form, left_stride},
                   side<bfloat16>{static_cast<const bfloat16*>(right), right_form, right_stride},
                   rows, columns, inner, *static_cast<const float*>(scale),
                   *static_cast<const float*>(kept), to, out_stride);
  };
  if (out_type == CUDA_R_32F) return into(static_cast<float*>(out));
  return into(static_cast<bfloat16*>(out));
}

// Of what it can, sides that are both fp32 or both bf16, and these into either.
cublasStatus_t cublasGemmStridedBatchedEx(
    cublasHandle_t handle, cublasOperation_t left_form, cublasOperation_t right_form, int rows,
    int columns, int inner, const void* scale, const void* left, cudaDataType left_type,
    int left_stride, long long left_apart, const void* right, cudaDataType right_type,
    int right_stride, long long right_apart, const void* kept, void* out, cudaDataType out_type,
    int out_stride, long long out_apart, int count, cublasComputeType_t sums, cublasGemmAlgo_t) {
  if (left_type != right_type || sums != CUBLAS_COMPUTE_32F) return CUBLAS_STATUS_NOT_SUPPORTED;
  const auto of = [&]<class Value, class Out>(Value, Out) {
    return enqueue("cublasGemmStridedBatchedEx", handle,
                   side<Value>{static_cast<const Value*>(left), left_form, left_stride},
                   side<Value>{static_cast<const Value*>(right), right_form, right_stride}, rows,
                   columns, inner, *static_cast<const float*>(scale),
                   *static_cast<const float*>(kept), static_cast<Out*>(out), out_stride,
                   {left_apart, right_apart, out_apart, count});
  };
  if (left_type == CUDA_R_32F && out_type == CUDA_R_32F) return of(float{}, float{});
  if (left_type != CUDA_R_16BF) return CUBLAS_STATUS_NOT_SUPPORTED;
  if (out_type == CUDA_R_32F) return of(bfloat16{}, float{});
  return out_type == CUDA_R_16BF ? of(bfloat16{}, bfloat16{}) : CUBLAS_STATUS_NOT_SUPPORTED;
}

}  // extern "C"
