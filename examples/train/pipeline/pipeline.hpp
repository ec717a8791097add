// The pipelined trainer: what basic_reference does in one piece, on the ranks of a pipeline.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/config.hpp"
#include "model/corpus.hpp"
#include "model/reference.hpp"
#include "pipeline/evaluation_stage.hpp"
#include "pipeline/rank_model.hpp"
#include "pipeline/settings.hpp"
#include "pipeline/share.hpp"
#include "pipeline/step_plans.hpp"
#include "pipeline/training_stage.hpp"
#include "stretto/assignment/concept.hpp"
#include "stretto/executor/bootstrap.hpp"
#include "stretto/executor/engine.hpp"
#include "stretto/model/cost.hpp"
#include "stretto/model/shape.hpp"
#include "stretto/plan/planned.hpp"

namespace train {

//! What the optimizer changes of a layer.
template <class Scalar>
struct layer_state {
  std::span<Scalar> parameters, mean, square;
};

//! What of a layer.
enum class layer_part { parameters, gradients, mean, square };

//! What a rank holds from the first step to the last, in bytes, all its workers together: known
//! before it.
struct rank_memory {
  std::int64_t weights = 0, gradients = 0, optimizer = 0;
  std::int64_t arena = 0;       //!< of training: activations, gradients, collectives
  std::int64_t host = 0;        //!< what of training's stashes the host keeps
  //! The arena of evaluation, a batch, messages under way; queues, events and instructions, as the
  //! executor prepares them for both steps. With bf16 copies of the weights, and room to compute
  //! in.
  std::int64_t workspaces = 0;

  std::int64_t sum() const {
    return weights + gradients + optimizer + arena + host + workspaces;
  }
  rank_memory& operator+=(const rank_memory& other) {
    weights += other.weights;
    gradients += other.gradients;
    optimizer += other.optimizer;
    arena += other.arena;
    host += other.host;
    workspaces += other.workspaces;
    return *this;
  }
};

//! What the process holds beside that, in bytes.
struct shared_memory {
  std::int64_t plans = 0;   //!< of both steps, of all ranks, whichever process runs them
  int threads = 0;          //!< of the executor: one for each stream
  int computing = 0;        //!< of these, those that run jobs
  std::int64_t stacks = 0;  //!< what threads touch of them
};

//! A model split into stages, with the plans and the engines that train and evaluate it: the same
//! stages, two plans. After the first step, a step allocates nothing.
class pipeline {
 public:
  //! @param text outlives the pipeline
  //! @throws bad_setting, or std::invalid_argument from the model's config and the learning rule
  pipeline(const config& model, const corpus& text, const pipeline_settings& settings,
           const learning_settings& learning);

  //! One training step on all ranks.
  //! @throws stretto::executor::execution_error naming rank, job and cause; no step can follow.
  //!         Where it has a number, worker k of rank r is r * workers() + k, as in traces
  step_result step();

  //! The mean loss over micro-batches of held-back text, forward only.
  //! @throws as step()
  double evaluate();

  //! Chooses a byte by its logit.
  using choice = std::function<std::uint8_t(std::span<const float>)>;
  //! The byte that follows a text, of which the last `context` bytes count: a forward through the
  //! stages where they lie. Of several processes, all call it with the same text; the one with the
  //! head chooses and tells the others.
  //! @throws std::invalid_argument if the text is empty or leaves the vocabulary; what `choose`
  //!         throws, as std::runtime_error, in every process; else as step()
  std::uint8_t next(std::span<const std::uint8_t> text, const choice& choose);

  //! Of a layer in one piece, wherever its parts lie: a copy. Gradients are those of the last step,
  //! tied ones joined, not clipped. Between steps only. Of several processes, all call it, for the
  //! same part after the same step, and each gets it.
  //! `replica`: 0, or 1 of two; `copy`: of the data-parallel ones.
  //! @throws stretto::executor::bootstrap_error when a process does not come within the deadline,
  //!         or for_leader() the one that leads()
  std::vector<float> whole(int layer, layer_part part, int replica = 0, int copy = 0) const {
    return joined(layer, part, replica, copy, true);
  }
  //! The same for the process that leads() alone: the others give what they hold, and get nothing.
  std::vector<float> gathered(int layer, layer_part part, int replica = 0, int copy = 0) const {
    return joined(layer, part, replica, copy, false);
  }
  //! The same of one shard, laid out as its part of the layer is.
  std::vector<float> gathered_shard(int layer, layer_part part, int shard, int replica = 0,
                                    int copy = 0) const {
    return piece(layer, part, shard, replica, copy, false);
  }
  //! Sets that of all replicas, as far as this process holds them.
  void set_whole(int layer, layer_part part, std::span<const float> to);

