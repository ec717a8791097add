#pragma once

#include <cstdint>
#include <string>

#include "laws/order_laws.hpp"
#include "stretto/lowering/streams/all.hpp"
#include "stretto/plan/planned.hpp"
#include "stretto/schedule/all.hpp"

//! Plans over many shapes and options.
namespace laws {

//! Collectives at the end of a step.
enum class joined { nobody, everybody, tie_and_everybody };

inline stretto::plan_request requested(int ranks, joined groups, bool release_sends, bool train) {
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

//! What a plan was made from.
struct grid_point {
  stretto::shape sizes{};
  std::string schedule{};
  std::string overlap{};
  bool release_sends = true;
  joined groups = joined::nobody;
  stretto::memory::recompute_window recompute{};
  stretto::memory::offload_window offload{};
  bool kept = false;  //!< apart from the stash, for the backwards for the weights
  bool data_parallel = false;
  int lead = -1;       //!< of receives
  //! What clocks of neighbours cannot tell may be known: by a collective that joins ranks with
  //! others between them, or around the ring, where some of what a rank receives holds up the rest.
  bool told_far = false;

  std::string words() const {
    return schedule + " p=" + std::to_string(sizes.ranks) +
           " m=" + std::to_string(sizes.microbatches) + " v=" + std::to_string(sizes.chunks) +
           (sizes.slices > 1 ? " k=" + std::to_string(sizes.slices) : "") + " " + overlap +
           (release_sends ? "" : " keep") +
           (!recompute.any()  ? ""
            : recompute.all() ? " recompute"
                              : " recompute some") +
           (!offload.any() ? ""
                           : " offload " + std::to_string(offload.which.count) + "/" +
                                 std::to_string(offload.which.period) + " " +
                                 std::to_string(offload.lag) + " " +
                                 std::to_string(offload.prefetch)) +
           (lead < 0 ? "" : " lead " + std::to_string(lead)) + (kept ? " kept" : "") + (data_parallel ? " replicas" : "") +
           (groups == joined::nobody      ? ""
            : groups == joined::everybody ? " all"
                                          : " tie+all");
  }
};

template <class Overlap>
std::string overlap_words(const Overlap& made) {
  std::string words(made.name);
  if constexpr (requires { made.there; }) words += " " + std::to_string(made.there);
  return words;
}

//! Calls `visit(point, planned)` with the plans of every schedule for every shape up to the given
//! sizes, of one to three slices where it cuts them, with every overlap policy and every option;
//! recomputing none, all or two of three micro-batches in turn, or offloading them; every other with
//! what the backwards for the weights read apart; some with data-parallel replicas, some with a
//! receive lead. Each shape takes its turn with one
//! part of `parts` of the 24 options, or with all of them when
//! `parts` is 1. No divisor of 24, or every shape would get the same options.
template <class Visitor>
void for_each_plan(int ranks, int microbatches, int chunks, int parts, Visitor&& visit) {
  int number = 0;
  int turn = 0;
  int lead = 0;
  unsigned streams = 0;
  bool apart = false;
  stretto::schedule::all::for_each([&](const auto& schedule) {
    using schedule_type = std::remove_cvref_t<decltype(schedule)>;
    for (int p = 1; p <= ranks; ++p)
      for (int m = 1; m <= microbatches; ++m)
        for (int v = 1, k = 1; v <= chunks; k == 3 ? (k = 1, ++v) : ++k) {
          const stretto::shape sizes{.ranks = p, .microbatches = m, .chunks = v, .slices = k};
          if (!schedule.supports(sizes)) continue;
          const stretto::placement where = stretto::place(schedule.placed(), sizes);
          const stretto::job_table table(p, where.chunks);
          const auto with_each = [&](const auto& overlap) {
            for (bool release : {true, false})
              for (joined groups :
                   {joined::nobody, joined::everybody, joined::tie_and_everybody}) {
                if (number++ % parts != 0) continue;
                const bool train = !is_forward_only<schedule_type>();
                stretto::plan_request request = requested(p, groups, release, train);
                if (train && k == 1) {
                  constexpr stretto::memory::recompute_window windows[] = {{}, {1, 1}, {3, 2}};
                  constexpr stretto::memory::offload_window copies[] = {
                      {{1, 1}, 1, 1}, {{1, 1}, 0, 0}, {{3, 2}, 0, 2}, {{1, 1}, 2, 1}};
                  if (turn % 7 < 3) request.recompute = windows[turn % 7];
                  else request.offload = copies[turn % 7 - 3];
                  ++turn;
                }
                apart = !apart;
                request.data_parallel = train && turn % 5 < 2;
                if (apart) request.stages[0].kept = 192;
                constexpr int leads[] = {-1, 0, -1, 1, 3};
                const stretto::overlap::with_receive_lead<std::remove_cvref_t<decltype(overlap)>>
                    led{overlap, leads[lead++ % 5]};
                const stretto::planned made(schedule, sizes, table.view(), led, request);
                visit(grid_point{sizes, std::string(schedule.name), overlap_words(overlap), release,
                                 groups, request.recompute, request.offload, apart,
                                 request.data_parallel, led.lead,
                                 p > 2 && (groups == joined::tie_and_everybody ||
                                           where.kind == stretto::placement_kind::bidirectional ||
                                           overlap.name == some_apart::name)},
                      made);
              }
          };
          stretto::overlap::for_each(with_each);
          with_each(some_apart{4 * (streams++ % 64)});
        }
  });
}

}  // namespace laws
