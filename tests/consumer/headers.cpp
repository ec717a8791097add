// A consumer of the headers alone: emits a schedule at compile time and prints it.
#include <cstdio>

#include "stretto/base/version.hpp"
#include "stretto/check/complete.hpp"
#include "stretto/schedule/one_f_one_b.hpp"

namespace {

constexpr stretto::shape sizes{.ranks = 4, .microbatches = 8};
constexpr stretto::schedule::one_f_one_b schedule{};
constexpr auto lists = [] {
  stretto::fixed_job_table<sizes.ranks, sizes.chunks> table;
  stretto::fixed_job_lists<sizes.ranks, schedule.capacity(sizes)> made;
  auto sink = made.sink();
  (void)schedule.emit(sizes, table.view(), sink);
  return made;
}();
static_assert(stretto::check::complete({.rows = lists.rows(),
                                        .where = stretto::place(schedule.placed(), sizes),
                                        .microbatches = sizes.microbatches,
                                        .slices = sizes.slices,
                                        .costs = {}}));

// More than any compiler's default limit: compiles only with the limits that the target exports.
constexpr int spin(int count) {
  int sum = 0;
  for (int at = 0; at < count; ++at) sum += at & 1;
  return sum;
}
static_assert(spin(1'200'000) == 600'000);

}  // namespace

int main() {
  const auto version = stretto::version;
  std::printf("stretto %.*s: %lld jobs\n", static_cast<int>(version.size()), version.data(),
              static_cast<long long>(lists.rows().total()));
  return lists.rows().total() == 64 ? 0 : 1;
}
