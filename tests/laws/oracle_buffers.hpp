#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "stretto/model/plan_view.hpp"

//! What one rank's plan does to bytes, whatever the buffers are called.
namespace oracle {

enum class flaw {
  none,
  unmatched,  //!< a send and a receive of the same number differ, or one of them is missing
  channel,    //!< one end of a channel lies on several streams: nothing numbers its messages
  bad_event,  //!< waited for and not recorded before, or recorded twice
  lifetime,   //!< a buffer is used outside its life or the rank's memory, or shares bytes with one
              //!< that lives
  stale,      //!< a read finds what another buffer has left, or nothing
  circle,     //!< instructions wait for each other
  race,       //!< two accesses to the same bytes, one a write, are not ordered
  gate,       //!< an instruction may run before its rank's previous step has ended
  release,    //!< a buffer is given back before its last access is done, or used again before that
  bound,      //!< the step may end while an instruction of its rank runs
  lead,       //!< a receive may be posted too far ahead of the node that it is for
};

inline const char* name(flaw what) {
  constexpr const char* names[] = {"none",  "unmatched", "channel", "bad_event", "lifetime",
                                   "stale", "circle",    "race",    "gate",      "release",
                                   "bound", "lead"};
  return names[static_cast<int>(what)];
}

struct finding {
  flaw what = flaw::none;
  int rank = -1;
  int index = -1;
  int other = -1;

  std::string words() const {
    return std::string(name(what)) + " on rank " + std::to_string(rank) + ", instructions " +
           std::to_string(index) + " and " + std::to_string(other);
  }
};

//! Two accesses to a common byte, one of them a write, that must be ordered.
struct access_pair {
  int one;
  int other;       //!< not before `one` in the list
  bool same_step;  //!< they are two instructions, so the same step holds both
};

//! Whether every buffer is used within its life, shares no byte with another that lives, and is
//! read with what was written to it; fills `pairs`.
inline finding look_at_buffers(const stretto::plan_view& plan, std::vector<access_pair>& pairs) {
  struct access_at {
    int index;
    std::int32_t buffer;
    stretto::access mode;
  };
  std::vector<std::int64_t> borders;
  const auto buffers = plan.buffers;
  for (std::size_t one = 0; one < buffers.size(); ++one) {
    borders.push_back(buffers[one].offset);
    borders.push_back(buffers[one].offset + buffers[one].bytes);
    for (std::size_t other = 0; other < one; ++other)
      if (buffers[one].offset < buffers[other].offset + buffers[other].bytes &&
          buffers[other].offset < buffers[one].offset + buffers[one].bytes &&
          buffers[one].first < buffers[other].release &&
          buffers[other].first < buffers[one].release)
        return {flaw::lifetime, plan.rank, buffers[other].first, buffers[one].first};
  }
  std::sort(borders.begin(), borders.end());
  borders.erase(std::unique(borders.begin(), borders.end()), borders.end());
  std::vector<std::vector<access_at>> pieces(borders.size());
  int index = 0;
  for (const auto& at : plan.instructions) {
    for (const auto& use : plan.uses_of(at)) {
      const auto& bytes = buffers[static_cast<std::size_t>(use.buffer)];
      if (index < bytes.first || index >= bytes.release ||
          (bytes.bytes > 0 &&
           (bytes.offset < 0 || bytes.offset + bytes.bytes > plan.arena_bytes + plan.host_bytes)))
        return {flaw::lifetime, plan.rank, index, -1};
      for (std::size_t k = 0; k + 1 < borders.size(); ++k)
        if (bytes.offset <= borders[k] && borders[k + 1] <= bytes.offset + bytes.bytes)
          pieces[k].push_back({index, use.buffer, use.mode});
    }
    ++index;
  }
  for (const auto& accesses : pieces) {
    std::int32_t owner = -1;
    for (std::size_t one = 0; one < accesses.size(); ++one) {
      const auto& now = accesses[one];
      if (now.mode != stretto::access::write && owner != now.buffer)
        return {flaw::stale, plan.rank, now.index, -1};
      if (now.mode != stretto::access::read) owner = now.buffer;
      for (std::size_t other = 0; other <= one; ++other)
        if (now.mode != stretto::access::read || accesses[other].mode != stretto::access::read)
          pairs.push_back({accesses[other].index, now.index, accesses[other].index != now.index});
    }
  }
  return {};
}

}  // namespace oracle
