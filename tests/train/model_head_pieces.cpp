// A head in pieces against the same in one: losses, gradients and first values agree to rounding,
// the products add up, and a program touches what its stage holds.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include "model/host_math.hpp"
#include "model/layer.hpp"
#include "model/program.hpp"
#include "model/reference.hpp"
#include "model_support.hpp"
#include "stretto/model/op_graph.hpp"

using namespace train;

namespace {

config in_pieces(config model, int pieces) {
  model.head_pieces = pieces;
  return model;
}

config of_twelve(bool tied, int slices = 1) {
  config model = model_test::small(tied);
  model.vocabulary = 12;
  model.context = 6;
  model.slices = slices;
  return model;
}

//! The head's tensors, one behind the other: of pieces their tables joined.
template <class Scalar, class Of>
std::vector<Scalar> head_of(const config& model, const Of& of) {
  std::vector<Scalar> norm, table;
  for (int layer = model.layers + 1; layer < model.layer_count(); ++layer) {
    const auto parts = parameter_tensors(model, layer);
    for (std::size_t part = 0; part < parts.size(); ++part) {
      const auto values = parts[part].of(of(layer));
      auto& to = part + 1 == parts.size() ? table : norm;
      to.insert(to.end(), values.begin(), values.end());
    }
  }
  norm.insert(norm.end(), table.begin(), table.end());
  return norm;
}

template <class Scalar>
step_result two_steps(basic_reference<Scalar>& made, const config& model) {
  step_result last;
  config whole = model;
  whole.slices = 1;
  for (long step = 1; step <= 2; ++step)
    last = made.step(step, 3, 1e-2, 0.5, {}, [&](int microbatch, auto tokens, auto targets) {
      const auto key = static_cast<std::uint64_t>(10 * step + microbatch);
      std::ranges::copy(model_test::tokens(whole, key), tokens.begin());
      std::ranges::copy(model_test::tokens(whole, key + 1000), targets.begin());
    });
  return last;
}

template <class Scalar>
void agree_in_pieces(const config& model) {
  const double bound = sizeof(Scalar) == 8 ? 1e-12 : 2e-5;
  basic_reference<Scalar> whole(model, 5);
  const auto first = [](const basic_reference<Scalar>& of) {
    return [&of](int layer) { return of.stage().parameters(layer); };
  };
  const auto gradients = [](const basic_reference<Scalar>& of) {
    return [&of](int layer) { return of.stage().gradients(layer); };
  };
  const auto before = head_of<Scalar>(model, first(whole));
  const step_result expected = two_steps(whole, model);
  for (const int pieces : {2, 3, 4, 12}) {
    CAPTURE(model_test::name(model));
    CAPTURE(pieces);
    const config cut = in_pieces(model, pieces);
    basic_reference<Scalar> made(cut, 5);
    CHECK(head_of<Scalar>(cut, first(made)) == before);
    const step_result found = two_steps(made, cut);
    CHECK(found.loss == doctest::Approx(expected.loss).epsilon(bound));
    CHECK(found.gradient_norm == doctest::Approx(expected.gradient_norm).epsilon(bound));
    for (int layer = 0; layer <= model.layers; ++layer)
      CHECK(model_test::distance<Scalar>(made.stage().gradients(layer),
                                         whole.stage().gradients(layer)) < bound);
    CHECK(model_test::distance<Scalar>(head_of<Scalar>(cut, gradients(made)),
                                       head_of<Scalar>(model, gradients(whole))) < bound);
  }
}

}  // namespace

TEST_CASE("a head in pieces: losses, gradients and first values are those of one") {
  for (const bool tied : {false, true})
    for (const int slices : {1, 3}) {
      agree_in_pieces<double>(of_twelve(tied, slices));
      agree_in_pieces<float>(of_twelve(tied, slices));
    }
  agree_in_pieces<float>([] {
    config model = model_test::medium(true);
    model.vocabulary = 240;
    return model;
  }());
}

TEST_CASE("a head in pieces: large logits, in the first piece or the last, leave a finite loss") {
  for (const std::size_t largest : {std::size_t{0}, std::size_t{5}, std::size_t{11}}) {
    const config model = in_pieces(of_twelve(false), 4);
    basic_stage<float> one(model, 0, model.layer_count(), 1);
    const int layer = model.layers + 1 + static_cast<int>(largest / 3);
    const auto table = parameter_tensors(model, layer).back().of(one.parameters(layer));
    for (std::size_t at = 0; at < 6; ++at) table[largest % 3 * 6 + at] = at % 2 == 0 ? 300 : -300;
    aligned_array<float> stash(one.stash_scalars());
    model_test::poison(stash.span());
    const double loss = one.forward(model_test::tokens(model, 5), model_test::tokens(model, 6), {},
                                    {}, stash.span(), 1);
    CHECK(std::isfinite(loss));
    CHECK(loss > 10);
    one.backward({}, {}, stash.span());
    for (int each = 0; each < model.layer_count(); ++each)
      for (const float gradient : one.gradients(each)) CHECK(std::isfinite(gradient));
  }
}

TEST_CASE("a head in pieces takes the products of one, a part each") {
  for (const int pieces : {2, 3, 4}) {
    const config whole = of_twelve(true), cut = in_pieces(whole, pieces);
    product_counts sum;
    for (int layer = cut.layers + 1; layer < cut.layer_count(); ++layer) {
      sum += expected_products(cut, layer);
    }
    CHECK(sum == expected_products(whole, whole.layers + 1));
    basic_reference<float> made(cut, 5);
    two_steps(made, cut);
    basic_reference<float> one(whole, 5);
    two_steps(one, whole);
    CHECK(made.stage().products() == one.stage().products());
  }
}

