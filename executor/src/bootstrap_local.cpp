#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "exchange_limits.hpp"
#include "gathering.hpp"
#include "stretto/executor/bootstrap.hpp"
#include "wake_signal.hpp"

namespace stretto::executor {
namespace {

//! What the threads share.
struct common {
  explicit common(int processes) : all(processes) {}

  std::mutex lock{};
  gathering all;
  long rounds = 0;  // exchanges completed
  std::shared_ptr<const std::vector<std::string>> last{};
  wake_signal changed{};
};

class local_bootstrap final : public bootstrap {
 public:
  local_bootstrap(std::shared_ptr<common> shared, int process, int processes)
      : shared_(std::move(shared)), process_(process), processes_(processes) {
    static_cast<void>(shared_->all.join(process, "this process"));
  }
  ~local_bootstrap() override {
    {
      const std::lock_guard hold(shared_->lock);
      shared_->all.leave(process_);
    }
    shared_->changed.notify();
  }

  int process() const override { return process_; }
  int processes() const override { return processes_; }

  std::vector<std::string> all_gather(std::string_view what, std::string_view mine,
                                      time_point limit) override {
    common& with = *shared_;
    if (!broken_.empty()) throw bootstrap_error(broken_);
    try {
      must_be_small(what, mine);
    } catch (const bootstrap_error& wrong) {
      broken_ = wrong.what();
      throw;
    }
    {
      const std::lock_guard hold(with.lock);
      if (with.all.give(process_, what, std::string(mine))) {
        with.last = std::make_shared<const std::vector<std::string>>(with.all.take());
        ++with.rounds;
      }
    }
    with.changed.notify();
    const auto decided = [&] {
      const std::lock_guard hold(with.lock);
      return with.rounds > done_ || !with.all.broken().empty();
    };
    const bool in_time = with.changed.wait_until(limit, decided);
    const std::lock_guard hold(with.lock);
    if (with.rounds > done_) {
      ++done_;
      return *with.last;
    }
    if (!in_time) {
      with.all.give_up();
      with.changed.notify();
    }
    throw bootstrap_error(with.all.broken());
  }

 private:
  std::shared_ptr<common> shared_;
  int process_;
  int processes_;
  long done_ = 0;
  std::string broken_{};  // by this process alone
};

}  // namespace

std::vector<std::unique_ptr<bootstrap>> make_local_bootstraps(int processes) {
  if (processes < 1)
    throw bootstrap_error("there must be at least one process, not " + std::to_string(processes));
  must_be_few(processes);
  const auto shared = std::make_shared<common>(processes);
  std::vector<std::unique_ptr<bootstrap>> all;
  for (int process = 0; process < processes; ++process)
    all.push_back(std::make_unique<local_bootstrap>(shared, process, processes));
  return all;
}

}  // namespace stretto::executor
