#include "laws/grid/plan_grid.hpp"

#include <cstdint>
#include <initializer_list>
#include <string_view>

#include "stretto/lowering/streams/all.hpp"
#include "stretto/schedule/inference.hpp"
#include "stretto/schedule/seq_1f1b.hpp"
#include "support/schedules.hpp"

namespace laws {

namespace {

//! Some of what communicates on streams of its own, the rest on the one that computes: which of
//! stretto::stream_type's are there is by bit of `there`.
struct some_apart {
  static constexpr std::string_view name = "some_apart";
  unsigned there = 0;

  int count() const { return all.count(); }
  stretto::stream_info stream(int number) const { return all.stream(number); }
  int stream_of(stretto::job_kind kind, int rank, int peer, int ranks) const {
    const int apart = all.stream_of(kind, rank, peer, ranks);
    return (there >> apart & 1) != 0 ? apart : 0;
  }

 private:
  static constexpr stretto::overlap::typed<> all{};
};

template <class Overlap>
std::string overlap_words(const Overlap& made) {
  std::string words(made.name);
  if constexpr (requires { made.there; }) words += " " + std::to_string(made.there);
  return words;
}

//! Takes turns with what a plan can be asked for.
class options_in_turn {
 public:
  explicit options_in_turn(int parts) : parts_(parts) {}

  //! Whether it is the turn of the next one.
  bool next() { return number_++ % parts_ == 0; }
  stretto::plan_request request(const stretto::shape& sizes, joined groups, bool release_sends,
                                bool train) {
    stretto::plan_request made = requested(sizes.ranks, groups, release_sends, train);
    if (train && sizes.slices == 1) {
      constexpr stretto::memory::recompute_window windows[] = {{}, {1, 1}, {3, 2}};
      constexpr stretto::memory::offload_window copies[] = {
          {{1, 1}, 1, 1}, {{1, 1}, 0, 0}, {{3, 2}, 0, 2}, {{1, 1}, 2, 1}};
      if (turn_ % 7 < 3) made.recompute = windows[turn_ % 7];
      else made.offload = copies[turn_ % 7 - 3];
      ++turn_;
    }
    apart_ = !apart_;
    made.data_parallel = train && turn_ % 5 < 2;
    // Two stages at least, of which jobs may be paired.
    if (made.data_parallel && turn_ % 5 == 1) made.gathered = 2 + gathers_++ % 2;
    if (!train && forwards_++ % 3 == 0) {
      made.data_parallel = true;
      made.gathered = 1 + gathers_++ % 2;
    }
    if (apart_) made.stages[0].kept = 192, made.stages[0].left = 128;
    return made;
  }
  int lead() {
    constexpr int leads[] = {-1, 0, -1, 1, 3};
    return leads[lead_++ % 5];
  }

 private:
  int parts_;
  int number_ = 0;
  int turn_ = 0;
  int lead_ = 0;
  int gathers_ = 0;
  int forwards_ = 0;
  bool apart_ = false;
};

grid_point point_of(const stretto::shape& sizes, const stretto::placement& where, joined groups,
                    const stretto::plan_request& request) {
  return {.sizes = sizes,
          .release_sends = request.release_sends,
          .groups = groups,
          .recompute = request.recompute,
          .offload = request.offload,
          .kept = request.stages[0].kept > 0,
          .data_parallel = request.data_parallel,
          .gathered = request.gathered,
          .told_far = sizes.ranks > 2 && (groups == joined::tie_and_everybody ||
                                          where.kind == stretto::placement_kind::bidirectional)};
}

}  // namespace

stretto::plan_request requested(int ranks, joined groups, bool release_sends, bool train) {
  stretto::plan_request made;
  made.release_sends = release_sends;
  made.train = train;
  const auto add = [&](std::initializer_list<std::int32_t> members, std::int64_t elements,
                       bool wide) {
    made.groups.push_back({static_cast<std::int32_t>(made.members.size()),
                           static_cast<std::int32_t>(members.size()), elements, wide});
    made.members.insert(made.members.end(), members);
  };
  // First and last rank share the embedding; all share the norm of the gradient.
  if (groups == joined::tie_and_everybody && ranks > 1) add({0, ranks - 1}, 100, false);
  if (groups != joined::nobody) {
    made.groups.push_back({static_cast<std::int32_t>(made.members.size()), ranks, 1, true});
    for (int rank = 0; rank < ranks; ++rank) made.members.push_back(rank);
  }
  return made;
}

std::string grid_point::words() const {
  return schedule + " p=" + std::to_string(sizes.ranks) +
         " m=" + std::to_string(sizes.microbatches) + " v=" + std::to_string(sizes.chunks) +
         (sizes.slices > 1 ? " k=" + std::to_string(sizes.slices) : "") + " " + overlap +
         (release_sends ? "" : " keep") +
         (!recompute.any()  ? ""
          : recompute.all() ? " recompute"
                            : " recompute some") +
         (!offload.any()
              ? ""
              : " offload " + std::to_string(offload.which.count) + "/" +
                    std::to_string(offload.which.period) + " " + std::to_string(offload.lag) + " " +
                    std::to_string(offload.prefetch)) +
         (lead < 0 ? "" : " lead " + std::to_string(lead)) + (kept ? " kept" : "") +
         (data_parallel ? " replicas" : "") +
         (gathered > 0 ? " gather " + std::to_string(gathered) : "") +
         (groups == joined::nobody      ? ""
          : groups == joined::everybody ? " all"
                                        : " tie+all");
}

void for_each_plan(
    int ranks, int microbatches, int chunks, int parts,
    const std::function<void(const grid_point&, const stretto::planned&)>& visit) {
  options_in_turn options(parts);
  unsigned streams = 0;
  unsigned sliced = 0;
  for (const stretto::schedule::any& schedule : support::schedules()) {
    for (int p = 1; p <= ranks; ++p)
      for (int m = 1; m <= microbatches; ++m)
        for (int v = 1, k = 1; v <= chunks; k == 3 ? (k = 1, ++v) : ++k) {
          const stretto::shape sizes{.ranks = p, .microbatches = m, .chunks = v, .slices = k};
          if (!schedule.supports(sizes)) continue;
          // What slices do to plans they do in Seq1F1B and in forwards alone; elsewhere some.
          const bool alone = schedule.name == stretto::schedule::seq_1f1b::name ||
                             schedule.name == stretto::schedule::inference::name;
          if (k > 1 && !alone && sliced++ % 7 != 0) continue;
          const stretto::placement where = stretto::place(schedule.placed(), sizes);
          const stretto::job_table table(p, where.chunks);
          const auto with_each = [&]<class Overlap>(const Overlap& overlap) {
            for (bool release : {true, false})
              for (joined groups :
                   {joined::nobody, joined::everybody, joined::tie_and_everybody}) {
                if (!options.next()) continue;
                const stretto::plan_request request =
                    options.request(sizes, groups, release, !schedule.forward_only);
                const stretto::overlap::with_receive_lead<Overlap> led{overlap, options.lead()};
                const stretto::planned made(schedule, sizes, table.view(), led, request);
                grid_point point = point_of(sizes, where, groups, request);
                point.schedule = schedule.name;
                point.overlap = overlap_words(overlap);
                point.lead = led.lead;
                point.told_far = point.told_far || (p > 2 && overlap.name == some_apart::name);
                visit(point, made);
              }
          };
          stretto::overlap::for_each(with_each);
          with_each(some_apart{4 * (streams++ % 64)});
        }
  }
}

}  // namespace laws
