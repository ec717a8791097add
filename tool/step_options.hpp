#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "catalogue.hpp"
#include "cost_options.hpp"
#include "stretto/memory/windows.hpp"
#include "stretto/model/shape.hpp"

namespace CLI {
class App;
class Option;
}

namespace stretto::tool {

//! Of which options a command takes several numbers.
enum class several { none, cuts, shapes };  // of chunks and slices; of ranks and micro-batches, too

//! --ranks, --microbatches, --chunks, --slices.
struct shape_options {
  int ranks = 0;
  int microbatches = 0;
  // Of a command that takes several, upwards.
  std::vector<int> all_ranks;
  std::vector<int> all_microbatches;
  std::optional<int> chunks;  //!< not given: one, or as many as the schedule must have
  std::vector<int> all_chunks;  //!< of a command that takes several, the first of which is `chunks`
  int slices = 1;
  std::vector<int> all_slices;  //!< of a command that takes several, downwards from `slices`

  //! @param required  whether the command cannot do without
  void add(CLI::App& command, bool required, several of = several::none);
  //! @param schedule  whose shape it is; empty: of none in particular
  //! @throws bad_input for a shape with more jobs than the library serves
  shape sizes(const std::string& schedule = {}) const;
  //! The same of a schedule's name that may have been left out, as may ranks and micro-batches, for
  //! a file.
  //! @throws bad_input for what is missing, and for a name that no schedule has
  shape named(const std::string& schedule) const;
};

//! Plans take one to three kilobytes for each job of a kind, and all ranks' are held at once.
inline constexpr std::int64_t most_planned = 4'000'000;
//! @param csv  the file that the step is from; empty: from none
//! @throws bad_input for a step with more jobs of a kind than that
void refuse_unplanned(const shape& sizes, const std::string& csv = {});

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
//! --recompute and --offload, either of which may be auto: as much as makes the step shortest
//! within its limit.
struct window_options {
  std::string recompute = "none";
  std::string offload = "none";

  //! @return the two options
  std::array<CLI::Option*, 2> add(CLI::App& command);
  //! The most that may be put in: of auto all.
  //! @throws bad_input for what cannot be read, and for any of a schedule of forwards alone
  memory::windows of(const std::string& schedule) const;
  //! Whether there is a choice.
  bool searched() const { return recompute == automatic || offload == automatic; }
  //! All that may be put in, the least first; one where there is no choice.
  //! @throws bad_input as of(), and for a choice without a limit, or of both at once
  std::vector<memory::windows> choices(const std::string& schedule, int microbatches,
                                       const cost_options& costs) const;

 private:
  static constexpr const char* automatic = "auto";
};

//! The options that name a step to work on: a schedule and its shape, or an imported file.
struct step_options {
  std::string name;
  std::string csv;
  std::string csv_option = "--csv";  //!< as errors about the file name it
  shape_options sizes;
  std::string placement;
  std::string remainder;
  std::string warmup;
  std::string backwards;
  std::string split;
  std::string objective;
  std::string merge = "none";
  window_options windows;
  std::optional<int> group;
  std::optional<int> variant;
  std::optional<int> receive_lead;
  cost_options costs;

  //! @param sums     whether the command tells of sums of gradients over replicas,
  //! @param gathers  and of gathers of weights from them
  void add(CLI::App& command, bool sums = false, bool gathers = false);
  schedule_options schedule() const;
  //! @throws bad_input for what is said of backwards, of which a step of forwards alone has none
  void refuse_of_backwards(const std::string& schedule) const;
};

}  // namespace stretto::tool
