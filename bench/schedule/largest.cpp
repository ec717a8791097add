// The largest steps at run time: every schedule at 8, 64 and 1024 ranks with 2 chunks, where it has
// them: emitted, held against each rule of compute lists, replayed, with messages that meet, and
// bounded; nanoseconds of processor time by compute job, seconds in all, the most memory in use.
//
//   largest [NAME...]     these schedules alone
//
// Each step runs in a process of its own, so that its memory is its own. Buffers and events are
// what schedule_generation measures.
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <string>
#include <vector>

#include "stretto/model/bound.hpp"
#include "stretto/schedule/by_name.hpp"
#include "stretto/stretto.hpp"

namespace {

//! Prints columns: nanoseconds by job of one part after the other, as long as all is well.
class stopwatch {
 public:
  template <class Run>
  void time(const stretto::job_lists& lists, Run run) {
    if (!answer_.ok()) return;
    const std::clock_t start = std::clock();
    answer_ = run();
    const double took = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
    all_ += took;
    std::printf(" %8.1f", 1e9 * took / static_cast<double>(lists.rows().total()));
    std::fflush(stdout);
  }
  double seconds() const { return all_; }
  const stretto::verdict& answer() const { return answer_; }

 private:
  stretto::verdict answer_;
  double all_ = 0;
};

int run(const stretto::schedule::any& schedule, const stretto::shape& sizes) {
  const auto where = stretto::place(schedule.placed(), sizes);
  const stretto::job_table table(where.ranks, where.chunks);
  stretto::job_lists lists(sizes.ranks, schedule.capacity(sizes));
  const stretto::replay_input input{.rows = lists.rows(),
                                    .where = where,
                                    .microbatches = sizes.microbatches,
                                    .slices = sizes.slices,
                                    .costs = table.view()};
  std::vector<stretto::rank_report> ranks(static_cast<std::size_t>(sizes.ranks));
  std::printf("%-15s %4d x %4d x %d", schedule.name.data(), sizes.ranks, sizes.microbatches,
              sizes.chunks);
  stopwatch watch;
  watch.time(lists, [&] {
    stretto::job_sink out = lists.sink();
    return schedule.emit(sizes, table.view(), out);
  });
  watch.time(lists, [&] { return stretto::check::complete(input); });
  watch.time(lists, [&] { return stretto::check::ordered(input); });
  watch.time(lists, [&] { return stretto::check::live(input); });
  watch.time(lists, [&] { return stretto::check::bounded(input); });
  watch.time(lists, [&] { return stretto::measure(input, ranks).answer; });
  // Sends and receives from one global order, and whether they meet.
  stretto::job_lists lowered(sizes.ranks, stretto::lowering::with_messages(lists.rows().stride));
  stretto::replay_input issued = input;
  issued.rows = lowered.rows();
  issued.messages = true;
  watch.time(lists, [&] {
    stretto::job_sink out = lowered.sink();
    return stretto::lowering::add_messages(input, out);
  });
  watch.time(lists, [&] { return stretto::check::rendezvous(issued); });
  watch.time(lists, [&] {
    return stretto::lower_bound(where, table.view()).flush > 0
               ? stretto::verdict{}
               : stretto::refuse(stretto::fault::incomplete, stretto::reason::missing);
  });
  if (!watch.answer().ok()) {
    std::printf("  %s\n", stretto::to_text(watch.answer()).view().data());
    return 1;
  }
  std::printf(" %8.2f %9lld", watch.seconds(), static_cast<long long>(lists.rows().total()));
  return 0;
}

//! @return whether `run` ended well; its memory is printed.
template <class Run>
bool in_process(Run run) {
  std::fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    const int status = run();
    std::fflush(stdout);
    _exit(status);
  }
  int status = -1;
  rusage used{};
  if (child < 0 || wait4(child, &status, 0, &used) != child || status != 0) {
    std::printf("  failed\n");
    return false;
  }
  std::printf(" %8.0f\n", static_cast<double>(used.ru_maxrss) / 1024);
  return true;
}

}  // namespace

int main(int count, char** words) {
  const std::vector<std::string> names(words + 1, words + count);
  bool well = true;
  bool any = false;
  std::printf("%-15s %15s", "schedule", "shape");
  for (const char* part : {"emit", "complete", "ordered", "live", "bounded", "replay", "messages",
                           "rendezv.", "bound"})
    std::printf(" %8s", part);
  std::printf(" %8s %9s %8s\n", "seconds", "jobs", "MiB");
  for (const stretto::schedule::any& schedule : stretto::schedule::catalogue()) {
    if (!names.empty() && std::count(names.begin(), names.end(), schedule.name) == 0) continue;
    any = true;
    for (stretto::shape sizes :
         {stretto::shape{8, 64, 2}, stretto::shape{64, 1024, 2}, stretto::shape{1024, 4096, 2}}) {
      if (!schedule.supports(sizes).ok()) sizes.chunks = 1;
      if (schedule.supports(sizes).ok())
        well = in_process([&] { return run(schedule, sizes); }) && well;
    }
  }
  if (!any) std::fprintf(stderr, "largest: no such schedule\n");
  return any && well ? 0 : 1;
}
