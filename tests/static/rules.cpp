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

}  // namespace
