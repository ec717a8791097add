// One that does, and each argument in its own place.
#include "stretto/plan/pipeline.hpp"
#include "stretto/schedule/one_f_one_b.hpp"

struct serving {
  static constexpr std::string_view name = "serving";
  constexpr stretto::placement_kind placed() const { return stretto::placement_kind::looped; }
  constexpr stretto::verdict supports(const stretto::shape& sizes) const {
    return stretto::schedule::one_chunk_or_refuse(sizes);
  }
  constexpr int capacity(const stretto::shape& sizes) const { return 2 * sizes.microbatches; }
  constexpr stretto::verdict emit(const stretto::shape& sizes, const stretto::job_table_view& table,
                                  stretto::job_sink& out) const {
    return stretto::schedule::one_f_one_b{}.emit(sizes, table, out);
  }
};
static_assert(
    stretto::valid<stretto::pipeline<stretto::shape{.ranks = 2, .microbatches = 4}, serving>>);
static_assert(stretto::valid<stretto::pipeline<
                  stretto::shape{.ranks = 2, .microbatches = 4}, stretto::schedule::one_f_one_b,
                  stretto::assignment::unassigned, stretto::memory::release_early>>);
