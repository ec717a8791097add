// The model's operations on a GPU against those on the host: whole stages, since every operation
// has its part in one.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <vector>

#include "cuda/cuda_math.hpp"
#include "cuda/launch.hpp"
#include "model/random.hpp"
#include "model/scratch.hpp"
#include "model/stage.hpp"
#include "stretto/executor/cuda/handles.hpp"
#include "train_cuda/products.hpp"
#include "train_cuda/simulated_kernels.hpp"

namespace {

using train::config;
using train::precision;
using train::stage;
using train_cuda_test::finish;

//! Memory of a math's, written and read by the host.
class tensors {
 public:
  tensors(const train::math<float>& by, std::size_t size)
      : by_(by), size_(size), memory_(by.allocate(size * sizeof(float))) {}
  std::span<float> span() const { return {static_cast<float*>(memory_.get()), size_}; }
  void draw(int key) {
    train::random_stream numbers(7, key);
    std::vector<float> values(size_);
    for (float& value : values) value = static_cast<float>(numbers.normal());
    by_.put(values.data(), memory_.get(), size_ * sizeof(float));
  }

 private:
  const train::math<float>& by_;
  std::size_t size_;
  std::shared_ptr<void> memory_;
};

std::vector<float> on_host(const train::math<float>& by, std::span<const float> of) {
  std::vector<float> values(of.size());
  by.get(of.data(), values.data(), of.size_bytes());
  return values;
}

double largest_difference(std::span<const float> one, std::span<const float> other) {
  double found = one.size() == other.size() ? 0 : INFINITY;
  for (std::size_t at = 0; at < one.size() && std::isfinite(found); ++at) {
    const double apart = std::abs(static_cast<double>(one[at]) - static_cast<double>(other[at]));
    found = std::isfinite(apart) ? std::max(found, apart) : INFINITY;
  }
  return found;
}

double largest(std::span<const float> of) {
  double found = 0;
  for (const float value : of) found = std::max(found, std::abs(static_cast<double>(value)));
  return found;
}

//! A model in one stage, or all shards' stages with the sums between them left to others.
struct trained {
  const train::math<float>& by;
  config model;
  stage one;
  std::vector<tensors> stashes;
  std::vector<std::span<float>> spans;
  std::shared_ptr<void> bytes, results, factors;

  trained(const config& of, const train::math<float>& with)
      : by(with), model(of), one(of, 0, of.layer_count(), 3, 0, with) {
    for (int slice = 0; slice < of.slices; ++slice) {
      stashes.emplace_back(with, one.stash_scalars());
      spans.push_back(stashes.back().span());
    }
    bytes = with.allocate(2 * of.rows() * config::size(of.slices));
    results = with.allocate(sizeof(train::step_result) + 8 * 8 * sizeof(double));
    factors = with.allocate(sizeof(train::adamw_factors<float>));
  }

  std::span<const std::uint8_t> drawn(int key, std::size_t slice) {
    train::random_stream numbers(11, key, static_cast<int>(slice));
    std::vector<std::uint8_t> values(model.rows(slice));
    for (auto& value : values)
      value = static_cast<std::uint8_t>(numbers.next() % config::size(model.vocabulary));
    auto* const to = static_cast<std::uint8_t*>(bytes.get()) +
                     (2 * slice + config::size(key)) * model.rows();
    by.put(values.data(), to, values.size());
    return {to, values.size()};
  }

  //! Forward, backward, norms and an update.
  void step(long number) {
    one.round_weights();
    one.zero_gradients();
    auto* const result = static_cast<train::step_result*>(results.get());
    auto* const losses = reinterpret_cast<double*>(result + 1);
    const std::span<double> norms(losses + model.slices, config::size(model.layer_count()));
    const auto run = [&](stretto::job_kind kind, std::size_t slice) {
      const train::job_arguments<float> with{.tokens = drawn(0, slice),
                                             .targets = drawn(1, slice),
                                             .stash = spans[slice],
                                             .loss_scale = 0.5,
                                             .loss = losses + slice,
                                             .earlier = std::span(spans).first(slice),
                                             .slice = slice};
      for (std::size_t op = 0; op < one.ops(kind).size(); ++op) one.run_op(kind, op, with);
    };
    for (std::size_t slice = 0; slice < spans.size(); ++slice)
      run(stretto::job_kind::forward, slice);
    for (std::size_t slice = spans.size(); slice-- > 0;) {
      run(stretto::job_kind::backward_input, slice);
      run(stretto::job_kind::backward_weight, slice);
    }
    one.squared_norms(norms);
    by.finish(norms, {losses, spans.size()}, 0.1, result);
    const train::adamw_factors<float> rates({}, number, 1e-2);
    by.put(&rates, factors.get(), sizeof(rates));
    one.clip_and_update(static_cast<const train::adamw_factors<float>*>(factors.get()),
                        &result->clip_factor);
  }
  train::step_result result() const {
    train::step_result found;
    by.get(results.get(), &found, sizeof(found));
    return found;
  }
};

void take(const std::vector<float>& from, std::span<float> to) {
  std::ranges::copy(from, to.begin());
}

struct on_simulated_gpu {
  on_simulated_gpu() {
    stretto::test::gpu::reset();
    train_cuda_test::define_kernels();
  }
};

}  // namespace

