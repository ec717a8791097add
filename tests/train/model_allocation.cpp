// No job and no optimizer step takes memory from the heap, at sizes that reach Eigen's blocked
// products and its panels.
#include <doctest/doctest.h>

#include <cstdlib>

#include "counted_malloc.hpp"
#include "model/corpus.hpp"
#include "model/reference.hpp"
#include "model_support.hpp"

using namespace train;

namespace {

template <class Work>
long allocations_of(Work&& work) {
  const long before = allocations.load();
  work();
  return allocations.load() - before;
}

void check_stage(const config& model, int first, int last) {
  CAPTURE(model_test::name(model));
  CAPTURE(first);
  stage one(model, first, last, 1);
  aligned_array<float> stash(one.stash_scalars());
  aligned_array<float> input(model.activation_scalars()), output(model.activation_scalars());
  model_test::fill_normal(input.span(), 1.0, 1);
  const auto tokens = model_test::tokens(model, 1), targets = model_test::tokens(model, 2);
  std::vector<double> norms(config::size(model.layer_count()));

  CHECK(allocations_of([&] {
          one.forward(tokens, targets, input.span(), output.span(), stash.span(), 1);
        }) == 0);
  CHECK(allocations_of([&] { one.backward_input(output.span(), input.span(), stash.span()); }) ==
        0);
  CHECK(allocations_of([&] { one.backward_weight(stash.span()); }) == 0);
  CHECK(allocations_of([&] { one.backward(output.span(), input.span(), stash.span()); }) == 0);
  CHECK(allocations_of([&] {
          one.squared_norms(norms);
          const double factor = clip_factor(global_norm(norms), 1);
          const adamw_factors<float> by({}, 1, 1e-3);
          one.clip_and_update(&by, &factor);
          one.zero_gradients();
        }) == 0);
}

//! Every op of every job of one shard; without its sums, whose results do not matter here.
void check_ops(const config& model, int first, int last) {
  CAPTURE(model_test::name(model));
  stage one(model, first, last, 1, model.shards - 1);
  aligned_array<float> stash(one.stash_scalars()), sums(model.activation_scalars());
  aligned_array<float> input(model.activation_scalars()), output(model.activation_scalars());
  model_test::fill_normal(input.span(), 1.0, 1);
  const auto tokens = model_test::tokens(model, 1), targets = model_test::tokens(model, 2);
  using stretto::job_kind;
  for (const job_kind kind : {job_kind::forward, job_kind::recompute, job_kind::backward_input,
                              job_kind::backward_weight, job_kind::backward}) {
    CHECK(allocations_of([&] {
            for (std::size_t op = 0; op < one.ops(kind).size(); ++op)
              if (!is_sum(one.ops(kind)[op].code))
                one.run_op(kind, op,
                           {.tokens = tokens,
                            .targets = targets,
                            .input = input.span(),
                            .output = output.span(),
                            .output_gradient = output.span(),
                            .input_gradient = input.span(),
                            .stash = stash.span(),
                            .sums = sums.span()});
          }) == 0);
  }
}

}  // namespace

TEST_CASE("the counter sees every way to the heap") {
  CHECK(allocations_of([] {
          void* volatile memory = std::malloc(100);
          std::free(memory);
        }) == 1);
  CHECK(allocations_of([] {
          void* volatile memory = ::operator new(100);
          ::operator delete(memory);
        }) == 1);
  CHECK(allocations_of([] {
          void* volatile memory = ::operator new (100, std::align_val_t{64});
          ::operator delete (memory, std::align_val_t{64});
        }) == 1);
  CHECK(allocations_of([] { stage(model_test::small(true), 0, 4, 1); }) > 10);
}

TEST_CASE("stage jobs and optimizer steps do not allocate") {
  for (const bool tied : {false, true}) {
    check_stage(model_test::small(tied), 0, 4);
    check_stage(model_test::medium(tied), 0, 4);
  }
  check_stage({.layers = 2, .microbatch = 4}, 0, 4);  // the default sizes
  check_stage({.layers = 2, .microbatch = 4}, 3, 4);
  // Products wider than a panel; both wide and deeper than a cache block, where Eigen would pack
  // without bounds; attention over a long context.
  check_stage({.layers = 1, .width = 640, .heads = 4, .context = 160, .microbatch = 1}, 1, 2);
  check_stage({.layers = 1, .context = 32, .microbatch = 50, .expansion = 64}, 1, 2);
  check_stage({.layers = 1, .width = 32, .heads = 1, .context = 1100, .microbatch = 1}, 1, 2);
}

TEST_CASE("a shard's ops do not allocate") {
  for (const int shards : {1, 2, 4}) {
    check_ops({.layers = 2, .microbatch = 4, .shards = shards}, 0, 4);
    check_ops({.layers = 2, .microbatch = 4, .shards = shards}, 1, 2);
    check_ops({.layers = 1, .width = 640, .context = 160, .microbatch = 1, .shards = shards}, 1, 2);
  }
}

TEST_CASE("a whole step with its data does not allocate") {
  const config model = model_test::medium(true);
  std::vector<std::uint8_t> bytes(3000, 'x');
  const corpus text(bytes, model.context);
  reference whole(model, 1);
  CHECK(allocations_of([&] {
          whole.step(1, 2, 1e-3, 1, {},
                     [&](int i, auto to, auto next) { text.batch(1, 1, i, to, next); });
          whole.evaluate(2, [&](int i, auto to, auto next) { text.held_back_batch(i, to, next); });
        }) == 0);
}
