// What the processes of a run have to tell at its end, brought together.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "cores.hpp"
#include "pipeline/pipeline.hpp"
#include "stretto/executor/trace.hpp"
#include "stretto/model/cost.hpp"

namespace train {

//! What the operating system says of a process, in bytes; -1: it does not.
struct process_memory {
  std::int64_t before = -1;      //!< in memory before the model was made
  std::int64_t absent_code = 0;  //!< of the program, not in memory then
  std::int64_t most = -1;        //!< at any time
};

struct worker_account {
  rank_memory planned{};
  std::int64_t in_use = 0;   //!< of its arena, the most at once
  std::int64_t touched = 0;  //!< of its arena, since it was painted; 0 where that is a GPU's
};

struct process_account {
  int workers = 0;  //!< the next ones of all
  core_set cores{};  //!< of its machine, those that it may use
  int machine = 0;  //!< which, from 0 on
  process_memory memory{};
  shared_memory beside{};  //!< what workers hold in common
};

//! Clocks of one machine are one clock; those of several are not compared.
struct account {
  std::vector<worker_account> workers{};
  std::vector<process_account> processes{};
  int machines = 1;
  //! Of all workers, as one engine would have them. Of several machines, each one's begin at 0.
  std::vector<stretto::executor::trace_record> trace{};
  stretto::job_table costs{};  //!< pipeline::measured_costs()

  struct crowd {
    int workers = 0, cores = 0;
  };
  //! The first process or machine with fewer cores than workers, if there is one.
  std::optional<crowd> crowded() const;
};

//! Between steps. Of several processes all call it, and the one that leads() gets all.
account take_account(pipeline& from, const process_memory& memory);

}  // namespace train
