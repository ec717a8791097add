#include "model/layer.hpp"

#include <stdexcept>
#include <string>

#include "model/block.hpp"
#include "model/embedding.hpp"
#include "model/head.hpp"
#include "model/op.hpp"
#include "model/shards.hpp"

namespace train {
namespace {

// The sizes do not depend on the scalar type.
template <class Visitor>
auto visit_kind(const config& model, int layer, Visitor&& visitor) {
  switch (model.kind(layer)) {
    case layer_kind::embedding:
      return visitor(embedding<float>(model));
    case layer_kind::block:
      return visitor(block<float>(model));
    case layer_kind::head:
      break;
  }
  return visitor(head<float>(model, model.piece(layer)));
}

}  // namespace

std::vector<tensor> parameter_tensors(const config& model, int layer) {
  return visit_kind(model, layer, [](const auto& kind) { return kind.tensors(); });
}

std::size_t parameter_count(const config& model, int layer) {
  std::size_t count = 0;
  for (const tensor& part : parameter_tensors(model, layer)) count += part.size;
  return count;
}

std::size_t parameter_scalars(const config& model, int layer) {
  return visit_kind(model, layer, [](const auto& kind) { return kind.parameter_scalars(); });
}

std::size_t stash_scalars(const config& model, int layer) {
  switch (model.kind(layer)) {
    case layer_kind::embedding:
      return 0;
    case layer_kind::block:
      return block<float>(model).stash_scalars();
    case layer_kind::head:
      break;
  }
  return head<float>(model, model.piece(layer)).stash_scalars();
}

template <class Scalar>
void initialise(const config& model, int layer, std::uint64_t seed, std::span<Scalar> parameters,
                int shard) {
  check_buffer("parameters", parameters, parameter_scalars(model, layer));
  if (model.shards > 1) {
    aligned_array<Scalar> whole(parameter_scalars(unsharded(model), layer));
    initialise<Scalar>(unsharded(model), layer, seed, whole.span());
    return take_shard<Scalar>(model, layer, shard, whole.span(), parameters);
  }
  switch (model.kind(layer)) {
    case layer_kind::embedding:
      return embedding<Scalar>(model).initialise(seed, parameters);
    case layer_kind::block:
      return block<Scalar>(model).initialise(seed, layer, parameters);
    case layer_kind::head:
      return head<Scalar>(model, model.piece(layer)).initialise(seed, parameters);
  }
}

template void initialise(const config&, int, std::uint64_t, std::span<float>, int);
template void initialise(const config&, int, std::uint64_t, std::span<double>, int);

product_counts expected_products(const config& model, int layer) {
  product_counts sum;
  for (std::size_t slice = 0; slice < config::size(model.slices); ++slice)
    sum += expected_products(model, layer, slice);
  return sum;
}

product_counts expected_products(const config& model, int layer, std::size_t slice) {
  const auto sum = [&](stretto::job_kind kind) {
    std::uint64_t products = 0;
    for (const stage_op& op : job_ops(model, layer, layer + 1, kind))
      products += expected_products(model, op.code, slice);
    return products;
  };
  return {sum(stretto::job_kind::forward), sum(stretto::job_kind::backward_input),
          sum(stretto::job_kind::backward_weight)};
}

void check_stage_layers(const config& model, int first, int last) {
  model.check();
  if (first < 0 || first >= last || last > model.layer_count()) {
    throw std::invalid_argument("stage: layers [" + std::to_string(first) + ", " +
                                std::to_string(last) + ") are not a run of the model's " +
                                std::to_string(model.layer_count()) + " layers");
  }
}

}  // namespace train
