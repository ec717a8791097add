#include "stretto/executor/bootstrap_tcp.hpp"

#include <poll.h>

#include <cstring>
#include <exception>
#include <thread>
#include <utility>

#include "exchange_limits.hpp"
#include "socket.hpp"
#include "store_server.hpp"

namespace stretto::executor {
namespace {

void check(const tcp_settings& with) {
  const launch_info& given = with.launch;
  if (given.processes < 1 || given.process < 0 || given.process >= given.processes)
    throw bootstrap_error("process " + std::to_string(given.process) + " of " +
                          std::to_string(given.processes) + " does not exist");
  must_be_few(given.processes);
  if (given.address.empty())
    throw bootstrap_error("MASTER_ADDR is not set: where process 0 is to be found");
  if (given.port < 1 || given.port > 65535)
    throw bootstrap_error("MASTER_PORT is not set, or no port: where process 0 is to be found");
  if (given.job.size() > most_name) throw bootstrap_error("the job's name is too long");
  if (with.listening >= 0 && given.process != 0)
    throw bootstrap_error("process " + std::to_string(given.process) +
                          " has a listening socket, which is process 0's");
}

class tcp_bootstrap final : public bootstrap {
 public:
  tcp_bootstrap(const tcp_settings& with, time_point limit)
      : launch_(with.launch), store_(text_of(launch_.address, launch_.port)) {
    if (launch_.process == 0) {
      descriptor listening = with.listening >= 0 ? descriptor(with.listening)
                                                 : listen_at(with.listen_at, launch_.port);
      socket_ = connect_to_own(listening.get(), limit);
      server_ = std::make_unique<store_server>(std::move(listening), launch_.processes, launch_.job,
                                               with.linger);
    }
    const std::uint64_t magic = come_in(limit);
    if (magic != wire::welcome_magic)
      throw bootstrap_error("what answers at " + store_ + " is no process 0");
    const auto [what, text] = read_answer(limit, "");
    if (what != wire::saying::good)
      throw bootstrap_error(store_ + " turns this process away: " + text);
  }
  ~tcp_bootstrap() override { leave({}); }

  int process() const override { return launch_.process; }
  int processes() const override { return launch_.processes; }

  std::vector<std::string> all_gather(std::string_view what, std::string_view mine,
                                      time_point limit) override {
    return exchange_or_break(what, mine, limit, wire::wish::parts);
  }
  std::vector<std::string> gather(std::string_view what, std::string_view mine,
                                  time_point limit) override {
    return exchange_or_break(what, mine, limit,
                             process() == 0 ? wire::wish::parts : wire::wish::no_parts);
  }

  std::string failure() noexcept override {
    try {
      pollfd one{socket_.get(), POLLIN, 0};
      if (torn_ && failure_.empty()) failure_ = broken_;
      while (failure_.empty() && !at_peace_ && poll(&one, 1, 0) > 0) {
        const auto [said, text] =
            read_answer(std::chrono::steady_clock::now() + std::chrono::seconds(1), "");
        note(said, text);
      }
      return failure_;
    } catch (const std::exception& wrong) {
      failure_ = wrong.what();
      return failure_;
    }
  }
  void abandon(std::string_view why) noexcept override {
    leave(why.empty() ? std::string_view("it does not say why") : why);
  }

 private:
  //! Says who this is. @return the first word that is said to it
  std::uint64_t come_in(time_point limit) {
    std::string words;
    const wire::hello head{wire::hello_magic, launch_.process, launch_.processes,
                           static_cast<std::uint32_t>(launch_.job.size()), 0};
    words.append(reinterpret_cast<const char*>(&head), sizeof head);
    words += launch_.job;
    while (true) {
      if (!socket_) socket_ = connect_to(launch_.address, launch_.port, limit);
      std::uint64_t magic = 0;
      moved what = send_all(socket_.get(), words.data(), words.size(), limit);
      if (what == moved::all)
        what = receive_all(socket_.get(), reinterpret_cast<char*>(&magic), sizeof magic, limit);
      if (what == moved::all) return magic;
      // Somebody answers in the place of process 0, and hangs up while that is not there: a proxy,
      // an earlier run that is just ending, or what this process has left itself.
      constexpr auto pause = std::chrono::milliseconds(50);
      if (what == moved::late) must(what, "");
      if (std::chrono::steady_clock::now() + pause >= limit)
        throw bootstrap_error("what is at " + store_ +
                              " closes every connection: process 0 is not there, or is one that "
                              "this process has left already");
      std::this_thread::sleep_for(pause);
      socket_.reset();
    }
  }

