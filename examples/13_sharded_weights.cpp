// Weights that two data-parallel replicas hold one half of each (ZeRO's third stage, FSDP): a
// stage's are gathered before its jobs, beside those of others, and dropped behind them; of its
// gradients each replica gets the sum of its own half, and updates that.
// g++ -std=c++20 -I{,executor/}include examples/13_sharded_weights.cpp executor/src/*.cpp -pthread
#include <algorithm>
#include <iostream>
#include <vector>

#include "stretto/executor/callbacks.hpp"
#include "stretto/executor/engine.hpp"
#include "stretto/schedule/by_name.hpp"
#include "stretto/stretto.hpp"

using stretto::buffer_role, stretto::executor::context;

constexpr int width = 64, part = width / 2, replicas = 2, depth = 4, microbatches = 4, steps = 3;

//! What the jobs compute: a stage multiplies by its weights; the loss is half the squared distance
//! from 1. The numbers are such that all sums are exact, whatever their order.
float initial(int stage, int k) {
  return (stage + k) % 3 == 0 ? 0.5F : -1;
}
float data(int microbatch, int k) {
  return static_cast<float>((3 * microbatch + k) % 5 - 2);
}
float loss_gradient(float y) {
  return (y - 1) / 4096;
}
float updated(float weight, float gradient) {
  return weight - gradient / 4;
}

//! One rank of a replica of the model. Of its stages' weights it has no more than its half.
struct worker {
  int replica;
  float own[depth][part], gradients[depth][width]{};

  explicit worker(int replica_) : replica(replica_) {
    for (int s = 0; s < depth; ++s)
      for (int k = 0; k < part; ++k) own[s][k] = initial(s, replica * part + k);
  }
  static float* row(const context& at, buffer_role role) {
    return at.need<float>(role, width).data();
  }
  float input(const context& at, int k) const {
    return at.what.stage > 0 ? row(at, buffer_role::input)[k]
                             : data(replica * microbatches + at.what.microbatch, k);
  }
  static bool is_last(const context& at) { return at.what.stage + 1 == depth; }

  //! Its half goes to its place, and the other replica's will come to the rest.
  void unshard(const context& at) const {
    std::ranges::copy(std::as_bytes(std::span(own[at.what.stage])), at.own_weights().begin());
  }
  void forward(const context& at) const {
    const float* const w = row(at, buffer_role::weights);
    float* const y = row(at, is_last(at) ? buffer_role::stash : buffer_role::output);
    for (int k = 0; k < width; ++k) y[k] = w[k] * input(at, k);
  }
  // Nobody sends the last stage a gradient: it makes one of its output, where it has saved that.
  static float* gradient(const context& at) {
    return row(at, is_last(at) ? buffer_role::stash : buffer_role::output_gradient);
  }
  void backward_input(const context& at) const {
    const float* const w = row(at, buffer_role::weights);
    float* const dy = gradient(at);
    if (is_last(at)) std::transform(dy, dy + width, dy, loss_gradient);
    if (at.what.stage == 0) return;
    float* const dx = row(at, buffer_role::input_gradient);
    for (int k = 0; k < width; ++k) dx[k] = w[k] * dy[k];
  }
  void backward_weight(const context& at) {
    for (int k = 0; k < width; ++k) gradients[at.what.stage][k] += gradient(at)[k] * input(at, k);
  }
  //! Of two directions once more in the end: then its half of the sum is added to the other's.
  void reduce_grad(const context& at) {
    float(&mine)[width] = gradients[at.what.stage];
    const auto sum = at.summed(at.what.stage);
    const std::span<const float> to_sum = sum.empty() ? mine : sum;
    std::ranges::copy(to_sum, at.need<float>(buffer_role::collective, std::ssize(to_sum)).begin());
    std::ranges::fill(mine, 0.0F);
  }
  //! Of the stages whose sums the rank is given, each of its half.
  void optimizer(const context& at) {
    for (int s = 0; s < depth; ++s)
      if (const auto sum = at.summed(s); !sum.empty())
        for (int k = 0; k < part; ++k)
          own[s][k] = updated(own[s][k], sum[static_cast<std::size_t>(k)]);
  }
};

