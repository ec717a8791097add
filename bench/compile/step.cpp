// What bench/compile measures: a step computed and proven up to PART.
//   0  the headers alone
//   1  jobs: emitted, and complete proven on them
//   2  lists: also ordered and live, and messages from one global order
//   3  plans: also streams, buffers, events, and all seven rules: stretto::valid
//   4  only whether the schedule serves the shape
// -DSCHEDULE=interleaved -DRANKS=8 -DMICROBATCHES=64 -DCHUNKS=2 -DSLICES=1 -DPART=3
#include "stretto/stretto.hpp"

using step = stretto::pipeline<
    stretto::shape{
        .ranks = RANKS, .microbatches = MICROBATCHES, .chunks = CHUNKS, .slices = SLICES},
    stretto::schedule::SCHEDULE>;

#if PART == 1
static_assert(stretto::check::complete(step::compute()).ok());
#endif
#if PART == 2
static_assert(step::lists().total() > step::jobs().total());
#endif
#if PART == 3
static_assert(stretto::valid<step>);
#endif
#if PART == 4
static_assert(step::supported.ok());
#endif
