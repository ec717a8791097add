// A transport with which something goes wrong, for tests of what becomes of it.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include "stretto/executor/describe.hpp"
#include "stretto/executor/error.hpp"
#include "stretto/executor/transport.hpp"

namespace test_support {

namespace executor = stretto::executor;

//! What goes wrong with an operation.
enum class mishap : std::uint8_t {
  delay,        //!< it starts late
  drop,         //!< it is never handed on: its stream goes on as if it were done
  duplicate,    //!< it is handed on twice
  wrong_size,   //!< it is handed on with one byte less
  throw_now,    //!< the call that enqueues it throws
  throw_later,  //!< it throws on its stream
  throw_other,  //!< the call throws what is no transport_error
};

//! A fault to inject: into the `at`-th operation (message or collective, from 0, over all steps)
//! that `rank` enqueues.
struct injected_fault {
  mishap what = mishap::drop;
  int rank = 0;
  std::int64_t at = 0;
  std::chrono::microseconds delay{0};
};

//! Hands everything on to `inner` and injects one fault.
class faulty_transport final : public executor::transport {
 public:
  faulty_transport(std::unique_ptr<executor::transport> inner, const injected_fault& fault)
      : inner_(std::move(inner)), fault_(fault) {}

  void record_steps() override { inner_->record_steps(); }
  void open(std::span<const stretto::plan_view> plans, executor::monitor& watch) override {
    inner_->open(plans, watch);
  }
  void send(const executor::launch& at, const executor::operation& what) override {
    pass(&executor::transport::send, at, what);
  }
  void receive(const executor::launch& at, const executor::operation& what) override {
    pass(&executor::transport::receive, at, what);
  }
  void all_reduce(const executor::launch& at, const executor::operation& what) override {
    pass(&executor::transport::all_reduce, at, what);
  }
  void all_gather(const executor::launch& at, const executor::operation& what) override {
    pass(&executor::transport::all_gather, at, what);
  }
  void reduce_scatter(const executor::launch& at, const executor::operation& what) override {
    pass(&executor::transport::reduce_scatter, at, what);
  }
  void attach(int rank, executor::device& on) override { inner_->attach(rank, on); }
  bool needs_one_issuer() const override { return inner_->needs_one_issuer(); }
  bool rendezvous() const override { return inner_->rendezvous(); }
  bool polled() const override { return inner_->polled(); }
  void poll() noexcept override { inner_->poll(); }
  void rest() noexcept override { inner_->rest(); }
  void tell(std::string_view why) noexcept override { inner_->tell(why); }
  void close() noexcept override { inner_->close(); }
  void abort() noexcept override { inner_->abort(); }

 private:
  using member = void (executor::transport::*)(const executor::launch&, const executor::operation&);

  void pass(member call, const executor::launch& at, const executor::operation& what) {
    const bool hit = what.rank == fault_.rank && seen_++ == fault_.at;
    if (!hit) return (inner_.get()->*call)(at, what);
    switch (fault_.what) {
      case mishap::delay:
        at.on->enqueue(at.stream, {sleep, this, nullptr, 0, at.step});
        return (inner_.get()->*call)(at, what);
      case mishap::drop:
        return at.on->enqueue(at.stream, {nothing, this, nullptr, 0, at.step, at.ticket, at.stamp});
      case mishap::duplicate:
        (inner_.get()->*call)(at, what);
        return (inner_.get()->*call)(at, what);
      case mishap::wrong_size:
        changed_ = what;
        --changed_.bytes;
        return (inner_.get()->*call)(at, changed_);
      case mishap::throw_now:
        throw executor::transport_error(text(what));
      case mishap::throw_other:
        throw std::logic_error(text(what));
      case mishap::throw_later:
        changed_ = what;
        return at.on->enqueue(at.stream, {fail, this, nullptr, 0, at.step, at.ticket, at.stamp});
    }
  }

  static std::string text(const executor::operation& what) {
    return "injected fault in " + executor::describe(what.what);
  }
  static void sleep(const executor::command& work) {
    std::this_thread::sleep_for(static_cast<const faulty_transport*>(work.self)->fault_.delay);
  }
  static void nothing(const executor::command&) {}
  static void fail(const executor::command& work) {
    throw executor::transport_error(
        text(static_cast<const faulty_transport*>(work.self)->changed_));
  }

  std::unique_ptr<executor::transport> inner_;
  injected_fault fault_;
  std::int64_t seen_ = 0;  // operations of the rank; touched by its issuing thread only
  executor::operation changed_{};
};

inline std::unique_ptr<executor::transport> make_faulty_transport(
    std::unique_ptr<executor::transport> inner, const injected_fault& fault) {
  return std::make_unique<faulty_transport>(std::move(inner), fault);
}

}  // namespace test_support
