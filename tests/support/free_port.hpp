#pragma once

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <stdexcept>

namespace test_support {

//! A port of this machine that nobody has now.
inline int free_port() {
  const int one = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof at;
  const bool found = bind(one, reinterpret_cast<const sockaddr*>(&at), size) == 0 &&
                     getsockname(one, reinterpret_cast<sockaddr*>(&at), &size) == 0;
  close(one);
  if (!found) throw std::runtime_error("no port of 127.0.0.1 is free");
  return ntohs(at.sin_port);
}

}  // namespace test_support
