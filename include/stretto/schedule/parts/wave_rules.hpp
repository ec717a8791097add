#pragma once

#include <cstdint>

namespace stretto::schedule {

//! Whether a backward for the weights may fill a gap that it does not fit, and so delay what comes.
enum class fill_kind : std::uint8_t {
  fits,    //!< no
  fifth,   //!< when the gap is at least a fifth of it
  slack,   //!< when the gap would make its rank the one with the most idle time
  always,  //!< yes
};

//! How one greedy pass over a wave of chunks decides.
struct wave_rules {
  //! Forwards of a chunk that may be ahead of the next chunk on the rank: this many twelfths of the
  //! hops that lie between the two, rounded up, plus `extra`. 0: no such limit.
  int window = 12;
  int last_window = 12;  //!< the same for the last chunk, ahead of its own backward
  int extra = 0;
  fill_kind before_forward = fill_kind::fits;
  fill_kind before_backward = fill_kind::fits;
  bool alternate = true;  //!< a backward after a forward and the other way round, if there is one
  bool upper_first = false;  //!< of two backwards that of the later chunk goes first
  bool first_wave = false;   //!< micro-batch 0 does not wait for forwards of others
  //! A forward waits for a gradient that will be there within 1 / this of its time; 0: it does not.
  int patience = 0;
  bool patient_forward = false;  //!< also for a forward of a later chunk
  bool spare_busiest = false;    //!< ranks with the most work do not wait, and fill a fifth's gaps
  bool fixed = false;            //!< forwards and backwards in the fixed order of ZB-V (v = 2)
};

}  // namespace stretto::schedule
