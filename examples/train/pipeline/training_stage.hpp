// What a worker does in a training step, as the executor calls it.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "model/corpus.hpp"
#include "model/math.hpp"
#include "model/optimizer.hpp"
#include "pipeline/job_clock.hpp"
#include "pipeline/rank_model.hpp"
#include "pipeline/settings.hpp"
#include "stretto/executor/stage.hpp"

namespace train {

//! The collectives of a step, as indices into the plan's groups.
//!
//! - The first `summed`, one for every stage that a rank holds, where there are data-parallel
//!   replicas: floats, the stage's gradients, summed over these.
//! - The next `replicated`, where stages lie on two ranks: the same, summed over both.
//! - `tied`, where the table lies on several ranks: floats [2, table], the embedding's gradient and
//!   the head's, or its pieces'. Each writes what it has (of replicas of a gradient the first) and
//!   zeros the rest.
//! - `norms`, of all workers of all ranks: doubles, the squared norm of every layer's gradient and
//!   then the loss of every micro-batch. Each writes what it holds (of replicas of a gradient the
//!   first; of losses the first shard) and zeros the rest.
//!
//! Every slot of the last two has one writer, so sums are exact, whatever the partition; but for
//! norms of layers in shards, to which each adds its own part. (A gradient is a sum that began at
//! +0, so it is never -0, the one value that adding +0 would change.)
struct step_groups {
  int summed = 0;
  int replicated = 0;
  int tied = -1;  //!< -1: no such group
  int norms = 0;
};

//! Which data-parallel replica, of how many.
struct replica_number {
  int index = 0, count = 1;
};

//! The work of a rank, or of one of its workers, in training, on one stream. Gradients stay until
//! the first job of the next step, which zeros them. No call allocates.
class training_stage final : public stretto::executor::stage {
 public:
  //! Everything is kept by reference. `microbatches`: of a step of this replica, each of so many
  //! slices.
  training_stage(rank_model& model, const corpus& text, const learning_settings& learning,
                 int microbatches, int slices, step_groups groups, replica_number replica = {});

  //! Before each step, while none is under way: all that it reads and the last one did not, from
  //! where its work finds it, whether it is issued or replayed.
  //! @param number  of the step, whose batches and learning rate follow; 1 is the first
  void prepare(long number);
  void run(const stretto::executor::context& at) override;
  bool serves(stretto::job_kind kind) const override;

  //! Of the last step; every rank computes the same. Between steps.
  //! @throws std::runtime_error if the gradient was not finite; parameters are then untouched
  step_result result() const;
  job_clock& clock() { return clock_; }
  const job_clock& clock() const { return clock_; }

 private:
  void begin_step(std::int64_t step);
  auto batches() const {
    return [this](int microbatch, auto tokens, auto targets) {
      text_.batch(learning_.seed, number_, replica_.index * microbatches_ + microbatch, tokens,
                  targets);
    };
  }
  void compute(const stretto::executor::context& at);
  void write_sum(const stretto::executor::context& at);
  void read_sums(const stretto::executor::context& at);
  std::span<float> tied_gradient(layer_kind side, int piece);
  std::span<float> of_piece(std::span<float> sides, layer_kind side, int piece) const;
  void write_tied(std::span<float> sides);
  void join_tied(const stretto::executor::context& at);
  void write_norms(std::span<double> slots);
  void optimizer(const stretto::executor::context& at);
  void copy(std::span<const float> from, std::span<float> to) const;

  rank_model& model_;
  const corpus& text_;
  const learning_settings& learning_;
  step_groups groups_;
  int microbatches_, slices_;
  replica_number replica_;
  math_array<double, float> losses_;  // by micro-batch and slice, on the rank with the head
  struct stage_sum {
    int group, stage;
  };
  std::vector<stage_sum> written_;  // of this step, not read yet
  std::int64_t step_ = -1;
  long number_ = 0;
  std::shared_ptr<void> prepared_;  // the factors, in memory of the host from which copies take
  math_array<adamw_factors<float>, float> factors_;
  math_array<step_result, float> result_;
  job_clock clock_;
};

}  // namespace train
