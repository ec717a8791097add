// Rounding to bf16, and products that read it: of rounded operands, summed in single precision.
#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <utility>
#include <vector>

#include "model/bfloat16.hpp"
#include "model/layer.hpp"
#include "model/reference.hpp"
#include "model_support.hpp"

using namespace train;

namespace {

constexpr std::uint16_t bits_of(float value) {
  return static_cast<std::uint16_t>(rounded(value));
}
constexpr float upper(std::uint32_t half) {
  return std::bit_cast<float>(half << 16);
}

static_assert(bits_of(1.0f) == 0x3f80 && widened(rounded(1.0f)) == 1.0f);
static_assert(bits_of(1.00390625f) == 0x3f80);   // half way: down to the even one
static_assert(bits_of(1.01171875f) == 0x3f82);   // half way: up to it
static_assert(bits_of(std::numeric_limits<float>::max()) == 0x7f80);  // infinity
static_assert(bits_of(-0.0f) == 0x8000);

//! What rounding may give, by definition: of the two neighbours the nearer; as near, the even one.
//! Behind the largest stands what would come next, as IEEE 754 has it.
std::uint16_t by_definition(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t low = bits >> 16, sign = low & 0x8000u, high = low + 1;
  const auto magnitude = [](std::uint32_t half) {
    half &= 0x7fffu;
    return half == 0x7f80u ? std::ldexp(1.0, 128) : static_cast<double>(upper(half));
  };
  const double exact = std::abs(static_cast<double>(value));
  if (std::isinf(value)) return static_cast<std::uint16_t>(low);
  const double down = exact - magnitude(low), up = magnitude(high) - exact;
  const bool take_low = down < up || (down == up && low % 2 == 0);
  return static_cast<std::uint16_t>(sign | ((take_low ? low : high) & 0x7fffu));
}

}  // namespace

TEST_CASE("bf16: the nearest, of two the even one, for every upper half of a float") {
  int wrong = 0, numbers = 0;
  for (std::uint32_t half = 0; half < 0x10000; ++half)
    for (const std::uint32_t lower : {0x0u, 0x1u, 0x7fffu, 0x8000u, 0x8001u, 0xffffu}) {
      const auto value = std::bit_cast<float>(half << 16 | lower);
      const bfloat16 found = rounded(value);
      if (std::isnan(value)) {
        const auto bits = static_cast<std::uint16_t>(found);
        // Quiet, and of the same sign.
        wrong += std::isnan(widened(found)) && (bits & 0x40) != 0 && (bits ^ half) < 0x8000 ? 0 : 1;
        continue;
      }
      ++numbers;
      wrong += static_cast<std::uint16_t>(found) == by_definition(value) ? 0 : 1;
      if (lower == 0) wrong += std::bit_cast<std::uint32_t>(widened(found)) == half << 16 ? 0 : 1;
    }
  CHECK(wrong == 0);
  CHECK(numbers == 6 * 2 * 0x7f80 + 2);  // all upper halves below infinity's, and both infinities
}

namespace {

struct drawn {
  drawn(std::size_t size, std::uint64_t key) : exact(size), kept(size), copy(size) {
    model_test::fill_normal(exact.span(), 1, key);
    for (std::size_t at = 0; at < size; ++at) {
      copy[at] = rounded(exact.span()[at]);
      kept.span()[at] = widened(copy[at]);
    }
  }
  aligned_array<float> exact, kept;
  std::vector<bfloat16> copy;
};

factor<float> side(const aligned_array<float>& of, std::size_t rows, std::size_t columns,
                   bool transposed) {
  // The first columns of a wider matrix.
  const std::size_t tall = transposed ? columns : rows, wide = transposed ? rows : columns;
  return {matrix_span<const float>(of.span().data(), tall, wide, wide + 3), transposed};
}

}  // namespace

TEST_CASE("a product reads both sides rounded, and adds to what is not") {
  const config model = model_test::medium(false);
  const auto math = make_host_math(model, precision::bf16);
  CHECK(math->rounds());
  CHECK(!make_host_math(model, precision::fp32)->rounds());
  constexpr std::size_t rows = 30, inner = 41, columns = 26;
  const drawn left(45 * 45, 1), right(45 * 45, 2), before(rows * columns, 3), other(45 * 45, 4);
  for (const bool left_transposed : {false, true})
    for (const bool right_transposed : {false, true})
      for (const bool add : {false, true}) {
        CAPTURE(left_transposed);
        CAPTURE(right_transposed);
        CAPTURE(add);
        const auto product = [&](const train::math<float>& by, const aligned_array<float>& one,
                                 const aligned_array<float>& two, const bfloat16* copy) {
          aligned_array<float> out(rows * columns);
          std::ranges::copy(before.exact.span(), out.span().begin());
          factor<float> second = side(two, inner, columns, right_transposed);
          second.copy = copy;
          by.product({out.span().data(), rows, columns}, side(one, rows, inner, left_transposed),
                     second, add);
          return std::vector<float>(out.span().begin(), out.span().end());
        };
        const auto& exact = host_math<float>();
        const auto expected = product(exact, left.kept, right.kept, nullptr);
        CHECK(product(*math, left.exact, right.exact, nullptr) == expected);
        // A copy is read in place of what it is of.
        CHECK(product(*math, left.exact, other.exact, right.copy.data()) == expected);
        CHECK(product(exact, left.kept, right.exact, nullptr) != expected);
        CHECK(product(exact, left.exact, right.kept, nullptr) != expected);
      }
  aligned_array<float> large(2 * model.rows() * 256);
  const matrix_span<float> all(large.span().data(), 2 * model.rows(), 256);
  CHECK_THROWS_AS(math->product(all, all, transposed(all), false), std::invalid_argument);
}

