#pragma once

// The matmul of the benchmark of overlap: cuBLAS's, of random numbers.

#include <cublasLt.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "gpu.hpp"

namespace stretto::bench {

struct cublas_error : std::runtime_error {
  using std::runtime_error::runtime_error;
};
inline void check_cublas(cublasStatus_t status, const char* call) {
  if (status != CUBLAS_STATUS_SUCCESS)
    throw cublas_error(std::string(call) + ": " + cublasLtGetStatusString(status));
}

struct matmul_shape {
  const char* type;
  cudaDataType_t element;
  int bytes;
  int m, n, k;
};
//! C = A B, by pieces of B's and C's columns, each in one of several ways: those that cuBLAS
//! proposes for so many multiprocessors, the one first that it expects to be the quickest, then the
//! same in other clusters of blocks. The blocks of a cluster load for one another, so that larger
//! ones read less of the second cache, which a communication beside them takes from. Which is the
//! quickest, whoever wants to know must measure.
class matmul {
 public:
  matmul(const matmul_shape& shape, cudaStream_t on) : shape_(shape), on_(on) {
    cublasLtHandle_t made = nullptr;
    check_cublas(cublasLtCreate(&made), "cublasLtCreate");
    cublas_.reset(made);
    const auto fill = shape.element == CUDA_R_32F ? fill_random_floats : fill_random_bf16;
    const auto make = [&](int rows, int columns, std::uint32_t seed) {
      const std::size_t count = static_cast<std::size_t>(rows) * static_cast<std::size_t>(columns);
      auto memory = make_device_memory(count * static_cast<std::size_t>(shape.bytes));
      check(fill(memory.get(), count, seed, on), "random numbers");
      return memory;
    };
    a_ = make(shape.m, shape.k, 1);
    b_ = make(shape.k, shape.n, 2);
    c_ = make(shape.m, shape.n, 3);
    workspace_ = make_device_memory(workspace_bytes);
    check(cudaStreamSynchronize(on), "cudaStreamSynchronize");
  }

  //! @param multiprocessors  that it may take; 0: all
  void launch(int piece, int pieces, int multiprocessors) {
    const int first = shape_.n / pieces * piece;
    const int columns = piece + 1 == pieces ? shape_.n - first : shape_.n / pieces;
    const product& one = product_of(columns, multiprocessors);
    const float scale = 1;
    const float kept = 0;
    void* const c = column(c_, shape_.m, first);
    check_cublas(cublasLtMatmul(cublas_.get(), one.what.get(), &scale, a_.get(), one.a.get(),
                                column(b_, shape_.k, first), one.b.get(), &kept, c, one.c.get(), c,
                                one.c.get(), &one.ways[one.chosen].by, workspace_.get(),
                                workspace_bytes, on_),
                 "cublasLtMatmul");
  }

  //! Of pieces of so many, on so many multiprocessors.
  std::size_t ways(int pieces, int multiprocessors) {
    return product_of(shape_.n / pieces, multiprocessors).ways.size();
  }
  //! From now on; the first one until then.
  void choose(int pieces, int multiprocessors, std::size_t number) {
    product_of(shape_.n / pieces, multiprocessors).chosen = number;
  }
  //! There are no others from now on.
  //! @param numbers  ascending
  void keep(int pieces, int multiprocessors, const std::vector<std::size_t>& numbers) {
    product& of = product_of(shape_.n / pieces, multiprocessors);
    std::vector<way> kept;
    for (const std::size_t number : numbers) kept.push_back(of.ways[number]);
    of.ways = std::move(kept);
    of.chosen = 0;
  }
  //! Of what is chosen: which of cuBLAS's proposals it goes back to, from 0.
  std::size_t proposal(int pieces, int multiprocessors) {
    const product& of = product_of(shape_.n / pieces, multiprocessors);
    return of.ways[of.chosen].proposal;
  }
  //! And its clusters, as "2x1" blocks; empty where cuBLAS does not say.
  std::string cluster(int pieces, int multiprocessors) {
    const product& of = product_of(shape_.n / pieces, multiprocessors);
    std::uint16_t shape = 0;
    std::size_t written = 0;
    if (cublasLtMatmulAlgoConfigGetAttribute(&of.ways[of.chosen].by,
                                             CUBLASLT_ALGO_CONFIG_CLUSTER_SHAPE_ID, &shape,
                                             sizeof shape, &written) == CUBLAS_STATUS_SUCCESS)
      for (const cluster_shape& each : cluster_shapes)
        if (each.id == shape) return each.name;
    return "";
  }

 private:
  template <class Handle, cublasStatus_t (*Destroy)(Handle)>
  struct destroys {
    using pointer = Handle;
    void operator()(Handle what) const { static_cast<void>(Destroy(what)); }
  };
  template <class Handle, cublasStatus_t (*Destroy)(Handle)>
  using owned = std::unique_ptr<Handle, destroys<Handle, Destroy>>;
  using layout = owned<cublasLtMatrixLayout_t, cublasLtMatrixLayoutDestroy>;

