#include "model/scratch.hpp"

#include <algorithm>

#include "model/algebra.hpp"

namespace train {
namespace {

//! Of [rows, inner] * [inner, columns] into row-major memory, for which Eigen swaps the operands.
std::size_t packed(std::size_t rows, std::size_t inner, std::size_t columns) {
  auto depth = static_cast<Eigen::Index>(inner), wide = static_cast<Eigen::Index>(rows);
  Eigen::Index narrow = std::min(static_cast<Eigen::Index>(columns), panel_columns);
  Eigen::internal::computeProductBlockingSizes<float, float>(depth, narrow, wide);
  return static_cast<std::size_t>(depth * (narrow + wide)) * sizeof(float);
}

//! Of a layer's three products with a weight: forwards, for its input, for its weight.
std::size_t packed_with_weight(std::size_t rows, std::size_t inputs, std::size_t outputs) {
  return std::max({packed(rows, inputs, outputs), packed(rows, outputs, inputs),
                   packed(inputs, rows, outputs)});
}

}  // namespace

std::size_t packed_bytes(const config& model, bool with_head) {
  const std::size_t rows = model.rows(), width = config::size(model.width);
  const std::size_t share = model.share();
  const std::size_t head =
      with_head ? packed_with_weight(rows, width, config::size(model.vocabulary)) : 0;
  return std::max({packed_with_weight(rows, width, 3 * share),
                   packed_with_weight(rows, share, width),
                   packed_with_weight(rows, width, share * config::size(model.expansion)), head});
}

}  // namespace train
