#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "plan_builder.hpp"
#include "stretto/executor/stage.hpp"

namespace stretto::test {

//! All communication on the compute stream, or each kind on a stream of its own.
enum class layout : std::uint8_t { serial, separate };

//! Plans of p ranks with one stage each: all forwards, then all backwards (fill and drain).
inline std::vector<plan_builder> pipeline_plans(int ranks, int microbatches, std::int64_t elements,
                                                layout how) {
  const std::int64_t bytes = elements * static_cast<std::int64_t>(sizeof(float));
  std::vector<plan_builder> plans;
  for (int r = 0; r < ranks; ++r) {
    plan_builder plan(r, ranks,
                      how == layout::serial ? std::initializer_list<std::string_view>{"compute"}
                                            : std::initializer_list<std::string_view>{
                                                  "compute", "send_next", "receive_previous",
                                                  "send_previous", "receive_next"});
    plan.head.microbatches = microbatches;
    const bool separate = how == layout::separate;
    const auto stream = [&](int index) { return separate ? index : 0; };
    const auto on = [&](buffer_role role, int i) { return plan.add_buffer(role, r, i, bytes); };
    std::vector<int> stash;
    for (int i = 0; i < microbatches; ++i) {
      const int input = on(buffer_role::input, i);
      const int output = on(buffer_role::output, i);
      stash.push_back(on(buffer_role::stash, i));
      int ready = -1;
      if (r > 0)
        ready = plan.receive({r, i, 0, job_kind::receive_forward}, stream(2), r - 1, input);
      const int done = plan.run({r, i, 0, job_kind::forward}, 0,
                                {{input, buffer_role::input, access::read},
                                 {output, buffer_role::output, access::write},
                                 {stash.back(), buffer_role::stash, access::write}},
                                {ready});
      if (r + 1 < ranks)
        plan.send({r, i, 0, job_kind::send_forward}, stream(1), r + 1, output, {done});
    }
    for (int i = 0; i < microbatches; ++i) {
      const int incoming = on(buffer_role::output_gradient, i);
      const int outgoing = on(buffer_role::input_gradient, i);
      int ready = -1;
      if (r + 1 < ranks)
        ready = plan.receive({r, i, 0, job_kind::receive_backward}, stream(4), r + 1, incoming);
      const int done =
          plan.run({r, i, 0, job_kind::backward}, 0,
                   {{incoming, buffer_role::output_gradient, access::read},
                    {outgoing, buffer_role::input_gradient, access::write},
                    {stash[static_cast<std::size_t>(i)], buffer_role::stash, access::read}},
                   {ready});
      if (r > 0) plan.send({r, i, 0, job_kind::send_backward}, stream(3), r - 1, outgoing, {done});
    }
    plan.end();
    plans.push_back(std::move(plan));
  }
  return plans;
}

//! One stage's arithmetic, chosen so that a lost, doubled, swapped or stale value changes the
//! result.
struct sample_math {
  static float input(std::int64_t step, int microbatch, std::size_t element) {
    return 0.25F + static_cast<float>(step % 7) * 0.125F + static_cast<float>(microbatch) * 0.5F +
           static_cast<float>(element % 13) * 0.0625F;
  }
  static float forward(float value, int stage) {
    return value * (0.75F + 0.03F * static_cast<float>(stage)) + 0.1F;
  }
  static float backward(float gradient, float stash, int stage) {
    return gradient * (0.75F + 0.03F * static_cast<float>(stage)) + stash * 0.01F;
  }
  static float loss_gradient(float output) { return output * 0.5F - 1.0F; }
};

//! The first stage makes its input, the last one its gradient; each sums what comes by.
class sample_stage final : public executor::stage {
 public:
  explicit sample_stage(int ranks) : ranks_(ranks) {}

  void run(const executor::context& at) override {
    const int s = at.what.stage;
    if (at.what.kind == job_kind::forward) {
      const std::span<float> in = at.view<float>(buffer_role::input);
      const std::span<float> out = at.view<float>(buffer_role::output);
      const std::span<float> stash = at.view<float>(buffer_role::stash);
      for (std::size_t k = 0; k < in.size(); ++k) {
        if (s == 0) in[k] = sample_math::input(at.step, at.what.microbatch, k);
        stash[k] = in[k];
        out[k] = sample_math::forward(in[k], s);
      }
      return;
    }
    const std::span<float> in = at.view<float>(buffer_role::output_gradient);
    const std::span<float> out = at.view<float>(buffer_role::input_gradient);
    const std::span<float> stash = at.view<float>(buffer_role::stash);
    for (std::size_t k = 0; k < in.size(); ++k) {
      const float gradient =
          s + 1 == ranks_ ? sample_math::loss_gradient(sample_math::forward(stash[k], s)) : in[k];
      sum += gradient * stash[k];
      out[k] = sample_math::backward(gradient, stash[k], s);
    }
  }

  float sum = 0;

 private:
  int ranks_;
};

//! What the stages must have summed after the steps [0, steps), computed without any pipeline.
inline std::vector<float> expected_sums(int ranks, int microbatches, std::int64_t elements,
                                        std::int64_t steps) {
  const auto count = static_cast<std::size_t>(ranks);
  std::vector<float> sums(count);
  std::vector<float> stash(count);
  // Each stage sums over steps, micro-batches and elements in this order, whatever the pipeline.
  for (std::int64_t step = 0; step < steps; ++step)
    for (int i = 0; i < microbatches; ++i)
      for (std::size_t k = 0; k < static_cast<std::size_t>(elements); ++k) {
        float value = sample_math::input(step, i, k);
        for (std::size_t s = 0; s < count; ++s) {
          stash[s] = value;
          value = sample_math::forward(value, static_cast<int>(s));
        }
        float gradient = sample_math::loss_gradient(value);
        for (std::size_t s = count; s-- > 0;) {
          sums[s] += gradient * stash[s];
          gradient = sample_math::backward(gradient, stash[s], static_cast<int>(s));
        }
      }
  return sums;
}

//! The stages of all ranks and what the engine wants to see of them.
struct sample_stages {
  explicit sample_stages(int ranks) {
    for (int r = 0; r < ranks; ++r) {
      owned.push_back(std::make_unique<sample_stage>(ranks));
      pointers.push_back(owned.back().get());
    }
  }
  std::vector<float> sums() const {
    std::vector<float> result;
    for (const auto& each : owned) result.push_back(each->sum);
    return result;
  }
  std::vector<std::unique_ptr<sample_stage>> owned;
  std::vector<executor::stage*> pointers;
};

}  // namespace stretto::test
