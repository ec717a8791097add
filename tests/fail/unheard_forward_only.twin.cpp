// It is public.
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
  static constexpr bool forward_only = true;

 private:
  stretto::schedule::inference all_;
};
static_assert(stretto::valid<stretto::pipeline<stretto::shape{.ranks = 2, .microbatches = 2}, forwards>>);
