#include "stretto/executor/bootstrap.hpp"

#include <doctest/doctest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "failures.hpp"
#include "stretto/executor/bootstrap_launch.hpp"
#include "stretto/executor/bootstrap_tcp.hpp"
#include "threads.hpp"

using namespace stretto::executor;
using stretto::test::expect_part;

namespace {

using std::chrono::milliseconds;
using variables = std::map<std::string, std::string>;

time_point in(milliseconds length) {
  return std::chrono::steady_clock::now() + length;
}
//! Long enough for any machine; nothing waits for it to pass.
time_point later() {
  return in(std::chrono::seconds(20));
}

template <class Call>
std::string error_of(Call&& call) {
  try {
    call();
  } catch (const bootstrap_error& caught) {
    return caught.what();
  }
  FAIL_CHECK("a bootstrap_error was expected");
  return {};
}

launch_info launched(const variables& given) {
  return read_launch([&](const char* name) {
    const auto found = given.find(name);
    return found == given.end() ? nullptr : found->second.c_str();
  });
}

//! Runs the calls at the same time, each on a thread.
void together(const std::vector<std::function<void()>>& calls) {
  std::vector<std::thread> threads;
  for (const auto& each : calls) threads.emplace_back(each);
  for (std::thread& each : threads) each.join();
}

//! A listening socket at a port that the system has chosen.
struct listener {
  listener() : socket(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const int on = 1;  // for whoever is to listen here next
    REQUIRE(::setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) == 0);
    REQUIRE(::bind(socket, reinterpret_cast<sockaddr*>(&at), sizeof at) == 0);
    REQUIRE(::listen(socket, 64) == 0);
    socklen_t size = sizeof at;
    REQUIRE(::getsockname(socket, reinterpret_cast<sockaddr*>(&at), &size) == 0);
    port = ntohs(at.sin_port);
  }
  int socket;
  int port = 0;
};

//! A connection that says the words.
int stranger(int port, const std::string& words) {
  const int socket = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  at.sin_port = htons(static_cast<std::uint16_t>(port));
  REQUIRE(::connect(socket, reinterpret_cast<sockaddr*>(&at), sizeof at) == 0);
  REQUIRE(::write(socket, words.data(), words.size()) == static_cast<ssize_t>(words.size()));
  return socket;
}

//! What process 1 of 2 says first.
const std::string own_hello("1otterts\1\0\0\0\2\0\0\0\5\0\0\0\0\0\0\0a job", 29);

//! The settings of one process of a job at the port.
tcp_settings settings(int process, int processes, const listener& at) {
  tcp_settings with;
  with.launch = {process, processes, -1, "127.0.0.1", at.port, "a job"};
  with.listening = process == 0 ? at.socket : -1;
  with.linger = milliseconds(200);
  return with;
}

//! What every kind of bootstrap must do, each process on a thread of its own.
void check_exchanges(const std::vector<std::function<std::unique_ptr<bootstrap>()>>& makers) {
  const int count = static_cast<int>(makers.size());
  std::vector<std::vector<std::string>> seen(makers.size());
  std::vector<std::function<void()>> calls;
  for (int process = 0; process < count; ++process)
    calls.emplace_back([&, process] {
      const auto at = static_cast<std::size_t>(process);
      const std::unique_ptr<bootstrap> mine = makers[at]();
      CHECK(mine->process() == process);
      CHECK(mine->processes() == count);
      for (int round = 0; round < 20; ++round) {
        // One string is empty, one holds any byte, one is larger than what sockets keep.
        std::string part(static_cast<std::size_t>(process), '\0');
        if (round == 7 && process == 1) part.assign(3'000'000, 'x');
        part += std::to_string(round);
        if (process == 0) part.clear();
        for (std::string& each : mine->all_gather("round " + std::to_string(round), part, later()))
          seen[at].push_back(std::move(each));
        std::vector<std::string> gathered = mine->gather("again", part, later());
        if (process == 0)
          CHECK(gathered == std::vector<std::string>(seen[0].end() - count, seen[0].end()));
        else
          CHECK(gathered.empty());
      }
      mine->barrier("end", later());
    });
  together(calls);
  REQUIRE(seen[0].size() == 20U * makers.size());
  for (std::size_t at = 0; at < makers.size(); ++at) CHECK(seen[at] == seen[0]);
  CHECK(seen[0][7 * makers.size() + 1].size() == 3'000'001);
  CHECK(seen[0][3 * makers.size() + 2] == std::string("\0\0", 2) + "3");
  CHECK(seen[0][3 * makers.size()].empty());
}

}  // namespace

