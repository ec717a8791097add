#include "mpi_session.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <memory>
#include <thread>
#include <utility>

#include "exchange_limits.hpp"
#include "mpi_requests.hpp"

namespace stretto::executor {
namespace {

//! What a process with messages under way says in the end.
constexpr const char* gave_up = "gave up";

std::string version_of_library() {
  char text[MPI_MAX_LIBRARY_VERSION_STRING] = "";
  int length = 0;
  MPI_Get_library_version(text, &length);
  return std::string(text, std::strcspn(text, ",\n"));
}

bool is_finalised() {
  int over = 0;
  MPI_Finalized(&over);
  return over != 0;
}

//! One exchange: everyone sends its words to everyone else, so that each knows who is missing; or
//! to process 0 alone.
class exchange {
 public:
  exchange(mpi_session::state& with, std::string_view what, std::string_view mine, time_point limit,
           bool to_all)
      : with_(with),
        to_all_(to_all),
        name_("exchange '" + std::string(what) + "'"),
        what_(what),
        limit_(limit),
        tag_(with.ending ? last_tag : with.exchanges % last_tag),
        words_(std::string(what) + '\0' + std::string(mine)),
        out_(with.control, name_, static_cast<std::size_t>(with.processes), words_.size()) {}

  std::vector<std::string> run() {
    std::copy_n(reinterpret_cast<const std::byte*>(words_.data()), words_.size(), out_.memory());
    for (int other = 0; other < with_.processes; ++other)
      if (other != with_.process && gets(other)) out_.send(0, words_.size(), other, tag_);
    std::vector<std::string> all;
    for (int other = 0; other < with_.processes && gets(with_.process); ++other)
      all.push_back(part_of(other));
    for (patience pause; !out_.done(); pause.wait()) {
      look_for_failures();
      if (std::chrono::steady_clock::now() < limit_) continue;
      std::string text = name_ + " is not complete in time: what this process gave is not taken by";
      for (const char* comma = " "; const int process : out_.open_peers()) {
        text += comma + std::string("process ") + std::to_string(process);
        comma = ", ";
      }
      throw bootstrap_error(text);
    }
    return all;
  }

 private:
  // No exchange has that of the end: what comes for one that a process has not come to, it leaves.
  static constexpr int last_tag = 32767;  // which every MPI has

  void look_for_failures() {
    // In the end, too: others wait for this one to hear that they had left.
    if (const std::string lost = with_.news->failure(); !with_.ending && !lost.empty())
      throw bootstrap_error(name_ + " is not complete: " + lost);
  }
  bool gets(int process) const { return to_all_ || process == 0; }

  std::string part_of(int other) {
    std::string words = words_;
    if (other != with_.process) words = receive(other);
    const std::size_t end = words.find('\0');
    if (words.substr(0, end) != what_)
      throw bootstrap_error("process " + std::to_string(other) + " is at exchange '" +
                            words.substr(0, end) + "', process " + std::to_string(with_.process) +
                            " at '" + what_ + "'");
    return words.substr(end + 1);
  }

  std::string receive(int from) {
    patience pause;
    MPI_Status status;
    int there = 0;
    while (true) {
      // Before it left, it saw all taken that it gave.
      const bool gone = !with_.ending && with_.news->has_left(from);
      must_succeed(MPI_Iprobe(from, tag_, with_.control, &there, &status), name_);
      if (there != 0) break;
      if (gone)
        throw bootstrap_error(name_ + ": process " + std::to_string(from) + " has left before it");
      look_for_failures();
      if (std::chrono::steady_clock::now() >= limit_)
        throw bootstrap_error(name_ + " is not complete in time: process " + std::to_string(from) +
                              " has not come this far");
      pause.wait();
    }
    int bytes = 0;
    MPI_Get_count(&status, MPI_BYTE, &bytes);
    const auto size = static_cast<std::size_t>(bytes);
    mpi_requests in(with_.control, name_, 1, size);
    in.receive(0, size, from, tag_);
    if (!in.complete(nullptr, limit_))
      throw bootstrap_error(name_ + ": process " + std::to_string(from) + " has stopped in it");
    return {reinterpret_cast<const char*>(in.memory()), size};
  }

