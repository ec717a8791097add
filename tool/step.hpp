#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "catalogue.hpp"
#include "cost_table.hpp"
#include "finer_unit.hpp"
#include "limits.hpp"
#include "step_options.hpp"
#include "stretto/model/replay.hpp"
#include "stretto/plan/csv.hpp"
#include "stretto/plan/report.hpp"

namespace stretto::tool {

//! One valid step. Not copied: `input` points into it.
struct step {
  std::string title;     //!< `1f1b: 4 ranks, 8 micro-batches`
  std::string schedule;  //!< its name, or the file's
  generated made;        //!< lists, placement and costs
  int microbatches = 1;
  int chunks = 1;
  int slices = 1;
  bool messages = false;
  bool forward_only = false;
  int receive_lead = -1;  //!< see replay_input
  finer_unit time{};      //!< of its costs
  std::vector<std::int32_t> layers{};  //!< of every stage, where the costs are layers'
  memory::windows put{};               //!< between its jobs
  std::optional<imported_schedule> imported;
  bool sums = false;     //!< of gradients are in it, and take what costs say
  bool gathers = false;  //!< of weights, the same
  //! The lists with them, where those that were made or read lack some.
  std::optional<job_lists> with_replicas{};

  replay_input input() const;
};

//! Why there is no step: its schedule does not serve the shape, or a limit is exceeded (see
//! `fullest`).
struct no_step {
  verdict found;
  //! What found.amount is where a search keeps to no limit; it is 0 where that is unknown.
  std::optional<least_limit> searched{};
};

//! Makes or reads the step and holds it against every rule.
//! @param finer  times are in a unit of which pairs hide whole ones; else what is rounded is
//! refused
//! @throws bad_input, broken_schedule
step make_step(const step_options& options, bool finer = false);
//! The same for a generated step alone, by its parts.
//! @param why  is told why there is none; null: that is thrown
std::optional<step> make_step(const std::string& name, const shape& sizes,
                              const schedule_options& options,
                              const std::function<job_table(const placement&)>& costs,
                              no_step* why = nullptr);
//! The same by the options' costs. Where they leave a choice of how layers are dealt, what makes
//! the step shorter is taken.
std::optional<step> make_step(const std::string& name, const shape& sizes,
                              const schedule_options& options, const cost_options& costs,
                              const cost_cut& cut, no_step* why = nullptr);
//! The same with each of the windows between its jobs, of which that is taken which makes the step
//! shortest within its limits; of several the first.
std::optional<step> make_shortest(const std::string& name, const shape& sizes,
                                  schedule_options options,
                                  std::span<const memory::windows> choices,
                                  const cost_options& costs, const cost_cut& cut,
                                  no_step* why = nullptr);
//! Nothing is brought back, or copied, that a forward does not keep; --again and --copy speak of
//! something.
//! @param text  of memory, in the unit of the step's costs
//! @throws bad_input
void refuse_windows(const cost_options& costs, const window_options& windows, const step& made,
                    const amount_text& text);
//! What a file in PyTorch's CSV holds, without costs, and held against no rule yet.
//! @param option  which names it
//! @throws bad_input, broken_schedule
step read_order(const std::string& option, const std::string& path);
//! Gives what is read its costs, as make_step does, and holds it against every rule.
//! Of how many stages at once a rank may have the weights: without --gathered of any number in
//! lists that say where they are gathered, of as many as by default in others.
//! @param why        as above; null: limits that it does not keep are thrown, too
//! @param objective  what is to be short where layers can be dealt in several ways
//! @throws broken_schedule
void prove_order(step& read, const cost_options& given, const cost_cut& cut, no_step* why = nullptr,
                 schedule::objective_kind objective = schedule::objective_kind::flush);
//! Takes what data-parallel replicas do together out of it. The order stays as it was made for it.
void leave_out_replicas(step& made);
//! The compute lists with sends and receives; the lists themselves if they hold messages.
//! @throws broken_schedule when the messages break a rule
job_lists with_messages(const step& from);
//! The same of a generated step as PyTorch's runtime wants it (plan/csv_comms.hpp).
//! @param gathered  of how many stages at once a rank has the weights
job_lists with_pytorch_comms(const step& from, int gathered);

//! A step's report with its ranks and its timeline (as stretto::measure has them), which may be
//! left out.
struct simulated {
  report all;
  std::vector<rank_report> ranks;
  std::vector<job_time> timeline;
};
simulated simulate(const step& from, bool with_timeline = true);
//! How much shorter the step were, were all weights there at once.
std::int64_t by_gathers(const step& from, const report& all);
//! @throws bad_input for --gathered where nothing is
void refuse_nothing_gathered(const step_options& options, const step& made);

}  // namespace stretto::tool
