// Compiling is passing: complete, ordered, live and bounded at 8 ranks, 64 micro-batches and 2
// chunks, each as one constant under the default limits of the compilers.
#include "stretto/check/bounded.hpp"
#include "stretto/check/complete.hpp"
#include "stretto/check/live.hpp"
#include "stretto/check/ordered.hpp"
#include "stretto/schedule/all.hpp"

namespace {

using stretto::job_kind;
using stretto::shape;
namespace check = stretto::check;

constexpr shape sizes{8, 64, 2};
constexpr std::int64_t base[8]{};
constexpr std::int64_t limit[8] = {128, 128, 128, 128, 128, 128, 128, 128};

template <class Schedule, bool Split>
struct step {
  static constexpr stretto::fixed_job_table<8, 2> table{};
  static constexpr auto lists = [] {
    constexpr int capacity = Schedule{}.capacity(sizes);
    stretto::fixed_job_lists<8, capacity> whole;
    auto sink = whole.sink();
    if (!Schedule{}.emit(sizes, table.view(), sink)) throw "not emitted";
    if constexpr (!Split) {
      return whole;
    } else {
      stretto::fixed_job_lists<8, 2 * capacity> apart;
      auto out = apart.sink();
      for (int rank = 0; rank < 8; ++rank)
        for (stretto::job work : whole.rows().row(rank)) {
          if (work.kind == job_kind::backward) {
            work.kind = job_kind::backward_input;
            out.push(rank, work);
            work.kind = job_kind::backward_weight;
          }
          out.push(rank, work);
        }
      return apart;
    }
  }();
  static constexpr stretto::replay_input input() {
    return {.rows = lists.rows(),
            .where = stretto::place(Schedule{}.placed(), sizes),
            .microbatches = sizes.microbatches,
            .costs = {table.entries, 8, 2, 0, base, limit}};
  }
  // A constant each, because the counters are per constant.
  static constexpr stretto::verdict complete = check::complete(input());
  static constexpr stretto::verdict ordered = check::ordered(input());
  static constexpr stretto::verdict live = check::live(input());
  static constexpr stretto::verdict bounded = check::bounded(input());
};

template <class Step>
constexpr bool sound =
    Step::complete.ok() && Step::ordered.ok() && Step::live.ok() && Step::bounded.ok();

static_assert(sound<step<stretto::schedule::gpipe, false>>);
static_assert(sound<step<stretto::schedule::gpipe, true>>);
static_assert(sound<step<stretto::schedule::interleaved, false>>);
static_assert(sound<step<stretto::schedule::interleaved, true>>);

// What is wrong is found at compile time, too: an optimizer on one of two ranks, and a sum of both
// that only one joins.
constexpr stretto::verdict lacking(job_kind second, bool grouped) {
  stretto::fixed_job_lists<2, 7> lists;
  stretto::job_sink out = lists.sink();
  for (int rank = 0; rank < 2; ++rank) {
    if (rank == 1) out.push(1, {1, 0, 0, job_kind::receive_forward});
    out.push(rank, {rank, 0, 0, job_kind::forward});
    if (rank == 0) out.push(0, {0, 0, 0, job_kind::send_forward});
    if (rank == 0) out.push(0, {0, 0, 0, job_kind::receive_backward});
    out.push(rank, {rank, 0, 0, job_kind::backward});
    if (rank == 1) out.push(1, {1, 0, 0, job_kind::send_backward});
    if (grouped && rank == 0) out.push(0, {0, 0, 0, job_kind::all_reduce});
    out.push(rank, {0, 0, 0, rank == 0 ? job_kind::optimizer : second});
  }
  const std::int32_t members[] = {0, 1};
  const stretto::rank_group both[] = {{members, -1, false}};
  stretto::replay_input input{
      .rows = lists.rows(), .where = {.ranks = 2}, .costs = {}, .messages = true};
  if (grouped) input.groups = both;
  return check::complete(input);
}
static_assert(lacking(job_kind::optimizer, false).ok());
static_assert(lacking(job_kind::end_step, false) ==
              stretto::refuse(stretto::fault::incomplete, stretto::reason::missing, 1, -1,
                              {.kind = job_kind::optimizer}));
static_assert(lacking(job_kind::optimizer, true) ==
              stretto::refuse(stretto::fault::incomplete, stretto::reason::reduction_missing, 1, -1,
                              {.kind = job_kind::all_reduce}));

}  // namespace