  struct way {
    cublasLtMatmulAlgo_t by;
    std::size_t proposal;
  };
  struct product {
    owned<cublasLtMatmulDesc_t, cublasLtMatmulDescDestroy> what;
    layout a, b, c;
    std::vector<way> ways;
    std::size_t chosen = 0;
  };
  struct cluster_shape {
    std::uint16_t id;
    const char* name;
  };
  // As large as they may be everywhere.
  static constexpr cluster_shape cluster_shapes[] = {
      {CUBLASLT_CLUSTER_SHAPE_1x1x1, "1x1"}, {CUBLASLT_CLUSTER_SHAPE_2x1x1, "2x1"},
      {CUBLASLT_CLUSTER_SHAPE_1x2x1, "1x2"}, {CUBLASLT_CLUSTER_SHAPE_4x1x1, "4x1"},
      {CUBLASLT_CLUSTER_SHAPE_2x2x1, "2x2"}, {CUBLASLT_CLUSTER_SHAPE_1x4x1, "1x4"},
      {CUBLASLT_CLUSTER_SHAPE_8x1x1, "8x1"}, {CUBLASLT_CLUSTER_SHAPE_4x2x1, "4x2"},
      {CUBLASLT_CLUSTER_SHAPE_2x4x1, "2x4"}, {CUBLASLT_CLUSTER_SHAPE_1x8x1, "1x8"}};

  layout layout_of(int rows, int columns) const {
    cublasLtMatrixLayout_t made = nullptr;
    check_cublas(cublasLtMatrixLayoutCreate(&made, shape_.element, static_cast<std::uint64_t>(rows),
                                            static_cast<std::uint64_t>(columns), rows),
                 "cublasLtMatrixLayoutCreate");
    return layout(made);
  }

  product& product_of(int columns, int multiprocessors) {
    const std::pair which(columns, multiprocessors);
    if (const auto at = products_.find(which); at != products_.end()) return at->second;
    product made;
    cublasLtMatmulDesc_t what = nullptr;
    check_cublas(cublasLtMatmulDescCreate(&what, CUBLAS_COMPUTE_32F, CUDA_R_32F),
                 "cublasLtMatmulDescCreate");
    made.what.reset(what);
    const std::int32_t count = multiprocessors;
    check_cublas(cublasLtMatmulDescSetAttribute(what, CUBLASLT_MATMUL_DESC_SM_COUNT_TARGET, &count,
                                                sizeof count),
                 "cublasLtMatmulDescSetAttribute");
    made.a = layout_of(shape_.m, shape_.k);
    made.b = layout_of(shape_.k, columns);
    made.c = layout_of(shape_.m, columns);
    cublasLtMatmulPreference_t wanted = nullptr;
    check_cublas(cublasLtMatmulPreferenceCreate(&wanted), "cublasLtMatmulPreferenceCreate");
    const owned<cublasLtMatmulPreference_t, cublasLtMatmulPreferenceDestroy> kept(wanted);
    check_cublas(
        cublasLtMatmulPreferenceSetAttribute(wanted, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                             &workspace_bytes, sizeof workspace_bytes),
        "cublasLtMatmulPreferenceSetAttribute");
    std::vector<cublasLtMatmulHeuristicResult_t> proposals(most_proposals);
    int found = 0;
    check_cublas(cublasLtMatmulAlgoGetHeuristic(
                     cublas_.get(), what, made.a.get(), made.b.get(), made.c.get(), made.c.get(),
                     wanted, static_cast<int>(most_proposals), proposals.data(), &found),
                 "cublasLtMatmulAlgoGetHeuristic");
    if (found < 1) throw std::runtime_error("cuBLAS proposes nothing for this product");
    proposals.resize(static_cast<std::size_t>(found));
    for (const auto& each : proposals) made.ways.push_back({each.algo, made.ways.size()});
    add_clusters(made);
    return products_[which] = std::move(made);
  }

  //! Each proposal in all clusters that cuBLAS can compute it in.
  void add_clusters(product& of) const {
    const std::vector<way> proposed = of.ways;
    for (const way& each : proposed)
      for (const cluster_shape& shape : cluster_shapes) {
        way other = each;
        cublasLtMatmulHeuristicResult_t seen{};
        if (cublasLtMatmulAlgoConfigSetAttribute(&other.by, CUBLASLT_ALGO_CONFIG_CLUSTER_SHAPE_ID,
                                                 &shape.id,
                                                 sizeof shape.id) != CUBLAS_STATUS_SUCCESS ||
            cublasLtMatmulAlgoCheck(cublas_.get(), of.what.get(), of.a.get(), of.b.get(),
                                    of.c.get(), of.c.get(), &other.by,
                                    &seen) != CUBLAS_STATUS_SUCCESS ||
            seen.workspaceSize > workspace_bytes)
          continue;
        const bool known = std::any_of(of.ways.begin(), of.ways.end(), [&](const way& one) {
          return std::memcmp(&one.by, &other.by, sizeof other.by) == 0;
        });
        if (!known) of.ways.push_back(other);
      }
  }

  void* column(const executor::cuda::device_memory& of, int rows, int number) const {
    return static_cast<std::byte*>(of.get()) + static_cast<std::size_t>(rows) *
                                                   static_cast<std::size_t>(number) *
                                                   static_cast<std::size_t>(shape_.bytes);
  }

  static constexpr std::size_t workspace_bytes = std::size_t{64} << 20;
  static constexpr std::size_t most_proposals = 32;
  matmul_shape shape_;
  cudaStream_t on_;
  owned<cublasLtHandle_t, cublasLtDestroy> cublas_;
  executor::cuda::device_memory a_, b_, c_, workspace_;
  std::map<std::pair<int, int>, product> products_;  // by columns and multiprocessors
};

}  // namespace stretto::bench
