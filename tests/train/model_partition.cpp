// However the layers are dealt to stages, and in whatever order jobs run, the bits are those of the
// unpipelined reference.
#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "model/reference.hpp"
#include "model_support.hpp"

using namespace train;
using model_test::poison;
using model_test::same_bits;

namespace {

constexpr int microbatches = 3;
constexpr double norm_limit = 0.5;

enum class order { one_by_one, weights_last, fused };

// Stages chained by hand. Every message is destroyed as soon as the job that takes it is done.
struct chain {
  config model;
  std::vector<stage> stages;
  std::vector<std::vector<aligned_array<float>>> stashes;  // [stage][micro-batch]
  std::vector<std::vector<aligned_array<float>>> messages;

  chain(const config& of, const std::vector<int>& cuts, std::uint64_t seed) : model(of) {
    int first = 0;
    for (const int last : cuts) {
      stages.emplace_back(model, first, last, seed);
      first = last;
      stashes.emplace_back();
      messages.emplace_back();
      for (int i = 0; i < microbatches; ++i) {
        stashes.back().emplace_back(stages.back().stash_scalars());
        poison(stashes.back().back().span());
        messages.back().emplace_back(model.activation_scalars());
      }
    }
  }

  std::span<float> message(std::size_t after, std::size_t i) {
    return after < stages.size() ? messages[after][i].span() : std::span<float>();
  }

  double forward(std::size_t i, int number) {
    double loss = 0;
    const auto key = static_cast<unsigned>(number * microbatches) + i;
    for (std::size_t s = 0; s < stages.size(); ++s) {
      const auto received = message(s - 1, i);
      loss += stages[s].forward(model_test::tokens(model, 100 + key),
                                model_test::tokens(model, 200 + key), received, message(s, i),
                                stashes[s][i].span(), 1.0 / microbatches);
      poison(received);
    }
    poison(message(stages.size() - 1, i));  // the head sends nothing
    return loss;
  }

  void backward(std::size_t i, bool fused) {
    for (std::size_t s = stages.size(); s-- > 0;) {
      const auto received = message(s, i);
      if (fused) {
        stages[s].backward(received, message(s - 1, i), stashes[s][i].span());
      } else {
        stages[s].backward_input(received, message(s - 1, i), stashes[s][i].span());
      }
      poison(received);
    }
  }

  void backward_weight(std::size_t i) {
    for (std::size_t s = 0; s < stages.size(); ++s) stages[s].backward_weight(stashes[s][i].span());
  }

  step_result step(int number, order how) {
    step_result result;
    for (auto& each : stages) each.zero_gradients();
    for (std::size_t i = 0; i < microbatches; ++i) {
      result.loss += forward(i, number);
      if (how == order::weights_last) continue;
      backward(i, how == order::fused);
      if (how == order::one_by_one) backward_weight(i);
    }
    if (how == order::weights_last) {
      for (std::size_t i = microbatches; i-- > 0;) backward(i, false);
      for (std::size_t i = 0; i < microbatches; ++i) backward_weight(i);
    }
    if (model.tied) {
      // As two ranks would: each has the other's part in a copy of its own.
      const auto head_part = stages.back().tied_gradient(layer_kind::head);
      const auto embedding_part = stages.front().tied_gradient(layer_kind::embedding);
      const std::vector<float> from_head(head_part.begin(), head_part.end());
      const std::vector<float> from_embedding(embedding_part.begin(), embedding_part.end());
      stages.front().join_tied(embedding_part, from_head);
      if (stages.size() > 1) stages.back().join_tied(from_embedding, head_part);
    }
    std::vector<double> norms(config::size(model.layer_count()), -1.0);
    for (auto& each : stages) each.squared_norms(norms);
    result.gradient_norm = global_norm(norms);
    result.clip_factor = clip_factor(result.gradient_norm, norm_limit);
    const adamw_factors<float> by({}, number, 0.01);
    for (auto& each : stages) each.clip_and_update(&by, &result.clip_factor);
    return result;
  }

