#include "account.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <tuple>
#include <type_traits>

#include "pipeline/footprint.hpp"

namespace train {
namespace {

using stretto::executor::trace_record;

//! Those of all processes, one after the other, where this one leads.
template <class Value>
std::vector<Value> joined(const pipeline& from, const char* what, std::span<const Value> mine) {
  static_assert(std::is_trivially_copyable_v<Value>);
  const std::string_view bytes(reinterpret_cast<const char*>(mine.data()), mine.size_bytes());
  std::vector<Value> all;
  for (const std::string& each : from.collected(what, bytes)) {
    const std::size_t before = all.size();
    all.resize(before + each.size() / sizeof(Value));
    std::memcpy(all.data() + before, each.data(), each.size());
  }
  return all;
}

//! What processes with the same steady clock have in common, and others have not.
std::string clock_name() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string boot;
  std::error_code none;
  if (file >> boot)
    return boot + std::filesystem::read_symlink("/proc/self/ns/time", none).string();
  char host[256] = "";
  ::gethostname(host, sizeof host - 1);
  return host;
}

//! Numbers the machines. @return how many there are
int number_machines(std::vector<process_account>& processes,
                    const std::vector<std::string>& clocks) {
  int count = 0;
  for (std::size_t at = 0; at < clocks.size(); ++at) {
    const auto same = std::ranges::find(clocks, clocks[at]) - clocks.begin();
    processes[at].machine = static_cast<std::size_t>(same) == at
                                ? count++
                                : processes[static_cast<std::size_t>(same)].machine;
  }
  return count;
}

//! Has the times of each machine begin at 0.
void part_clocks(account& of) {
  std::vector<int> machines;  // of workers
  for (const process_account& each : of.processes)
    machines.insert(machines.end(), static_cast<std::size_t>(each.workers), each.machine);
  std::vector<std::int64_t> first(static_cast<std::size_t>(of.machines),
                                  std::numeric_limits<std::int64_t>::max());
  const auto first_of = [&](const trace_record& each) -> std::int64_t& {
    return first[static_cast<std::size_t>(machines[static_cast<std::size_t>(each.rank)])];
  };
  for (const trace_record& each : of.trace) first_of(each) = std::min(first_of(each), each.start);
  for (trace_record& each : of.trace) {
    each.end -= first_of(each);
    each.start -= first_of(each);
  }
}

}  // namespace

std::optional<account::crowd> account::crowded() const {
  for (int machine = 0; machine < machines; ++machine) {
    int running = 0;
    core_set cores;
    for (const process_account& each : processes) {
      if (each.machine != machine) continue;
      running += each.workers;
      cores.add(each.cores);
      if (each.workers > each.cores.count()) return crowd{each.workers, each.cores.count()};
    }
    if (running > cores.count()) return crowd{running, cores.count()};
  }
  return std::nullopt;
}

account take_account(pipeline& from, const process_memory& memory) {
  std::vector<worker_account> mine;
  for (std::size_t at = 0; at < from.workers_here(); ++at)
    mine.push_back({from.worker_memory(from.first_here() + at),
                    from.engine().most_in_use(at).bytes,
                    from.on_host() ? touched_bytes(from.engine().arena(at)) : 0});
  const process_account self{.workers = static_cast<int>(mine.size()),
                             .cores = core_set::own(),
                             .memory = memory,
                             .beside = from.memory()};
  const std::vector<trace_record> times = from.trace();
  account made;
  made.workers = joined<worker_account>(from, "workers", mine);
  made.processes = joined<process_account>(from, "processes", std::span(&self, 1));
  made.machines = number_machines(made.processes, from.collected("clocks", clock_name()));
  made.trace = joined<trace_record>(from, "times", times);
  std::ranges::sort(made.trace, {}, [](const trace_record& each) {
    return std::tuple(each.step, each.rank, each.instruction);
  });
  if (made.machines > 1) part_clocks(made);
  made.costs = from.measured_costs();
  return made;
}

}  // namespace train
