#pragma once

#include <functional>

#include "stretto/executor/stage.hpp"

namespace stretto::executor {

//! A stage given as one function for each kind of job: its programs have one op. What a plan does
//! not contain may be left empty; what it contains and is empty here is refused before step 0.
struct job_callbacks {
  using function = std::function<void(const context&)>;

  function forward{};
  //! Empty: backward_input, then backward_weight, with the same context.
  function backward{};
  function backward_input{};
  function backward_weight{};
  function recompute{};
  function unshard{};      //!< puts the worker's part of a stage's weights into own_weights()
  function reshard{};      //!< hears that they are dropped; may be empty
  function reduce_grad{};  //!< puts into the group's collective buffer what is to be summed
  function optimizer{};    //!< reads the sums and updates the weights of the rank's stages
  //! Every other kind that a plan may hand to a stage: copies that are not the device's own; and
  //! the two of weights, where these are empty.
  function other{};
};

//! The stage made of such functions.
class callback_stage final : public stage {
 public:
  explicit callback_stage(job_callbacks callbacks);

  void run(const context& at) override;
  bool serves(job_kind kind) const override;

 private:
  const job_callbacks::function& of(job_kind kind) const;

  job_callbacks callbacks_;
};

}  // namespace stretto::executor
