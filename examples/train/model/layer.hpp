// A layer of any kind by its number: sizes and first values, for those who deal layers to stages.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "model/config.hpp"
#include "model/tensor.hpp"

namespace train {

//! The tensors of a layer's parameters, in order; here and below of a shard's, all alike.
std::vector<tensor> parameter_tensors(const config& model, int layer);

//! Trained numbers of a layer. A tied head counts its own copy of the table.
std::size_t parameter_count(const config& model, int layer);

//! Scalars of the buffer that holds them: the count plus what alignment adds.
std::size_t parameter_scalars(const config& model, int layer);

//! Scalars that a layer keeps for one micro-batch from its forward to its backward for weights,
//! beside the activation between layers.
std::size_t stash_scalars(const config& model, int layer);

//! Sets a layer's parameters (`parameter_scalars` of them) from the seed and the layer's number
//! alone, whatever the partition; a shard's are its part of those.
template <class Scalar>
void initialise(const config& model, int layer, std::uint64_t seed, std::span<Scalar> parameters,
                int shard = 0);

extern template void initialise(const config&, int, std::uint64_t, std::span<float>, int);
extern template void initialise(const config&, int, std::uint64_t, std::span<double>, int);

//! Multiply-adds of the matrix products that a layer does for one micro-batch, or one slice of it.
struct product_counts {
  std::uint64_t forward = 0;
  std::uint64_t backward_input = 0;
  std::uint64_t backward_weight = 0;

  product_counts& operator+=(const product_counts& other) {
    forward += other.forward;
    backward_input += other.backward_input;
    backward_weight += other.backward_weight;
    return *this;
  }
  bool operator==(const product_counts&) const = default;
};

//! What a layer's products cost, in closed form, for assignment policies and predictions: of a
//! whole micro-batch, or of one slice. Of a shard its own.
product_counts expected_products(const config& model, int layer);
product_counts expected_products(const config& model, int layer, std::size_t slice);

//! Refuses what is no run of layers, for a stage.
//! @throws std::invalid_argument naming the layers, or what is wrong with the model
void check_stage_layers(const config& model, int first, int last);

}  // namespace train
