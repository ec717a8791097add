#pragma once

#include <cstdint>

#include "stretto/model/cost.hpp"
#include "stretto/schedule/concept.hpp"

namespace stretto::schedule {

//! The jobs of one micro-batch on one rank of a V of two chunks, in the order in which it passes
//! them; the backwards for the weights last.
enum v_stream : std::int8_t {
  v_down,          //!< forward of the first chunk
  v_up,            //!< forward of the second
  v_back_down,     //!< backward, or that for the input, of the second chunk
  v_back_up,       //!< and of the first
  v_weight_upper,  //!< backward for the weights of the second chunk
  v_weight_lower,  //!< and of the first
};
inline constexpr int v_streams = 6;

//! Slots in which a rank does all jobs of one micro-batch. A slot is a forward, a backward for the
//! input, or one for the weights; a whole backward takes two.
inline constexpr int v_period = 6;

//! A rank's part of the building block of a V schedule: the slots of micro-batch 0, one a stream.
//! Micro-batch i follows i periods later. What is kept at once, and so the memory, follows from how
//! many periods lie between a forward and the end of its backward. Qi et al. 2024, "Pipeline
//! Parallelism with Controllable Memory".
struct v_block {
  std::int32_t at[v_streams] = {};
  bool whole = false;  //!< backwards are not split: the last two streams are empty

  //! Puts the backwards for the weights into the slots that the others leave.
  //! @return false when two of those meet in a slot
  constexpr bool add_weights() {
    unsigned used = 0;
    bool apart = true;
    for (int stream = 0; stream < v_weight_upper; ++stream) {
      const unsigned slot = 1u << at[stream] % v_period;
      apart = apart && (used & slot) == 0;
      used |= slot;
    }
    for (int stream = v_weight_upper; stream < v_streams; ++stream) {
      std::int32_t slot = at[stream - 2] + 1;
      while ((used >> slot % v_period & 1u) != 0) ++slot;
      used |= 1u << slot % v_period;
      at[stream] = slot;
    }
    return apart;
  }
  //! The slot after which a chunk's activations are gone.
  constexpr int released(int chunk) const {
    return whole ? at[v_back_up - chunk] + 1 : at[v_weight_lower - chunk];
  }
  //! Activations of a chunk that are kept in a slot, in an order of so many micro-batches.
  constexpr int kept(int slot, int microbatches) const {
    int sum = 0;
    for (int chunk = 0; chunk < 2; ++chunk)
      sum += begun(slot - at[v_down + chunk], microbatches) -
             begun(slot - released(chunk) - 1, microbatches);
    return sum;
  }
  //! The most of them. What is kept grows until the first are gone, and falls once the last
  //! micro-batch has begun.
  constexpr int most_kept(int microbatches) const {
    int most = 0;
    for (int slot = 0; slot < v_period; ++slot) {
      const int last = kept(at[v_down] + v_period * (microbatches - 1) + slot, microbatches);
      const int first = kept(released(1) - slot, microbatches);
      most = last > most ? last : most;
      most = first > most ? first : most;
    }
    return most;
  }

 private:
  static constexpr int begun(int slots, int microbatches) {
    const int count = slots < 0 ? 0 : slots / v_period + 1;
    return count < microbatches ? count : microbatches;
  }
};

//! How a block with split backwards is laid. The first chunk's forwards and the second's backwards
//! go `fast` slots a rank into ranks 1 to `ranks`, and `slow` into later ones; the others go one.
//! More slots keep more activations and leave less bubble.
struct v_steps {
  int fast = 1;
  int slow = 1;
  int ranks = 0;
  int up = 0;    //!< slots left free where the way down ends,
  int back = 0;  //!< before the way back,
  int home = 0;  //!< and where that turns

  //! The block of one of p ranks.
  //! @return false when two streams meet in a slot
  constexpr bool lay(int p, int rank, v_block& block) const {
    const int down = slots_to(p - 1);
    const int upwards = down + 1 + up;
    const int backwards = upwards + p + back;
    const int there = slots_to(rank);
    const int rest = p - 1 - rank;
    block = {.at = {there, upwards + rest, backwards + there, backwards + down + 1 + home + rest}};
    return block.add_weights();
  }

 private:
  constexpr int slots_to(int rank) const {
    return rank < ranks ? rank * fast : ranks * fast + (rank - ranks) * slow;
  }
};

//! Lays the blocks of all ranks.
//! @return false when two streams of a rank meet in a slot
constexpr bool lay(const v_steps& steps, int p, v_block* blocks) {
  bool apart = true;
  for (int rank = 0; rank < p; ++rank) apart = steps.lay(p, rank, blocks[rank]) && apart;
  return apart;
}

//! The most activations of a chunk that any rank keeps.
constexpr int most_kept(const v_block* blocks, const shape& sizes) {
  int most = 0;
  for (int rank = 0; rank < sizes.ranks; ++rank) {
    const int kept = blocks[rank].most_kept(sizes.microbatches);
    most = kept > most ? kept : most;
  }
  return most;
}

//! The job kind of a stream, and its chunk.
constexpr job_kind v_kind(int stream, bool whole) {
  if (stream < v_back_down) return job_kind::forward;
  if (stream >= v_weight_upper) return job_kind::backward_weight;
  return whole ? job_kind::backward : job_kind::backward_input;
}
constexpr int v_chunk(int stream) {
  return stream < v_back_down ? stream : (stream + 1) % 2;
}

}  // namespace stretto::schedule