  //! Whether this process holds any of the layer.
  bool holds(int layer) const;

  //! The same where it lies, in memory of whoever computes; of a model in shards, the first one's.
  //! @throws std::invalid_argument where another process holds it
  std::span<float> parameters(int layer) { return holder(layer).parameters(layer); }
  std::span<const float> parameters(int layer, int replica = 0) const {
    return holder(layer, replica).parameters(layer);
  }
  std::span<const float> gradients(int layer) const { return holder(layer).gradients(layer); }

  //! Between steps only.
  layer_state<float> state(int layer, int replica) {
    stage& at = holder(layer, replica);
    return {at.parameters(layer), at.mean(layer), at.square(layer)};
  }
  layer_state<const float> state(int layer, int replica) const {
    const stage& at = holder(layer, replica);
    return {at.parameters(layer), at.mean(layer), at.square(layer)};
  }
  //! Training steps that led to what the layers hold now.
  long steps_done() const { return steps_done_; }
  //! Says so when that came from elsewhere. The next step is number `steps` + 1.
  void resume_after(long steps) { steps_done_ = steps; }

  //! Data-parallel replicas.
  int copies() const { return copies_; }
  //! How often each of them holds every stage: twice where the schedule goes both ways.
  int replicas() const { return where_.kind == stretto::placement_kind::bidirectional ? 2 : 1; }
  //! The orders of sums that a reference must keep to be equal to the bit.
  std::vector<layer_sums> sums() const;

  const config& model() const { return model_; }
  const learning_settings& learning() const { return learning_; }
  const corpus& text() const { return text_; }
  const stretto::shape& sizes() const { return sizes_; }
  const stretto::placement& where() const { return where_; }
  //! Of every stage, in pipeline order.
  std::span<const stretto::assignment::layer_range> layers() const { return layers_; }
  //! Of whole jobs, whether or not they run as such.
  const stretto::planned& plan() const { return training_plan_->whole(); }
  //! What runs: one for each worker of each rank, as in engine().
  std::span<const stretto::plan_view> plans() const { return training_plan_->plans(); }
  //! How many share a rank's stages: those of every data-parallel replica, each with a shard.
  int workers() const { return model_.shards * copies_; }
  //! Of several processes, this one's: its workers are those from first_here() on.
  stretto::executor::engine& engine() { return *training_; }
  //! Whether arenas are the host's memory, and jobs its threads' work.
  bool on_host() const { return maths_[here_.first]->on_host(); }
  std::size_t first_here() const { return here_.first; }
  std::size_t workers_here() const { return here_.count(); }
  //! Whether this process writes what all of them have found together.
  bool leads() const { return between_ == nullptr || between_->process() == 0; }
  //! Whether times are kept.
  bool traced() const { return trace_steps_ > 0; }
  //! How long a process may be at its files while others wait: a busy disk takes minutes.
  static constexpr std::chrono::minutes at_files{30};
  //! How long to wait for the one that leads(), which may be at its files; it waits for the others
  //! as for a step.
  std::chrono::nanoseconds for_leader() const {
    return leads() ? std::chrono::nanoseconds{} : at_files;
  }
  //! What each process gives, in their order; of one alone, its own. All of them call it.
  //! @param to_all    otherwise the one that leads() gets it alone, and the others nothing
  //! @param at_least  how long it may take, where that is more than a step's deadline
  //! @throws stretto::executor::bootstrap_error when one does not come in that time
  std::vector<std::string> exchange(std::string_view what, std::string_view mine,
                                    bool to_all = true,
                                    std::chrono::nanoseconds at_least = {}) const;
  //! The same for the one that leads(), of as much as each has: the others get nothing.
  std::vector<std::string> collected(std::string_view what, std::string_view mine) const;
  //! The times that the engine of this process has kept.
  std::vector<stretto::executor::trace_record> trace() const { return training_->trace(); }
  rank_memory memory(int rank) const;
  //! A worker's part of that: of this process.
  rank_memory worker_memory(std::size_t worker) const;
  //! Of this process.
  shared_memory memory() const;
  std::size_t parameter_count() const;

