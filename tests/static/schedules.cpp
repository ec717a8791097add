// Compiling is passing: every schedule makes its orders, and the replay proves them live, within
// the default limits of the compilers. One constant makes the lists, another replays them.
#include "stretto/model/replay.hpp"
#include "stretto/schedule/all.hpp"

namespace {

using stretto::placement_kind;
using stretto::shape;
using namespace stretto::schedule;

template <class Schedule, Schedule Chosen, shape Sizes>
struct proven {
  static constexpr int capacity = Chosen.capacity(Sizes);
  static constexpr stretto::fixed_job_table<Sizes.ranks, Sizes.chunks> table{};
  static constexpr auto lists = [] {
    stretto::fixed_job_lists<Sizes.ranks, capacity> made;
    auto sink = made.sink();
    if (!Chosen.emit(Sizes, table.view(), sink))
      throw "the schedule does not emit what it supports";
    return made;
  }();
  static constexpr stretto::verdict live =
      stretto::replay({.rows = lists.rows(),
                       .where = stretto::place(Chosen.placed(), Sizes),
                       .microbatches = Sizes.microbatches,
                       .costs = table.view()});
  static constexpr bool value = Chosen.supports(Sizes).ok() && live.ok() &&
                                lists.rows().total() == std::int64_t{Sizes.ranks} * capacity;
};

template <auto... Values>
constexpr bool holds = (... && Values);

template <class Schedule, int Chunks, Schedule Chosen = Schedule{}>
constexpr bool over_shapes = holds<proven<Schedule, Chosen, shape{1, 1, Chunks}>::value,
                                   proven<Schedule, Chosen, shape{4, 1, Chunks}>::value,
                                   proven<Schedule, Chosen, shape{4, 3, Chunks}>::value,
                                   proven<Schedule, Chosen, shape{4, 10, Chunks}>::value,
                                   proven<Schedule, Chosen, shape{8, 64, Chunks}>::value>;

static_assert(over_shapes<gpipe, 1>);
static_assert(over_shapes<gpipe, 2>);
static_assert(over_shapes<gpipe, 2, gpipe{.placement = placement_kind::wave}>);
static_assert(over_shapes<one_f_one_b, 1>);
static_assert(over_shapes<interleaved, 1>);
static_assert(over_shapes<interleaved, 2>);
static_assert(over_shapes<interleaved, 3>);
static_assert(over_shapes<interleaved, 3, interleaved{.remainder = remainder_kind::last}>);
static_assert(over_shapes<interleaved, 2, interleaved{.warmup = warmup_kind::all}>);
static_assert(over_shapes<interleaved_zb, 2>);
static_assert(over_shapes<interleaved_zb, 2, interleaved_zb{.warmup = warmup_kind::standard}>);
static_assert(proven<interleaved, interleaved{.group = 16}, shape{8, 64, 2}>::value);
static_assert(over_shapes<inference, 2>);
static_assert(over_shapes<inference, 2, inference{.placement = placement_kind::wave}>);

// A search's last resort under a limit, asked for before anything else is: what it calls must have
// been read by then.
template <class Schedule, int Chunks, int Variant>
constexpr bool emits_alone = [] {
  constexpr shape sizes{.ranks = 2, .microbatches = 3, .chunks = Chunks};
  Schedule schedule{};
  schedule.variant = Variant;
  const stretto::fixed_job_table<2, Chunks> table{{5, 6, 4, 1}};
  const std::int64_t limits[] = {4, 4};
  stretto::job_table_view costs = table.view();
  costs.limit = limits;
  stretto::fixed_job_lists<2, Schedule{}.capacity(sizes)> lists{};
  stretto::job_sink out = lists.sink();
  return schedule.emit(sizes, costs, out).ok();
}();
static_assert(emits_alone<zbv_greedy, 2, zbv_greedy::waves - 1>);
static_assert(emits_alone<zb_auto, 1, zb_auto::light - 1>);

// The default of each is a policy and serves a plain shape, of one chunk or of the two of a V.
template <class... Schedules>
constexpr bool are_policies(schedule_list<Schedules...>) {
  return (... && Policy<Schedules>)&&(... && (Schedules{}.supports({4, 8, 1}).ok() ||
                                               Schedules{}.supports({4, 8, 2}).ok()));
}
static_assert(are_policies(stretto::schedule::all{}));

}  // namespace
