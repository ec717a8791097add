// A file that takes longer than a step keeps the processes waiting beside the one that writes it,
// and ends none. Processes are threads here.
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <exception>
#include <filesystem>
#include <functional>
#include <limits>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "pipeline/checkpoint.hpp"
#include "pipeline/saves.hpp"
#include "pipeline_support.hpp"
#include "process_support.hpp"

using namespace train;
using namespace pipeline_test;
namespace executor = stretto::executor;

namespace {

//! What happens once, where a file is synchronised. @return whether it can be
std::function<bool()> meanwhile;

}  // namespace

//! In the place of the system's.
extern "C" int fsync(int file) {
  if (!meanwhile || std::exchange(meanwhile, nullptr)())
    return static_cast<int>(::syscall(SYS_fsync, file));
  errno = EIO;
  return -1;
}

namespace {

//! What a process has begun, and how long it is ready to wait there.
struct told {
  std::mutex lock{};
  std::condition_variable changed{};
  std::vector<std::chrono::nanoseconds> waits{};  // of its exchanges
  bool saved = false;
};

const std::filesystem::path file = std::filesystem::temp_directory_path() /
                                   ("stretto_slow_" + std::to_string(::getpid()));

//! Has two processes save, side by side. @return what each says
//! @param spoil  changes what a process holds
std::vector<std::string> save(std::vector<told>& of, const std::function<void(pipeline&)>& spoil) {
  auto between = executor::make_local_bootstraps(2);
  std::vector<std::string> said(2);
  std::vector<std::thread> all;
  for (std::size_t process = 0; process < 2; ++process)
    all.emplace_back([&, process] {
      told& here = of[process];
      watched_bootstrap mine(std::move(between[process]),
                             [&](std::string_view, executor::time_point limit) {
                               const std::lock_guard hold(here.lock);
                               here.waits.push_back(limit - std::chrono::steady_clock::now());
                               here.changed.notify_all();
                             });
      pipeline_settings settings{.schedule = "1f1b", .ranks = 2, .microbatches = 2};
      settings.make_transport = [] { return std::make_unique<no_transport>(); };
      settings.between = &mine;
      try {
        pipeline made(tiny(6, true), text(), settings, learning());
        spoil(made);
        said[process] = saves(file).add(made, true);
      } catch (const std::exception& wrong) {
        said[process] = wrong.what();
      }
      const std::lock_guard hold(here.lock);
      here.saved = true;
      here.changed.notify_all();
    });
  for (std::thread& each : all) each.join();
  meanwhile = nullptr;
  std::filesystem::remove(file);
  return said;
}

}  // namespace

TEST_CASE("nobody goes on to a step while process 0 waits for a disk, which has half an hour") {
  for (const bool broken : {false, true}) {
    std::vector<told> of(2);
    meanwhile = [&] {
      const std::size_t here = of[0].waits.size();
      std::unique_lock hold(of[1].lock);
      of[1].changed.wait(hold, [&] { return of[1].waits.size() > here || of[1].saved; });
      CHECK_FALSE(of[1].saved);
      return !broken;
    };
    const std::vector<std::string> said =
        save(of, [](pipeline& made) { CHECK(made.leads() == made.holds(0)); });
    CHECK(said[0] == (broken ? "--save " + file.string() + ": not written after step 0: " +
                                   "cannot be written: Input/output error"
                             : ""));
    CHECK(said[1].empty());
    CHECK(of[0].waits.size() == of[1].waits.size());
    REQUIRE(of[1].waits.size() > 1);
    // Who stops among those that have nothing to write is missed as early as in a step.
    CHECK(std::ranges::max(of[0].waits) <= std::chrono::minutes(5));
    CHECK(std::ranges::min(of[1].waits) > std::chrono::minutes(20));
  }
}

TEST_CASE("who waits for the checkpoint hears at once that nobody writes it any more") {
  std::vector<told> of(2);
  const std::vector<std::string> said = save(of, [](pipeline& made) {
    if (made.leads()) made.state(0, 0).square[1] = std::numeric_limits<float>::infinity();
  });
  CHECK(said[0].find(": is not written: after step 0 layer 0's square is not finite: ") !=
        std::string::npos);
  CHECK(said[1] == "the checkpoint after step 0, which process 0 writes: exchange 'written': "
                   "process 0 has left before it");
}
