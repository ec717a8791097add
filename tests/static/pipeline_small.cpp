// Compiling is passing: pipelines with hardly anything in them, where some tables are empty.
#include <cstdint>

#include "stretto/lowering/streams/all.hpp"
#include "stretto/memory/all.hpp"
#include "stretto/plan/pipeline.hpp"
#include "stretto/schedule/all.hpp"

namespace {

using stretto::pipeline;
using stretto::shape;
using stretto::assignment::unassigned;

template <shape Shape, class Schedule>
constexpr bool sound = stretto::valid<pipeline<Shape, Schedule>>&& stretto::valid<
    pipeline<Shape, Schedule, unassigned, stretto::memory::keep, stretto::overlap::serial>>;

template <class... Schedules>
constexpr bool all_sound = (... && (sound<shape{.ranks = 1, .microbatches = 1}, Schedules> &&
                                    sound<shape{.ranks = 2, .microbatches = 1}, Schedules> &&
                                    sound<shape{.ranks = 3, .microbatches = 1}, Schedules>));

static_assert(all_sound<stretto::schedule::gpipe, stretto::schedule::one_f_one_b,
                        stretto::schedule::interleaved, stretto::schedule::inference>);

// Slices, of backwards that are whole, in pairs and split.
static_assert(sound<shape{.ranks = 2, .microbatches = 2, .slices = 3}, stretto::schedule::zb_h1> &&
              sound<shape{.ranks = 3, .microbatches = 2, .chunks = 2, .slices = 2},
                    stretto::schedule::interleaved> &&
              sound<shape{.ranks = 2, .microbatches = 2, .chunks = 2, .slices = 2},
                    stretto::schedule::paired_1f1b> &&
              sound<shape{.ranks = 2, .microbatches = 3, .chunks = 2, .slices = 2},
                    stretto::schedule::interleaved_zb>);

// Forwards that run a second time, all of them or two of three, with as much as others or less;
// pairs, too.
template <int Period, int Count, int Passing = -1>
struct again : stretto::memory::release_early {
  constexpr stretto::stage_bytes bytes(int) const { return {.kept = 64, .passing = Passing}; }
  constexpr stretto::memory::recompute_window recompute() const { return {Period, Count}; }
};
template <shape Shape, class Schedule>
constexpr bool sound_again = stretto::valid<pipeline<Shape, Schedule, unassigned, again<1, 1>>>&&
    stretto::valid<pipeline<Shape, Schedule, unassigned, again<3, 2>>>&&
        stretto::valid<pipeline<Shape, Schedule, unassigned, again<1, 1, 0>>>&&
            stretto::valid<pipeline<Shape, Schedule, unassigned, again<3, 2, 100>>>;
static_assert(sound_again<shape{.ranks = 4, .microbatches = 8}, stretto::schedule::one_f_one_b>);
static_assert(
    sound_again<shape{.ranks = 2, .microbatches = 4, .chunks = 2}, stretto::schedule::zbv_greedy>);
static_assert(sound_again<shape{.ranks = 4, .microbatches = 8}, stretto::schedule::dualpipe>);

// What forwards save kept by the host, of all or of two of three; on one stream, too.
template <int Period, int Count>
struct away : stretto::memory::release_early {
  constexpr stretto::memory::offload_window offload() const { return {{Period, Count}}; }
};
template <shape Shape, class Schedule>
constexpr bool sound_away = stretto::valid<pipeline<Shape, Schedule, unassigned, away<1, 1>>>&&
    stretto::valid<pipeline<Shape, Schedule, unassigned, away<3, 2>>>&&
        stretto::valid<pipeline<Shape, Schedule, unassigned, away<1, 1>, stretto::overlap::serial>>;
static_assert(sound_away<shape{.ranks = 4, .microbatches = 8}, stretto::schedule::one_f_one_b>);
static_assert(
    sound_away<shape{.ranks = 2, .microbatches = 4, .chunks = 2}, stretto::schedule::zbv_greedy>);
static_assert(sound_away<shape{.ranks = 4, .microbatches = 8}, stretto::schedule::dualpipe>);
static_assert(sound_away<shape{.ranks = 1, .microbatches = 1}, stretto::schedule::gpipe>);

// Receives with a lead, on streams of their own and on one; a pair's inputs, too.
template <shape Shape, class Schedule>
constexpr bool sound_led =
    stretto::valid<pipeline<Shape, Schedule, unassigned, stretto::memory::release_early,
                            stretto::overlap::with_receive_lead<stretto::overlap::separate, 0>>> &&
    stretto::valid<pipeline<Shape, Schedule, unassigned, stretto::memory::keep,
                            stretto::overlap::with_receive_lead<stretto::overlap::serial, 2>>>;
static_assert(sound_led<shape{.ranks = 4, .microbatches = 8}, stretto::schedule::one_f_one_b>);
static_assert(sound_led<shape{.ranks = 4, .microbatches = 8}, stretto::schedule::dualpipe>);
static_assert(sound_led<shape{.ranks = 3, .microbatches = 6, .chunks = 2},
                        stretto::schedule::interleaved>);

// Searches under a limit: micro-batches one by one are among what they try, and of a limit that is
// too small they say which would do.
template <int Limit>
struct within : stretto::memory::release_early {
  constexpr std::int64_t limit() const { return Limit; }
};
template <shape Shape, class Schedule, int Limit>
using limited = pipeline<Shape, Schedule, unassigned, within<Limit>>;
template <shape Shape, class Schedule, int Least>
constexpr bool knows_least = [] {
  static_assert(stretto::valid<limited<Shape, Schedule, Least>>);
  static_assert(stretto::valid<limited<Shape, Schedule, Least + 1>>);
  const stretto::verdict& refused = limited<Shape, Schedule, 0>::checked;
  return refused.what == stretto::fault::over_limit && refused.amount == Least;
}();
static_assert(knows_least<shape{.ranks = 3, .microbatches = 4}, stretto::schedule::zb_auto, 1>);
static_assert(knows_least<shape{.ranks = 2, .microbatches = 4, .chunks = 2},
                          stretto::schedule::zbv_greedy, 2>);

}  // namespace

// To name a pipeline, or ask whether its schedule serves the shape, computes no order, list or
// plan. Not in the namespace above, where a compiler would say that nobody asks.
struct never_asked : stretto::schedule::gpipe {
  constexpr stretto::verdict emit(const stretto::shape& size, const stretto::job_table_view&,
                                  stretto::job_sink&) const {
    return size.ranks > 0 ? throw "asked" : stretto::verdict{};
  }
};
using idle = stretto::pipeline<stretto::shape{.ranks = 2, .microbatches = 4}, never_asked>;
static_assert(sizeof(idle) == 1 && idle::supported.ok());
