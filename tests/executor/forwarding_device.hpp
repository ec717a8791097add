// A host device behind another, which tests change in parts.
#pragma once

#include <memory>
#include <utility>

#include "stretto/executor/host_device.hpp"

namespace stretto::test {

class forwarding_device : public executor::device {
 public:
  forwarding_device(const plan_view& plan, executor::monitor& watch,
                    const executor::host_settings& with = {})
      : inner_(executor::make_host_device(plan, with, watch)) {}

  void enqueue(int stream, const executor::command& work) override {
    inner_->enqueue(stream, work);
  }
  void record(int stream, int event, std::int64_t step) override {
    inner_->record(stream, event, step);
  }
  void wait(int stream, int event, std::int64_t step) override {
    inner_->wait(stream, event, step);
  }
  void submit() override { inner_->submit(); }
  std::span<std::byte> arena() override { return inner_->arena(); }
  std::span<std::byte> host_memory() override { return inner_->host_memory(); }
  executor::stream_handle stream(int index) const override { return inner_->stream(index); }
  int streams() const override { return inner_->streams(); }
  executor::progress progress_of(int stream) const override { return inner_->progress_of(stream); }
  void wake() noexcept override { inner_->wake(); }
  int join(executor::time_point limit) noexcept override { return inner_->join(limit); }

 private:
  std::unique_ptr<executor::device> inner_;
};

}  // namespace stretto::test