namespace {

//! @param bound    of losses, norms and gradients
//! @param element  of any mean of gradients, beside the layer's largest
//! @param updated  of parameters, which AdamW may move by the learning rate, 0.01, either way where
//!                 a gradient is nothing but rounding
void compare(const config& model, precision read, double bound, double element,
             double updated) {
  const on_simulated_gpu started;
  CAPTURE(model.width);
  CAPTURE(bound);
  {
    const auto stream = stretto::executor::cuda::make_stream(0);
    train::cuda::cuda_math gpu(model, read);
    gpu.on_stream(stream.get(), 0);
    const auto host = train::make_host_math(model, read);
    std::size_t room = read == precision::bf16 ? 2 * 2 * train::largest_rounded(model, true) : 0;
    for (int which = 0; which < gpu.rooms; ++which)
      room += 4 * train::room_scalars(model, which, true);
    CHECK(gpu.rounding_bytes() == room);
    trained there(model, gpu), here(model, *host);
    for (long number = 1; number <= 3; ++number) {
      there.step(number);
      here.step(number);
      finish(stream.get());
      const train::step_result found = there.result(), expected = here.result();
      CHECK(found.loss == doctest::Approx(expected.loss).epsilon(bound));
      CHECK(found.gradient_norm == doctest::Approx(expected.gradient_norm).epsilon(bound));
      CHECK(found.clip_factor == doctest::Approx(expected.clip_factor).epsilon(bound));
      for (int layer = 0; layer < model.layer_count(); ++layer) {
        CAPTURE(layer);
        CHECK(largest_difference(on_host(gpu, std::as_const(there.one).gradients(layer)),
                                 here.one.gradients(layer)) < bound);
        CHECK(largest_difference(on_host(gpu, std::as_const(there.one).parameters(layer)),
                                 here.one.parameters(layer)) < updated);
        const auto mean = on_host(gpu, std::as_const(there.one).mean(layer));
        CHECK(largest_difference(mean, here.one.mean(layer)) < element * largest(mean));
        take(on_host(gpu, there.one.parameters(layer)), here.one.parameters(layer));
        take(on_host(gpu, there.one.mean(layer)), here.one.mean(layer));
        take(on_host(gpu, there.one.square(layer)), here.one.square(layer));
      }
    }
  }
  CHECK(stretto::test::gpu::complaints().empty());
  CHECK(stretto::test::gpu::alive() == stretto::test::gpu::handles{});
}

}  // namespace

TEST_CASE("a stage on a GPU computes what it does on the host") {
  for (const config& model :
       {config{.layers = 2, .width = 32, .heads = 4, .context = 12, .microbatch = 2},
        config{.layers = 1, .width = 24, .heads = 2, .context = 8, .microbatch = 3,
               .vocabulary = 50, .expansion = 3, .tied = false},
        config{.layers = 2, .width = 16, .heads = 2, .context = 12, .microbatch = 2, .slices = 3},
        config{.layers = 2, .width = 16, .heads = 2, .context = 12, .microbatch = 2, .slices = 3,
               .slice_ends = {3, 10, 12}, .head_pieces = 2},
        config{.layers = 1, .width = 24, .heads = 2, .context = 8, .microbatch = 3,
               .vocabulary = 51, .tied = false, .head_pieces = 3},
        config{.layers = 2, .width = 16, .heads = 2, .context = 12, .microbatch = 2, .slices = 3,
               .head_pieces = 4}}) {
    // Rounding, of sums of a few hundred numbers near 1.
    compare(model, precision::fp32, 2e-5, 2e-5, 1e-3);
    // A number that differs in its last bit may round to another in bf16, which is 2^-8 of it away:
    // few do, and which ones depends on how the processor sums.
    config held = model;
    held.activations = precision::bf16;
    compare(held, precision::bf16, 1e-3, 0x1p-7, 2.1e-2);
  }
}

TEST_CASE(
    "a GPU launches as much for many heads as for two, and in bf16 little more than in fp32") {
  std::size_t in_fp32 = 0;
  for (const precision read : {precision::fp32, precision::bf16}) {
    const auto launches = [&](int heads) {
      const on_simulated_gpu started;
      const config model{.layers = 1, .width = 32, .heads = heads, .context = 8, .microbatch = 1,
                         .slices = 2, .activations = read};
      const auto stream = stretto::executor::cuda::make_stream(0);
      train::cuda::cuda_math gpu(model, read);
      gpu.on_stream(stream.get(), 0);
      trained there(model, gpu);
      const std::size_t before = stretto::test::gpu::calls().size();
      there.step(1);
      finish(stream.get());
      std::size_t found = 0;
      for (const auto& each : std::span(stretto::test::gpu::calls()).subspan(before))
        found += each.name == std::string_view("kernel") ||
                         each.name == std::string_view("cudaLaunchKernelExC")
                     ? 1
                     : 0;
      CHECK(found > 40);
      return found;
    };
    CHECK(launches(2) == launches(8));
    // Of bf16 rounded are the weights, and what two slices' products sum: what the second's rows
    // mix, and the gradient of its queries. All else reads and leaves it.
    if (read == precision::fp32)
      in_fp32 = launches(2);
    else
      CHECK(launches(2) == in_fp32 + 3);
  }
}

