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

//! What is summed in parts, each by somebody of its own, so that a GPU is busy and the order of the
//! sum depends on nothing but how many there are.
struct parts_of_many {
  std::size_t many, parts;

  //! Parts of about so many, and no more of them than so many.
  static constexpr parts_of_many about(std::size_t size, std::size_t most, std::size_t many) {
    const std::size_t wanted = many / size;
    return {many, wanted < 1 ? 1 : wanted < most ? wanted : most};
  }
  TRAIN_EVERYWHERE std::size_t begin(std::size_t part) const { return many * part / parts; }
};

}  // namespace train::cuda
