// What bench/compile measures: a step computed and proven up to PART.
//   0  the headers alone
//   1  jobs: emitted, and complete, ordered, live and bounded proven on them
//   2  lists: also messages from one global order
//   3  plans: also streams, buffers, events, and all seven rules: stretto::valid
//   4  only whether the schedule serves the shape
// -DSCHEDULE=interleaved -DRANKS=8 -DMICROBATCHES=64 -DCHUNKS=2 -DSLICES=1 -DPART=3
#include "stretto/stretto.hpp"

using step = stretto::pipeline<
    stretto::shape{
        .ranks = RANKS, .microbatches = MICROBATCHES, .chunks = CHUNKS, .slices = SLICES},
    stretto::schedule::SCHEDULE>;

#if PART == 1 || PART == 2
// A constant each: compilers count their limits per constant.
constexpr stretto::verdict complete = stretto::check::complete(step::compute());
constexpr stretto::verdict ordered = stretto::check::ordered(step::compute());
constexpr stretto::verdict live = stretto::check::live(step::compute());
constexpr stretto::verdict bounded = stretto::check::bounded(step::compute());
static_assert(complete.ok() && ordered.ok() && live.ok() && bounded.ok());
#endif
#if PART == 2
constexpr long long entries = step::lists().total();
static_assert(entries > step::jobs().total());
#endif
#if PART == 3
static_assert(stretto::valid<step>);
#endif
#if PART == 4
static_assert(step::supported.ok());
#endif
