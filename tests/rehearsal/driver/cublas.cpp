// What the benchmarks call of cuBLAS: products that last as long as on a quick GPU, and compute nothing.
#include <cublas_v2.h>

#include "cuda/driver/state.hpp"

struct cublasContext {
  cudaStream_t stream = nullptr;
  int multiprocessors = 0;
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
cublasStatus_t cublasSetSmCountTarget(cublasHandle_t handle, int count) {
  handle->multiprocessors = count;
  return CUBLAS_STATUS_SUCCESS;
}
const char* cublasGetStatusString(cublasStatus_t) {
  return "a status";
}
cublasStatus_t cublasGemmEx(cublasHandle_t handle, cublasOperation_t, cublasOperation_t, int rows,
                            int columns, int inner, const void*, const void*, cudaDataType, int,
                            const void*, cudaDataType, int, const void*, void*, cudaDataType, int,
                            cublasComputeType_t, cublasGemmAlgo_t) {
  constexpr double per_nanosecond = 3.5e6;  // multiply-adds, of all multiprocessors
  const double part = handle->multiprocessors == 0 ? 1 : handle->multiprocessors / 132.0;
  const double time = static_cast<double>(rows) * columns * inner / per_nanosecond / part;
  namespace gpu = stretto::test::gpu;
  gpu::enqueue_until(handle->stream, "cublasGemmEx", [time, end = 0.0]() mutable {
    if (end == 0) end = gpu::host_time() + time;
    return gpu::host_time() >= end;
  });
  return CUBLAS_STATUS_SUCCESS;
}

}  // extern "C"
