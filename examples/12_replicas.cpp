// Two data-parallel replicas of a pipeline of two ranks with two chunks each, from what buffers
// hold to the sums of gradients: by compiled plans, whose backwards are split, and by plans that
// are made at launch, of a schedule that is given by its name.
// g++ -std=c++20 -I{,executor/}include examples/12_replicas.cpp executor/src/*.cpp -pthread
#include <algorithm>
#include <iostream>
#include <vector>

#include "stretto/executor/callbacks.hpp"
#include "stretto/executor/engine.hpp"
#include "stretto/schedule/by_name.hpp"
#include "stretto/stretto.hpp"

using stretto::buffer_role, stretto::executor::context;

constexpr int width = 48, replicas = 2, depth = 4;
constexpr stretto::shape form{.ranks = 2, .microbatches = 4, .chunks = 2};

//! What the stages' buffers hold. The plan makes them so large, and no larger.
struct rows : stretto::memory::release_early {
  constexpr stretto::stage_bytes bytes(int /*stage*/) const {
    const std::int64_t row = width * sizeof(float);
    return {.output = row, .stash = row, .gradients = row};
  }
};
using step = stretto::pipeline<form, stretto::schedule::zbv, stretto::assignment::unassigned, rows,
                               stretto::overlap::separate, stretto::with_data_parallel<>>;
static_assert(stretto::valid<step>);

//! Each stage multiplies by its weights; the loss is half the squared distance from 1, the mean of
//! all micro-batches. The numbers are such that all sums are exact, whatever their order.
struct model {
  float weights[depth][width]{}, gradients[depth][width]{};

  model() {
    for (int s = 0; s < depth; ++s)
      for (int k = 0; k < width; ++k) weights[s][k] = (s + k) % 3 == 0 ? 2.0F : -0.5F;
  }
  static float data(int microbatch, int k) {
    return static_cast<float>((3 * microbatch + k) % 5 - 2);
  }
  static float loss_gradient(float y) { return (y - 1) / (replicas * form.microbatches); }
};

//! One rank of a replica of the model: each job touches its own stage's part alone.
struct worker : model {
  int replica = 0;

  //! Refused, by rank, job and bytes, where it is not as long as the stages take it for.
  static float* row(const context& at, buffer_role role) {
    return at.need<float>(role, width).data();
  }
  static bool is_last(const context& at) { return at.what.stage + 1 == depth; }
  float input(const context& at, int k) const {
    return at.what.stage > 0 ? row(at, buffer_role::input)[k]
                             : data(replica * form.microbatches + at.what.microbatch, k);
  }
  // Nobody sends the last stage a gradient: it makes one of its output, where it has saved that.
  static float* gradient(const context& at) {
    return row(at, is_last(at) ? buffer_role::stash : buffer_role::output_gradient);
  }

  void forward(const context& at) {
    float* const y = row(at, is_last(at) ? buffer_role::stash : buffer_role::output);
    for (int k = 0; k < width; ++k) y[k] = weights[at.what.stage][k] * input(at, k);
  }
  void backward_input(const context& at) {
    float* const dy = gradient(at);
    if (is_last(at)) std::transform(dy, dy + width, dy, loss_gradient);
    if (at.what.stage == 0) return;
    float* const dx = row(at, buffer_role::input_gradient);
    for (int k = 0; k < width; ++k) dx[k] = weights[at.what.stage][k] * dy[k];
  }
  void backward_weight(const context& at) {
    for (int k = 0; k < width; ++k) gradients[at.what.stage][k] += gradient(at)[k] * input(at, k);
  }
  //! Right behind a stage's last backward, while other stages are still under way. Of two
  //! directions once more in the end: then that sum is added to the other direction's.
  void reduce_grad(const context& at) const {
    const auto sum = at.summed(at.what.stage);
    std::ranges::copy(sum.empty() ? gradients[at.what.stage] : sum,
                      row(at, buffer_role::collective));
  }
  //! Here a trainer updates the weights of the rank's stages; the sums are given for those alone.
  void optimizer(const context& at) {
    for (int s = 0; s < depth; ++s) std::ranges::copy(at.summed(s), gradients[s]);
  }
};

//! @return whether all workers have the gradients of all micro-batches
bool train(const char* name, const stretto::shared& workers, const stretto::placement& where) {
  worker each[form.ranks * replicas];  // replica d of rank r is worker r * replicas + d
  for (int i = 0; i < form.ranks * replicas; ++i) each[i].replica = i % replicas;
  const auto call = [&](auto job) {
    return [&each, job](const context& at) { (each[at.rank].*job)(at); };
  };
  // A schedule's whole backwards call both halves.
  stretto::executor::callback_stage stage({.forward = call(&worker::forward),
                                           .backward_input = call(&worker::backward_input),
                                           .backward_weight = call(&worker::backward_weight),
                                           .reduce_grad = call(&worker::reduce_grad),
                                           .optimizer = call(&worker::optimizer)});
  const std::vector<stretto::executor::stage*> all(workers.plans().size(), &stage);
  stretto::executor::engine(workers, all).step();  // or it says why there are no plans

  model plain;  // the same without a pipeline
  bool equal = true;
  for (int k = 0; k < width; ++k) {
    for (int i = 0; i < replicas * form.microbatches; ++i) {
      float x[depth + 1] = {model::data(i, k)};
      for (int s = 0; s < depth; ++s) x[s + 1] = plain.weights[s][k] * x[s];
      float arrived = model::loss_gradient(x[depth]);
      for (int s = depth - 1; s >= 0; arrived *= plain.weights[s--][k])
        plain.gradients[s][k] += arrived * x[s];
    }
    // A stage's gradients are on the rank that has it; of two directions on two.
    for (int s = 0; s < depth; ++s)
      for (const int rank : {where.rank_in(0, s), where.rank_in(1, s)})
        for (int d = 0; d < replicas; ++d)
          equal &= each[rank * replicas + d].gradients[s][k] == plain.gradients[s][k];
  }
  std::cout << name << ": " << all.size() << " workers, first gradient of each stage:";
  for (int s = 0; s < depth; ++s)
    std::cout << ' ' << each[where.rank_in(0, s) * replicas].gradients[s][0];
  std::cout << (equal ? ", equal" : ", DIFFERENT") << " without a pipeline\n";
  return equal;
}

int main(int count, char** words) {
  bool equal = train("compiled zbv", stretto::shared(step::plans(), 1, replicas),
                     place(stretto::schedule::zbv{}.placed(), form));

  const char* const name = count > 1 ? words[1] : "interleaved";
  const auto schedule = stretto::schedule::by_name(name);
  if (!schedule) return std::cerr << name << ": there is no such schedule\n", 2;
  if (schedule->forward_only) return std::cerr << name << ": it has no gradients to sum\n", 2;
  const stretto::placement where = place(schedule->placed(), form);
  const stretto::job_table costs(form.ranks, where.chunks);
  stretto::plan_request wanted = stretto::request_of(rows{}, depth);
  wanted.data_parallel = true;
  const stretto::planned made(*schedule, form, costs.view(), stretto::overlap::separate{}, wanted);
  if (!made.answer()) return std::cerr << name << ": " << to_text(made.answer()).view() << '\n', 2;
  equal &= train(name, stretto::shared(made.plans(), 1, replicas), where);
  return equal ? 0 : 1;
}