TEST_CASE("each launcher's variables are read") {
  const launch_info torch = launched({{"RANK", "3"},
                                      {"WORLD_SIZE", "8"},
                                      {"LOCAL_RANK", "1"},
                                      {"MASTER_ADDR", "node-0"},
                                      {"MASTER_PORT", "29500"},
                                      {"TORCHELASTIC_RUN_ID", "job7"},
                                      {"TORCHELASTIC_USE_AGENT_STORE", "True"},
                                      // The launcher of torchrun: one of two machines.
                                      {"OMPI_COMM_WORLD_RANK", "0"},
                                      {"OMPI_COMM_WORLD_SIZE", "2"}});
  CHECK(torch.process == 3);
  CHECK(torch.processes == 8);
  CHECK(torch.local == 1);
  CHECK(torch.address == "node-0");
  CHECK(torch.port == 29501);
  CHECK(torch.job == "job7");

  const launch_info mpi = launched({{"OMPI_COMM_WORLD_RANK", "2"},
                                    {"OMPI_COMM_WORLD_SIZE", "4"},
                                    {"OMPI_COMM_WORLD_LOCAL_RANK", "0"},
                                    {"SLURM_PROCID", "0"},
                                    {"SLURM_STEP_NUM_TASKS", "1"}});
  CHECK(mpi.process == 2);
  CHECK(mpi.processes == 4);
  CHECK(mpi.local == 0);
  CHECK(mpi.port == 0);

  CHECK(launched({{"PMI_RANK", "1"}, {"PMI_SIZE", "2"}}).process == 1);
  CHECK(launched({{"PMI_RANK", "1"}, {"PMI_SIZE", "2"}}).local == -1);
  CHECK(launched({{"PMI_RANK", "5"}, {"PMI_SIZE", "8"}, {"LOCAL_RANK", "1"}}).local == 1);
  const variables task{{"SLURM_PROCID", "5"}, {"SLURM_STEP_NUM_TASKS", "6"}, {"LOCAL_RANK", "2"}};
  CHECK(launched(task).local == 2);
  // As srun starts what speaks PMI-2; and not of one process that something else was started by.
  const variables pmi2{{"PMI_RANK", "3"}, {"PMI_SIZE", "8"}, {"SLURM_LOCALID", "1"}};
  const auto below_srun = [&](const char* process, const char* processes) {
    variables all = pmi2;
    all["SLURM_PROCID"] = process;
    all["SLURM_STEP_NUM_TASKS"] = processes;
    return launched(all);
  };
  CHECK(below_srun("3", "8").local == 1);
  CHECK(below_srun("0", "2").local == -1);
  CHECK(below_srun("0", "2").process == 3);
  const launch_info by_hand = launched({{"RANK", "1"},
                                        {"WORLD_SIZE", "2"},
                                        {"MASTER_PORT", "65535"},
                                        {"OMPI_COMM_WORLD_RANK", "1"},
                                        {"OMPI_COMM_WORLD_SIZE", "2"},
                                        {"OMPI_COMM_WORLD_LOCAL_RANK", "1"}});
  CHECK(by_hand.local == 1);
  CHECK(by_hand.port == 65535);
  const launch_info slurm =
      launched({{"SLURM_PROCID", "5"}, {"SLURM_STEP_NUM_TASKS", "6"}, {"SLURM_JOB_ID", "99"}});
  CHECK(slurm.process == 5);
  CHECK(slurm.local == -1);
  CHECK(slurm.job == "99");
  const variables step{{"SLURM_PROCID", "0"},
                       {"SLURM_STEP_NUM_TASKS", "1"},
                       {"SLURM_JOB_ID", "99"},
                       {"SLURM_STEP_ID", "2"}};
  CHECK(launched(step).job == "99.2");
}

