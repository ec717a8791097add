// Of a shape that is refused nothing is computed, whatever limits a compiler is given: where it
// was, this took gcc minutes (2^31 jobs of lists that nobody asks for).
#include "stretto/plan/pipeline.hpp"
#include "stretto/schedule/one_f_one_b.hpp"

namespace {

using stretto::reason;
using stretto::schedule::one_f_one_b;
using stretto::shape;

using too_long = stretto::pipeline<shape{.microbatches = 1 << 30}, one_f_one_b>;
static_assert(too_long::checked.why == reason::shape_too_large);
using too_wide = stretto::pipeline<shape{.ranks = 1 << 16, .microbatches = 1 << 16}, one_f_one_b>;
static_assert(too_wide::checked.why == reason::shape_too_large);

}  // namespace
