// Rounding and products of bf16 on a GPU beside the same on the host.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "cuda/cuda_math.hpp"
#include "model/host_math.hpp"
#include "model/random.hpp"
#include "stretto/executor/cuda/handles.hpp"

namespace train_cuda_test {

//! Until the stream's work is done.
inline void finish(cudaStream_t stream) {
  while (cudaStreamQuery(stream) == cudaErrorNotReady) static_cast<void>(cudaGetLastError());
}

//! Numbers in a math's memory.
template <class Value>
train::math_array<Value, float> put(const train::math<float>& by, const std::vector<Value>& all) {
  train::math_array<Value, float> there(by, all.size());
  by.put(all.data(), there.span().data(), there.span().size_bytes());
  return there;
}
template <class Value>
std::vector<Value> get(const train::math<float>& by, const train::math_array<Value, float>& from) {
  std::vector<Value> all(from.span().size());
  by.get(from.span().data(), all.data(), from.span().size_bytes());
  return all;
}

//! Of every upper half of a float, with lower halves that bite.
inline void compare_rounding(const train::math<float>& gpu, cudaStream_t stream) {
  std::vector<float> values;
  for (std::uint32_t half = 0; half < 0x10000; ++half)
    for (const std::uint32_t lower : {0x0u, 0x7fffu, 0x8000u, 0x8001u})
      values.push_back(std::bit_cast<float>(half << 16 | lower));
  const auto from = put(gpu, values);
  const train::math_array<train::bfloat16, float> to(gpu, values.size());
  gpu.round({from.span().data(), 1 << 9, 1 << 9}, {to.span().data(), 1 << 9, 1 << 9});
  finish(stream);
  const std::vector<train::bfloat16> found = get(gpu, to);
  long wrong = 0;
  for (std::size_t at = 0; at < values.size(); ++at)
    wrong += found[at] == train::rounded(values[at]) ? 0 : 1;
  CHECK(wrong == 0);
}

//! Sides of odd sizes out of wider matrices, either way round, with a copy and without.
inline void compare_products(const train::config& model, const train::math<float>& gpu,
                             cudaStream_t stream) {
  const auto host = train::make_host_math(model, train::precision::bf16);
  constexpr std::size_t rows = 13, inner = 21, columns = 17, stride = 24;
  const auto drawn = [](int key) {
    train::random_stream numbers(7, key);
    std::vector<float> values(stride * stride);
    for (float& value : values) value = static_cast<float>(numbers.normal());
    return values;
  };
  const std::vector<float> left = drawn(1), right = drawn(2), before = drawn(3);
  std::vector<train::bfloat16> copy;
  for (const float value : drawn(4)) copy.push_back(train::rounded(value));
  const auto product = [&](const train::math<float>& by, bool left_transposed,
                           bool right_transposed, bool add, bool copied) {
    const auto side = [](const auto& of, std::size_t tall, std::size_t wide, bool transposed) {
      if (transposed) std::swap(tall, wide);
      const train::matrix_span<const float> all(of.span().data(), tall, wide, stride);
      return train::factor<float>(all, transposed);
    };
    const auto one = put(by, left), other = put(by, right), out = put(by, before);
    const auto rounded = put(by, copy);
    auto second = side(other, inner, columns, right_transposed);
    if (copied) second.copy = rounded.span().data();
    by.product({out.span().data(), rows, columns, stride},
               side(one, rows, inner, left_transposed), second, add);
    if (!by.on_host()) finish(stream);
    return get(by, out);
  };
  for (int bits = 0; bits < 16; ++bits) {
    CAPTURE(bits);
    const bool how[] = {(bits & 1) != 0, (bits & 2) != 0, (bits & 4) != 0, (bits & 8) != 0};
    const auto found = product(gpu, how[0], how[1], how[2], how[3]);
    const auto expected = product(*host, how[0], how[1], how[2], how[3]);
    double apart = 0;
    for (std::size_t at = 0; at < found.size(); ++at) {
      const double here =
          std::abs(static_cast<double>(found[at]) - static_cast<double>(expected[at]));
      apart = std::isfinite(here) ? std::max(apart, here) : INFINITY;
    }
    CHECK(apart < 1e-5);  // of sums near 5: the order alone, where bf16 would round by 1e-2
  }
  // Rounded, into a wider matrix, of whose other columns nothing is written.
  const auto one = put(gpu, left), other = put(gpu, right);
  const train::matrix_span<const float> first(one.span().data(), rows, inner, stride),
      second(other.span().data(), inner, columns, stride);
  const auto halves = put(gpu, copy);
  gpu.rounded_product({halves.span().data(), rows, columns, stride}, first, second, false, {});
  finish(stream);
  const std::vector<train::bfloat16> found = get(gpu, halves);
  const auto wide = product(*host, false, false, false, false);
  for (std::size_t at = 0; at < found.size(); ++at) {
    const bool inside = at / stride < rows && at % stride < columns;
    const float made = train::widened(found[at]),
                exact = inside ? wide[at] : train::widened(copy[at]);
    CHECK(std::abs(made - exact) <= (inside ? std::abs(exact) / 256 + 1e-5f : 0.0f));
  }
}

}  // namespace train_cuda_test