TEST_CASE("missing and contradictory variables are named") {
  const auto refused = [](const variables& given, const char* first, const char* second) {
    const std::string text = error_of([&] { launched(given); });
    expect_part(text, first);
    expect_part(text, second);
  };
  refused({}, "RANK and WORLD_SIZE", "not set");
  // A batch script, which is no process of a step.
  refused({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "8"}, {"SLURM_JOB_ID", "99"}},
          "this process was not started by a launcher", "srun");
  refused({{"RANK", "0"}}, "RANK is set", "WORLD_SIZE is not");
  refused({{"SLURM_STEP_NUM_TASKS", "2"}}, "SLURM_STEP_NUM_TASKS is set", "SLURM_PROCID is not");
  refused({{"RANK", "2"}, {"WORLD_SIZE", "2"}}, "RANK=2", "WORLD_SIZE=2");
  refused({{"RANK", "one"}, {"WORLD_SIZE", "2"}}, "RANK='one'", "no number");
  refused({{"PMI_RANK", "-1"}, {"PMI_SIZE", "2"}}, "PMI_RANK='-1'", "no number");
  refused({{"RANK", "1"}, {"WORLD_SIZE", "99999999999"}}, "WORLD_SIZE='99999999999'",
          "is no number from 0 to 2147483647");
  refused({{"RANK", "1"},
           {"WORLD_SIZE", "4"},
           {"OMPI_COMM_WORLD_RANK", "1"},
           {"OMPI_COMM_WORLD_SIZE", "2"}},
          "WORLD_SIZE=4", "contradicts OMPI_COMM_WORLD_SIZE=2");
  refused({{"RANK", "0"}, {"WORLD_SIZE", "1"}, {"MASTER_PORT", "70000"}}, "MASTER_PORT=70000",
          " is no port");
  refused({{"RANK", "0"},
           {"WORLD_SIZE", "1"},
           {"MASTER_PORT", "65535"},
           {"TORCHELASTIC_USE_AGENT_STORE", "True"}},
          "MASTER_PORT=65535", "torchrun itself serves there");
  const auto connect = [](const launch_info& given) {
    return error_of([&] { make_tcp_bootstrap({given}, later()); });
  };
  const std::string many = "2000000000 processes are more than the 1048576 that can meet";
  CHECK(connect({1, 2'000'000'000, -1, "127.0.0.1", 29500, ""}) == many);
  CHECK(error_of([] { make_local_bootstraps(2'000'000'000); }) == many);
  expect_part(connect({0, 1, -1, "", 29500, ""}), "MASTER_ADDR");
  expect_part(connect({0, 1, -1, "127.0.0.1", 0, ""}), "MASTER_PORT");
}

TEST_CASE("everybody gets what all have given") {
  SUBCASE("threads") {
    auto made = make_local_bootstraps(4);
    std::vector<std::function<std::unique_ptr<bootstrap>()>> makers;
    for (auto& each : made) makers.emplace_back([&each] { return std::move(each); });
    check_exchanges(makers);
  }
  SUBCASE("TCP") {
    const int before = stretto::test::thread_count();
    const listener at;
    std::vector<std::function<std::unique_ptr<bootstrap>()>> makers;
    for (int process = 0; process < 4; ++process)
      makers.emplace_back(
          [&at, process] { return make_tcp_bootstrap(settings(process, 4, at), later()); });
    check_exchanges(makers);
    CHECK(stretto::test::settle_to(before));
  }
}

TEST_CASE("what no bootstrap takes is told with how much it takes, and ends its exchanges") {
  const std::string half_a_name("one\0more", 8), long_name(257, 'n'), much((64 << 20) + 1, 'm');
  const struct {
    std::string_view name, part;
    std::string says;
  } cases[] = {
      {long_name, "",
       "exchange '" + std::string(256, 'n') + "': its name has 257 letters, and may have 256"},
      {half_a_name, "", "exchange 'one': its name has more behind a letter that is 0"},
      {"parts", much,
       "exchange 'parts': this process gives 67108865 bytes, and may give 67108864"}};
  for (const bool local : {true, false})
    for (const auto& one : cases) {
      const listener at;
      const std::unique_ptr<bootstrap> alone =
          local ? std::move(make_local_bootstraps(1)[0])
                : make_tcp_bootstrap(settings(0, 1, at), later());
      CHECK(error_of([&] { alone->all_gather(one.name, one.part, later()); }) == one.says);
      CHECK(error_of([&] { alone->barrier("again", later()); }) == one.says);
      if (local) ::close(at.socket);
    }
}

TEST_CASE("who has left or is at another exchange is named, to all") {
  const auto check = [](std::vector<std::unique_ptr<bootstrap>> made, bool left) {
    std::vector<std::string> texts(3);
    std::vector<std::function<void()>> calls;
    if (left) made[1].reset();
    for (std::size_t process = 0; process < 3; ++process)
      if (made[process])
        calls.emplace_back([&, process] {
          texts[process] = error_of(
              [&] { made[process]->barrier(!left && process == 2 ? "end" : "plans", later()); });
        });
    together(calls);
    for (std::size_t process = 0; process < 3; ++process) {
      if (!made[process]) continue;
      expect_part(texts[process], left ? "exchange 'plans': process 1 has left" : "'plans'");
      expect_part(texts[process], left ? "" : "'end'");
      expect_part(texts[process], left ? "" : "process 2");
    }
    // Nothing more is to be had.
    expect_part(texts[0], error_of([&] { made[0]->barrier("again", later()); }));
  };
  for (const bool left : {true, false}) {
    check(make_local_bootstraps(3), left);
    const listener at;
    std::vector<std::unique_ptr<bootstrap>> made;
    for (int process = 0; process < 3; ++process)
      made.push_back(make_tcp_bootstrap(settings(process, 3, at), later()));
    check(std::move(made), left);
  }
}

TEST_CASE("who has failed is known between exchanges, and who has left in peace has not failed") {
  const auto failure_of = [](bootstrap& at) {
    std::string text;
    for (const time_point limit = later();
         text.empty() && std::chrono::steady_clock::now() < limit;
         std::this_thread::sleep_for(milliseconds(1)))
      text = at.failure();
    return text;
  };
  const listener at;
  std::vector<std::unique_ptr<bootstrap>> made;
  SUBCASE("one says so") {
    for (int process = 0; process < 4; ++process)
      made.push_back(make_tcp_bootstrap(settings(process, 4, at), later()));
    for (const auto& each : made) CHECK(each->failure().empty());
    made[1].reset();
    made[2]->abandon("no more of this");
    CHECK(failure_of(*made[0]) == "process 2 has failed: no more of this");
    CHECK(failure_of(*made[3]) == "process 2 has failed: no more of this");
    // An exchange says the same, and not that another has left.
    made[2].reset();
    expect_part(error_of([&] { made[3]->barrier("plans", later()); }),
                "exchange 'plans': process 2 has failed: no more of this");
  }
  SUBCASE("one says so while others exchange") {
    for (int process = 0; process < 4; ++process)
      made.push_back(make_tcp_bootstrap(settings(process, 4, at), later()));
    std::string texts[2];
    together({[&] { texts[0] = error_of([&] { made[0]->barrier("plans", later()); }); },
              [&] { texts[1] = error_of([&] { made[3]->barrier("plans", later()); }); },
              [&] {
                made[1]->abandon("no memory is left");  // and is still there
                made[2]->abandon(failure_of(*made[2]));
              }});
    for (const std::string& text : texts)
      expect_part(text, "exchange 'plans': process 1 has failed: no memory is left");
    for (const std::size_t process : {std::size_t{0}, std::size_t{3}})
      CHECK(failure_of(*made[process]) == "process 1 has failed: no memory is left");
  }
  SUBCASE("one dies") {
    made.push_back(make_tcp_bootstrap(settings(0, 2, at), later()));
    const int dying = stranger(at.port, own_hello);
    std::string welcome(24, '\0');
    REQUIRE(::recv(dying, welcome.data(), welcome.size(), MSG_WAITALL) == 24);
    CHECK(made[0]->failure().empty());
    ::close(dying);
    CHECK(failure_of(*made[0]) == "process 1 has ended, or its connection is broken");
  }
  SUBCASE("process 0 leaves in peace") {
    for (int process = 0; process < 3; ++process)
      made.push_back(make_tcp_bootstrap(settings(process, 3, at), later()));
    made[0].reset();  // and its server, after a while
    CHECK(made[1]->failure().empty());
    CHECK(made[2]->failure().empty());
  }
}

TEST_CASE("who does not come in time is named, with whom was turned away") {
  const listener at;
  SUBCASE("threads") {
    ::close(at.socket);
    const auto made = make_local_bootstraps(2);
    expect_part(error_of([&] { made[0]->barrier("plans", in(milliseconds(20))); }),
                "exchange 'plans' is not complete in time: process 1 has come, but not this far");
  }
  SUBCASE("TCP") {
    const auto first = make_tcp_bootstrap(settings(0, 3, at), later());
    const auto second = make_tcp_bootstrap(settings(1, 3, at), later());
    const auto turned_away = [&](const tcp_settings& with, const char* why) {
      const std::string text = error_of([&] { make_tcp_bootstrap(with, later()); });
      expect_part(text, "turns this process away");
      expect_part(text, why);
    };
    turned_away(settings(1, 3, at), "process 1 from 127.0.0.1:");
    turned_away(settings(1, 3, at), "it has come before, from 127.0.0.1:");
    tcp_settings other = settings(2, 3, at);
    other.launch.job = "another";
    turned_away(other, "it belongs to job 'another', process 0 to 'a job'");
    turned_away(settings(2, 4, at), "it is one of 4 processes, process 0 of 3");
    // Who has come waits no longer than the first to lose patience.
    std::string patient;
    std::string hasty;
    together({[&] { patient = error_of([&] { second->barrier("plans", later()); }); },
              [&] { hasty = error_of([&] { first->barrier("plans", in(milliseconds(50))); }); }});
    expect_part(hasty, "exchange 'plans' is not complete in time: ");
    expect_part(hasty, "process 2 has not come");
    expect_part(hasty, "turned away: process 2 from 127.0.0.1:");
    expect_part(hasty, "it is one of 4 processes");
    CHECK(patient.find("process 2 has not come") != std::string::npos);
  }
}

TEST_CASE("process 0 is asked when it is too late already, too") {
  const listener at;
  const auto first = make_tcp_bootstrap(settings(0, 2, at), later());
  expect_part(error_of([&] { first->barrier("plans", in(milliseconds(-5000))); }),
              "exchange 'plans' is not complete in time: process 1 has not come");
}

TEST_CASE("strangers at the port do no harm") {
  const listener at;
  const auto first = make_tcp_bootstrap(settings(0, 2, at), later());
  const std::vector<int> strangers{
      stranger(at.port, "GET / HTTP/1.1\r\n\r\n"), stranger(at.port, ""),
      stranger(at.port, std::string(100000, '\xff')),
      // Its beginning is right, and then it goes on forever about its name.
      stranger(at.port, std::string("1otterts\0\0\0\0\0\0\0\0\xff\xff\xff\xff\0\0\0\0", 24))};
  const auto second = make_tcp_bootstrap(settings(1, 2, at), later());
  std::vector<std::string> seen;
  together({[&] { seen = first->all_gather("plans", "a", later()); },
            [&] { static_cast<void>(second->all_gather("plans", "b", later())); }});
  CHECK(seen == std::vector<std::string>{"a", "b"});
  for (const int each : strangers) ::close(each);
}

TEST_CASE("what is no process 0 is found out in time") {
  SUBCASE("nobody is there") {
    const listener at;
    ::close(at.socket);
    tcp_settings with = settings(1, 2, at);
    expect_part(error_of([&] { make_tcp_bootstrap(with, in(milliseconds(50))); }),
                "process 0 is not found at 127.0.0.1:");
  }
  SUBCASE("it says nothing") {
    const listener at;
    expect_part(error_of([&] { make_tcp_bootstrap(settings(1, 2, at), in(milliseconds(50))); }),
                "does not answer in time");
    ::close(at.socket);
  }
  SUBCASE("it says something else") {
    const listener at;
    std::thread other([&] {
      const int socket = ::accept(at.socket, nullptr, nullptr);
      CHECK(::write(socket, "220 mail.example ESMTP\r\n", 24) == 24);
      // Closed with the client: what is unread would be lost to a reset.
      char word = 0;
      while (::read(socket, &word, 1) > 0) {
      }
      ::close(socket);
    });
    expect_part(error_of([&] { make_tcp_bootstrap(settings(1, 2, at), later()); }),
                "is no process 0");
    other.join();
    ::close(at.socket);
  }
  SUBCASE("it ends") {
    const listener at;
    auto first = make_tcp_bootstrap(settings(0, 2, at), later());
    const auto second = make_tcp_bootstrap(settings(1, 2, at), later());
    first.reset();
    expect_part(error_of([&] { second->barrier("plans", later()); }), "has closed the connection");
  }
  SUBCASE("the port is taken") {
    const listener at;
    tcp_settings with = settings(0, 2, at);
    with.listening = -1;
    expect_part(error_of([&] { make_tcp_bootstrap(with, later()); }),
                "MASTER_PORT: process 0 cannot listen at port " + std::to_string(at.port));
    with.listen_at = "127.0.0.1";
    expect_part(error_of([&] { make_tcp_bootstrap(with, later()); }),
                "MASTER_PORT: process 0 cannot listen at 127.0.0.1:");
    ::close(at.socket);
  }
}

TEST_CASE("process 0 is found by whichever of its addresses, and by its name for others alone") {
  const listener at;
  ::close(at.socket);
  tcp_settings first = settings(0, 3, at);
  first.listening = -1;
  first.launch.address = "no.such.name.invalid";  // as an address in front of the machine
  tcp_settings others[] = {settings(1, 3, at), settings(2, 3, at)};
  others[1].launch.address = "127.0.0.2";
  std::vector<std::unique_ptr<bootstrap>> made;
  made.push_back(make_tcp_bootstrap(first, later()));
  for (const tcp_settings& each : others) made.push_back(make_tcp_bootstrap(each, later()));
  together({[&] { made[0]->barrier("plans", later()); },
            [&] { made[1]->barrier("plans", later()); },
            [&] { made[2]->barrier("plans", later()); }});
  made.clear();
  // Or by the one alone that it is told to listen at.
  first.launch.processes = 2;
  first.listen_at = "127.0.0.2";
  others[1].launch.process = 1;
  others[0].launch.processes = others[1].launch.processes = 2;
  const auto only = make_tcp_bootstrap(first, later());
  expect_part(error_of([&] { make_tcp_bootstrap(others[0], in(milliseconds(50))); }),
              "process 0 is not found at 127.0.0.1:");
  CHECK(make_tcp_bootstrap(others[1], later())->process() == 1);
}

TEST_CASE("who hangs up in the place of process 0 is not the end of it") {
  const listener at;
  std::unique_ptr<bootstrap> second;
  std::thread waiting([&] { second = make_tcp_bootstrap(settings(1, 2, at), later()); });
  for (int time = 0; time < 2; ++time) ::close(::accept(at.socket, nullptr, nullptr));
  const auto first = make_tcp_bootstrap(settings(0, 2, at), later());
  waiting.join();
  together({[&] { first->barrier("plans", later()); }, [&] { second->barrier("plans", later()); }});
}

TEST_CASE("who has left meets the others at the same port again, though process 0 leaves later") {
  const listener at;
  auto first = make_tcp_bootstrap(settings(0, 2, at), later());
  auto second = make_tcp_bootstrap(settings(1, 2, at), later());
  SUBCASE("after it has left in peace") {}
  SUBCASE("after it has failed") {
    second->abandon("no room");
  }
  second.reset();
  // Nobody answers it, so that it tries again.
  const int early = stranger(at.port, own_hello);
  char word = 0;
  CHECK(::recv(early, &word, 1, 0) == 0);
  ::close(early);
  std::thread coming([&] { second = make_tcp_bootstrap(settings(1, 2, at), later()); });
  first.reset();
  tcp_settings again = settings(0, 2, at);
  again.listening = -1;
  first = make_tcp_bootstrap(again, later());
  coming.join();
  together({[&] { first->barrier("plans", later()); }, [&] { second->barrier("plans", later()); }});
}

TEST_CASE("a process 0 that would linger for ever waits for the others, and no longer") {
  const listener at;
  tcp_settings with = settings(0, 2, at);
  with.linger = std::chrono::nanoseconds::max();
  auto first = make_tcp_bootstrap(with, later());
  auto second = make_tcp_bootstrap(settings(1, 2, at), later());
  std::thread ending([&] { first.reset(); });
  CHECK(second->failure().empty());  // it serves yet, and has not closed the connection
  second.reset();
  ending.join();
}