TEST_CASE("rounding and products of bf16: on the GPU as on the host") {
  const on_simulated_gpu started;
  const config model{.layers = 1, .width = 24, .heads = 2, .context = 8, .microbatch = 3};
  const auto stream = stretto::executor::cuda::make_stream(0);
  train::cuda::cuda_math gpu(model, precision::bf16);
  gpu.on_stream(stream.get(), 0);
  train_cuda_test::compare_rounding(gpu, stream.get());
  train_cuda_test::compare_products(model, gpu, stream.get());
}

TEST_CASE("sums over many rows and values, of which a GPU makes parts, are the host's") {
  const on_simulated_gpu started;
  const config model{.layers = 1, .width = 16, .heads = 2, .context = 8, .microbatch = 1};
  const auto stream = stretto::executor::cuda::make_stream(0);
  train::cuda::cuda_math gpu(model);
  gpu.on_stream(stream.get(), 0);
  for (const std::size_t rows : {1UL, 7UL, 8UL, 63UL, 1000UL, 1025UL}) {
    CAPTURE(rows);
    constexpr std::size_t columns = 24;
    const auto made = [&](const train::math<float>& by) {
      tensors values(by, rows * columns), others(by, rows * columns), sums(by, 3 * columns);
      values.draw(1);
      others.draw(2);
      sums.draw(3);
      const train::math_array<double, float> squares(by, 1);
      const double before = 3;
      by.put(&before, squares.span().data(), sizeof(before));
      using constant = train::matrix_span<const float>;
      const constant first{values.span().data(), rows, columns, columns};
      const constant second{others.span().data(), rows, columns, columns};
      float* const to = sums.span().data();
      by.add_rows(to, first);
      by.norm_weights(first, second, to + columns, to + 2 * columns);
      by.add_squares(values.span(), squares.span().data());
      finish(stream.get());
      std::vector<float> all = on_host(by, sums.span());
      double square = 0;
      by.get(squares.span().data(), &square, sizeof(square));
      all.push_back(static_cast<float>(square));
      return all;
    };
    const std::vector<float> found = made(gpu), expected = made(train::host_math<float>());
    CHECK(made(gpu) == found);
    for (std::size_t at = 0; at < found.size(); ++at)
      CHECK(found[at] == doctest::Approx(expected[at]).epsilon(1e-4));
  }
  // By more than a block each: 64 parts of the most rows, and of the squares of the most 3.
  const auto by_blocks = [](const char* number) {
    return std::ranges::count_if(stretto::test::gpu::calls(), [&](const auto& each) {
      return each.arguments.find(number) != std::string::npos;
    });
  };
  CHECK(by_blocks(" 6 blocks") == 2 * 2 * 2);
  CHECK(by_blocks(" 3 blocks") == 2);
}

TEST_CASE("a norm that is not finite updates nothing, on the GPU as on the host") {
  const on_simulated_gpu started;
  const config model{.layers = 1, .width = 16, .heads = 2, .context = 8, .microbatch = 1};
  const auto stream = stretto::executor::cuda::make_stream(0);
  train::cuda::cuda_math gpu(model);
  gpu.on_stream(stream.get(), 0);
  for (const train::math<float>* by : {static_cast<const train::math<float>*>(&gpu),
                                       &train::host_math<float>()})
    for (const double norm : {double{INFINITY}, double{NAN}, 4.0}) {
      CAPTURE(norm);
      const train::math_array<double, float> norms(*by, 1);
      const train::math_array<train::step_result, float> result(*by, 1);
      const train::math_array<train::adamw_factors<float>, float> rates(*by, 1);
      const train::adamw_factors<float> of_first({}, 1, 0.1);
      by->put(&of_first, rates.span().data(), sizeof(of_first));
      by->put(&norm, norms.span().data(), sizeof(norm));
      tensors values(*by, 64), gradients(*by, 64), mean(*by, 64), square(*by, 64);
      values.draw(1);
      gradients.draw(2);
      const std::vector<float> before = on_host(*by, values.span());
      by->finish(norms.span(), {}, 1, result.span().data());
      by->update(rates.span().data(), &result.span()[0].clip_factor, true, values.span(),
                 gradients.span(), mean.span(), square.span());
      finish(stream.get());
      CHECK((on_host(*by, values.span()) == before) == !std::isfinite(norm));
    }
}
