#pragma once

namespace stretto::schedule {

//! How one pass in rounds decides.
struct round_rules {
  bool lean = false;          //!< ZB-V's warm-up and order of backwards (v = 2); else ZB-VPP's,
  bool first = false;         //!< as it was first published
  bool fill_back = false;     //!< a gap before a backward may take more than it holds,
  bool fill_forward = false;  //!< and one before a forward
  //! Before backwards on the rank of the last stage a gap need hold but a fifth.
  bool fill_loss = false;
  //! A gap may be too short, or a rank idle for too long, by as much as a message takes.
  bool spare_hop = false;
};

}  // namespace stretto::schedule
