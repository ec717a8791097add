// Compiling is passing: all rules over the plans of ZB-V with backwards made whole again, at 8
// ranks, 64 micro-batches and 2 chunks a rank, within the default limits of the compilers.
#include "stretto/plan/pipeline.hpp"
#include "stretto/schedule/merged.hpp"
#include "stretto/schedule/zbv.hpp"

namespace {

constexpr stretto::shape sizes{.ranks = 8, .microbatches = 64, .chunks = 2};

struct measured : stretto::memory::release_early {
  constexpr stretto::unit_costs costs() const {
    return {.forward = 10, .backward_input = 12, .backward_weight = 8, .whole_saves = 3};
  }
};
template <class Schedule>
using step = stretto::pipeline<sizes, Schedule, stretto::assignment::unassigned, measured>;
using split = step<stretto::schedule::zbv>;
using whole = step<stretto::schedule::merged<stretto::schedule::zbv>>;

}  // namespace

static_assert(stretto::valid<whole>);
static_assert(whole::plans().size() == 8);
// Fewer jobs: some backwards are one.
static_assert(whole::jobs().total() < split::jobs().total());
