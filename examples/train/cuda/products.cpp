// Products on a GPU, by cuBLAS.
#include <limits>
#include <stdexcept>
#include <string>

#include "cuda/launch.hpp"
#include "cuda/parts.hpp"
#include "model/scratch.hpp"

namespace train::cuda {
namespace {

//! cuBLAS counts in int.
int number(std::size_t size) {
  if (size > static_cast<std::size_t>(std::numeric_limits<int>::max()))
    throw std::invalid_argument("a product of matrices with " + std::to_string(size) +
                                " rows, columns or scalars between rows: cuBLAS counts to " +
                                std::to_string(std::numeric_limits<int>::max()));
  return static_cast<int>(size);
}

}  // namespace

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
                                bool add, const product_batch& of) const {
  multiply({out.data, CUDA_R_16BF, out.stride}, left, right, add, of);
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
    launch_items(
        cuda::round_batch{on_gpu(its), items(its), apart, static_cast<bfloat16*>(scratch.get())},
        items(its) * of.count, parts_->stream);
    return {scratch.get(), CUDA_R_16BF, its.columns, items(its)};
  };
  const side first = read(left, of.left, parts_->left),
             second = read(right, of.right, parts_->right);
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
    check_products(
        cublasSgemm(parts_->products, form(right), form(left), columns, rows, inner, &one,
                    right.of.data, number(second.stride), left.of.data, number(first.stride), &kept,
                    static_cast<float*>(out.data), number(out.stride)),
        "cublasSgemm");
}

}  // namespace train::cuda
