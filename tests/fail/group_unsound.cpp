// Of two ranks the third is a member of the group.
// expected: stretto: unsupported: this group has no members, or such as there are not
// expected: <stretto::fault::unsupported, stretto::reason::group_unsound, 2, -1, stretto::job_kind::all_reduce, 0, 0>
#include "stretto/plan/pipeline.hpp"
#include "stretto/schedule/one_f_one_b.hpp"

struct tied {
  static constexpr std::array<stretto::group_info, 1> infos{{{.first = 0, .count = 2, .elements = 8}}};
  static constexpr std::array<std::int32_t, 2> members{0, 2};
};
static_assert(stretto::valid<stretto::pipeline<
                  stretto::shape{.ranks = 2, .microbatches = 2}, stretto::schedule::one_f_one_b,
                  stretto::assignment::unassigned, stretto::memory::release_early,
                  stretto::overlap::separate, tied>>);
