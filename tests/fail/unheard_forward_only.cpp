// Nobody hears of a member that is private, or has another name.
// expected: stretto: a schedule's forward_only must be public
// expected: stretto: a schedule's forwards_only is not asked for: forward_only is
#include "stretto/plan/pipeline.hpp"
#include "stretto/schedule/inference.hpp"

class forwards {
 public:
  static constexpr const char* name = "forwards";
  constexpr stretto::placement_kind placed() const { return all_.placed(); }
  constexpr stretto::verdict supports(const stretto::shape& sizes) const { return all_.supports(sizes); }
  constexpr int capacity(const stretto::shape& sizes) const { return all_.capacity(sizes); }
  constexpr stretto::verdict emit(const stretto::shape& sizes, const stretto::job_table_view& costs,
                                  stretto::job_sink& out) const {
    return all_.emit(sizes, costs, out);
  }

 private:
  static constexpr bool forward_only = true;
  stretto::schedule::inference all_;
};
static_assert(stretto::valid<stretto::pipeline<stretto::shape{.ranks = 2, .microbatches = 2}, forwards>>);

struct other_letters : stretto::schedule::inference {
  static constexpr bool forwards_only = true;
};
static_assert(stretto::valid<stretto::pipeline<stretto::shape{.ranks = 2, .microbatches = 2}, other_letters>>);