  mpi_session::state& with_;
  bool to_all_;
  std::string name_;
  std::string what_;
  time_point limit_;
  int tag_;
  std::string words_;
  mpi_requests out_;
};

//! @param last_words  said by whoever does end all
template <class Say>
[[noreturn]] void end_all(int process, int code, const Say& last_words) noexcept {
  std::fflush(nullptr);
  // The first ends all. When several ask at once, or one while another finalises, Open MPI 4.1's
  // mpirun may crash or never end; and it drops what processes have printed that it has not read
  // yet.
  std::this_thread::sleep_for(std::min(process, 4) * std::chrono::seconds(1));
  last_words();
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  MPI_Abort(MPI_COMM_WORLD, code);
  std::_Exit(code);
}

}  // namespace

mpi_session::mpi_session() : state_(std::make_shared<state>()) {
  if (is_finalised())
    throw bootstrap_error(
        "MPI has been finalised in this process, by an earlier mpi_session or by the program, and "
        "cannot be initialised again");
  int there = 0;
  MPI_Initialized(&there);
  int level = MPI_THREAD_SINGLE;
  if (there != 0) {
    MPI_Query_thread(&level);
  } else {
    MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &level);
    state_->finalises = true;
  }
  state_->library = version_of_library();
  if (level < MPI_THREAD_MULTIPLE) {
    if (state_->finalises) MPI_Finalize();
    throw bootstrap_error(state_->library +
                          (there != 0 ? " was initialised without" : " does not provide") +
                          " MPI_THREAD_MULTIPLE, which the streams of the executor need");
  }
  MPI_Comm_dup(MPI_COMM_WORLD, &state_->control);
  MPI_Comm_set_errhandler(state_->control, MPI_ERRORS_RETURN);
  MPI_Comm_rank(state_->control, &state_->process);
  MPI_Comm_size(state_->control, &state_->processes);
  state_->news.emplace(state_->control);
  state_->exceptions = std::uncaught_exceptions();
}

mpi_session::~mpi_session() {
  if (is_finalised()) return;
  // Its text is not to be had before somebody catches it.
  if (std::uncaught_exceptions() > state_->exceptions && failure().empty())
    abandon("an exception has ended its session");
  bool well = !mpi_requests::any_given_up() && failure().empty();
  try {
    if (well) well = state_->news->leave();
  } catch (const std::exception&) {
    well = false;  // MPI reports what the barrier meets, too
  }
  if (!well) {
    state_->ending = true;
    state_->broken.clear();  // who has no part in exchanges any more has one in this
    bool any_given_up = mpi_requests::any_given_up();
    try {
      for (const std::string& theirs :
           all_gather("end after a failure", any_given_up ? gave_up : "",
                      std::chrono::steady_clock::now() + std::chrono::seconds(1)))
        any_given_up = any_given_up || theirs == gave_up;
    } catch (const std::exception&) {
      // Who does not come has died, or was ended already.
    }
    // Not by then: what was to be told in the exchange.
    if (any_given_up || mpi_requests::any_given_up()) {
      const std::string why = failure();
      end_all(state_->process, 1, [&] {
        std::fprintf(stderr,
                     "stretto: process %d ends all processes: messages are under way, which MPI "
                     "cannot take back%s%s\n",
                     state_->process, why.empty() ? "" : "; ", why.c_str());
      });
    }
  }
  state_->communicators.free();
  state_->news->free();
  MPI_Comm_free(&state_->control);
  if (state_->finalises) MPI_Finalize();
}

int mpi_session::process() const {
  return state_->process;
}

int mpi_session::processes() const {
  return state_->processes;
}

std::vector<std::string> mpi_session::all_gather(std::string_view what, std::string_view mine,
                                                 time_point limit) {
  return run(what, mine, limit, true);
}

std::vector<std::string> mpi_session::gather(std::string_view what, std::string_view mine,
                                             time_point limit) {
  return run(what, mine, limit, false);
}

std::vector<std::string> mpi_session::run(std::string_view what, std::string_view mine,
                                          time_point limit, bool to_all) {
  state& my = *state_;
  if (!my.broken.empty()) throw bootstrap_error(my.broken);
  try {
    must_be_small(what, mine);
    ++my.exchanges;
    return exchange(my, what, mine, limit, to_all).run();
  } catch (const std::runtime_error& wrong) {
    my.broken = wrong.what();
    throw bootstrap_error(my.broken);
  }
}

std::string mpi_session::failure() noexcept {
  try {
    return state_->news->failure();
  } catch (...) {  // no memory for the text
    return {};
  }
}

void mpi_session::abandon(std::string_view why) noexcept {
  try {
    state_->news->fail(why);
  } catch (...) {  // then they hear of it at their deadline
  }
}

void mpi_session::abort(int code) noexcept {
  end_all(state_->process, code, [] {});
}

}  // namespace stretto::executor
