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
#include "model/host_rows.hpp"
#include "model/norm.hpp"
#include "model/scratch.hpp"
#include "model/tensor.hpp"

namespace train {
namespace {

template <class Scalar>
auto mapped(const matrix_span<Scalar>& of) {
  return matrix(of.data, of.rows, of.columns, of.stride);
}
Eigen::Index index(std::size_t size) {
  return static_cast<Eigen::Index>(size);
}

//! Calls use with the factor as Eigen sees it.
template <class Scalar, class Use>
void with_factor(const factor<Scalar>& side, Use&& use) {
  if (side.transposed)
    use(mapped(side.of).transpose());
  else
    use(mapped(side.of));
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
  using held = held_matrix<Scalar>;
  using held_constant = held_matrix<const Scalar>;

 public:
  bool on_host() const override { return true; }
  void on_stream(void*, int) const override {}

  bool rounds() const override { return false; }
  std::size_t rounding_bytes() const override { return 0; }
  void round(constant from, matrix_span<bfloat16> to) const override {
    round_rows(from, to);
  }
  std::span<Scalar> room(int) const override { return {}; }

  bool batches() const override { return false; }
  void product(variable out, factor<Scalar> left, factor<Scalar> right, bool add,
               const product_batch& of) const override {
    for (std::size_t at = 0; at < of.count; ++at)
      multiply_one({out.data + at * of.out, out.rows, out.columns, out.stride},
                   moved(left, at * of.left), moved(right, at * of.right), add);
  }
  void rounded_product(matrix_span<bfloat16>, factor<Scalar>, factor<Scalar>, bool,
                       const product_batch&) const override {
    throw std::logic_error("host math: one that does not round was to round a product");
  }

 protected:
  virtual void multiply_one(variable out, const factor<Scalar>& left, const factor<Scalar>& right,
                            bool add) const {
    auto to = mapped(out);
    with_factor(left, [&](const auto& first) {
      with_factor(right, [&](const auto& second) {
        if (add)
          add_product(to, first, second);
        else
          assign_product(to, first, second);
      });
    });
  }

  //! See most_held; empty where nothing is rounded.
  virtual std::span<Scalar> windows() const { return {}; }
  template <class Use, class... Matrix>
  void over(std::size_t rows, Use&& use, const Matrix&... of) const {
    by_rows(windows(), rows, use, of...);
  }

 public:
  void add_bias(const held& out, constant from, const Scalar* bias) const override {
    over(
        out.rows(),
        [&](std::size_t, auto to, auto sums) {
          to = sums.rowwise() + row_vector(bias, out.columns());
        },
        out, held_constant(from));
  }
  void residual(const held& out, const held_constant& from, const Scalar* bias,
                const held_constant& more, variable exact) const override {
    over(
        out.rows(),
        [&](std::size_t row, auto to, auto one, auto other) {
          to = (one.rowwise() + row_vector(bias, out.columns())) + other;
          if (out.in_bf16() && exact.data != nullptr) mapped(exact).row(index(row)) = to;
        },
        out, from, more);
  }
  void multiply(const held& out, constant from, const held_constant& by) const override {
    over(
        out.rows(),
        [](std::size_t, auto to, auto one, auto other) { to = one.cwiseProduct(other); }, out,
        held_constant(from), by);
  }
  void gelu(constant input, const held& value, const held& slope) const override {
    over(
        input.rows,
        [](std::size_t, auto of, auto to, auto its) { train::gelu<Scalar>(of, to, its); },
        held_constant(input), value, slope);
  }
  void add_rows(Scalar* sums, const held_constant& values) const override {
    over(
        values.rows(), [&](std::size_t, auto rows) { train::add_rows<Scalar>(sums, rows); },
        values);
  }

  void norm(const Scalar* gamma, const Scalar* beta, const held_constant& input,
            const held& normalised, Scalar* inverse_deviation, const held& output) const override {
    over(
        input.rows(),
        [&](std::size_t row, auto from, auto unit, auto to) {
          norm_forward<Scalar>(gamma, beta, from, unit, inverse_deviation + row, to);
        },
        input, normalised, output);
  }
  void norm_back(const Scalar* gamma, const held_constant& normalised,
                 const Scalar* inverse_deviation, const held_constant& output_gradient,
                 const held_constant& residual_gradient,
                 const held& input_gradient) const override {
    over(
        normalised.rows(),
        [&](std::size_t row, auto unit, auto from, auto residual, auto to) {
          norm_backward_input<Scalar>(gamma, unit, inverse_deviation + row, from, residual, to);
        },
        normalised, output_gradient, residual_gradient, input_gradient);
  }
  void norm_weights(const held_constant& normalised, const held_constant& output_gradient,
                    Scalar* gamma_gradient, Scalar* beta_gradient) const override {
    over(
        normalised.rows(),
        [&](std::size_t, auto unit, auto from) {
          norm_backward_weight<Scalar>(unit, from, gamma_gradient, beta_gradient);
        },
        normalised, output_gradient);
  }

  void softmax(variable scores, std::size_t rows, std::size_t before, Scalar scale,
               const held& weights) const override {
    const auto length = static_cast<Eigen::Index>(rows);
    auto square = mapped(scores);
    for (Eigen::Index row = 0; row < square.rows(); ++row) {
      const Eigen::Index seen = static_cast<Eigen::Index>(before) + row % length + 1;
      auto past = square.row(row).head(seen).array();
      const Scalar highest = past.maxCoeff();
      past = ((past - highest) * scale).exp();
      past *= Scalar(1) / past.sum();
      square.row(row).tail(square.cols() - seen).setZero();
    }
    if (weights.in_bf16()) round_rows<Scalar>(scores, weights.narrow());
  }
  void softmax_back(variable gradients, const held_constant& weights, std::size_t rows,
                    std::size_t before, Scalar scale, const held& score_gradients) const override {
    const std::size_t length = rows, columns = gradients.columns;
    over(
        gradients.rows,
        [&](std::size_t first, auto of, auto square, auto to) {
          for (Eigen::Index row = 0; row < of.rows(); ++row) {
            const auto number = first + static_cast<std::size_t>(row);
            const Eigen::Index seen = index(before + number % length + 1);
            const auto past = of.row(row).head(seen).array();
            const auto weight = square.row(row).head(seen).array();
            const Scalar along = (past * weight).sum();
            to.row(row).head(seen).array() = weight * (past - along) * scale;
            to.row(row).tail(index(columns) - seen).setZero();
          }
        },
        held_constant(gradients), weights, score_gradients);
  }

  void embed(const held& output, const Scalar* table, const Scalar* positions,
             const std::uint8_t* tokens, std::size_t length) const override {
    const std::size_t width = output.columns();
    over(
        output.rows(),
        [&](std::size_t first, auto to) {
          for (Eigen::Index row = 0; row < to.rows(); ++row) {
            const auto number = first + static_cast<std::size_t>(row);
            to.row(row) = row_vector(table + tokens[number] * width, width) +
                          row_vector(positions + number % length * width, width);
          }
        },
        output);
  }
  void embed_weights(const held_constant& output_gradient, Scalar* table, Scalar* positions,
                     const std::uint8_t* tokens, std::size_t length) const override {
    const std::size_t width = output_gradient.columns();
    over(
        output_gradient.rows(),
        [&](std::size_t first, auto from) {
          for (Eigen::Index row = 0; row < from.rows(); ++row) {
            const auto number = first + static_cast<std::size_t>(row);
            row_vector(table + tokens[number] * width, width) += from.row(row);
            row_vector(positions + number % length * width, width) += from.row(row);
          }
        },
        output_gradient);
  }
  void cross_entropy(variable logits, const std::uint8_t* targets, double factor, double* loss,
                     const held& gradient) const override {
    *loss = train::cross_entropy(logits.data, {targets, logits.rows}, logits.columns, factor);
    if (gradient.in_bf16()) round_rows<Scalar>(logits, gradient.narrow());
  }

  void row_sums(constant logits, const std::uint8_t* targets, std::size_t first,
                const Scalar* before, Scalar* sums) const override {
    for (std::size_t row = 0; row < logits.rows; ++row)
      add_row_sums<Scalar>({logits.data + row * logits.stride, logits.columns}, targets[row], first,
                           before == nullptr ? nullptr : before + sums_of_row * row,
                           sums + sums_of_row * row);
  }
  void summed_loss(Scalar* sums, std::size_t rows, double factor, double* loss) const override {
    *loss = train::summed_loss(sums, rows, factor);
  }
  void logits_back(variable logits, const std::uint8_t* targets, std::size_t first,
                   const Scalar* sums, const held& gradient) const override {
    for (std::size_t row = 0; row < logits.rows; ++row)
      row_logits_back<Scalar>({logits.data + row * logits.stride, logits.columns}, targets[row],
                              first, sums + sums_of_row * row);
    if (gradient.in_bf16()) round_rows<Scalar>(logits, gradient.narrow());
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
        right_(std::max(largest_factor(model), largest_weight(model))),
        windows_(model.in_bf16() ? most_held * window_scalars(largest_row(model)) : 0) {
    for (int which = 0; which < rooms; ++which)
      rooms_[which] = aligned_array<float>(room_scalars(model, which, batches()));
  }

  bool rounds() const override { return true; }
  std::size_t rounding_bytes() const override {
    std::size_t sum =
        left_.span().size_bytes() + right_.span().size_bytes() + windows_.span().size_bytes();
    for (const aligned_array<float>& each : rooms_) sum += each.span().size_bytes();
    return sum;
  }
  std::span<float> room(int which) const override {
    return rooms_[which].span();
  }
  void rounded_product(matrix_span<bfloat16> out, factor<float> left, factor<float> right,
                       bool add, const product_batch& of) const override {
    check_scratch(out.rows * out.columns, room(0).size());
    const matrix_span<float> made(room(0).data(), out.rows, out.columns);
    for (std::size_t at = 0; at < of.count; ++at) {
      const matrix_span<bfloat16> to(out.data + at * of.out, out.rows, out.columns, out.stride);
      for (std::size_t row = 0; add && row < out.rows; ++row)
        widen_row(to.data + row * to.stride, to.columns, made.data + row * made.stride);
      multiply_one(made, moved(left, at * of.left), moved(right, at * of.right), add);
      round(made, to);
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

  std::span<float> windows() const override { return windows_.span(); }

  mutable aligned_array<float> left_, right_, windows_, rooms_[rooms];
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
