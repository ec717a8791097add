#include "store_server.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "after.hpp"
#include "exchange_limits.hpp"
#include "stretto/executor/bootstrap.hpp"

namespace stretto::executor {
namespace {

//! Who connects and says nothing is let go after this.
constexpr std::chrono::seconds time_for_hello{5};

template <class Head>
bool read_head(const std::string& from, Head& to) {
  if (from.size() < sizeof to) return false;
  std::memcpy(&to, from.data(), sizeof to);
  return true;
}

template <class Head>
void append(std::string& to, const Head& head) {
  to.append(reinterpret_cast<const char*>(&head), sizeof head);
}

}  // namespace

store_server::store_server(descriptor listening, int processes, std::string job,
                           std::chrono::nanoseconds linger)
    : listening_(std::move(listening)),
      processes_(processes),
      job_(std::move(job)),
      linger_(linger),
      all_(processes) {
  settle(listening_.get());
  int ends[2] = {};
  if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0)
    throw bootstrap_error(std::string("pipe: ") + std::strerror(errno));
  wake_read_.reset(ends[0]);
  wake_write_.reset(ends[1]);
  constexpr std::size_t others = 256;  // of the rest of the process
  make_room_for(static_cast<std::size_t>(processes) + others);
  thread_ = std::thread([this] { run(); });
}

store_server::~store_server() {
  const char word = 0;
  while (write(wake_write_.get(), &word, 1) < 0 && errno == EINTR) {
  }
  thread_.join();
}

void store_server::run() noexcept {
  std::vector<pollfd> watched;
  // Only the end breaks the loop, or memory that is not there: then clients see the connection
  // break.
  try {
    while (!ending_ || (!clients_.empty() && std::chrono::steady_clock::now() < end_)) {
      watched.clear();
      watched.push_back({wake_read_.get(), static_cast<short>(ending_ ? 0 : POLLIN), 0});
      watched.push_back({listening_.get(), static_cast<short>(ending_ ? 0 : POLLIN), 0});
      time_point next = ending_ ? end_ : time_point::max();
      for (const client& each : clients_) {
        watched.push_back(
            {each.socket.get(), static_cast<short>(POLLIN | (each.out.empty() ? 0 : POLLOUT)), 0});
        if (each.process < 0 || each.waits) next = std::min(next, each.limit);
      }
      if (poll(watched.data(), watched.size(), milliseconds_until(next)) < 0 && errno != EINTR)
        break;
      if (!ending_ && (watched[0].revents & POLLIN) != 0) {
        ending_ = true;
        listening_.reset();  // who comes now is to find the next process 0
        end_ = after(linger_);
      }
      for (std::size_t at = clients_.size(); at-- > 0;)
        if (!serve(clients_[at], watched[at + 2].revents)) {
          gone(clients_[at]);
          clients_.erase(clients_.begin() + static_cast<std::ptrdiff_t>(at));
        }
      if (!ending_ && (watched[1].revents & POLLIN) != 0) accept_all();
      look_at_limits();
    }
  } catch (...) {
  }
  clients_.clear();
}

