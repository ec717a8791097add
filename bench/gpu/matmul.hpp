#pragma once

// The matmul of the benchmark of overlap: cuBLAS's, of random numbers.

#include <cublasLt.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "gpu.hpp"

namespace stretto::bench {

inline void check_cublas(cublasStatus_t status, const char* call) {
  if (status != CUBLAS_STATUS_SUCCESS)
    throw std::runtime_error(std::string(call) + ": " + cublasLtGetStatusString(status));
}

struct matmul_shape {
  const char* type;
  cudaDataType_t element;
  int bytes;
  int m, n, k;
};
//! C = A B, by pieces of B's and C's columns. cuBLAS proposes several ways to compute a product on
//! so many multiprocessors, the one first that it expects to be the quickest; which it is, whoever
//! wants to know must measure.
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
                                one.c.get(), &one.proposals[one.chosen].algo, workspace_.get(),
                                workspace_bytes, on_),
                 "cublasLtMatmul");
  }

  //! Of pieces of so many, on so many multiprocessors.
  std::size_t proposals(int pieces, int multiprocessors) {
    return product_of(shape_.n / pieces, multiprocessors).proposals.size();
  }
  std::size_t chosen(int pieces, int multiprocessors) {
    return product_of(shape_.n / pieces, multiprocessors).chosen;
  }
  //! From now on; the first one until then.
  void choose(int pieces, int multiprocessors, std::size_t number) {
    product_of(shape_.n / pieces, multiprocessors).chosen = number;
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

  struct product {
    owned<cublasLtMatmulDesc_t, cublasLtMatmulDescDestroy> what;
    layout a, b, c;
    std::vector<cublasLtMatmulHeuristicResult_t> proposals;
    std::size_t chosen = 0;
  };

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
    made.proposals.resize(most_proposals);
    int found = 0;
    check_cublas(cublasLtMatmulAlgoGetHeuristic(
                     cublas_.get(), what, made.a.get(), made.b.get(), made.c.get(), made.c.get(),
                     wanted, static_cast<int>(most_proposals), made.proposals.data(), &found),
                 "cublasLtMatmulAlgoGetHeuristic");
    if (found < 1) throw std::runtime_error("cuBLAS proposes nothing for this product");
    made.proposals.resize(static_cast<std::size_t>(found));
    return products_[which] = std::move(made);
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
