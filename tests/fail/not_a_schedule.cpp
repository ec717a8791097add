// A schedule that does not say which shapes it serves, and an argument in the place of another.
// expected: stretto: the second argument must be a schedule
// expected: stretto: the third must be an assignment
#include "stretto/plan/pipeline.hpp"
#include "stretto/schedule/one_f_one_b.hpp"

struct unserving {
  static constexpr std::string_view name = "unserving";
  constexpr stretto::placement_kind placed() const { return stretto::placement_kind::looped; }
  constexpr int capacity(const stretto::shape& sizes) const { return 2 * sizes.microbatches; }
  constexpr stretto::verdict emit(const stretto::shape& sizes, const stretto::job_table_view& table,
                                  stretto::job_sink& out) const {
    return stretto::schedule::one_f_one_b{}.emit(sizes, table, out);
  }
};
static_assert(
    stretto::valid<stretto::pipeline<stretto::shape{.ranks = 2, .microbatches = 4}, unserving>>);
static_assert(stretto::valid<
              stretto::pipeline<stretto::shape{.ranks = 2, .microbatches = 4},
                                stretto::schedule::one_f_one_b, stretto::memory::release_early>>);
