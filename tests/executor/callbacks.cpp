// A stage made of one function per kind of job.
#include "stretto/executor/callbacks.hpp"

#include <doctest/doctest.h>

#include <string>

#include "failures.hpp"
#include "pipeline.hpp"

using namespace stretto;
using namespace stretto::test;

namespace {

executor::context context_of(job_kind kind) {
  executor::context at;
  at.what.kind = kind;
  return at;
}

}  // namespace

TEST_CASE("each kind of job reaches its function") {
  std::string seen;
  const auto note = [&seen](char letter) {
    return [&seen, letter](const executor::context&) { seen += letter; };
  };
  executor::callback_stage stage({.forward = note('F'),
                                  .backward = note('B'),
                                  .backward_input = note('I'),
                                  .backward_weight = note('W'),
                                  .recompute = note('R'),
                                  .reduce_grad = note('G'),
                                  .optimizer = note('O'),
                                  .other = note('x')});
  for (const job_kind kind :
       {job_kind::forward, job_kind::backward, job_kind::backward_input, job_kind::backward_weight,
        job_kind::recompute, job_kind::reduce_grad, job_kind::optimizer, job_kind::offload,
        job_kind::reload, job_kind::unshard, job_kind::reshard}) {
    CHECK(stage.serves(kind));
    stage.run(context_of(kind));
  }
  CHECK(seen == "FBIWRGOxxxx");
}

TEST_CASE(
    "weights are gathered and dropped by functions of their own, of which the second may lack") {
  std::string seen;
  executor::job_callbacks callbacks;
  callbacks.unshard = [&](const executor::context&) { seen += 'U'; };
  executor::callback_stage one(callbacks);
  CHECK(one.serves(job_kind::unshard));
  CHECK(one.serves(job_kind::reshard));
  one.run(context_of(job_kind::unshard));
  one.run(context_of(job_kind::reshard));
  callbacks.reshard = [&](const executor::context&) { seen += 'D'; };
  callbacks.other = [&](const executor::context&) { seen += 'x'; };
  executor::callback_stage(callbacks).run(context_of(job_kind::reshard));
  CHECK(seen == "UD");
  CHECK_FALSE(executor::callback_stage({}).serves(job_kind::unshard));
}

TEST_CASE("a backward that is not given is the one for the input, then the one for the weights") {
  std::string seen;
  executor::job_callbacks callbacks;
  callbacks.backward_weight = [&](const executor::context& at) {
    CHECK(at.what.microbatch == 5);
    seen += 'W';
  };
  CHECK_FALSE(executor::callback_stage(callbacks).serves(job_kind::backward));
  callbacks.backward_input = [&](const executor::context& at) {
    CHECK(at.what.kind == job_kind::backward);
    seen += 'I';
  };
  executor::callback_stage stage(callbacks);
  CHECK(stage.serves(job_kind::backward));
  CHECK_FALSE(stage.serves(job_kind::forward));
  executor::context at = context_of(job_kind::backward);
  at.what.microbatch = 5;
  stage.run(at);
  CHECK(seen == "IW");
}

TEST_CASE("a plan that needs a function which is not given is refused before the first step") {
  const std::vector<plan_builder> plans = pipeline_plans(2, 1, 4, layout::separate);
  executor::job_callbacks callbacks;
  callbacks.forward = [](const executor::context&) {};
  executor::callback_stage stage(callbacks);
  executor::stage* const stages[] = {&stage, &stage};
  const std::string text = refusal_of([&] { executor::engine(views(plans), stages); });
  expect_part(text, "plan of rank 0, instruction 3, 0B0 (stage 0, backward, micro-batch 0)");
  expect_part(text, "does not serve this kind");
}
