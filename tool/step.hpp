#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "catalogue.hpp"
#include "costs.hpp"
#include "finer_unit.hpp"
#include "stretto/model/replay.hpp"
#include "stretto/plan/csv.hpp"
#include "stretto/plan/report.hpp"

namespace CLI {
class App;
class Option;
}

namespace stretto::tool {

//! --ranks, --microbatches, --chunks, --slices.
struct shape_options {
  int ranks = 0;
  int microbatches = 0;
  std::optional<int> chunks;  //!< not given: one, or as many as the schedule must have
  int slices = 1;

  //! @param required whether the command cannot do without
  void add(CLI::App& command, bool required);
  //! @param schedule  whose shape it is; empty: of none in particular
  //! @throws bad_input for a shape with more jobs than the library serves
  shape sizes(const std::string& schedule = {}) const;
};

//! Plans take one to three kilobytes for each job of a kind, and all ranks' are held at once.
inline constexpr std::int64_t most_planned = 4'000'000;
//! @param title  what an error calls the step
//! @throws bad_input for a step with more jobs of a kind than that
void refuse_unplanned(const std::string& title, const shape& sizes);

//! @throws bad_input naming the option that the refusal of a shape speaks of
[[noreturn]] void refuse_shape(const std::string& name, reason why, const shape& sizes,
                               const schedule_options& options);
//! "1 rank", "2 ranks".
std::string count_of(int count, const std::string& what);

//! --merge, of any schedule.
CLI::Option* add_merge(CLI::App& command, std::string& word);
//! --offload, as memory/window_text.hpp reads it.
CLI::Option* add_offload(CLI::App& command, std::string& text);
//! @throws bad_input naming option, value and rule
memory::offload_window read_offload(const std::string& text, const std::string& schedule);

//! The options that name a step to work on: a schedule and its shape, or an imported file.
struct step_options {
  std::string name;
  std::string csv;
  std::string csv_option = "--csv";  //!< as errors about the file name it
  shape_options sizes;
  std::string placement;
  std::string remainder;
  std::string warmup;
  std::string split;
  std::string objective;
  std::string merge = "none";
  std::string offload = "none";
  std::optional<int> group;
  std::optional<int> variant;
  std::optional<int> receive_lead;
  std::optional<int> gathered;  //!< of a file: of how many stages at once a rank may hold weights
  cost_options costs;

  //! @param from_file whether --csv may stand in for a name and a shape
  void add(CLI::App& command, bool from_file);
  schedule_options schedule() const;
};

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
  std::optional<imported_schedule> imported;

  replay_input input() const;
};

//! Makes or reads the step and holds it against every rule.
//! @param finer  times are in a unit of which pairs hide whole ones; else what is rounded is
//! refused
//! @throws bad_input, broken_schedule
step make_step(const step_options& options, bool finer = false);
//! The same for a generated step alone, by its parts. With `why`, a shape that the schedule does
//! not serve, or limits that it does not keep (see `fullest`), are told there and not thrown.
std::optional<step> make_step(const std::string& name, const shape& sizes,
                              const schedule_options& options,
                              const std::function<job_table(const placement&)>& costs,
                              verdict* why = nullptr);
//! What a file in PyTorch's CSV holds, without costs, and held against no rule yet.
//! @param option  which names it
//! @throws bad_input, broken_schedule
step read_order(const std::string& option, const std::string& path);
//! Gives what is read its costs and holds it against every rule.
//! @param why  as above; null: limits that it does not keep are thrown, too
//! @param most_gathered  see verify()
//! @throws broken_schedule
void prove_order(step& read, job_table costs, verdict* why = nullptr,
                 int most_gathered = std::numeric_limits<int>::max());
//! The compute lists with sends and receives; the lists themselves if they hold messages.
//! @throws broken_schedule when the messages break a rule
job_lists with_messages(const step& from);
//! The same of a generated step as PyTorch's runtime wants it (plan/csv_comms.hpp).
job_lists with_pytorch_comms(const step& from);

//! A step's report with its ranks and its timeline (as stretto::measure has them), which may be
//! left out.
struct simulated {
  report all;
  std::vector<rank_report> ranks;
  std::vector<job_time> timeline;
};
simulated simulate(const step& from, bool with_timeline = true);

}  // namespace stretto::tool
