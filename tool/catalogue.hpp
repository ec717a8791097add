#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "stretto/memory/windows.hpp"
#include "stretto/model/cost.hpp"
#include "stretto/model/placement.hpp"
#include "stretto/model/rows.hpp"
#include "stretto/model/shape.hpp"
#include "stretto/model/verdict.hpp"
#include "stretto/schedule/options.hpp"

namespace stretto::tool {

//! --gathered, when it is not given.
inline constexpr int default_gathered = 3;

//! What the command line says about a schedule beyond its shape.
struct schedule_options : schedule::options, memory::windows {
  //! Of how many stages at once a rank has the weights, where they are gathered.
  int gathered = default_gathered;
};

//! What a schedule can be asked for, found by trying it.
struct schedule_facts {
  std::string name;
  std::vector<int> chunks;  //!< per rank, of 1 to 3: those that it serves
  bool slices = false;      //!< cuts micro-batches in slices
  bool forward_only = false;
  bool searches = false;             //!< its order, among several, within limits
  std::vector<std::string> options;  //!< as the command line spells them
};

//! A schedule's lists, where its stages lie, and what it says of the shape (`refused`: it does not
//! serve it) or of the costs.
struct generated {
  verdict answer;
  bool refused = false;
  bool room = false;  //!< limits left room for weights that might not be there at once
  job_lists lists;
  placement where;
  job_table costs;
};

//! Every schedule of the library's list.
std::vector<schedule_facts> catalogue();
//! `gpipe, 1f1b, ...`
std::string schedule_names();
//! @throws bad_input that names all there are
[[noreturn]] void refuse_name(const std::string& name);
//! Among how many orders the schedule of that name chooses; empty: there is none.
std::optional<int> orders_of(const std::string& name);
//! Whether there is such a schedule, and no job of it has a backward.
bool is_forward_only(const std::string& name);

//! Whether there is such a schedule, and limits decide on its order.
bool searches(const std::string& name);
//! Whether the schedule of that name serves the shape, with options that it has.
verdict serves(const std::string& name, const shape& sizes, const schedule::options& told = {});

//! Whether any job of a kind takes time or memory.
bool takes(const job_table_view& costs, job_kind kind);

//! Runs the schedule of that name, under the job table that `costs` makes for its placement, with
//! recomputes and copies folded into it, and puts those into its lists. Limits that it keeps leave
//! room for the most weights that are gathered at once; lists do not say where they are.
//! @throws bad_input when there is no such schedule, it has no such option, or a window is refused
generated generate(const std::string& name, const shape& sizes, const schedule_options& options,
                   const std::function<job_table(const placement&)>& costs);

}  // namespace stretto::tool