void store_server::accept_all() {
  while (true) {
    descriptor made(accept4(listening_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!made) {
      // No descriptor is free: not at once again, or nobody else is served.
      if (errno == EMFILE || errno == ENFILE) {
        all_.keep_out(std::string("process 0 lets nobody else in: ") + std::strerror(errno));
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
      }
      return;
    }
    settle(made.get());
    client fresh;
    fresh.from = peer_of(made.get());
    fresh.socket = std::move(made);
    fresh.limit = std::chrono::steady_clock::now() + time_for_hello;
    clients_.push_back(std::move(fresh));
  }
}

bool store_server::serve(client& with, short events) {
  if ((events & (POLLIN | POLLHUP | POLLERR)) != 0 && !read_from(with)) return false;
  return write_to(with) && !(with.ends && with.out.empty());
}

bool store_server::read_from(client& with) {
  std::array<char, 65536> bytes;  // not cleared for what may be a few bytes
  while (true) {
    const ssize_t got = recv(with.socket.get(), bytes.data(), bytes.size(), 0);
    if (got == 0) return false;
    if (got < 0) {
      if (errno == EINTR) continue;
      return errno == EAGAIN || errno == EWOULDBLOCK;
    }
    if (with.ends) continue;  // what it says is of no interest any more
    with.in.append(bytes.data(), static_cast<std::size_t>(got));
    if (!understand(with)) return false;
  }
}

bool store_server::understand(client& with) {
  if (with.process < 0) return greet(with);
  wire::request head;
  if (!read_head(with.in, head)) return true;
  if (with.waits || head.name > most_name || head.part > most_part) return false;
  if (with.in.size() < sizeof head + head.name + head.part) return true;
  take_request(with);
  return true;
}

bool store_server::greet(client& with) {
  // A stranger's first bytes are enough to know it.
  const std::uint64_t magic = wire::hello_magic;
  if (std::memcmp(with.in.data(), &magic, std::min(with.in.size(), sizeof magic)) != 0)
    return false;
  wire::hello head;
  if (!read_head(with.in, head)) return true;
  if (head.name > most_name) return false;
  if (with.in.size() < sizeof head + head.name) return true;
  const std::string job = with.in.substr(sizeof head, head.name);
  with.in.erase(0, sizeof head + head.name);
  std::string wrong;
  if (job != job_)
    wrong = "it belongs to job '" + job + "', process 0 to '" + job_ + "'";
  else if (head.processes != processes_)
    wrong = "it is one of " + std::to_string(head.processes) + " processes, process 0 of " +
            std::to_string(processes_);
  // It comes for the next process 0 at this port, and tries again where nobody answers.
  if (wrong.empty() && all_.has_left(head.process)) return false;
  std::string welcome;
  append(welcome, wire::welcome_magic);
  with.out.push_back(std::make_shared<const std::string>(std::move(welcome)));
  wrong = all_.join(head.process, with.from, wrong);
  if (wrong.empty())
    with.process = head.process;
  else
    with.ends = true;
  reply(with, wrong.empty() ? wire::saying::good : wire::saying::bad, wrong);
  return true;
}

void store_server::take_request(client& with) {
  wire::request head;
  read_head(with.in, head);
  const std::string name = with.in.substr(sizeof head, head.name);
  std::string part = with.in.substr(sizeof head + head.name, head.part);
  with.in.erase(0, sizeof head + head.name + head.part);
  if (head.of == wire::wish::leave) {
    farewell(with, part);
    return;
  }
  const auto length =
      std::chrono::milliseconds(std::clamp<std::int64_t>(head.milliseconds, 0, 1LL << 40));
  with.waits = true;
  with.parts = head.of == wire::wish::parts;
  with.limit = std::chrono::steady_clock::now() + length;
  if (all_.give(with.process, name, std::move(part))) answer_all();
}

void store_server::farewell(client& from, const std::string& why) {
  from.leaves = true;
  const std::string text = why.empty() ? "" : "has failed: " + why.substr(0, wire::most_reason);
  all_.leave(from.process, text);
  if (!text.empty() && failure_.empty())
    failure_ = "process " + std::to_string(from.process) + ' ' + text;
}

void store_server::gone(const client& one) {
  if (one.process < 0 || one.leaves) return;
  const char* const text = "has ended, or its connection is broken";
  all_.leave(one.process, text);
  if (failure_.empty()) failure_ = "process " + std::to_string(one.process) + ' ' + text;
}

//! Those that wait are answered instead.
void store_server::notify() {
  if (failure_.empty() && !ending_) return;
  for (client& each : clients_) {
    if (each.process < 0 || each.waits || std::exchange(each.told, true)) continue;
    reply(each, failure_.empty() ? wire::saying::peace : wire::saying::failure, failure_);
  }
}

void store_server::answer_all() {
  std::string all;
  for (const std::string& part : all_.take()) {
    append(all, static_cast<std::uint64_t>(part.size()));
    all += part;
  }
  const auto parts = std::make_shared<const std::string>(std::move(all));
  const auto none = std::make_shared<const std::string>();
  for (client& each : clients_)
    if (each.waits) {
      each.waits = false;
      reply(each, wire::saying::good, each.parts ? parts : none);
    }
}

void store_server::look_at_limits() {
  const time_point now = std::chrono::steady_clock::now();
  for (client& each : clients_)
    if (each.waits && now >= each.limit) all_.give_up();
  if (!all_.broken().empty())
    for (client& each : clients_)
      if (each.waits) {
        each.waits = false;
        reply(each, wire::saying::bad, all_.broken());
      }
  notify();
  for (client& each : clients_) static_cast<void>(write_to(each));  // a break is seen by poll()
  std::erase_if(clients_,
                [now](const client& each) { return each.process < 0 && now >= each.limit; });
}

void store_server::reply(client& to, wire::saying what, std::string text) {
  reply(to, what, std::make_shared<const std::string>(std::move(text)));
}

void store_server::reply(client& to, wire::saying what, const payload& shared) {
  constexpr std::size_t little = 4096;  // is copied, so that it is sent with its head
  std::string head;
  append(head, wire::answer{what, shared->size()});
  if (shared->size() <= little) head += *shared;
  to.out.push_back(std::make_shared<const std::string>(std::move(head)));
  if (shared->size() > little) to.out.push_back(shared);
}

bool store_server::write_to(client& with) {
  while (!with.out.empty()) {
    const std::string& next = *with.out.front();
    const ssize_t step = send(with.socket.get(), next.data() + with.sent, next.size() - with.sent,
                              MSG_NOSIGNAL);
    if (step < 0) {
      if (errno == EINTR) continue;
      return errno == EAGAIN || errno == EWOULDBLOCK;
    }
    with.sent += static_cast<std::size_t>(step);
    if (with.sent < next.size()) continue;
    with.out.pop_front();
    with.sent = 0;
  }
  return true;
}

}  // namespace stretto::executor
