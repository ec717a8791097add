#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "catalogue.hpp"
#include "compare_options.hpp"
#include "compare_table.hpp"
#include "cost_cut.hpp"
#include "named_schedule.hpp"
#include "step.hpp"

namespace stretto::tool {

//! The rows of a comparison: every schedule in each cut of the model that it has, and orders that
//! are read.
class compare_rows : compare_options {
 public:
  //! @throws bad_input
  explicit compare_rows(const compare_options& asked);
  compare_rows(const compare_rows&) = delete;
  compare_rows& operator=(const compare_rows&) = delete;

  const comparison& common() const { return common_; }

  //! All rows, by as many threads as the machine runs at once: none knows of another. Searches take
  //! longest and begin first.
  //! @param limit  of every rank; empty: none but what costs say
  std::vector<compared> made_within(std::optional<std::int64_t> limit);

 private:
  //! A schedule, in slices and chunks that it has, or an order that is read.
  struct entrant {
    const named_schedule* made;
    shape cut;
    step* read;
  };

  //! Those that are named, in the catalogue's order and with their options in that in which they
  //! are told; or all.
  std::vector<named_schedule> chosen_schedules() const;
  //! Each with every number of chunks that is asked for and that it has; where it has none of
  //! these, with one that it has. What can be sliced stands there in every number of slices, and
  //! whole, too.
  void enter();
  //! The shape asked for, in as many slices if the schedule has any, and so many chunks.
  shape shape_of(const named_schedule& named, int chunks) const;
  //! The same in chunks that it has, if there are any.
  shape own_shape_of(const named_schedule& named) const;
  //! Multiplies costs, lest a part of them be rounded of so many chunks.
  //! @param refuse  is told why where that makes too many parts; throws
  template <class Refuse>
  void cut_costs(int chunks, const Refuse& refuse);
  cost_cut cut_into(int slices) const;
  //! @throws bad_input for an order of another shape, and where it cannot be cut
  void fit(const std::string& path, const step& read);

  compared run(const named_schedule& named, const shape& cut) const;
  //! The costs without what is told for orders of one's own, which run again or copy.
  cost_options said_of_schedules() const;
  //! An order of one's own, which is as it is.
  compared run(step& read) const;
  void measure(const step& made, compared& result) const;

  std::vector<named_schedule> chosen_;
  std::vector<entrant> entrants_;
  std::vector<step> read_;
  std::int64_t jobs_ = 0;  // of a kind, of the largest shape that is asked for
  comparison common_;
};

}  // namespace stretto::tool