  //! Multiply-adds of every stage's jobs, or the nanoseconds that they take on machine().
  const stretto::job_table& predicted_costs() const { return costs_; }
  //! The name of the settings' one, and in what its times are where steps are in something else;
  //! empty: none.
  const std::string& machine() const { return machine_; }
  //! Processor time of the jobs since the start, or since forget_times(), on every rank's first
  //! worker. Of several processes, all call it.
  stretto::job_table measured_costs() const;
  void forget_times();
  //! The same of all jobs of this process's workers together, in nanoseconds.
  std::int64_t busy_time() const;

 private:
  stretto::plan_request request() const;
  //! Where some of a tied table is, unless each such rank has all of it on both sides.
  std::vector<std::int32_t> tied_ranks() const;
  //! Of the last step that goes on with a text.
  std::vector<float> found_logits() const;
  std::vector<float> joined(int layer, layer_part part, int replica, int copy, bool to_all) const;
  std::vector<float> piece(int layer, layer_part part, int shard, int replica, int copy,
                           bool to_all) const;
  //! What is `longest` bytes where a process has most of it, in pieces; each calls
  //! take(process, first byte, piece) for what it gets.
  template <class Take>
  void exchange_pieces(std::string_view what, std::string_view mine, std::size_t longest,
                       bool to_all, Take&& take) const;
  //! Brings the `size` values that a worker has to all processes, or to the one that leads.
  void bring(std::size_t worker, std::span<float> values, std::size_t size, bool to_all) const;
  void build_ranks(const pipeline_settings& settings);
  //! Where a part of a layer lies.
  struct layer_place {
    std::size_t worker = 0;
    stage* at = nullptr;
  };
  layer_place place_of(int layer, int replica = 0, int shard = 0, int copy = 0) const;
  stage& holder(int layer, int replica = 0) const { return *place_of(layer, replica).at; }
  template <class Call>
  void each_place(int layer, Call&& call) const;
  std::size_t worker(int rank, int shard = 0, int copy = 0) const {
    return config::size((rank * copies_ + copy) * model_.shards + shard);
  }

  //! Which of those that evaluate it is, where it does.
  std::size_t evaluator(std::size_t worker) const {
    const auto shards = config::size(model_.shards);
    return worker / config::size(workers()) * shards + worker % shards;
  }

  //! The data-parallel replica that the worker belongs to.
  int copy_of(std::size_t worker) const {
    return static_cast<int>(worker) / model_.shards % copies_;
  }

  stretto::shape sizes_;
  config model_;
  int copies_;
  stretto::executor::bootstrap* between_;
  std::chrono::nanoseconds deadline_;
  worker_range here_;  // of this process
  learning_settings learning_;
  const corpus& text_;
  stretto::placement where_;
  std::vector<stretto::assignment::layer_range> layers_;
  stretto::job_table costs_;
  std::string machine_;
  step_groups groups_;
  int capacity_;  // of the transport's channels
  int trace_steps_;
  bool poison_;
  long steps_done_ = 0;
  // One for each worker: those of rank 0 first, of these those of the first data-parallel replica,
  // which alone evaluates. Those of other processes are the host's, and hold nothing.
  std::vector<std::unique_ptr<math<float>>> maths_;
  std::vector<std::unique_ptr<rank_model>> ranks_;
  // One for each worker of this process, or each that evaluates.
  std::vector<std::unique_ptr<training_stage>> trainers_;
  std::vector<std::unique_ptr<evaluation_stage>> evaluators_;
  std::vector<double> evaluated_, one_evaluated_;  // losses of all, and of one of them
  std::unique_ptr<step_plans> training_plan_, evaluation_plan_;
  // Destroyed first: their threads use all of the above.
  std::unique_ptr<stretto::executor::engine> training_, evaluation_;
};

}  // namespace train
