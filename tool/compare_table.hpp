#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "finer_unit.hpp"
#include "links.hpp"
#include "simulated.hpp"
#include "stretto/model/bound.hpp"

namespace stretto::tool {

//! One row of `compare`.
struct compared {
  std::string name;
  std::string file;  //!< that an order is read from, as typed; empty: it is a schedule's
  bool forward_only = false;
  int chunks = 1;
  int slices = 1;
  no_step why;  //!< it is not there
  simulated all;
  std::vector<std::int32_t> layers;      //!< of every stage, where the costs are layers'
  std::optional<std::int64_t> made_for;  //!< a smaller limit than the run's; else for that
  memory::windows put{};                 //!< between its jobs
  std::vector<memory::windows> choices{};  //!< of which that was taken
  // What the bounds are of.
  placement parts;
  job_table costs;
  std::int64_t own_work = 0;  //!< of a file's busiest rank, where its forwards run again
  step_bound bound;
  step_bound least_bound;       //!< whichever of the choices is put in
  bool sums = false;            //!< of gradients, which are part of its step
  bool gathers = false;         //!< of weights, the same
  std::int64_t by_gathers = 0;  //!< how much longer these make it
  link_load link;               //!< with the most messages

  std::int64_t peak() const;
  //! Of forwards alone there is none.
  void find_bound();
};

//! All of them within one limit, or without any.
struct comparison_run {
  std::vector<compared> all;
  std::vector<compared> absent;  //!< those with a reason why they are not in the table
};

//! What all rows have in common, and how they are told.
struct comparison {
  shape wanted;
  finer_unit time;
  finer_unit memory;
  memory::windows put{};        //!< between the jobs of each schedule that trains
  bool put_searched = false;    //!< or as much of it as makes each shortest within its limit
  bool spans = false;           //!< what is to be short is the longest rank's first to last job
  bool layers = false;          //!< costs are those of layers
  bool several_chunks = false;  //!< a schedule may stand there more than once
  std::vector<int> slices{1};   //!< that are asked for, downwards; it may stand there in each

  //! " in slices", and of several how many, of one that is cut in some.
  std::string in_slices(const compared& one) const;
  std::int64_t length(const compared& one) const {
    return spans ? one.all.all.span : one.all.all.makespan;
  }
  //! Idle of the worst rank, a part of that.
  double bubble(const compared& one) const {
    return (spans ? one.all.all.span_bubble : one.all.all.bubble).value();
  }
  std::int64_t bound(const compared& one) const { return spans ? one.bound.span : one.bound.flush; }
  std::int64_t least_bound(const compared& one) const {
    return spans ? one.least_bound.span : one.least_bound.flush;
  }

  //! Of several limits what each leaves of what is to be short, in the order of the last.
  //! @param runs  one for each of the limits; without any, one
  std::string table(const std::vector<std::int64_t>& limits,
                    const std::vector<comparison_run>& runs) const;
  std::string json(const std::vector<std::int64_t>& limits,
                   const std::vector<comparison_run>& runs) const;
  //! A list of all that is known of each row.
  nlohmann::ordered_json rows_of(const comparison_run& made) const;
  //! Why it is not there.
  std::string reason_of(const compared& one) const;

 private:
  std::string table_of(const comparison_run& made) const;
  //! Which rows' messages a link could not carry one after the other within the step.
  std::string line_of_links(const comparison_run& made) const;
  std::string lines_of_absent(const comparison_run& made) const;
  //! What is put in, and how much of it a row has.
  std::string put_name() const;
  std::string put_text(const memory::windows& of) const;
  //! The cells that say which schedule this is, and how it cuts the model.
  std::vector<std::string> name_cells(const compared& one) const;
  std::vector<std::string> name_titles() const;
  //! Which one it is, where there is no column of chunks.
  std::string name_of(const compared& one) const;
  std::string scale(const compared& one) const;
};

}  // namespace stretto::tool
