// How long the end of a step may go unseen where nothing tells of it.
#include "../../executor/src/pause.hpp"

#include <doctest/doctest.h>

using namespace stretto::executor;
using namespace std::chrono_literals;

TEST_CASE("a step's end is looked for without sleeping at first, then in proportion to its time") {
  for (const std::chrono::nanoseconds passed : {0ns, 20'000ns, 1'000'000ns, 49'000'000ns}) {
    CAPTURE(passed.count());
    CHECK(pause_after(passed) == 0ns);
  }
  CHECK(pause_after(50ms) == 50us);
  CHECK(pause_after(200ms) == 200us);
  // What others tell of the step is looked for, too.
  CHECK(pause_after(1s) == 1ms);
  CHECK(pause_after(24h) == 1ms);
}

TEST_CASE("who waits long for a message sleeps longer, and no longer for one that comes soon") {
  CHECK(nap_after(0ns) == 20us);
  CHECK(nap_after(10ms) == 100us);
  CHECK(nap_after(100ms) == 100us);
  CHECK(nap_after(400ms) == 400us);
  CHECK(nap_after(24h) == 1ms);
}
