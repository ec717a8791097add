// The cores that a process may use: fewer than its machine has where mpirun binds it, as it does
// unless it is told not to, or a container or a batch system does.
#pragma once

#include <sched.h>

#include <algorithm>
#include <thread>

namespace train {

class core_set {
 public:
  core_set() { CPU_ZERO(&set_); }
  //! Of this process. Where the system does not say, as many as the machine has.
  static core_set own() {
    core_set made;
    if (::sched_getaffinity(0, sizeof made.set_, &made.set_) == 0) return made;
    const auto all = std::min<std::size_t>(std::thread::hardware_concurrency(), CPU_SETSIZE);
    for (std::size_t core = 0; core < all; ++core) CPU_SET(core, &made.set_);
    return made;
  }
  void add(const core_set& other) { CPU_OR(&set_, &set_, &other.set_); }
  //! At least one.
  int count() const { return std::max(1, CPU_COUNT(&set_)); }

 private:
  cpu_set_t set_;
};

}  // namespace train
