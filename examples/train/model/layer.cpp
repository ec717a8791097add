#include "model/layer.hpp"

#include "model/block.hpp"
#include "model/embedding.hpp"
#include "model/head.hpp"

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
  return visitor(head<float>(model));
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
  return head<float>(model).stash_scalars();
}

template <class Scalar>
void initialise(const config& model, int layer, std::uint64_t seed, std::span<Scalar> parameters) {
  check_buffer("parameters", parameters, parameter_scalars(model, layer));
  switch (model.kind(layer)) {
    case layer_kind::embedding:
      return embedding<Scalar>(model).initialise(seed, parameters);
    case layer_kind::block:
      return block<Scalar>(model).initialise(seed, layer, parameters);
    case layer_kind::head:
      return head<Scalar>(model).initialise(seed, parameters);
  }
}

template void initialise(const config&, int, std::uint64_t, std::span<float>);
template void initialise(const config&, int, std::uint64_t, std::span<double>);

product_counts expected_products(const config& model, int layer) {
  const std::uint64_t rows = model.rows();
  const std::uint64_t width = config::size(model.width);
  const std::uint64_t context = config::size(model.context);
  switch (model.kind(layer)) {
    case layer_kind::embedding:
      return {};
    case layer_kind::block: {
      // Queries, keys, values and the projection after them, then up and down.
      const std::uint64_t weights =
          rows * width * width * (4 + 2 * static_cast<std::uint64_t>(model.expansion));
      // Scores and mix; their backward has two products for each.
      const std::uint64_t seen = context + model.length();  // twice the mean
      const std::uint64_t attention = rows * seen * width;
      return {weights + attention, weights + 2 * attention, weights};
    }
    case layer_kind::head:
      break;
  }
  const std::uint64_t projection = rows * width * config::size(model.vocabulary);
  return {projection, projection, projection};
}

}  // namespace train
