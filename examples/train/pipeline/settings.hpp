// What a pipelined training run is made of, and how a setting is refused.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "model/config.hpp"
#include "model/math.hpp"
#include "model/optimizer.hpp"
#include "model/stage.hpp"
#include "stretto/executor/bootstrap.hpp"
#include "stretto/executor/engine.hpp"
#include "stretto/executor/runner.hpp"
#include "stretto/executor/transport.hpp"
#include "stretto/memory/offload_window.hpp"
#include "stretto/memory/recompute_window.hpp"
#include "stretto/model/machine.hpp"
#include "stretto/schedule/any.hpp"
#include "stretto/schedule/options.hpp"

namespace train {

//! Refuses a setting: which one, its value as typed, and the rule that it breaks.
class bad_setting : public std::invalid_argument {
 public:
  bad_setting(const std::string& name, const std::string& value, const std::string& rule)
      : std::invalid_argument("--" + name + " " + value + ": " + rule) {}
};

//! How a step is cut up and run. Names of settings are those of the command line.
struct pipeline_settings {
  std::string schedule = "interleaved";  //!< one that trains, see training_schedules()
  //! An order of the caller's own in its place, for these sizes (order_file.hpp).
  std::optional<stretto::schedule::any> order{};
  int ranks = 4;
  int microbatches = 8;  //!< of a replica
  int slices = 1;  //!< per micro-batch, parts of its sequences
  std::string slice_lengths = "equal";  //!< of these, as in stretto/model/slice_text.hpp
  int chunks = 0;  //!< 0: 2 where the schedule serves them, else 1
  int group = 0;   //!< micro-batches per group; 0: the schedule's choice
  stretto::schedule::options options{};  //!< of the schedule, beside the group
  //! Most that a rank may keep for backwards, in micro-batches (or slices) of one chunk each.
  std::optional<std::int64_t> limit{};
  std::vector<std::int32_t> layers_per_rank{};  //!< embedding and head included; empty: even
  stretto::memory::recompute_window recompute{};  //!< whose forwards run a second time
  stretto::memory::offload_window offload{};  //!< what of training's stashes the host keeps
  //! How layers are dealt, as in stretto/assignment/described.hpp, embedding and head included;
  //! empty: by `layers_per_rank`.
  std::string layers{};
  std::string overlap = "separate";             //!< streams: separate, serial or typed
  int receive_lead = -1;  //!< see stretto::overlap::with_receive_lead; -1: none
  int tensor_parallel = 1;  //!< workers that share every rank's stages, a shard each
  int data_parallel = 1;    //!< replicas of all that, each with micro-batches of its own
  //! The order of a job's ops, see op_orders(), or whole: jobs are not expanded. Empty: whole, or
  //! with shards look_ahead.
  std::string ops{};
  int pieces = 0;  //!< of every op that the order in_pieces may cut; 0: as their times say
  //! On what times are foretold, for schedules and for those pieces; kept by the caller, such as
  //! `stretto calibrate` writes it. Null: schedules see multiply-adds, pieces the roofline of a
  //! host's core, or on GPUs of an H100.
  const stretto::machine* machine = nullptr;
  int evaluation_microbatches = 8;              //!< of held-back text in one evaluation

  //! What matrix products read, and what activations, their gradients and messages between stages
  //! are kept in. Weights, their gradients and the optimizer's moments are fp32 in any.
  precision products = precision::fp32;
  int transport_capacity = 0;  //!< messages that a channel holds; 0: rendezvous
  std::chrono::nanoseconds deadline = std::chrono::minutes(5);  //!< of one step
  bool poison = stretto::executor::built_for_debugging();  //!< what the plan releases, with NaN
  bool checked = false;  //!< for races, see executor::options
  //! A training step is recorded and replayed, see executor::options::graph; on GPUs, without
  //! times.
  bool graph = false;
  bool graph_progress = true;  //!< see executor::options
  int trace_steps = 0;                                          //!< last steps to keep times of
  stretto::executor::random_delay delay{};                      //!< for tests
  std::string transport = "loopback";  //!< its name
  //! Makes the transport of one engine, when it is not to be the loopback one.
  std::function<std::unique_ptr<stretto::executor::transport>()> make_transport{};
  //! The processes between which that transport is: each runs its share of the workers
  //! (share.hpp). Null: this one runs all.
  stretto::executor::bootstrap* between = nullptr;
  //! Where one worker computes, by its number among those of this process, and its streams: empty
  //! for the host. Both or none.
  std::function<std::unique_ptr<math<float>>(int worker, const config&, precision)> make_math{};
  std::function<std::unique_ptr<stretto::executor::device>(int worker, const stretto::plan_view&,
                                                           stretto::executor::monitor&)>
      make_device{};
  //! Records the step, where such devices can.
  stretto::executor::graph_factory make_graph{};
  //! Not empty: what every stage of this process goes through before the transports are opened.
  std::function<void(stage&)> warm_up{};
};

//! How the weights are learnt.
struct learning_settings {
  std::uint64_t seed = 1;  //!< of parameters and batches
  adamw rule{};
  learning_rate_schedule rate{};
  double norm_limit = 1;  //!< of the gradient's global norm
};

}  // namespace train
