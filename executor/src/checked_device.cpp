#include "stretto/executor/checked_device.hpp"

#include <utility>

#include "race_check.hpp"

namespace stretto::executor {
namespace {

class checked_device final : public device {
 public:
  checked_device(std::unique_ptr<device> on, std::shared_ptr<race_check> with, std::size_t plan)
      : on_(std::move(on)), with_(std::move(with)), plan_(plan), marked_(on_->marked()) {}

  void enqueue(int stream, const command& work) override { on_->enqueue(stream, work); }
  void record(int stream, int event, std::int64_t step) override {
    if (open_ && with_->ends_with(plan_, current_.instruction, event)) close(stream);
    with_->record(plan_, stream, event, step);
    on_->record(stream, event, step);
  }
  void wait(int stream, int event, std::int64_t step) override {
    with_->wait(plan_, stream, event, step);
    on_->wait(stream, event, step);
  }
  bool marked() const override { return true; }
  void begin(int stream, const mark& of) override {
    with_->begin(plan_, stream, of.instruction, of.step);
    current_ = of;
    open_ = true;
    if (marked_) on_->begin(stream, of);
  }
  void end(int stream, const mark& of) override {
    if (open_) close(stream);
    if (marked_) on_->end(stream, of);
  }
  void end_step(int stream, std::int64_t step, monitor& watch) override {
    on_->end_step(stream, step, watch);
  }
  bool polled() const override { return on_->polled(); }
  void poll() noexcept override { on_->poll(); }
  void copy_to_host(int stream, const copy& work) override { on_->copy_to_host(stream, work); }
  void copy_from_host(int stream, const copy& work) override { on_->copy_from_host(stream, work); }
  void poison(int stream, std::span<std::byte> bytes, std::int64_t step) override {
    on_->poison(stream, bytes, step);
  }
  void submit() override { on_->submit(); }
  std::span<std::byte> arena() override { return on_->arena(); }
  std::span<std::byte> host_memory() override { return on_->host_memory(); }
  stream_handle stream(int index) const override { return on_->stream(index); }
  bool merge(int stream, const device& with, int its) override {
    return on_->merge(stream, with, its);
  }
  void* native_event(int event) const override { return on_->native_event(event); }
  bool capturable() const override { return on_->capturable(); }
  void capture(bool under_way) override { on_->capture(under_way); }
  bool timed() const override { return on_->timed(); }
  int ordinal() const override { return on_->ordinal(); }
  int multiprocessors() const override { return on_->multiprocessors(); }
  int streams() const override { return on_->streams(); }
  progress progress_of(int stream) const override { return on_->progress_of(stream); }
  void wake() noexcept override { on_->wake(); }
  int join(time_point limit) noexcept override { return on_->join(limit); }
  void abandon() noexcept override { on_->abandon(); }

 private:
  //! The instruction is over before its event is recorded, which knows of it.
  void close(int stream) {
    with_->end(plan_, stream, current_.instruction, current_.step);
    open_ = false;
  }

  std::unique_ptr<device> on_;
  std::shared_ptr<race_check> with_;
  std::size_t plan_;
  bool marked_;  // what lies below
  mark current_{};
  bool open_ = false;  // it is not over
};

}  // namespace

std::shared_ptr<race_check> make_race_check(std::span<const plan_view> plans, bool rendezvous) {
  return std::make_shared<race_check>(plans, rendezvous);
}

std::unique_ptr<device> make_checked_device(std::unique_ptr<device> on,
                                            std::shared_ptr<race_check> with, std::size_t plan) {
  if (!on || !with) throw plan_error("what is checked for races is a device, by what all share");
  return std::make_unique<checked_device>(std::move(on), std::move(with), plan);
}

}  // namespace stretto::executor
