// A pipeline's proof looks at the plan of every rank: a fault on any of them is found, and there.
#include <doctest/doctest.h>

#include <utility>

#include "stretto/lowering/streams/separate.hpp"
#include "stretto/plan/pipeline.hpp"
#include "stretto/schedule/v_1f1b.hpp"

namespace {

//! On one rank what goes to a neighbour forwards and backwards shares no stream, so that the
//! channel has two.
template <int Rank>
struct split_on : stretto::overlap::separate {
  constexpr int stream_of(stretto::job_kind kind, int rank, int peer, int ranks) const {
    if (rank == Rank && kind == stretto::job_kind::send_backward) return offload;
    return separate::stream_of(kind, rank, peer, ranks);
  }
};

template <int Ranks, int Rank>
void is_found() {
  using step =
      stretto::pipeline<stretto::shape{.ranks = Ranks, .microbatches = 4, .chunks = 2},
                        stretto::schedule::v_1f1b, stretto::assignment::unassigned,
                        stretto::memory::release_early, split_on<Rank>>;
  CAPTURE(Ranks);
  CAPTURE(Rank);
  constexpr stretto::verdict found = step::checked;
  CHECK(found.why == stretto::reason::channel_on_two_streams);
  CHECK(found.rank == Rank);
}

template <int Ranks, int... Rank>
void is_found_on_each(std::integer_sequence<int, Rank...>) {
  (is_found<Ranks, Rank>(), ...);
}

}  // namespace

TEST_CASE("a fault on any rank is found") {
  is_found_on_each<2>(std::make_integer_sequence<int, 2>{});
  is_found_on_each<3>(std::make_integer_sequence<int, 3>{});
  is_found_on_each<6>(std::make_integer_sequence<int, 6>{});
}