TEST_CASE("the program of pieces of a head: its buffers are the stash and the messages") {
  for (const bool in_bf16 : {false, true})
    for (const int pieces : {1, 3})
      for (int first = 1; first <= 2 + pieces; ++first)
        for (int last = first + 1; last <= 3 + pieces; ++last) {
          CAPTURE(in_bf16);
          CAPTURE(pieces);
          CAPTURE(first);
          CAPTURE(last);
          // Sizes of which a tensor in memory has no more than it says.
          config model{.layers = 2,
                       .width = 64,
                       .heads = 4,
                       .context = 32,
                       .microbatch = 2,
                       .vocabulary = 192,
                       .head_pieces = pieces};
          if (in_bf16) model.activations = precision::bf16;
          REQUIRE(model.layer_count() == 3 + pieces);
          const auto math = make_host_math(model, model.activations);
          const stage one(model, first, last, 1, 0, *math);
          const auto chain = stage_chain(model, first, last, {.recompute = true, .split = true});
          std::int64_t kept = 0, persistent = 0;
          for (const stretto::program_buffer& each : chain.buffers)
            (each.persistent ? persistent : kept) += each.bytes;
          CHECK(kept == static_cast<std::int64_t>(one.stash_bytes() +
                                                  (one.has_head() ? 2 : 4) * one.message_bytes()));
          CHECK(persistent == static_cast<std::int64_t>(one.state_bytes() / 2));
          for (const stretto::program& job : chain.programs)
            CHECK(chain.ops_of(job).size() == one.ops(job.kind).size());
        }
}

TEST_CASE("ops of pieces wait for what they read, and their weights for their backward") {
  for (const bool in_bf16 : {false, true}) {
    CAPTURE(in_bf16);
    config model{.layers = 1, .width = 64, .heads = 4, .context = 32, .microbatch = 2,
                 .vocabulary = 192, .head_pieces = 3};
    if (in_bf16) model.activations = precision::bf16;
    for (const auto& [first, last] : {std::pair(2, 3), {3, 4}, {4, 5}, {2, 5}, {1, 4}}) {
      CAPTURE(first);
      CAPTURE(last);
      const auto chain = stage_chain(model, first, last, {.split = true});
      const auto ops = job_ops(model, first, last, stretto::job_kind::backward_input);
      const auto weights = job_ops(model, first, last, stretto::job_kind::backward_weight);
      const stretto::op_graph graph = graph_of(chain, std::span(chain.programs).subspan(1));
      const stretto::op_neighbours direct(graph, true);
      // What must have ended before each node.
      std::vector<std::vector<bool>> before(config::size(graph.size()));
      for (std::int32_t node = 0; node < graph.size(); ++node) {
        auto& mine = before[config::size(node)];
        mine.resize(config::size(graph.size()));
        for (const std::int32_t need : direct.of(node)) {
          mine[config::size(need)] = true;
          for (std::size_t at = 0; at < mine.size(); ++at)
            if (before[config::size(need)][at]) mine[at] = true;
        }
      }
      const auto node_of = [&](op_code code, int layer) {
        for (std::size_t at = 0; at < ops.size(); ++at)
          if (ops[at] == stage_op{code, layer}) return at;
        for (std::size_t at = 0; at < weights.size(); ++at)
          if (weights[at] == stage_op{code, layer}) return ops.size() + at;
        REQUIRE(false);
        return std::size_t{0};
      };
      for (int layer = std::max(first, 2); layer < last; ++layer) {
        CAPTURE(layer);
        const std::size_t back = node_of(op_code::head_back, layer);
        CHECK(before[node_of(op_code::head_weight, layer)][back]);
        if (layer + 1 < last) CHECK(before[back][node_of(op_code::head_back, layer + 1)]);
        if (last < model.layer_count() && layer + 1 == last)
          CHECK(before[back][node_of(op_code::receive_gradient, last - 1)]);
        // Of others' weights none waits.
        if (layer + 1 < last)
          CHECK_FALSE(before[node_of(op_code::head_weight, layer + 1)][back]);
      }
      // Forwards go along.
      const stretto::op_graph ahead = graph_of(chain, std::span(chain.programs).first(1));
      const auto forward = job_ops(model, first, last, stretto::job_kind::forward);
      const stretto::op_neighbours needs(ahead, true);
      for (std::size_t at = 1; at < forward.size(); ++at)
        if (forward[at].code == op_code::head)
          CHECK(std::ranges::find(needs.of(static_cast<std::int32_t>(at)),
                                  static_cast<std::int32_t>(at) - 1) !=
                needs.of(static_cast<std::int32_t>(at)).end());
    }
  }
}

TEST_CASE("pieces that do not divide the vocabulary are refused") {
  const auto refused = [](int vocabulary, int pieces, const char* why) {
    config model = model_test::small(true);
    model.vocabulary = vocabulary;
    model.head_pieces = pieces;
    CHECK_THROWS_WITH_AS(model.check(), why, std::invalid_argument);
  };
  refused(11, 2, "model config: vocabulary 11 is not a multiple of head_pieces 2");
  refused(12, 0, "model config: head_pieces is 0, it must be between 1 and 256");
  refused(12, 257, "model config: head_pieces is 257, it must be between 1 and 256");
}
