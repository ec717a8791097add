// The functions of cuBLAS that the trainer calls, on simulated GPUs.
#include <cublas_v2.h>

#include <cstddef>

#include "cuda/driver/simulated_gpu.hpp"

// What a handle points to.
struct cublasContext {
  cudaStream_t stream = nullptr;
};

extern "C" {

cublasStatus_t cublasCreate_v2(cublasHandle_t* handle) {
  *handle = new cublasContext;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasDestroy_v2(cublasHandle_t handle) {
  delete handle;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasSetStream_v2(cublasHandle_t handle, cudaStream_t stream) {
  handle->stream = stream;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasSetWorkspace_v2(cublasHandle_t, void* workspace, std::size_t) {
  return workspace == nullptr ? CUBLAS_STATUS_INVALID_VALUE : CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasSetSmCountTarget(cublasHandle_t, int) {
  return CUBLAS_STATUS_SUCCESS;
}
const char* cublasGetStatusString(cublasStatus_t) {
  return "a status";
}

// Columns one after the other.
cublasStatus_t cublasSgemm_v2(cublasHandle_t handle, cublasOperation_t left_form,
                              cublasOperation_t right_form, int rows, int columns, int inner,
                              const float* scale, const float* left, int left_stride,
                              const float* right, int right_stride, const float* kept, float* out,
                              int out_stride) {
  if (handle->stream == nullptr) return CUBLAS_STATUS_NOT_INITIALIZED;
  const auto element = [](const float* of, cublasOperation_t form, int stride, int row,
                          int column) {
    return form == CUBLAS_OP_N ? of[std::ptrdiff_t{column} * stride + row]
                               : of[std::ptrdiff_t{row} * stride + column];
  };
  stretto::test::gpu::enqueue(handle->stream, "cublasSgemm", [=, alpha = *scale, beta = *kept] {
    for (int column = 0; column < columns; ++column)
      for (int row = 0; row < rows; ++row) {
        float sum = 0;
        for (int at = 0; at < inner; ++at)
          sum += element(left, left_form, left_stride, row, at) *
                 element(right, right_form, right_stride, at, column);
        float& to = out[std::ptrdiff_t{column} * out_stride + row];
        to = alpha * sum + (beta == 0 ? 0 : beta * to);
      }
  });
  return CUBLAS_STATUS_SUCCESS;
}

}  // extern "C"
