// The operations on tensors in the host's memory, done by the calling thread.
#pragma once

#include <memory>

#include "model/config.hpp"
#include "model/math.hpp"

namespace train {

//! In Scalar's precision. There is one, without state: any number of threads may call it. No
//! operation allocates; Eigen's scratch is on the stack. Tensors that start at multiples of 64
//! bytes give the same bits wherever they lie.
template <class Scalar>
const math<Scalar>& host_math();

//! The same for one worker, whose products read what is asked for; bf16 they multiply as floats,
//! which changes no number.
//! @param model  the largest that it will work on
std::unique_ptr<math<float>> make_host_math(const config& model, precision read);

extern template const math<float>& host_math<float>();
extern template const math<double>& host_math<double>();

}  // namespace train
