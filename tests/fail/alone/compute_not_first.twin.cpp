// It is the first.
#include <cstdint>
#include <string_view>

#include "stretto/lowering/streams/typed.hpp"
#include "stretto/plan/pipeline.hpp"
#include "stretto/schedule/one_f_one_b.hpp"

enum class lane : std::uint8_t { compute, send_next };

template <>
struct stretto::stream_traits<lane> {
  static constexpr int count = 2;
  static constexpr std::string_view name(lane one) {
    return one == lane::compute ? "compute" : "send_next";
  }
  static constexpr int priority(lane) { return 0; }
};

static_assert(stretto::valid<stretto::pipeline<
                  stretto::shape{.ranks = 2, .microbatches = 2}, stretto::schedule::one_f_one_b,
                  stretto::assignment::unassigned, stretto::memory::release_early,
                  stretto::overlap::typed<lane>>>);
