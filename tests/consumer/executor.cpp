// A consumer of the executor: one forward on one rank, through the library's threads.
#include <cstdio>

#include "stretto/executor/callbacks.hpp"
#include "stretto/executor/engine.hpp"

int main() {
  const stretto::instruction steps[] = {{.what = {.kind = stretto::job_kind::forward}, .record = 0},
                                        {.what = {.kind = stretto::job_kind::end_step},
                                         .act = stretto::action::end_step,
                                         .wait_count = 1}};
  const stretto::event_wait waits[] = {{.event = 0, .why = stretto::wait_reason::bound}};
  const stretto::stream_info streams[] = {{.name = "compute"}};
  const stretto::plan_view plan{
      .events = 1, .instructions = steps, .waits = waits, .streams = streams};

  int forwards = 0;
  stretto::executor::callback_stage stage(
      {.forward = [&](const stretto::executor::context&) { ++forwards; }});
  stretto::executor::stage* const stages[] = {&stage};
  stretto::executor::engine engine({&plan, 1}, stages);
  engine.step();
  engine.step();
  std::printf("%d forwards\n", forwards);
  return forwards == 2 ? 0 : 1;
}
