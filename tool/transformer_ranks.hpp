#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "rank_memory.hpp"
#include "recomputation.hpp"
#include "stretto/assignment/described.hpp"
#include "stretto/model/cost.hpp"
#include "stretto/model/placement.hpp"
#include "transformer_options.hpp"

namespace stretto::tool {

//! A transformer whose layers are dealt to the stages of a step: what its ranks run, and what that
//! keeps and needs.
struct transformer_ranks {
  const transformer_options& of_model;  //!< settled
  std::string layers_text;              //!< --layers
  assignment::described how;            //!< what it says
  recomputation recompute{};
  bool forward_only = false;

  //! What every stage has. In a layout E and L are where embedding and head are in any case; of a
  //! head in pieces these are the last of --layers.
  //! @throws bad_option of --layers, which cannot be dealt so
  std::vector<transformer_part> dealt(const placement& where) const;

  //! The maker outlives neither this nor `of_model`.
  chain_maker chains(const placement& where) const;

  //! Whether copies of gradients are summed over ranks: in single precision, which those that are
  //! in it need none for.
  bool copies_sums(const placement& where) const;
  summed_gradients summed(const placement& where) const;

  //! Bytes of what goes from stage to stage.
  std::int64_t message() const;

  //! What jobs keep and need, and ranks hold; no times.
  //! @param unsound  is told why a chain is not sound, if one is not
  //! @param split    whether backwards are, for what copies move
  //! @param copies   what a stage saves goes to the host
  job_table job_costs(const placement& where, verdict& unsound, bool split, bool copies) const;

 private:
  //! Whether those of stages are, over their replicas; and those of a table that both ends have,
  //! over the ranks of these.
  bool sums_stages(const placement& where) const;
  bool sums_ends(const placement& where) const;
  std::int64_t state_bytes(const placement& where, int rank,
                           const std::vector<transformer_part>& parts) const;
  //! @param again  with the recomputes that are asked for, if they are jobs of their own
  program_chain chain_of(const placement& where, int rank,
                         const std::vector<transformer_part>& parts, bool split, bool again) const;
  //! Each buffer may be small enough, and all of a job's not.
  void refuse_huge_jobs(const placement& where, int rank, const job_table& table) const;
};

}  // namespace stretto::tool