//! The same without a pipeline, or replicas.
struct plain {
  float weights[depth][width];

  plain() {
    for (int s = 0; s < depth; ++s)
      for (int k = 0; k < width; ++k) weights[s][k] = initial(s, k);
  }
  void step() {
    for (int k = 0; k < width; ++k) {
      float gradients[depth]{};
      for (int i = 0; i < replicas * microbatches; ++i) {
        float x[depth + 1] = {data(i, k)};
        for (int s = 0; s < depth; ++s) x[s + 1] = weights[s][k] * x[s];
        float arrived = loss_gradient(x[depth]);
        for (int s = depth - 1; s >= 0; arrived *= weights[s--][k]) gradients[s] += arrived * x[s];
      }
      for (int s = 0; s < depth; ++s) weights[s][k] = updated(weights[s][k], gradients[s]);
    }
  }
};

int main(int count, char** words) {
  const char* const name = count > 1 ? words[1] : "interleaved";
  const auto schedule = stretto::schedule::by_name(name);
  if (!schedule) return std::cerr << name << ": there is no such schedule\n", 2;
  if (schedule->forward_only) return std::cerr << name << ": it updates no weights\n", 2;
  constexpr stretto::shape form{.ranks = 2, .microbatches = microbatches, .chunks = 2};
  constexpr std::int64_t row = width * sizeof(float);
  stretto::plan_request wanted;
  wanted.stages = {{.output = row, .stash = row, .gradients = row, .weights = row}};
  wanted.data_parallel = true;
  wanted.gathered = 1;  // the weights of so many stages at once
  const stretto::placement where = place(schedule->placed(), form);
  const stretto::job_table costs(form.ranks, where.chunks);
  const stretto::planned made(*schedule, form, costs.view(), stretto::overlap::separate{}, wanted);
  if (!made.answer()) return std::cerr << name << ": " << to_text(made.answer()).view() << '\n', 2;
  const stretto::shared workers(made.plans(), 1, replicas);
  if (!workers.answer()) return std::cerr << to_text(workers.answer()).view() << '\n', 2;

  std::cout << name << ", rank 0:";
  for (const stretto::instruction& at : made.plans()[0].instructions)
    if (!stretto::is_message(at.what.kind)) std::cout << ' ' << to_text(at.what).view();
  std::cout << '\n';

  std::vector<worker> each;  // replica d of rank r is worker r * replicas + d
  for (int i = 0; i < form.ranks * replicas; ++i) each.emplace_back(i % replicas);
  const auto call = [&](auto job) {
    return [&each, job](const context& at) { (each[static_cast<std::size_t>(at.rank)].*job)(at); };
  };
  const auto halves_of = [&](int rank, int stage, int d) -> const float(&)[part] {
    return each[static_cast<std::size_t>(rank * replicas + d)].own[stage];
  };
  // A schedule's whole backwards call both halves.
  stretto::executor::callback_stage stage({.forward = call(&worker::forward),
                                           .backward_input = call(&worker::backward_input),
                                           .backward_weight = call(&worker::backward_weight),
                                           .unshard = call(&worker::unshard),
                                           .reduce_grad = call(&worker::reduce_grad),
                                           .optimizer = call(&worker::optimizer)});
  const std::vector<stretto::executor::stage*> all(workers.plans().size(), &stage);
  stretto::executor::engine engine(workers, all);
  plain reference;
  bool equal = true;
  for (int step = 0; step < steps; ++step) {
    engine.step();
    reference.step();
    for (int s = 0; s < depth; ++s)
      for (const int rank : {where.rank_in(0, s), where.rank_in(1, s)})  // of two directions two
        for (int k = 0; k < width; ++k)
          equal &= halves_of(rank, s, k / part)[k % part] == reference.weights[s][k];
  }
  std::cout << steps << " steps, first weight of each stage:";
  for (int s = 0; s < depth; ++s) std::cout << ' ' << halves_of(where.rank_in(0, s), s, 0)[0];
  std::cout << (equal ? ", equal" : ", DIFFERENT") << " without a pipeline\n";
  return equal ? 0 : 1;
}
