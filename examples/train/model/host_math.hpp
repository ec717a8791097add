// The operations on tensors in the host's memory, done by the calling thread.
#pragma once

#include "model/math.hpp"

namespace train {

//! There is one, without state: any number of threads may call it. No operation allocates; Eigen's
//! scratch is on the stack. Tensors that start at multiples of 64 bytes give the same bits wherever
//! they lie.
template <class Scalar>
const math<Scalar>& host_math();

extern template const math<float>& host_math<float>();
extern template const math<double>& host_math<double>();

}  // namespace train
