#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "stretto/model/program.hpp"
#include "stretto/model/replay_input.hpp"

namespace stretto::tool {

//! What a rank needs while a step runs, in bytes, weights aside.
struct rank_memory {
  std::int64_t saved = 0;     //!< the most at once that forwards save for backwards,
  std::int64_t messages = 0;  //!< and that messages take, from their receive or the job that makes
                              //!< them until they are used up, or known as taken by the peer,
  std::int64_t sums = 0;      //!< and that copies of gradients take which replicas sum
  std::int64_t arena = 0;     //!< all three, as a plan lays them: seldom more than their sum
  std::int64_t working = 0;   //!< the most that a job needs beside, while it runs
  std::int64_t host = 0;      //!< what the host keeps of the saved
};

//! The chain of a rank; the last argument: with recomputes.
using chain_maker = std::function<program_chain(int rank, bool split, bool again)>;

//! What forwards save for backwards, messages aside, of every chunk of the rank; where those are
//! split, what that for the weights does not read: what an offload moves.
//! @throws as below
std::vector<std::int64_t> stash_by_chunk(const placement& where, int rank, const chain_maker& chain,
                                         bool split);

//! What plans sum over replicas of stages, of each stage once, and over the two ends.
struct summed_gradients {
  std::vector<std::int64_t> bytes;  //!< of every stage's copies; 0: it is summed in place
  std::int64_t of_ends = 0;         //!< the ranks of the first and of the last stage have both
  bool data_parallel = false;       //!< all ranks have replicas, not only those of two directions
};

//! What plans of these compute lists need.
//! @param message  bytes of what goes from stage to stage
//! @throws broken_schedule when a plan breaks a rule, bad_input for a chain that is not sound
std::vector<rank_memory> measure_plans(const replay_input& compute, std::int64_t message,
                                       const chain_maker& chain, const summed_gradients& summed);

}  // namespace stretto::tool