  std::vector<std::string> exchange_or_break(std::string_view what, std::string_view mine,
                                             time_point limit, wire::wish of) {
    if (!broken_.empty()) throw bootstrap_error(broken_);
    try {
      return exchange(what, mine, limit, of);
    } catch (const std::exception& wrong) {
      // What process 0 says of an exchange is whole; else nothing can be read any more.
      torn_ = broken_.empty();
      if (torn_) broken_ = wrong.what();
      throw;
    }
  }

  std::vector<std::string> exchange(std::string_view what, std::string_view mine, time_point limit,
                                    wire::wish of) {
    must_be_small(what, mine);
    const std::string name = "exchange '" + std::string(what) + "': ";
    const time_point now = std::chrono::steady_clock::now();
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(limit - now);
    const wire::request head{static_cast<std::uint32_t>(what.size()), of, mine.size(),
                             static_cast<std::int64_t>(left.count())};
    // Process 0 knows at the limit who is missing; a moment is left for it to say so.
    const auto moment = std::chrono::milliseconds(800);
    const time_point end =
        limit < time_point::max() - moment ? std::max(limit, now) + moment : limit;
    std::string words(reinterpret_cast<const char*>(&head), sizeof head);
    words += what;
    words += mine;
    must(send_all(socket_.get(), words.data(), words.size(), end), name);
    while (true) {
      const auto [said, text] = read_answer(end, name);
      if (said == wire::saying::bad) throw bootstrap_error(broken_ = text);
      if (said == wire::saying::good && of == wire::wish::no_parts) return {};
      if (said == wire::saying::good) return parts_of(text, name);
      note(said, text);
    }
  }

  void note(wire::saying what, const std::string& text) {
    if (what == wire::saying::peace) at_peace_ = true;
    if (what == wire::saying::failure && failure_.empty()) failure_ = text;
  }

  void leave(std::string_view why) noexcept {
    if (std::exchange(has_left_, true)) return;
    try {
      why = why.substr(0, wire::most_reason);
      const wire::request head{0, wire::wish::leave, why.size(), 0};
      std::string words(reinterpret_cast<const char*>(&head), sizeof head);
      words += why;
      // Who does not take it sees the connection end.
      static_cast<void>(send_all(socket_.get(), words.data(), words.size(),
                                 std::chrono::steady_clock::now() + std::chrono::seconds(1)));
    } catch (...) {
    }
  }

  std::pair<wire::saying, std::string> read_answer(time_point limit, const std::string& name) {
    wire::answer head;
    must(receive_all(socket_.get(), reinterpret_cast<char*>(&head), sizeof head, limit), name);
    const std::uint64_t most =
        (most_part + sizeof(std::uint64_t)) * static_cast<std::uint64_t>(launch_.processes);
    if (head.bytes > most) throw bootstrap_error(name + "process 0's answer makes no sense");
    std::string text(head.bytes, '\0');
    must(receive_all(socket_.get(), text.data(), text.size(), limit), name);
    return {head.what, std::move(text)};
  }

  std::vector<std::string> parts_of(std::string_view text, const std::string& name) const {
    std::vector<std::string> parts;
    for (int process = 0; process < launch_.processes; ++process) {
      std::uint64_t bytes = 0;
      if (text.size() < sizeof bytes)
        throw bootstrap_error(name + "process 0's answer makes no sense");
      std::memcpy(&bytes, text.data(), sizeof bytes);
      text.remove_prefix(sizeof bytes);
      if (text.size() < bytes) throw bootstrap_error(name + "process 0's answer makes no sense");
      parts.emplace_back(text.substr(0, bytes));
      text.remove_prefix(bytes);
    }
    return parts;
  }

  void must(moved what, const std::string& name) const {
    if (what == moved::late)
      throw bootstrap_error(name + "process 0 at " + store_ + " does not answer in time");
    if (what == moved::closed)
      throw bootstrap_error(name + "process 0 at " + store_ + " has closed the connection");
  }

  launch_info launch_;
  std::string store_;  // where it is
  // The server ends after the connection to it.
  std::unique_ptr<store_server> server_;
  descriptor socket_;
  std::string broken_;
  std::string failure_;
  bool torn_ = false;      // within what process 0 says
  bool at_peace_ = false;  // process 0 has left so
  bool has_left_ = false;  // this one
};

}  // namespace

std::unique_ptr<bootstrap> make_tcp_bootstrap(const tcp_settings& with, time_point limit) {
  check(with);
  return std::make_unique<tcp_bootstrap>(with, limit);
}

}  // namespace stretto::executor
