#include "socket.hpp"

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <thread>

#include "stretto/executor/bootstrap.hpp"

namespace stretto::executor {
namespace {

struct address_list {
  std::unique_ptr<addrinfo, void (*)(addrinfo*)> first{nullptr, freeaddrinfo};
  std::string error{};
};

//! @param address  null: all of this machine
address_list look_up(const char* address, int port, bool to_listen) {
  addrinfo wanted{};
  wanted.ai_family = AF_UNSPEC;
  wanted.ai_socktype = SOCK_STREAM;
  wanted.ai_flags = AI_NUMERICSERV | (to_listen ? AI_PASSIVE : 0);
  addrinfo* found = nullptr;
  address_list list;
  const int code = getaddrinfo(address, std::to_string(port).c_str(), &wanted, &found);
  if (code != 0)
    list.error = gai_strerror(code);
  else
    list.first.reset(found);
  return list;
}

//! @return 0, or errno
int listen_on(const addrinfo& at, descriptor& made) {
  made.reset(socket(at.ai_family, at.ai_socktype | SOCK_CLOEXEC, at.ai_protocol));
  if (!made) return errno;
  const int on = 1;
  const int off = 0;
  // What an earlier run has left in TIME_WAIT does not keep the port.
  setsockopt(made.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (at.ai_family == AF_INET6) setsockopt(made.get(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
  settle(made.get());
  if (bind(made.get(), at.ai_addr, at.ai_addrlen) != 0) return errno;
  return listen(made.get(), SOMAXCONN) != 0 ? errno : 0;
}

//! A port in the range from which the system takes those of clients can be met by itself.
bool is_own_end(int socket) {
  sockaddr_storage here{};
  sockaddr_storage there{};
  socklen_t size_here = sizeof here;
  socklen_t size_there = sizeof there;
  return getsockname(socket, reinterpret_cast<sockaddr*>(&here), &size_here) == 0 &&
         getpeername(socket, reinterpret_cast<sockaddr*>(&there), &size_there) == 0 &&
         size_here == size_there && std::memcmp(&here, &there, size_here) == 0;
}

//! @return empty, or what went wrong
std::string connect_once(const addrinfo& at, time_point limit, descriptor& made) {
  made.reset(socket(at.ai_family, at.ai_socktype | SOCK_CLOEXEC, at.ai_protocol));
  if (!made) return std::strerror(errno);
  settle(made.get());
  if (connect(made.get(), at.ai_addr, at.ai_addrlen) != 0) {
    if (errno != EINPROGRESS) return std::strerror(errno);
    pollfd watched{made.get(), POLLOUT, 0};
    int ready = 0;
    while ((ready = poll(&watched, 1, milliseconds_until(limit))) < 0 && errno == EINTR) {
    }
    if (ready <= 0) return "no answer";
    int code = 0;
    socklen_t size = sizeof code;
    getsockopt(made.get(), SOL_SOCKET, SO_ERROR, &code, &size);
    if (code != 0) return std::strerror(code);
  }
  return is_own_end(made.get()) ? std::strerror(ECONNREFUSED) : std::string();
}

template <class Call>
moved move_all(int socket, short event, std::size_t count, time_point limit, Call call) {
  std::size_t done = 0;
  while (done < count) {
    const ssize_t step = call(done);
    if (step > 0) {
      done += static_cast<std::size_t>(step);
      continue;
    }
    if (step == 0) return moved::closed;
    if (errno == EINTR) continue;
    if (errno != EAGAIN && errno != EWOULDBLOCK) return moved::closed;
    if (std::chrono::steady_clock::now() >= limit) return moved::late;
    pollfd watched{socket, event, 0};
    poll(&watched, 1, milliseconds_until(limit));
  }
  return moved::all;
}

}  // namespace

void descriptor::reset(int number) noexcept {
  if (number_ >= 0) close(number_);
  number_ = number;
}

std::string text_of(const std::string& address, int port) {
  return address + ':' + std::to_string(port);
}

std::string peer_of(int socket) {
  sockaddr_storage there{};
  socklen_t size = sizeof there;
  char host[NI_MAXHOST] = "";
  char port[NI_MAXSERV] = "";
  if (getpeername(socket, reinterpret_cast<sockaddr*>(&there), &size) != 0 ||
      getnameinfo(reinterpret_cast<sockaddr*>(&there), size, host, sizeof host, port, sizeof port,
                  NI_NUMERICHOST | NI_NUMERICSERV) != 0)
    return "an unknown place";
  return std::string(host) + ':' + port;
}

int milliseconds_until(time_point limit) {
  const auto left = limit - std::chrono::steady_clock::now();
  const auto most = std::chrono::milliseconds(std::chrono::minutes(1));
  if (left >= most) return static_cast<int>(most.count());
  const auto rounded = std::chrono::ceil<std::chrono::milliseconds>(left);
  return static_cast<int>(std::max<std::chrono::milliseconds::rep>(rounded.count(), 0));
}

void settle(int socket) {
  fcntl(socket, F_SETFD, FD_CLOEXEC);
  fcntl(socket, F_SETFL, fcntl(socket, F_GETFL) | O_NONBLOCK);
  const int on = 1;
  setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  const int idle = 30;  // seconds, as the next one
  const int between = 10;
  const int questions = 3;
  const unsigned unanswered = 60'000;  // milliseconds
  setsockopt(socket, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
  setsockopt(socket, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof idle);
  setsockopt(socket, IPPROTO_TCP, TCP_KEEPINTVL, &between, sizeof between);
  setsockopt(socket, IPPROTO_TCP, TCP_KEEPCNT, &questions, sizeof questions);
  setsockopt(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, &unanswered, sizeof unanswered);
}

descriptor listen_at(const std::string& address, int port) {
  descriptor made;
  int code = EADDRNOTAVAIL;
  const address_list found = look_up(address.empty() ? nullptr : address.c_str(), port, true);
  if (!found.error.empty())
    throw bootstrap_error("process 0 cannot listen at " + address + ": " + found.error);
  // What listens by IPv6 hears IPv4, too, where both are there.
  for (const bool first : {true, false})
    for (const addrinfo* at = found.first.get(); at != nullptr; at = at->ai_next) {
      if ((at->ai_family == AF_INET6) != first) continue;
      code = listen_on(*at, made);
      if (code == 0) return made;
      if (code == EADDRINUSE) break;
    }
  throw bootstrap_error(
      "MASTER_PORT: process 0 cannot listen at " +
      (address.empty() ? "port " + std::to_string(port) : text_of(address, port)) + ": " +
      std::strerror(code) + (code == EADDRINUSE ? " (another process 0, or another program)" : ""));
}

descriptor connect_to(const std::string& address, int port, time_point limit) {
  descriptor made;
  std::string last = "no answer";
  auto pause = std::chrono::milliseconds(5);
  do {
    // Names may be known only once the other machine is there, so that is tried again as well.
    const address_list found = look_up(address.c_str(), port, false);
    if (!found.error.empty()) last = found.error;
    int addresses = 0;
    for (const addrinfo* at = found.first.get(); at != nullptr; at = at->ai_next) ++addresses;
    for (const addrinfo* at = found.first.get(); at != nullptr; at = at->ai_next) {
      // One that swallows what it is sent leaves time for the others, and for new ones.
      const time_point now = std::chrono::steady_clock::now();
      const auto share = std::max<std::chrono::nanoseconds>(std::chrono::seconds(1),
                                                            (limit - now) / (2 * addresses));
      const time_point end = share < limit - now ? now + share : limit;
      const std::string wrong = connect_once(*at, end, made);
      if (wrong.empty()) return made;
      last = wrong;
    }
    const auto left = limit - std::chrono::steady_clock::now();
    std::this_thread::sleep_for(
        std::clamp<std::chrono::nanoseconds>(left, std::chrono::nanoseconds(0), pause));
    pause = std::min(2 * pause, std::chrono::milliseconds(200));
  } while (std::chrono::steady_clock::now() < limit);
  throw bootstrap_error("process 0 is not found at " + text_of(address, port) + ": " + last);
}

descriptor connect_to_own(int listening, time_point limit) {
  sockaddr_storage at{};
  socklen_t size = sizeof at;
  if (getsockname(listening, reinterpret_cast<sockaddr*>(&at), &size) != 0)
    throw bootstrap_error(std::string("process 0's listening socket: ") + std::strerror(errno));
  // All of the machine's addresses: among them the one that leads nowhere else.
  auto* const six = reinterpret_cast<sockaddr_in6*>(&at);
  const bool by_six = at.ss_family == AF_INET6 && IN6_IS_ADDR_UNSPECIFIED(&six->sin6_addr) != 0;
  if (by_six) six->sin6_addr = in6addr_loopback;
  if (auto* const four = reinterpret_cast<sockaddr_in*>(&at);
      at.ss_family == AF_INET && four->sin_addr.s_addr == htonl(INADDR_ANY))
    four->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  addrinfo to{};
  to.ai_family = at.ss_family;
  to.ai_socktype = SOCK_STREAM;
  to.ai_addr = reinterpret_cast<sockaddr*>(&at);
  to.ai_addrlen = size;
  descriptor made;
  std::string wrong = connect_once(to, limit, made);
  if (by_six && !wrong.empty()) {  // it may have no such one by IPv6
    constexpr unsigned char by_four[16] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 127, 0, 0, 1};
    std::memcpy(&six->sin6_addr, by_four, sizeof by_four);
    wrong = connect_once(to, limit, made);
  }
  if (!wrong.empty())
    throw bootstrap_error("process 0 does not reach its own listening socket: " + wrong);
  return made;
}

void make_room_for(std::size_t descriptors) {
  rlimit has{};
  if (getrlimit(RLIMIT_NOFILE, &has) != 0 || has.rlim_cur >= descriptors) return;
  has.rlim_cur = std::min<rlim_t>(descriptors, has.rlim_max);
  setrlimit(RLIMIT_NOFILE, &has);
}

moved send_all(int socket, const char* bytes, std::size_t count, time_point limit) {
  return move_all(socket, POLLOUT, count, limit, [&](std::size_t done) {
    return send(socket, bytes + done, count - done, MSG_NOSIGNAL);
  });
}

moved receive_all(int socket, char* bytes, std::size_t count, time_point limit) {
  return move_all(socket, POLLIN, count, limit,
                  [&](std::size_t done) { return recv(socket, bytes + done, count - done, 0); });
}

}  // namespace stretto::executor
