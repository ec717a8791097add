#include "stretto/executor/callbacks.hpp"

#include <utility>

namespace stretto::executor {

callback_stage::callback_stage(job_callbacks callbacks) : callbacks_(std::move(callbacks)) {}

const job_callbacks::function& callback_stage::of(job_kind kind) const {
  switch (kind) {
    case job_kind::forward:
      return callbacks_.forward;
    case job_kind::backward:
      return callbacks_.backward;
    case job_kind::backward_input:
      return callbacks_.backward_input;
    case job_kind::backward_weight:
      return callbacks_.backward_weight;
    case job_kind::recompute:
      return callbacks_.recompute;
    case job_kind::unshard:
      return callbacks_.unshard ? callbacks_.unshard : callbacks_.other;
    case job_kind::reshard:
      return callbacks_.reshard ? callbacks_.reshard : callbacks_.other;
    case job_kind::reduce_grad:
      return callbacks_.reduce_grad;
    case job_kind::optimizer:
      return callbacks_.optimizer;
    default:
      return callbacks_.other;
  }
}

bool callback_stage::serves(job_kind kind) const {
  if (of(kind) || kind == job_kind::reshard) return true;
  return kind == job_kind::backward && callbacks_.backward_input && callbacks_.backward_weight;
}

void callback_stage::run(const context& at) {
  const job_callbacks::function& given = of(at.what.kind);
  if (!given && at.what.kind == job_kind::reshard) return;
  if (given || at.what.kind != job_kind::backward) return given(at);
  callbacks_.backward_input(at);
  callbacks_.backward_weight(at);
}

}  // namespace stretto::executor
