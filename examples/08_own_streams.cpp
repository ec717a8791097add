// An overlap policy of one's own: which streams there are, and what runs on which. Events follow.
// g++ -std=c++20 -Iinclude examples/08_own_streams.cpp -o own_streams
#include <iostream>

#include "stretto/stretto.hpp"

//! Two streams: what goes to other ranks beside what is computed, but in one row.
struct one_for_all_messages {
  static constexpr std::string_view name = "one_for_all_messages";

  constexpr int count() const { return 2; }
  constexpr stretto::stream_info stream(int number) const {
    return stretto::overlap::named_stream(number == 0 ? "compute" : "messages", -number);
  }
  constexpr int stream_of(stretto::job_kind kind, int /*rank*/, int /*peer*/, int /*ranks*/) const {
    return stretto::is_message(kind) || kind == stretto::job_kind::all_reduce ? 1 : 0;
  }
};

template <class Overlap>
void tell() {
  using step = stretto::pipeline<stretto::shape{.ranks = 4, .microbatches = 8, .chunks = 2},
                                 stretto::schedule::interleaved, stretto::assignment::unassigned,
                                 stretto::memory::release_early, Overlap>;
  static_assert(stretto::valid<step>);
  std::cout << Overlap::name << ":\n";
  for (const stretto::plan_view& plan : step::plans())
    std::cout << "  rank " << plan.rank << ": " << plan.streams.size() << " streams, "
              << plan.instructions.size() << " instructions, " << plan.events << " events, "
              << plan.waits.size() << " waits\n";
}

int main() {
  tell<stretto::overlap::serial>();
  tell<one_for_all_messages>();
  tell<stretto::overlap::separate>();
}
