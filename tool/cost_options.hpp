#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "layers.hpp"
#include "stretto/model/cost.hpp"

namespace CLI {
class App;
}

namespace stretto::tool {

//! --gathered.
void add_gathered(CLI::App& command, std::optional<int>& most);
//! @throws bad_input for so few that a pair's halves have not theirs at once
[[noreturn]] void refuse_few_gathered(int gathered, const std::string& schedule);

//! --cost, --nodes, --serial-links, --whole-saves, --memory, --copy, --again, --reduce-grad,
//! --unshard, --gathered, --weights, --limit, --hides, --costs, and the model by layers.
struct cost_options {
  std::string cost;
  std::string nodes;
  bool serial_links = false;
  std::string memory;
  std::string copy;
  std::string again;
  std::string unshard;
  std::string costs_file;
  std::optional<std::int64_t> limit;
  std::string limits_text;  //!< --limit of a command that takes several, of which `limit` is one
  std::int64_t weights = 0;
  int hides = 0;  //!< percent of a pair's shorter half
  std::int64_t whole_saves = 0;  //!< time that a whole backward takes less than its halves
  std::int64_t reduce_grad = 0;  //!< time of a sum of gradients
  //! Whether what data-parallel replicas do together is part of the step: sums of gradients and
  //! gathers of weights, by options or by a file.
  bool replicas = false;
  //! Of how many stages at once a rank has weights that are gathered.
  std::optional<int> gathered;
  layer_options layers;

  //! What a command knows besides jobs that compute one by one.
  struct kinds {
    bool windows;  //!< copies to the host, and forwards that run again
    bool pairs;
    bool limits = false;  //!< several of them, each for a run of its own
    bool sums = false;     //!< of gradients
    bool gathers = false;  //!< of weights
  };
  void add(CLI::App& command, const kinds& beside);
  //! The same for a step; one of forwards alone keeps nothing unless --memory says so, whatever is
  //! said of layers; and then what no backward would give back (make_costs).
  //! @param copies  whether it copies to the host
  cost_options for_step(bool forward_only, bool copies) const;
  //! Whether --copy says how much a copy moves; else that is what the forward keeps.
  bool copies_told() const { return copy.find(',') != std::string::npos; }
  //! What --again says that a forward's second run takes, and that it brings back; what it does not
  //! say is as the forward has it.
  struct second_run {
    std::optional<std::int64_t> time, memory;
  };
  second_run second() const;
  //! What --cost, --nodes, --serial-links, --whole-saves, --memory, --copy, --reduce-grad,
  //! --unshard and --hides say of one job or layer.
  unit_costs units() const;
  //! Whether there is a choice of how layers are dealt: balanced ones.
  bool deals() const;
  //! The several limits, each once, the least first; empty: none.
  //! @throws bad_input
  std::vector<std::int64_t> several_limits() const;
  //! --limit for every rank; empty: none.
  std::vector<std::int64_t> limits(int ranks) const;
  //! @throws bad_input for --gathered where nothing is
  void refuse_nothing_gathered(bool gathers) const;
};

}  // namespace stretto::tool
