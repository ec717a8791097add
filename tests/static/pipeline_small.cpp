// Compiling is passing: pipelines with hardly anything in them, where some tables are empty.
#include "stretto/lowering/streams/all.hpp"
#include "stretto/memory/all.hpp"
#include "stretto/plan/pipeline.hpp"
#include "stretto/schedule/all.hpp"

namespace {

using stretto::pipeline;
using stretto::shape;
using stretto::assignment::unassigned;

template <shape Shape, class Schedule>
constexpr bool sound =
    stretto::valid<pipeline<Shape, Schedule>> &&
    stretto::valid<pipeline<Shape, Schedule, unassigned, stretto::memory::keep,
                            stretto::overlap::serial>>;

template <class... Schedules>
constexpr bool all_sound =
    (... && (sound<shape{.ranks = 1, .microbatches = 1}, Schedules> &&
             sound<shape{.ranks = 2, .microbatches = 1}, Schedules> &&
             sound<shape{.ranks = 3, .microbatches = 1}, Schedules>));

static_assert(all_sound<stretto::schedule::gpipe, stretto::schedule::one_f_one_b,
                        stretto::schedule::interleaved, stretto::schedule::inference>);

}  // namespace