  stage& owner(int layer) {
    for (auto& each : stages) {
      if (layer < each.last()) return each;
    }
    return stages.back();
  }
};

std::vector<std::vector<int>> partitions(int layers) {
  std::vector<std::vector<int>> result{{layers}};
  for (int first = 1; first < layers; ++first) {
    result.push_back({first, layers});
    for (int second = first + 1; second < layers; ++second) {
      result.push_back({first, second, layers});
    }
  }
  return result;
}

// What the reference reports and holds after a step.
struct snapshot {
  step_result result;
  std::vector<std::vector<float>> gradients, parameters;  // [layer]
};

std::vector<snapshot> reference_steps(const config& model, int steps) {
  std::vector<snapshot> snapshots;
  reference whole(model, 7);
  for (int number = 1; number <= steps; ++number) {
    snapshot now;
    now.result =
        whole.step(number, microbatches, 0.01, norm_limit, {}, [&](int i, auto to, auto next) {
          const auto key = static_cast<unsigned>(number * microbatches + i);
          std::ranges::copy(model_test::tokens(model, 100 + key), to.begin());
          std::ranges::copy(model_test::tokens(model, 200 + key), next.begin());
        });
    CHECK(now.result.clip_factor < 1);  // otherwise clipping is not tested
    for (int layer = 0; layer < model.layer_count(); ++layer) {
      const auto gradients = whole.stage().gradients(layer);
      const auto parameters = whole.stage().parameters(layer);
      now.gradients.emplace_back(gradients.begin(), gradients.end());
      now.parameters.emplace_back(parameters.begin(), parameters.end());
    }
    snapshots.push_back(std::move(now));
  }
  return snapshots;
}

void check_all_partitions(const config& model) {
  CAPTURE(model_test::name(model));
  const auto expected = reference_steps(model, 2);
  for (const auto& cuts : partitions(model.layer_count())) {
    for (const order how : {order::one_by_one, order::weights_last, order::fused}) {
      CAPTURE(static_cast<int>(how));
      CAPTURE(cuts.size());
      CAPTURE(cuts.front());
      chain pipeline(model, cuts, 7);
      int number = 0;
      for (const snapshot& after : expected) {
        CHECK(pipeline.step(++number, how) == after.result);
        for (int layer = 0; layer < model.layer_count(); ++layer) {
          CAPTURE(layer);
          stage& owner = pipeline.owner(layer);
          const auto at = config::size(layer);
          CHECK(same_bits<float>(owner.gradients(layer), after.gradients[at]));
          CHECK(same_bits<float>(owner.parameters(layer), after.parameters[at]));
        }
      }
    }
  }
}

}  // namespace

TEST_CASE("one, two or three stages: the same losses, gradients and parameters to the bit") {
  for (const bool tied : {false, true}) {
    check_all_partitions(model_test::small(tied));
    check_all_partitions(model_test::medium(tied));
  }
}

TEST_CASE("both copies of a tied table stay equal to the bit") {
  const config model = model_test::medium(true);
  chain pipeline(model, {2, model.layer_count()}, 7);
  for (int number = 1; number <= 3; ++number) pipeline.step(number, order::weights_last);
  CHECK(same_bits<float>(
      embedding<float>(model).table().of(pipeline.stages[0].parameters(0)),
      head<float>(model).table().of(pipeline.stages[1].parameters(model.layers + 1))));
}

TEST_CASE("the address of a buffer does not show in the bits") {
  const config model = model_test::medium(true);
  stage one(model, 0, model.layer_count(), 7);
  const auto run = [&](std::size_t shift) {
    aligned_array<float> room(one.stash_scalars() + shift);
    one.zero_gradients();
    one.forward(model_test::tokens(model, 1), model_test::tokens(model, 2), {}, {},
                room.span().subspan(shift), 1);
    one.backward({}, {}, room.span().subspan(shift));
    return std::vector<float>(one.gradients(1).begin(), one.gradients(1).end());
  };
  CHECK(same_bits<float>(run(0), run(16)));
  CHECK(same_bits<float>(run(0), run(48)));
}

