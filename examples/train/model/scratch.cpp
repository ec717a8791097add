#include "model/scratch.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>

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
  const std::size_t width = config::size(model.width), share = model.share();
  std::size_t most = 0;
  // Shorter slices too: Eigen cuts a product in blocks as its shape wants.
  for (std::size_t slice = 0; slice < config::size(model.slices); ++slice) {
    const std::size_t rows = model.rows(slice);
    most = std::max({most, packed_with_weight(rows, width, 3 * share),
                     packed_with_weight(rows, share, width),
                     packed_with_weight(rows, width, share * config::size(model.expansion)),
                     with_head ? packed_with_weight(rows, width, model.piece_tokens()) : 0});
    if (model.slice_ends.empty()) break;  // all alike
  }
  return most;
}

namespace {

std::size_t largest_columns(const config& model) {
  const std::size_t hidden = model.share() * config::size(model.expansion);
  return std::max({config::size(model.width), 3 * model.share(), hidden,
                   model.piece_tokens()});
}

std::size_t largest_rows(const config& model) {
  return model.rows() * largest_columns(model);
}

std::size_t heads_at_once(const config& model, bool batches) {
  return batches ? config::size(model.heads) / config::size(model.shards) : 1;
}

}  // namespace

std::size_t largest_row(const config& model) {
  return std::max(largest_columns(model), config::size(model.context));
}

std::size_t largest_factor(const config& model) {
  return std::max(largest_rows(model), model.length() * model.length());
}

std::size_t largest_rounded(const config& model, bool batches) {
  const std::size_t scores = heads_at_once(model, batches) * model.length() * model.length();
  return model.in_bf16() ? 0 : std::max(largest_rows(model), scores);
}

std::size_t room_scalars(const config& model, int which, bool batches) {
  const std::size_t heads = heads_at_once(model, batches);
  const std::size_t scores = heads * model.length() * config::size(model.context);
  if (!model.in_bf16()) return batches && which == 0 ? scores : 0;
  if (which == 0) return std::max(largest_rows(model), scores);
  if (which == 1) return (scores + 1) / 2;
  const std::size_t features = config::size(model.width) / config::size(model.heads);
  return model.slices > 1 ? model.length() * heads * features : 0;
}

std::size_t largest_weight(const config& model) {
  const std::size_t hidden = model.share() * config::size(model.expansion);
  return config::size(model.width) *
         std::max({3 * model.share(), hidden, model.piece_tokens()});
}

void check_scratch(std::size_t scalars, std::size_t room) {
  if (scalars > room)
    throw std::invalid_argument("a product with a matrix of " + std::to_string(scalars) +
                                " scalars: the model that this math was made for has none above " +
                                std::to_string(room));
}

}  // namespace train
