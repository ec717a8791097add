// A compiled plan, run with one's own callbacks from the loop of a trainer that knows no pipeline.
// g++ -std=c++20 -I{,executor/}include examples/04_run_callbacks.cpp executor/src/*.cpp -pthread
#include <iostream>

#include "stretto/executor/callbacks.hpp"
#include "stretto/executor/engine.hpp"
#include "stretto/stretto.hpp"

using step = stretto::pipeline<stretto::shape{.ranks = 4, .microbatches = 8},
                               stretto::schedule::one_f_one_b>;
using stretto::executor::context, stretto::buffer_role;

//! Four stages, each multiplying by its weight; the loss is the mean squared distance from 1.
struct model {
  double weight[4] = {0.5, 1.5, 0.75, 1.25}, gradient[4]{}, loss = 0;

  static double data(int microbatch) { return 0.5 + 0.125 * microbatch; }
  double forward(int s, double input) const { return weight[s] * input; }
  double lose(double output) { return loss += (output - 1) * (output - 1) / 8, (output - 1) / 4; }
  double backward(int s, double input, double arrived) {
    gradient[s] += arrived * input;
    return arrived * weight[s];
  }
  void update(int s) { weight[s] -= 0.05 * gradient[s], gradient[s] = 0; }
};

//! A buffer has as many bytes as the memory policy's bytes() says (example 12), and 64 where nobody
//! says any: enough for a double. need() is view() that refuses more than there is.
double& value(const context& at, buffer_role role) {
  return at.need<double>(role, 1)[0];
}
//! Stays there until the micro-batch's backward is done.
double input(const context& at) {
  return at.what.stage > 0 ? value(at, buffer_role::input) : model::data(at.what.microbatch);
}

int main() {
  model mine, plain;
  stretto::executor::callback_stage callbacks({
      .forward =
          [&](const context& at) {
            const int s = at.what.stage;
            // Only the loss asks again for what the last stage has made.
            value(at, s < 3 ? buffer_role::output : buffer_role::stash) =
                mine.forward(s, input(at));
          },
      .backward =
          [&](const context& at) {
            const int s = at.what.stage;
            const double arrived = s < 3 ? value(at, buffer_role::output_gradient)
                                         : mine.lose(value(at, buffer_role::stash));
            const double passed = mine.backward(s, input(at), arrived);
            if (s > 0) value(at, buffer_role::input_gradient) = passed;
          },
      .optimizer = [&](const context& at) { mine.update(at.rank); },  // one stage a rank
  });
  stretto::executor::stage* const stages[] = {&callbacks, &callbacks, &callbacks, &callbacks};
  stretto::executor::engine engine(step::plans(), stages);

  for (int turn = 0; turn < 5; ++turn) {  // the trainer's own loop
    mine.loss = plain.loss = 0;
    engine.step();
    for (int i = 0; i < 8; ++i) {  // the same without a pipeline
      double passed[5] = {model::data(i)};
      for (int s = 0; s < 4; ++s) passed[s + 1] = plain.forward(s, passed[s]);
      double arrived = plain.lose(passed[4]);
      for (int s = 3; s >= 0; --s) arrived = plain.backward(s, passed[s], arrived);
    }
    for (int s = 0; s < 4; ++s) plain.update(s);
    std::cout << "step " << turn << ": loss " << mine.loss << ", without a pipeline " << plain.loss
              << (mine.loss == plain.loss ? ", equal" : ", DIFFERENT") << '\n';
  }
}
