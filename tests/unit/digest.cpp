// What the digest of a plan is of. That whole plans which cannot run together have different ones
// is in laws/plan_pipeline.
#include <doctest/doctest.h>

#include <cstdint>
#include <set>
#include <vector>

#include "stretto/plan/digest.hpp"

namespace {

using stretto::group_info;

std::uint64_t digest_with(const std::vector<group_info>& groups,
                          const std::vector<std::int32_t>& members) {
  return stretto::digest_of({}, {}, 1, [](int) { return 0; }, groups, members);
}

}  // namespace

TEST_CASE("each field of a group, and each of its members, changes the digest") {
  const group_info base{.first = 0, .count = 2};
  std::vector<group_info> changed(8, base);
  changed[0].first = 1;
  changed[1].count = 1;
  changed[2].elements = 7;
  changed[3].wide = true;
  changed[4].stage = 0;
  changed[5].shared = true;
  changed[6].data_parallel = true;
  changed[7].weights = 0;
  std::set<std::uint64_t> digests{digest_with({base}, {0, 1, 0}), digest_with({base}, {0, 2, 0}),
                                  digest_with({base}, {2, 1, 0}), digest_with({}, {0, 1, 0}),
                                  digest_with({base, base}, {0, 1, 0})};
  for (const group_info& other : changed) digests.insert(digest_with({other}, {0, 1, 0}));
  CHECK(digests.size() == 5 + changed.size());
}

TEST_CASE("a group's numbers do not run into each other, however large they are") {
  const std::int64_t half = std::int64_t{1} << 39;
  std::set<std::uint64_t> digests;
  for (const std::int64_t elements : {std::int64_t{0}, half, 2 * half})
    for (const std::int32_t stage : {-1, 0, 1, 2})
      for (const bool wide : {false, true})
        digests.insert(
            digest_with({{.count = 1, .elements = elements, .wide = wide, .stage = stage}}, {0}));
  CHECK(digests.size() == 3 * 4 * 2);
}
