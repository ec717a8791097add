#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "gathering.hpp"
#include "socket.hpp"

namespace stretto::executor {

//! What the two sides of the store say, in this order; numbers have the machine's own byte order,
//! which the magic words check.
//!   client: hello_magic, hello, the job's name
//!   server: welcome_magic, answer, its text
//!   then, for each exchange, client: request, its name, its part; server: answer, its payload:
//!   for each process the number of bytes (std::uint64_t) and the bytes, or none, as it was asked.
//!   Before it leaves, client: request that says so, with why it fails as its part, or none.
//!   At any time, server: notices, in the form of answers.
namespace wire {

inline constexpr std::uint64_t hello_magic = 0x7374726574746f31;    // "stretto1"
inline constexpr std::uint64_t welcome_magic = 0x7374726574746f77;  // "strettow"

struct hello {
  std::uint64_t magic = hello_magic;
  std::int32_t process = 0;
  std::int32_t processes = 0;
  std::uint32_t name = 0;  //!< bytes of the job's name
  std::uint32_t spare = 0;  //!< in the place of padding, which would be sent as it happens to be
};

//! An exchange, with what all give or without; or that it is none.
enum class wish : std::uint32_t { parts, leave, no_parts };

struct request {
  std::uint32_t name = 0;  //!< bytes
  wish of = wish::parts;
  std::uint64_t part = 0;         //!< bytes
  std::int64_t milliseconds = 0;  //!< how long the answer may take
};

//! The payload says what is wrong, or what was exchanged; or it is a notice: that process 0 leaves
//! in peace, or which process has failed.
enum class saying : std::uint64_t { bad, good, peace, failure };
inline constexpr std::uint64_t most_reason = 4096;

struct answer {
  saying what = saying::bad;
  std::uint64_t bytes = 0;
};

}  // namespace wire

//! Process 0's side: a thread that lets processes in, gathers their parts and gives them to all.
class store_server {
 public:
  store_server(descriptor listening, int processes, std::string job,
               std::chrono::nanoseconds linger);
  //! Waits, as long as it lingers, for those who are there to leave.
  ~store_server();

 private:
  //! What is to be sent; of an exchange's parts all clients have the same.
  using payload = std::shared_ptr<const std::string>;
  struct client {
    descriptor socket{};
    std::string from{};
    std::string in{};
    std::deque<payload> out{};
    std::size_t sent = 0;  // of the first of `out`
    int process = -1;    // none: it has not said yet
    bool waits = false;  // for the answer to a request
    bool parts = true;   // with the parts of all
    bool ends = false;   // once `out` is sent
    bool leaves = false; // it has said so
    bool told = false;   // of what notices are for
    time_point limit{};  // of the hello, or of the request
  };

  void run() noexcept;
  void accept_all();
  //! @return whether the client stays
  bool serve(client& with, short events);
  bool read_from(client& with);
  bool understand(client& with);
  bool greet(client& with);
  void take_request(client& with);
  void answer_all();
  void farewell(client& from, const std::string& why);
  void gone(const client& one);
  void notify();
  void look_at_limits();
  static void reply(client& to, wire::saying what, std::string text);
  static void reply(client& to, wire::saying what, const payload& shared);
  static bool write_to(client& with);

  descriptor listening_;
  descriptor wake_read_;
  descriptor wake_write_;
  int processes_;
  std::string job_;
  std::chrono::nanoseconds linger_;
  gathering all_;
  std::vector<client> clients_;
  std::string failure_;  // of the first process that failed
  bool ending_ = false;
  time_point end_{};
  std::thread thread_;
};

}  // namespace stretto::executor
