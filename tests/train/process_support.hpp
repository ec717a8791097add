// What stands between pipelines of several processes in tests.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "stretto/executor/bootstrap.hpp"
#include "stretto/executor/transport.hpp"
#include "stretto/model/plan_view.hpp"

namespace pipeline_test {

//! Tells of each exchange before it begins.
class watched_bootstrap final : public stretto::executor::bootstrap {
 public:
  //! Of what this process gives, and how long it waits.
  using before = std::function<void(std::string_view mine, stretto::executor::time_point limit)>;

  watched_bootstrap(std::unique_ptr<bootstrap> by, before call)
      : by_(std::move(by)), call_(std::move(call)) {}
  int process() const override { return by_->process(); }
  int processes() const override { return by_->processes(); }
  std::vector<std::string> all_gather(std::string_view what, std::string_view mine,
                                      stretto::executor::time_point limit) override {
    call_(mine, limit);
    return by_->all_gather(what, mine, limit);
  }

 private:
  std::unique_ptr<bootstrap> by_;
  before call_;
};

//! For steps that nobody runs.
class no_transport final : public stretto::executor::transport {
 public:
  void open(std::span<const stretto::plan_view>, stretto::executor::monitor&) override {}
  void send(const stretto::executor::launch&, const stretto::executor::operation&) override {}
  void receive(const stretto::executor::launch&, const stretto::executor::operation&) override {}
  void all_reduce(const stretto::executor::launch&, const stretto::executor::operation&) override {}
  void all_gather(const stretto::executor::launch&, const stretto::executor::operation&) override {}
  void abort() noexcept override {}
};

}  // namespace pipeline_test
