// The functions of cuBLASLt that the benchmarks call, on simulated GPUs: products last as long as
// on a quick GPU, and compute nothing. Of its two proposals the second is the quicker one; it has
// clusters of 2 x 1, and is quicker in those of 4 x 2 and slower in those of 1 x 1. In 8 x 1 it
// wants too much memory, and others it refuses.
#include <cublasLt.h>

#include <cstdint>
#include <cstring>

#include "cuda/driver/simulated_gpu.hpp"

namespace {

struct description {
  std::int32_t multiprocessors = 0;  // 0: all
};
struct layout {
  std::uint64_t rows, columns;
};

template <class Made, class Handle>
cublasStatus_t make(Handle* handle, Made what) {
  *handle = reinterpret_cast<Handle>(new Made(what));
  return CUBLAS_STATUS_SUCCESS;
}
template <class Made, class Handle>
cublasStatus_t drop(Handle handle) {
  delete reinterpret_cast<const Made*>(handle);
  return CUBLAS_STATUS_SUCCESS;
}

}  // namespace

extern "C" {

cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) {
  return make(handle, 0);
}
cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle) {
  return drop<int>(handle);
}
const char* cublasLtGetStatusString(cublasStatus_t) {
  return "a status";
}

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* made, cublasComputeType_t,
                                        cudaDataType_t) {
  return make(made, description{});
}
cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t what) {
  return drop<description>(what);
}
cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t of,
                                              cublasLtMatmulDescAttributes_t which,
                                              const void* value, std::size_t bytes) {
  if (which != CUBLASLT_MATMUL_DESC_SM_COUNT_TARGET || bytes != sizeof(std::int32_t))
    return CUBLAS_STATUS_INVALID_VALUE;
  std::memcpy(&reinterpret_cast<description*>(of)->multiprocessors, value, bytes);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* made, cudaDataType_t,
                                          std::uint64_t rows, std::uint64_t columns, std::int64_t) {
  return make(made, layout{rows, columns});
}
cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t what) {
  return drop<layout>(what);
}
cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* made) {
  return make(made, 0);
}
cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t what) {
  return drop<int>(what);
}
cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t,
                                                    cublasLtMatmulPreferenceAttributes_t,
                                                    const void*, std::size_t) {
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t, cublasLtMatmulDesc_t,
                                              cublasLtMatrixLayout_t, cublasLtMatrixLayout_t,
                                              cublasLtMatrixLayout_t, cublasLtMatrixLayout_t,
                                              cublasLtMatmulPreference_t, int most,
                                              cublasLtMatmulHeuristicResult_t* to, int* found) {
  for (*found = 0; *found < most && *found < 2; ++*found) {
    to[*found] = {};
    to[*found].algo.data[0] = static_cast<std::uint64_t>(*found);
    to[*found].algo.data[1] = CUBLASLT_CLUSTER_SHAPE_2x1x1;
  }
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulAlgoConfigSetAttribute(cublasLtMatmulAlgo_t* of,
                                                    cublasLtMatmulAlgoConfigAttributes_t which,
                                                    const void* value, std::size_t bytes) {
  if (which != CUBLASLT_ALGO_CONFIG_CLUSTER_SHAPE_ID || bytes != sizeof(std::uint16_t))
    return CUBLAS_STATUS_INVALID_VALUE;
  std::uint16_t shape = 0;
  std::memcpy(&shape, value, bytes);
  of->data[1] = shape;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulAlgoConfigGetAttribute(const cublasLtMatmulAlgo_t* of,
                                                    cublasLtMatmulAlgoConfigAttributes_t which,
                                                    void* value, std::size_t bytes,
                                                    std::size_t* written) {
  if (which != CUBLASLT_ALGO_CONFIG_CLUSTER_SHAPE_ID || bytes != sizeof(std::uint16_t))
    return CUBLAS_STATUS_INVALID_VALUE;
  const auto shape = static_cast<std::uint16_t>(of->data[1]);
  std::memcpy(value, &shape, bytes);
  *written = bytes;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulAlgoCheck(cublasLtHandle_t, cublasLtMatmulDesc_t,
                                       cublasLtMatrixLayout_t, cublasLtMatrixLayout_t,
                                       cublasLtMatrixLayout_t, cublasLtMatrixLayout_t,
                                       const cublasLtMatmulAlgo_t* by,
                                       cublasLtMatmulHeuristicResult_t* to) {
  *to = {};
  to->algo = *by;
  switch (by->data[1]) {
    case CUBLASLT_CLUSTER_SHAPE_1x1x1:
    case CUBLASLT_CLUSTER_SHAPE_2x1x1:
    case CUBLASLT_CLUSTER_SHAPE_4x2x1:
      return CUBLAS_STATUS_SUCCESS;
    case CUBLASLT_CLUSTER_SHAPE_8x1x1:
      to->workspaceSize = std::size_t{1} << 30;
      return CUBLAS_STATUS_SUCCESS;
    default:
      return CUBLAS_STATUS_NOT_SUPPORTED;
  }
}
cublasStatus_t cublasLtMatmul(cublasLtHandle_t, cublasLtMatmulDesc_t what, const void*, const void*,
                              cublasLtMatrixLayout_t left, const void*,
                              cublasLtMatrixLayout_t right, const void*, const void*,
                              cublasLtMatrixLayout_t, void*, cublasLtMatrixLayout_t,
                              const cublasLtMatmulAlgo_t* by, void*, std::size_t,
                              cudaStream_t stream) {
  const auto& a = *reinterpret_cast<const layout*>(left);
  const auto& b = *reinterpret_cast<const layout*>(right);
  if (a.columns != b.rows) return CUBLAS_STATUS_INVALID_VALUE;
  const int given = reinterpret_cast<const description*>(what)->multiprocessors;
  constexpr double per_nanosecond = 3.5e6;
  const double part = given == 0 ? 1 : given / 132.0;
  const double sums = static_cast<double>(a.rows) * static_cast<double>(a.columns) *
                      static_cast<double>(b.columns);
  double slower = by->data[0] == 1 ? 1 : 1.1;
  switch (by->data[1]) {
    case CUBLASLT_CLUSTER_SHAPE_4x2x1:
      break;
    case CUBLASLT_CLUSTER_SHAPE_2x1x1:
      slower *= 1.02;
      break;
    case CUBLASLT_CLUSTER_SHAPE_1x1x1:
      slower *= 1.2;
      break;
    default:  // refused, or without the memory
      slower /= 2;
  }
  stretto::test::gpu::enqueue_for(stream, "cublasLtMatmul", slower * sums / per_nanosecond / part);
  return CUBLAS_STATUS_SUCCESS;
}

}  // extern "C"
