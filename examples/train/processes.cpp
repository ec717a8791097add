#include "processes.hpp"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "agreement.hpp"
#include "early_end.hpp"
#include "stretto/executor/bootstrap_launch.hpp"
#include "stretto/executor/bootstrap_tcp.hpp"

#ifdef STRETTO_TRAIN_WITH_MPI
#include "stretto/executor/mpi.hpp"
#endif

namespace train {

namespace executor = stretto::executor;

namespace {

//! A launcher that has started several processes says so in a variable.
struct several {
  std::string is, launchers;  //!< "WORLD_SIZE is 2"
};
std::optional<several> started() {
  // The first may be set by hand. As read_launch() has it.
  for (const char* name :
       {"WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS"}) {
    const std::string_view own = name;
    const char* const set = std::getenv(name);
    if (set == nullptr) continue;
    if (std::atoi(set) > 1)
      return several{std::string(own) + " is " + set,
                     own.starts_with("SLURM") ? "srun" : "torchrun, mpirun or mpiexec"};
    if (own == "WORLD_SIZE") return {};
  }
  return {};
}

//! Each of several processes would train a pipeline of its own, and write to the same files.
void refuse_several() {
  if (const auto found = started())
    throw bad_setting("transport", "loopback",
                      "it is for one process, and " + found->is + ": " + found->launchers +
                          " started several, to which mpi or nccl deals workers (trainings of "
                          "their own: WORLD_SIZE=1, and an --out for each)");
}

}  // namespace

struct processes::session {
#ifdef STRETTO_TRAIN_WITH_MPI
  std::optional<executor::mpi_session> mpi;
#endif
  std::unique_ptr<executor::bootstrap> store;  // without MPI
};

void processes::join(const std::string& transport, std::chrono::seconds join_timeout,
                     pipeline_settings& to) {
  to.transport = transport;
  if (transport == "mpi")
    join_mpi(to);
  else if (transport == "nccl")
    join_launched(join_timeout, to);
  else if (transport == "loopback")
    refuse_several();
  else
    throw bad_setting("transport", transport, "it is loopback, mpi or nccl");
  between_ = to.between;
  if (between_ == nullptr) return;
  number_ = between_->process();
  count_ = between_->processes();
}

#ifdef STRETTO_TRAIN_WITH_MPI

void processes::join_mpi(pipeline_settings& to) {
  session_ = std::make_unique<session>();
  auto& mpi = session_->mpi.emplace();
  // A launcher that this MPI does not know starts processes that are each alone.
  if (const auto found = started(); found && mpi.processes() == 1)
    throw bad_setting("transport", "mpi",
                      "MPI has this process alone, and " + found->is + ": " + found->launchers +
                          " started several without this program's MPI (its own mpirun does; for "
                          "srun, srun --mpi=list)");
  to.between = &mpi;
  to.make_transport = [&mpi] { return executor::make_mpi_transport(mpi); };
}

void processes::wait_for_others(std::chrono::seconds longest) {
  if (!session_ || !session_->mpi) return;
  try {
    session_->mpi->barrier("common end", std::chrono::steady_clock::now() + longest);
  } catch (const executor::bootstrap_error&) {
    // Their text is lost, as it is where they wait for something else.
  }
}

void processes::abandon(int code) {
  if (session_->mpi) session_->mpi->abort(code);
  if (session_->store) session_->store->abandon("exit code " + std::to_string(code));
}

#else

void processes::wait_for_others(std::chrono::seconds) {}

void processes::join_mpi(pipeline_settings&) {
  throw bad_setting("transport", "mpi", "this program was built without MPI");
}

void processes::abandon(int code) {
  if (session_->store) session_->store->abandon("exit code " + std::to_string(code));
}

#endif

void processes::agree(std::span<const told_option> mine) const {
  if (count_ > 1) must_agree(mine, *between_);
}

int processes::end(int code) {
  if (code != 0 && code != ended_early && count_ > 1) abandon(code);
  session_.reset();
  return code;
}

void processes::join_launched(std::chrono::seconds join_timeout, pipeline_settings& to) {
  const auto refuse = [](const std::string& rule) { throw bad_setting("transport", "nccl", rule); };
  executor::launch_info launch;
  try {
    launch = executor::read_launch();
  } catch (const executor::bootstrap_error& wrong) {
    refuse(wrong.what() + std::string("; one process alone sets RANK=0 WORLD_SIZE=1"));
  }
  session_ = std::make_unique<session>();
  local_ = launch.local;
  if (launch.processes == 1) {
    local_ = std::max(local_, 0);
    session_->store = std::move(executor::make_local_bootstraps(1).front());
  } else {
    if (launch.address.empty() || launch.port == 0)
      refuse("MASTER_ADDR and MASTER_PORT are not set, where process 0 of the " +
             std::to_string(launch.processes) + " is to be found");
    const auto limit = std::chrono::steady_clock::now() + join_timeout;
    session_->store = executor::make_tcp_bootstrap({.launch = launch}, limit);
    // What is wrong with one, or with all, is told by all: none is still to come.
    session_->store->barrier("start", limit);
  }
  to.between = session_->store.get();
}

processes::processes() = default;
processes::~processes() = default;

}  // namespace train
