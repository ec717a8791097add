#include "stretto/executor/bootstrap_launch.hpp"

#include <charconv>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <optional>

namespace stretto::executor {
namespace {

//! The variables of one launcher.
struct launcher {
  const char* process;
  const char* processes;
  const char* local;
};

constexpr launcher by_hand{"RANK", "WORLD_SIZE", "LOCAL_RANK"};
constexpr launcher open_mpi{"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE",
                            "OMPI_COMM_WORLD_LOCAL_RANK"};
constexpr launcher mpich{"PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID"};
// Of a step, so srun's: a batch script has the number of its job's tasks in SLURM_NTASKS, and a
// SLURM_PROCID, too, and runs once.
constexpr launcher slurm{"SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID"};

class reader {
 public:
  explicit reader(const environment& from) : from_(from) {}

  std::optional<std::string> text(const char* name) const {
    const char* value = from_(name);
    return value == nullptr ? std::optional<std::string>() : value;
  }

  //! A number that is not negative.
  std::optional<int> number(const char* name) const {
    const std::optional<std::string> value = text(name);
    if (!value) return {};
    int result = 0;
    const char* const end = value->data() + value->size();
    const auto [stop, wrong] = std::from_chars(value->data(), end, result);
    if (wrong != std::errc() || stop != end || result < 0)
      throw bootstrap_error(std::string(name) + "='" + *value + "' is no number from 0 to " +
                            std::to_string(std::numeric_limits<int>::max()));
    return result;
  }

  //! What the launcher says; nothing when it has set neither of the two.
  std::optional<launch_info> of(const launcher& names) const {
    const std::optional<int> process = number(names.process);
    const std::optional<int> processes = number(names.processes);
    if (!process && !processes) return {};
    if (!process || !processes)
      throw bootstrap_error(std::string(process ? names.process : names.processes) +
                            " is set, but " + (process ? names.processes : names.process) +
                            " is not");
    if (*process >= *processes)
      throw bootstrap_error(std::string(names.process) + "=" + std::to_string(*process) +
                            " is not below " + names.processes + "=" + std::to_string(*processes));
    launch_info found;
    found.process = *process;
    found.processes = *processes;
    found.local = number(names.local).value_or(-1);
    return found;
  }

 private:
  const environment& from_;
};

void must_agree(const launcher& one, const launch_info& of_one, const launcher& other,
                const launch_info& of_other) {
  const auto differ = [](const char* left, int of_left, const char* right, int of_right) {
    if (of_left != of_right)
      throw bootstrap_error(std::string(left) + "=" + std::to_string(of_left) + " contradicts " +
                            right + "=" + std::to_string(of_right));
  };
  differ(one.process, of_one.process, other.process, of_other.process);
  differ(one.processes, of_one.processes, other.processes, of_other.processes);
}

}  // namespace

launch_info read_launch(const environment& from) {
  const environment own = [](const char* name) -> const char* { return std::getenv(name); };
  const environment& given = from ? from : own;
  const reader read(given);

  const launcher* who = nullptr;
  std::optional<launch_info> found;
  // torchrun may have been started by another launcher, once for each machine.
  const bool below_torchrun = read.text("TORCHELASTIC_RUN_ID").has_value();
  for (const launcher* each : {&by_hand, &open_mpi, &mpich}) {
    if (below_torchrun && each != &by_hand) continue;
    const std::optional<launch_info> said = read.of(*each);
    if (!said) continue;
    if (found)
      must_agree(*who, *found, *each, *said);
    else
      found = said, who = each;
    if (found->local < 0) found->local = said->local;
  }
  // srun may have started another launcher, once for each machine: then its numbers are others.
  const bool below_srun = read.text(slurm.processes).has_value();
  if (const bool alone = !found; below_srun && (alone || (found->local < 0 && !below_torchrun))) {
    const std::optional<launch_info> said = read.of(slurm);
    if (alone)
      found = said;
    else if (said && said->process == found->process && said->processes == found->processes)
      found->local = said->local;
  }
  // Whose launcher has no such variable, or one of another name, may set it by hand.
  if (found && found->local < 0) found->local = read.number(by_hand.local).value_or(-1);
  if (!found)
    throw bootstrap_error(
        "RANK and WORLD_SIZE are not set, nor what mpirun, mpiexec or srun set: this process was "
        "not started by a launcher");

  found->address = read.text("MASTER_ADDR").value_or("");
  found->port = read.number("MASTER_PORT").value_or(0);
  // At that port torchrun itself serves then.
  const bool taken = found->port > 0 && read.text("TORCHELASTIC_USE_AGENT_STORE") == "True";
  if (found->port > (taken ? 65534 : 65535))
    throw bootstrap_error("MASTER_PORT=" + std::to_string(found->port) +
                          (found->port == 65535
                               ? ": torchrun itself serves there, and there is no port behind it"
                               : " is no port"));
  if (taken) ++found->port;
  found->job = read.text("TORCHELASTIC_RUN_ID").value_or("");
  // Several steps of one job may run at once.
  if (found->job.empty()) found->job = read.text("SLURM_JOB_ID").value_or("");
  if (const auto step = read.text("SLURM_STEP_ID");
      step && !read.text("TORCHELASTIC_RUN_ID") && !found->job.empty())
    found->job += "." + *step;
  return *found;
}

}  // namespace stretto::executor