TEST_CASE("jobs of different categories may run at the same time on one stage") {
  const config model = model_test::medium(false);
  const auto tokens = model_test::tokens(model, 1), targets = model_test::tokens(model, 2);
  const auto run = [&](bool together) {
    stage one(model, 0, model.layer_count(), 7);
    std::vector<aligned_array<float>> stashes;
    for (int i = 0; i < 3; ++i) stashes.emplace_back(one.stash_scalars());
    const auto forward = [&](std::size_t i) {
      one.forward(tokens, targets, {}, {}, stashes[i].span(), 1);
    };
    const auto input = [&](std::size_t i) { one.backward_input({}, {}, stashes[i].span()); };
    const auto weight = [&](std::size_t i) { one.backward_weight(stashes[i].span()); };
    forward(0);
    forward(1);
    input(0);
    if (together) {
      std::thread first(forward, 2), second(input, 1), third(weight, 0);
      first.join();
      second.join();
      third.join();
    } else {
      forward(2);
      input(1);
      weight(0);
    }
    input(2);
    weight(1);
    weight(2);
    return std::vector<float>(one.gradients(1).begin(), one.gradients(1).end());
  };
  CHECK(same_bits<float>(run(true), run(false)));
}

TEST_CASE("first values depend on the seed and the layer, not on the partition") {
  const config model = model_test::small(true);
  stage whole(model, 0, model.layer_count(), 3), other_seed(model, 0, model.layer_count(), 4);
  for (int layer = 0; layer < model.layer_count(); ++layer) {
    CAPTURE(layer);
    stage alone(model, layer, layer + 1, 3);
    CHECK(same_bits<float>(alone.parameters(layer), whole.parameters(layer)));
    CHECK_FALSE(same_bits<float>(other_seed.parameters(layer), whole.parameters(layer)));
  }
  CHECK_FALSE(same_bits<float>(whole.parameters(1), whole.parameters(2)));
}

TEST_CASE("products: the weights' backward does only its own, and none twice") {
  for (const config& model : {model_test::small(true), model_test::medium(false)}) {
    CAPTURE(model_test::name(model));
    const std::uint64_t rows = model.rows(), width = config::size(model.width);
    const std::uint64_t expansion = config::size(model.expansion);
    const std::uint64_t context = config::size(model.context);
    // One product with every weight: queries, keys and values; after attention; up and down.
    const std::uint64_t weights = config::size(model.layers) * rows * width *
                                      (3 * width + width + expansion * width + expansion * width) +
                                  rows * width * config::size(model.vocabulary);
    // All heads' scores and mixes.
    const std::uint64_t attention = config::size(model.layers) * (rows * context * width) * 2;

    stage one(model, 0, model.layer_count(), 7);
    aligned_array<float> stash(one.stash_scalars());
    one.forward(model_test::tokens(model, 1), model_test::tokens(model, 2), {}, {}, stash.span(),
                1);
    CHECK(one.products() == product_counts{weights + attention, 0, 0});
    one.backward_input({}, {}, stash.span());
    CHECK(one.products() == product_counts{weights + attention, weights + 2 * attention, 0});
    one.backward_weight(stash.span());
    const product_counts split = one.products();
    CHECK(split == product_counts{weights + attention, weights + 2 * attention, weights});

    stage fused(model, 0, model.layer_count(), 7);
    fused.forward(model_test::tokens(model, 1), model_test::tokens(model, 2), {}, {}, stash.span(),
                  1);
    fused.backward({}, {}, stash.span());
    CHECK(fused.products() == split);

    product_counts sum;
    for (int layer = 0; layer < model.layer_count(); ++layer) {
      sum += expected_products(model, layer);
    }
    CHECK(sum == split);
  }
}
