#pragma once

#include <cstddef>
#include <string>
#include <utility>

#include "stretto/executor/monitor.hpp"

namespace stretto::executor {

//! A file descriptor that is closed once.
class descriptor {
 public:
  explicit descriptor(int number = -1) : number_(number) {}
  ~descriptor() { reset(); }
  descriptor(descriptor&& from) noexcept : number_(std::exchange(from.number_, -1)) {}
  descriptor& operator=(descriptor&& from) noexcept {
    if (this != &from) reset(std::exchange(from.number_, -1));
    return *this;
  }

  int get() const { return number_; }
  explicit operator bool() const { return number_ >= 0; }
  void reset(int number = -1) noexcept;

 private:
  int number_;
};

//! "host:port".
std::string text_of(const std::string& address, int port);
//! The other end of a connection, in numbers.
std::string peer_of(int socket);

//! Milliseconds until then, rounded up, for poll(): at least 0, at most a minute.
int milliseconds_until(time_point limit);

//! A socket that does not block and listens at the address, one of this machine's; empty: at all of
//! them, by IPv6 and by IPv4.
//! @throws bootstrap_error when the port is taken or the address is none of the machine's.
descriptor listen_at(const std::string& address, int port);

//! Connects, again and again until somebody answers; the socket does not block.
//! @throws bootstrap_error with the last reason when the time has come.
descriptor connect_to(const std::string& address, int port, time_point limit);
//! Connects to a socket of this process's own that listens, whatever leads to it from elsewhere.
descriptor connect_to_own(int listening, time_point limit);

//! Lets the process have as many descriptors, as far as the system does.
void make_room_for(std::size_t descriptors);

//! What became of bytes that were to be moved until a limit.
enum class moved { all, late, closed };

//! @return closed: by the other end, or the connection broke
moved send_all(int socket, const char* bytes, std::size_t count, time_point limit);
moved receive_all(int socket, char* bytes, std::size_t count, time_point limit);

//! Makes a socket close on exec, not block, send small messages at once, and break when the other
//! end has not answered for a minute: its machine may have gone without a word.
void settle(int socket);

}  // namespace stretto::executor
