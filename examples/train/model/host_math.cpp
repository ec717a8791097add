#include "model/host_math.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <numeric>
#include <stdexcept>

#include "model/algebra.hpp"
#include "model/cross_entropy.hpp"
#include "model/gelu.hpp"
#include "model/norm.hpp"
#include "model/scratch.hpp"
#include "model/tensor.hpp"

namespace train {
namespace {

template <class Scalar>
auto view(const matrix_span<Scalar>& of) {
  return matrix(of.data, of.rows, of.columns, of.stride);
}

//! Calls use with the factor as Eigen sees it.
template <class Scalar, class Use>
void with_factor(const factor<Scalar>& side, Use&& use) {
  if (side.transposed)
    use(view(side.of).transpose());
  else
    use(view(side.of));
}

//! The factor that lies so many scalars behind.
template <class Scalar>
factor<Scalar> moved(factor<Scalar> side, std::size_t by) {
  if (side.of.data != nullptr) side.of.data += by;
  if (side.copy != nullptr) side.copy += by;
  return side;
}

template <class Scalar>
class host_operations : public math<Scalar> {
  using constant = matrix_span<const Scalar>;
  using variable = matrix_span<Scalar>;

 public:
  bool on_host() const override { return true; }
  void on_stream(void*, int) const override {}

  bool rounds() const override { return false; }
  std::size_t rounding_bytes() const override { return 0; }
  void round(constant from, matrix_span<bfloat16> to) const override {
    for (std::size_t row = 0; row < from.rows; ++row)
      for (std::size_t column = 0; column < from.columns; ++column)
        to.data[row * to.stride + column] =
            rounded(static_cast<float>(from.data[row * from.stride + column]));
  }
  void widen(matrix_span<const bfloat16> from, variable to) const override {
    for (std::size_t row = 0; row < from.rows; ++row)
      for (std::size_t column = 0; column < from.columns; ++column)
        to.data[row * to.stride + column] = widened(from.data[row * from.stride + column]);
  }
  std::span<Scalar> room(int) const override { return {}; }

  bool batches() const override { return false; }
  void product(variable out, factor<Scalar> left, factor<Scalar> right, bool add,
               const product_batch& of) const override {
    for (std::size_t at = 0; at < of.count; ++at)
      multiply_one({out.data + at * of.out, out.rows, out.columns, out.stride},
                   moved(left, at * of.left), moved(right, at * of.right), add);
  }
  void rounded_product(matrix_span<bfloat16>, factor<Scalar>, factor<Scalar>,
                       const product_batch&) const override {
    throw std::logic_error("host math: one that does not round was to round a product");
  }

 protected:
  virtual void multiply_one(variable out, const factor<Scalar>& left, const factor<Scalar>& right,
                            bool add) const {
    auto to = view(out);
    with_factor(left, [&](const auto& first) {
      with_factor(right, [&](const auto& second) {
        if (add)
          add_product(to, first, second);
        else
          assign_product(to, first, second);
      });
    });
  }

 public:
  void add_bias(variable out, const Scalar* bias) const override {
    view(out).rowwise() += row_vector(bias, out.columns);
  }
  void residual(variable out, constant from, const Scalar* bias, constant more) const override {
    view(out) = (view(from).rowwise() + row_vector(bias, out.columns)) + view(more);
  }
  void multiply(variable out, constant by) const override {
    view(out).array() *= view(by).array();
  }
  void gelu(constant input, variable value, variable slope) const override {
    train::gelu<Scalar>(view(input), view(value), view(slope));
  }
  void add_rows(Scalar* sums, constant values) const override {
    train::add_rows<Scalar>(sums, view(values));
  }

  void norm(const Scalar* gamma, const Scalar* beta, constant input, variable normalised,
            Scalar* inverse_deviation, variable output) const override {
    norm_forward<Scalar>(gamma, beta, view(input), view(normalised), inverse_deviation,
                         view(output));
  }
  void norm_back(const Scalar* gamma, constant normalised, const Scalar* inverse_deviation,
                 constant output_gradient, constant residual_gradient,
                 variable input_gradient) const override {
    norm_backward_input<Scalar>(gamma, view(normalised), inverse_deviation, view(output_gradient),
                                view(residual_gradient), view(input_gradient));
  }
  void norm_weights(constant normalised, constant output_gradient, Scalar* gamma_gradient,
                    Scalar* beta_gradient) const override {
    norm_backward_weight<Scalar>(view(normalised), view(output_gradient), gamma_gradient,
                                 beta_gradient);
  }

  void softmax(variable scores, std::size_t rows, std::size_t before,
               Scalar scale) const override {
    const auto length = static_cast<Eigen::Index>(rows);
    auto square = view(scores);
    for (Eigen::Index row = 0; row < square.rows(); ++row) {
      const Eigen::Index seen = static_cast<Eigen::Index>(before) + row % length + 1;
      auto past = square.row(row).head(seen).array();
      const Scalar highest = past.maxCoeff();
      past = ((past - highest) * scale).exp();
      past *= Scalar(1) / past.sum();
      square.row(row).tail(square.cols() - seen).setZero();
    }
  }
  void softmax_back(variable gradients, constant weights, std::size_t rows, std::size_t before,
                    Scalar scale) const override {
    const auto length = static_cast<Eigen::Index>(rows);
    auto scores = view(gradients);
    const auto square = view(weights);
    for (Eigen::Index row = 0; row < square.rows(); ++row) {
      const Eigen::Index seen = static_cast<Eigen::Index>(before) + row % length + 1;
      auto past = scores.row(row).head(seen).array();
      const auto weight = square.row(row).head(seen).array();
      const Scalar along = (past * weight).sum();
      past = weight * (past - along) * scale;
      scores.row(row).tail(scores.cols() - seen).setZero();
    }
  }

