// What bench/compile measures: a step computed and proven up to PART.
//  -2  a short file of everybody's: one std::regex and a match
//  -1  all headers of the library, alone
//   0  the headers that a proof needs, alone
//   1  order: jobs emitted, complete, ordered, live and bounded proven on them, and their nodes put
//      in one order
//   2  lowering: messages added in that order, lists with ends, what they order, plans written
//   3  checks: the lists proven and what the written plans order, race-free, spare:
//      stretto::valid
//   4  only whether the schedule serves the shape
// -DSCHEDULE=interleaved -DRANKS=8 -DMICROBATCHES=64 -DCHUNKS=2 -DSLICES=1 -DPART=3
#if PART == -2
#include <regex>

bool found(const char* text) {
  return std::regex_search(text, std::regex("a(b|c)*d"));
}
#else

#if PART < 0
#include "stretto/stretto.hpp"
#else
#include "stretto/plan/pipeline.hpp"
#define QUOTED(name) #name
#define HEADER_OF(name) QUOTED(stretto/schedule/name.hpp)
#include HEADER_OF(SCHEDULE)
#endif

using step = stretto::pipeline<
    stretto::shape{
        .ranks = RANKS, .microbatches = MICROBATCHES, .chunks = CHUNKS, .slices = SLICES},
    stretto::schedule::SCHEDULE>;

// As `valid` asks, which nvcc does once.
template <class Step>
struct ordered {
  static constexpr stretto::verdict checked = Step::scheduled;
};
template <class Step>
struct lowered {
  static constexpr stretto::verdict checked =
      Step::written()[RANKS - 1].instructions.size() > 1
          ? Step::scheduled
          : stretto::refuse(stretto::fault::incomplete, stretto::reason::missing);
};

#if PART == 1
static_assert(stretto::valid<ordered<step>>);
#endif
#if PART == 2
static_assert(stretto::valid<lowered<step>>);
#endif
#if PART == 3
static_assert(stretto::valid<step>);
#endif
#if PART == 4
static_assert(step::supported.ok());
#endif

#endif
