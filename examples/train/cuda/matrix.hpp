// Matrices as kernels see them.
#pragma once

#include <cstddef>

#include "model/everywhere.hpp"

namespace train::cuda {

//! A row-major matrix of the GPU's; Value may be const.
template <class Value>
struct matrix_on_gpu {
  Value* data;
  std::size_t columns, stride;

  TRAIN_EVERYWHERE Value* row(std::size_t at) const { return data + at * stride; }
  //! The element with this number, row by row.
  TRAIN_EVERYWHERE Value& operator[](std::size_t item) const {
    return data[item / columns * stride + item % columns];
  }
};
using matrix = matrix_on_gpu<float>;
using constant_matrix = matrix_on_gpu<const float>;

}  // namespace train::cuda