  void embed(variable output, const Scalar* table, const Scalar* positions,
             const std::uint8_t* tokens, std::size_t length) const override {
    const std::size_t width = output.columns;
    for (std::size_t row = 0; row < output.rows; ++row)
      row_vector(output.data + row * output.stride, width) =
          row_vector(table + tokens[row] * width, width) +
          row_vector(positions + row % length * width, width);
  }
  void embed_weights(constant output_gradient, Scalar* table, Scalar* positions,
                     const std::uint8_t* tokens, std::size_t length) const override {
    const std::size_t width = output_gradient.columns;
    for (std::size_t row = 0; row < output_gradient.rows; ++row) {
      const auto gradient = row_vector(output_gradient.data + row * output_gradient.stride, width);
      row_vector(table + tokens[row] * width, width) += gradient;
      row_vector(positions + row % length * width, width) += gradient;
    }
  }
  void cross_entropy(variable logits, const std::uint8_t* targets, double factor,
                     double* loss) const override {
    *loss = train::cross_entropy(logits.data, {targets, logits.rows}, logits.columns, factor);
  }

  void copy(const void* from, void* to, std::size_t bytes) const override {
    if (bytes > 0) std::memcpy(to, from, bytes);
  }
  void zero(void* to, std::size_t bytes) const override {
    if (bytes > 0) std::memset(to, 0, bytes);
  }
  void add(std::span<const Scalar> left, std::span<const Scalar> right,
           std::span<Scalar> to) const override {
    std::ranges::transform(left, right, to.begin(), std::plus<>());
  }
  void add_squares(std::span<const Scalar> values, double* sum) const override {
    for (const Scalar value : values)
      *sum += static_cast<double>(value) * static_cast<double>(value);
  }
  void finish(std::span<const double> norms, std::span<const double> losses, double norm_limit,
              step_result* to) const override {
    to->loss = std::accumulate(losses.begin(), losses.end(), 0.0);
    to->gradient_norm = global_norm(norms);
    to->clip_factor =
        std::isfinite(to->gradient_norm) ? clip_factor(to->gradient_norm, norm_limit) : 0.0;
  }
  void update(const adamw_factors<Scalar>* by, const double* clip_factor, bool decayed,
              std::span<Scalar> parameters, std::span<const Scalar> gradients,
              std::span<Scalar> mean, std::span<Scalar> square) const override {
    if (!(*clip_factor > 0)) return;
    train::update<Scalar>(*by, *clip_factor, decayed, parameters, gradients, mean, square);
  }

  std::shared_ptr<void> allocate(std::size_t bytes) const override {
    auto array = std::make_shared<aligned_array<std::byte>>(bytes);
    return {array, array->span().data()};
  }
  std::shared_ptr<void> allocate_staging(std::size_t bytes) const override {
    return allocate(bytes);
  }
  void put(const void* host, void* to, std::size_t bytes) const override { copy(host, to, bytes); }
  void get(const void* from, void* host, std::size_t bytes) const override {
    copy(from, host, bytes);
  }
};

//! Products of what bf16 keeps of both sides, which single precision multiplies without an error.
class rounding_operations final : public host_operations<float> {
 public:
  explicit rounding_operations(const config& model)
      : left_(largest_factor(model)),
        right_(std::max(largest_factor(model), largest_weight(model))) {
    for (int which = 0; which < rooms; ++which)
      rooms_[which] = aligned_array<float>(room_scalars(model, which, batches()));
  }

  bool rounds() const override { return true; }
  std::size_t rounding_bytes() const override {
    std::size_t sum = left_.span().size_bytes() + right_.span().size_bytes();
    for (const aligned_array<float>& each : rooms_) sum += each.span().size_bytes();
    return sum;
  }
  std::span<float> room(int which) const override {
    return rooms_[which].span();
  }
  void rounded_product(matrix_span<bfloat16> out, factor<float> left, factor<float> right,
                       const product_batch& of) const override {
    check_scratch(out.rows * out.columns, room(0).size());
    const matrix_span<float> made(room(0).data(), out.rows, out.columns);
    for (std::size_t at = 0; at < of.count; ++at) {
      multiply_one(made, moved(left, at * of.left), moved(right, at * of.right), false);
      round(made, {out.data + at * of.out, out.rows, out.columns, out.stride});
    }
  }

 private:
  void multiply_one(matrix_span<float> out, const factor<float>& left, const factor<float>& right,
                    bool add) const override {
    host_operations::multiply_one(out, kept(left, left_), kept(right, right_), add);
  }
  static factor<float> kept(const factor<float>& side, aligned_array<float>& in) {
    const auto& of = side.of;
    check_scratch(of.rows * of.columns, in.span().size());
    float* to = in.span().data();
    for (std::size_t row = 0; row < of.rows; ++row)
      for (std::size_t at = row * of.stride; at < row * of.stride + of.columns; ++at)
        *to++ = widened(side.copy != nullptr ? side.copy[at] : rounded(of.data[at]));
    return {matrix_span<const float>(in.span().data(), of.rows, of.columns), side.transposed};
  }

  mutable aligned_array<float> left_, right_, rooms_[rooms];
};

}  // namespace

template <class Scalar>
const math<Scalar>& host_math() {
  static const host_operations<Scalar> one;
  return one;
}

std::unique_ptr<math<float>> make_host_math(const config& model, precision read) {
  if (read == precision::bf16) return std::make_unique<rounding_operations>(model);
  return std::make_unique<host_operations<float>>();
}

template const math<float>& host_math<float>();
template const math<double>& host_math<double>();

}  // namespace train
