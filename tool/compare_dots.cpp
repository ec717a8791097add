#include "compare_dots.hpp"

#include <algorithm>
#include <cstddef>
#include <map>
#include <tuple>

#include "errors.hpp"

namespace stretto::tool {

namespace {

//! From the shortest on, those that need less than all before.
void find_unbeaten(std::vector<compared_dot>& dots) {
  std::sort(dots.begin(), dots.end(), [](const compared_dot& one, const compared_dot& other) {
    return std::tie(one.length, one.peak, one.chunks) <
           std::tie(other.length, other.peak, other.chunks);
  });
  std::int64_t least = std::numeric_limits<std::int64_t>::max();
  std::int64_t length = 0;
  for (compared_dot& one : dots) {
    // Of another number of chunks the same may be there twice.
    one.unbeaten = one.peak < least || (one.peak == least && one.length == length);
    if (one.peak >= least) continue;
    least = one.peak;
    length = one.length;
  }
}

}  // namespace

compared_dots dots_of(const comparison& common, const std::vector<comparison_run>& runs) {
  compared_dots made;
  std::map<std::tuple<std::int64_t, std::int64_t, int>, std::size_t> place;
  for (const comparison_run& run : runs)
    for (const compared& one : run.all) {
      if (one.forward_only) continue;
      const std::int64_t length = common.length(one);
      const auto [found, fresh] = place.insert({{one.peak(), length, one.chunks}, made.all.size()});
      if (fresh) made.all.push_back({one.peak(), length, one.chunks});
      std::vector<std::string>& names = made.all[found->second].names;
      const std::string name = one.name + common.in_slices(one);
      if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
      // A greater limit leaves the lower one.
      if (&run == &runs.back() && common.least_bound(one) > 0)
        made.bound = std::min(made.bound, common.least_bound(one));
    }
  if (made.all.empty())
    throw bad_input("--format svg: no schedule that trains is there to be drawn; a table says why");
  find_unbeaten(made.all);
  for (const compared_dot& one : made.all)
    if (std::find(made.chunks.begin(), made.chunks.end(), one.chunks) == made.chunks.end())
      made.chunks.push_back(one.chunks);
  std::sort(made.chunks.begin(), made.chunks.end());
  return made;
}

}  // namespace stretto::tool