TEST_CASE("weights are read as they were rounded before the step's first job") {
  for (const config& model : {model_test::small(true), model_test::medium(false)}) {
    const auto math = make_host_math(model, precision::bf16);
    stage one(model, 0, model.layer_count(), 5, 0, *math);
    const auto words = model_test::tokens(model, 1), targets = model_test::tokens(model, 2);
    aligned_array<float> stash(one.stash_scalars());
    const auto loss = [&] { return one.forward(words, targets, {}, {}, stash.span(), 1, {}); };
    const auto round_matrices = [&] {
      for (int layer = 1; layer < model.layer_count(); ++layer)  // the embedding looks up
        for (const tensor& each : parameter_tensors(model, layer))
          for (float& value : each.of(one.parameters(layer)))
            if (each.decayed) value = widened(rounded(value));
    };
    one.round_weights();
    const double before = loss();
    one.backward({}, {}, stash.span());
    const std::vector<float> gradients(one.gradients().begin(), one.gradients().end());
    one.zero_gradients();
    round_matrices();
    one.round_weights();
    CHECK(loss() == before);
    one.backward({}, {}, stash.span());
    CHECK(std::ranges::equal(one.gradients(), gradients));
    for (int layer = 1; layer < model.layer_count(); ++layer)
      for (const tensor& each : parameter_tensors(model, layer))
        for (float& value : each.of(one.parameters(layer)))
          if (each.decayed) value *= 1.5f;
    CHECK(loss() == before);  // of before the change
    one.round_weights();
    CHECK(loss() != before);
    CHECK(one.copies_bytes() == one.state_bytes() / 8);
  }
}

TEST_CASE("a stage in bf16: messages and stashes of it, and what fp32 gives but for rounding") {
  const config wide = model_test::medium(false);
  config half = wide;
  half.activations = precision::bf16;
  CHECK_THROWS_WITH_AS(stage(half, 1, 3, 5),
                       "stage: the model's activations are bf16, the math does not round",
                       std::invalid_argument);
  const auto exact = make_host_math(wide, precision::fp32);
  const auto rounding = make_host_math(half, precision::bf16);
  stage one(wide, 1, 3, 5, 0, *exact), other(half, 1, 3, 5, 0, *rounding);
  CHECK(2 * other.message_bytes() == one.message_bytes());
  CHECK(100 * other.stash_bytes() < 55 * one.stash_bytes());
  const std::size_t scalars = wide.activation_scalars();
  // Twice: what the first leaves in the room of the math must not matter.
  for (const std::uint64_t key : {1u, 2u}) {
    const drawn input(scalars, key), gradient(scalars, key + 10);
    const auto run = [](stage& with, std::span<const float> in, std::span<const float> back) {
      std::pair<aligned_array<float>, aligned_array<float>> made(
          aligned_array<float>(in.size()), aligned_array<float>(in.size()));
      aligned_array<float> stash(with.stash_scalars());
      with.round_weights();
      with.zero_gradients();
      with.forward({}, {}, in, made.first.span(), stash.span(), 1);
      with.backward(back, made.second.span(), stash.span());
      return made;
    };
    const auto message = [](const std::vector<bfloat16>& numbers) {
      aligned_array<float> made((numbers.size() + 1) / 2);
      std::memcpy(made.span().data(), numbers.data(), numbers.size() * sizeof(bfloat16));
      return made;
    };
    const auto expected = run(one, input.kept.span(), gradient.kept.span());
    const auto found = run(other, message(input.copy).span(), message(gradient.copy).span());
    const auto apart = [&](std::span<const float> in_half, std::span<const float> in_wide) {
      std::vector<bfloat16> numbers(in_wide.size());
      std::memcpy(numbers.data(), in_half.data(), numbers.size() * sizeof(bfloat16));
      double errors = 0, squares = 0;
      for (std::size_t at = 0; at < numbers.size(); ++at) {
        const double value = static_cast<double>(in_wide[at]);
        errors += std::pow(static_cast<double>(widened(numbers[at])) - value, 2);
        squares += value * value;
      }
      return std::sqrt(errors / squares);
    };
    CHECK(apart(found.first.span(), expected.first.span()) < 5e-3);
    CHECK(apart(found.second.span(), expected.second.span()) < 5e-3);
    double errors = 0, squares = 0;
    for (std::size_t at = 0; at < one.gradients().size(); ++at) {
      const auto value = static_cast<double>(one.gradients()[at]);
      errors += std::pow(static_cast<double>(other.gradients()[at]) - value, 2);
      squares += value * value;
    }
    CHECK(std::sqrt(errors / squares) < 1e-2);
    CHECK(errors > 0);
  }
}
