#include "stretto/executor/faulty_transport.hpp"

#include <string>
#include <thread>
#include <utility>

#include "stretto/executor/error.hpp"
#include "stretto/executor/validate.hpp"

namespace stretto::executor {
namespace {

class faulty_transport final : public transport {
 public:
  faulty_transport(std::unique_ptr<transport> inner, const injected_fault& fault)
      : inner_(std::move(inner)), fault_(fault) {}

  void record_steps() override { inner_->record_steps(); }
  void open(std::span<const plan_view> plans, monitor& watch) override {
    inner_->open(plans, watch);
  }
  void send(const launch& at, const operation& what) override { pass(&transport::send, at, what); }
  void receive(const launch& at, const operation& what) override {
    pass(&transport::receive, at, what);
  }
  void all_reduce(const launch& at, const operation& what) override {
    pass(&transport::all_reduce, at, what);
  }
  void attach(int rank, device& on) override { inner_->attach(rank, on); }
  bool needs_one_issuer() const override { return inner_->needs_one_issuer(); }
  bool polled() const override { return inner_->polled(); }
  void poll() noexcept override { inner_->poll(); }
  void close() noexcept override { inner_->close(); }
  void abort() noexcept override { inner_->abort(); }

 private:
  using member = void (transport::*)(const launch&, const operation&);

  void pass(member call, const launch& at, const operation& what) {
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
        throw transport_error(text(what));
      case mishap::throw_later:
        changed_ = what;
        return at.on->enqueue(at.stream, {fail, this, nullptr, 0, at.step, at.ticket, at.stamp});
    }
  }

  static std::string text(const operation& what) {
    return "injected fault in " + describe(what.what);
  }
  static void sleep(const command& work) {
    std::this_thread::sleep_for(static_cast<const faulty_transport*>(work.self)->fault_.delay);
  }
  static void nothing(const command&) {}
  static void fail(const command& work) {
    throw transport_error(text(static_cast<const faulty_transport*>(work.self)->changed_));
  }

  std::unique_ptr<transport> inner_;
  injected_fault fault_;
  std::int64_t seen_ = 0;  // operations of the rank; touched by its issuing thread only
  operation changed_{};
};

}  // namespace

std::unique_ptr<transport> make_faulty_transport(std::unique_ptr<transport> inner,
                                                 const injected_fault& fault) {
  if (!inner) throw plan_error("a faulty transport needs a transport to hand on to");
  return std::make_unique<faulty_transport>(std::move(inner), fault);
}

}  // namespace stretto::executor
