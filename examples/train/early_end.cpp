#include "early_end.hpp"

#include <csignal>

#include <array>
#include <atomic>

namespace train {
namespace {

struct heeded {
  int number;
  const char* name;
};
// mpirun hands on SIGUSR1, and kills a second after those before it. The last one tells that who
// read the output has gone.
constexpr std::array all{heeded{SIGINT, "SIGINT"}, heeded{SIGTERM, "SIGTERM"},
                         heeded{SIGUSR1, "SIGUSR1"}, heeded{SIGPIPE, "SIGPIPE"}};

// What a handler may touch.
std::atomic<int> first{0};
std::atomic<bool> taken[all.size()];
static_assert(std::atomic<int>::is_always_lock_free && std::atomic<bool>::is_always_lock_free);

void give_back() {
  for (std::size_t at = 0; at < all.size(); ++at)
    if (taken[at].exchange(false)) std::signal(all[at].number, SIG_DFL);
}

void keep(int number) {
  int none = 0;
  first.compare_exchange_strong(none, number);
  if (number != SIGPIPE) return give_back();
  // What else is written there ends nothing either.
  taken[all.size() - 1] = false;
  std::signal(SIGPIPE, SIG_IGN);
}

}  // namespace

early_end::early_end() {
  first = 0;
  struct sigaction mine {};
  mine.sa_handler = keep;
  mine.sa_flags = SA_RESTART;
  for (const heeded& each : all) sigaddset(&mine.sa_mask, each.number);
  for (std::size_t at = 0; at < all.size(); ++at) {
    struct sigaction old {};
    if (sigaction(all[at].number, nullptr, &old) != 0 || old.sa_handler != SIG_DFL) continue;
    taken[at] = true;
    if (sigaction(all[at].number, &mine, nullptr) != 0) taken[at] = false;
  }
}

early_end::~early_end() {
  give_back();
}

int early_end::signal() const {
  return first;
}

const char* name_of_signal(int number) {
  for (const heeded& each : all)
    if (each.number == number) return each.name;
  return "a signal";
}

}  // namespace train
