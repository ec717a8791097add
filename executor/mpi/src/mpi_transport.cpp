#include <algorithm>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "lost_peers.hpp"
#include "mpi_channel.hpp"
#include "mpi_group.hpp"
#include "mpi_session.hpp"
#include "plan_ends.hpp"
#include "stretto/executor/agreement.hpp"
#include "stretto/executor/error.hpp"
#include "stretto/executor/mpi.hpp"

namespace stretto::executor {
namespace {

using state = mpi_session::state;

//! Where a rank is, and which of its process's it is.
struct seat {
  int process = 0;
  int number = 0;
};

class mpi_transport final : public transport {
 public:
  mpi_transport(mpi_session& between, state& with, std::chrono::nanoseconds opening)
      : between_(between), with_(with), opening_(opening), lost_(between) {
    if (opening <= std::chrono::nanoseconds::zero())
      throw plan_error("the time for opening the MPI transport must be positive");
  }
  ~mpi_transport() override {
    sends_.clear();
    receives_.clear();
    groups_.clear();
    if (by_.on != MPI_COMM_NULL && !mpi_requests::any_given_up()) with_.communicators.put_back(by_);
  }

  void open(std::span<const plan_view> plans, monitor& watch) override {
    opening_began_ = true;
    const time_point now = std::chrono::steady_clock::now();
    const time_point limit =
        opening_ < time_point::max() - now ? now + opening_ : time_point::max();
    try {
      const component library{"MPI", with_.library};
      agree(plans, {&library, 1}, between_, limit);
      find_ranks(plans, limit);
      find_communicator(limit);
    } catch (const bootstrap_error& wrong) {
      throw plan_error(std::string("the MPI transport cannot be opened: ") + wrong.what());
    }
    step_ = &watch;
    watch_.emplace(watch.stop_flag(), lost_, *with_.news);
    check_tags(plans);
    for (const plan_view& plan : plans) {
      open_channels(plan);
      open_groups(plan);
    }
  }

  void attach(int rank, device& on) override {
    if (on.stream(0).native != nullptr)
      throw plan_error("the MPI transport moves the host's memory, and rank " +
                       std::to_string(rank) + " is on a GPU");
  }

  bool rendezvous() const override { return true; }

  void send(const launch& at, const operation& what) override {
    mpi_channel& channel = *sends_.at({what.rank, what.peer});
    enqueue(at, what, do_send, &channel, channel.next());
  }
  void receive(const launch& at, const operation& what) override {
    mpi_channel& channel = *receives_.at({what.peer, what.rank});
    enqueue(at, what, do_receive, &channel, channel.next());
  }
  void all_reduce(const launch& at, const operation& what) override {
    mpi_group& group = *groups_.at({what.peer, what.rank});
    enqueue(at, what, do_all_reduce, &group, group.next());
  }
  void all_gather(const launch& at, const operation& what) override {
    mpi_group& group = *groups_.at({what.peer, what.rank});
    enqueue(at, what, do_all_gather, &group, group.next());
  }
  void reduce_scatter(const launch& at, const operation& what) override {
    mpi_group& group = *groups_.at({what.peer, what.rank});
    enqueue(at, what, do_reduce_scatter, &group, group.next());
  }

  //! Who is late tells nobody: the others are late with him, and have more to say of what they wait
  //! for. Nor who is refused while all open: it is all that are.
  void tell(std::string_view why) noexcept override {
    if (step_ == nullptr ? !opening_began_ : std::chrono::steady_clock::now() < step_->deadline())
      lost_.tell(why);
  }
  // Whoever waits looks at the monitor again and again.
  void abort() noexcept override {}

 private:
  static void do_send(const command& work) {
    static_cast<mpi_channel*>(work.self)->send(operation_of(work), work.step, work.argument);
  }
  static void do_receive(const command& work) {
    static_cast<mpi_channel*>(work.self)->receive(operation_of(work), work.step, work.argument);
  }
  static void do_all_reduce(const command& work) {
    static_cast<mpi_group*>(work.self)->all_reduce(operation_of(work), work.step, work.argument);
  }
  static void do_all_gather(const command& work) {
    static_cast<mpi_group*>(work.self)->all_gather(operation_of(work), work.step, work.argument);
  }
  static void do_reduce_scatter(const command& work) {
    static_cast<mpi_group*>(work.self)->reduce_scatter(operation_of(work), work.step,
                                                       work.argument);
  }

  void find_ranks(std::span<const plan_view> plans, time_point limit) {
    std::string mine;
    for (const plan_view& plan : plans) mine += std::to_string(plan.rank) + ' ';
    const std::vector<std::string> all = between_.all_gather("ranks", mine, limit);
    for (std::size_t process = 0; process < all.size(); ++process) {
      std::istringstream words(all[process]);
      int there = 0;
      for (int rank = 0; words >> rank; ++there) seats_[rank] = {static_cast<int>(process), there};
      most_in_one_ = std::max(most_in_one_, there);
    }
  }

  void find_communicator(time_point limit) {
    mpi_communicators& all = with_.communicators;
    by_ = all.take(with_.control, between_.all_gather("communicators", all.unused(), limit), limit);
    if (by_.on == MPI_COMM_NULL)
      throw bootstrap_error("a process does not come for the communicator");
  }

  //! One for each channel, and for each pair of members of each group, that is between the same two
  //! processes.
  int tag_of(int block, int from, int to) const {
    return (block * most_in_one_ + seats_.at(from).number) * most_in_one_ + seats_.at(to).number;
  }
  void check_tags(std::span<const plan_view> plans) const {
    int* most = nullptr;
    int found = 0;
    MPI_Comm_get_attr(by_.on, MPI_TAG_UB, &most, &found);
    std::size_t groups = 0;
    for (const plan_view& plan : plans) groups = std::max(groups, plan.groups.size());
    const double wanted = static_cast<double>(groups + 1) * most_in_one_ * most_in_one_;
    if (wanted > static_cast<double>(found != 0 ? *most : 32767))
      throw plan_error("this MPI has too few tags for " + std::to_string(most_in_one_) +
                       " ranks in one process and " + std::to_string(groups) + " groups");
  }

  void open_channels(const plan_view& plan) {
    for (const bool sends : {true, false})
      for (const auto& [name, list] : channels_of(plan, sends ? action::send : action::receive)) {
        std::int64_t largest = 0;
        for (const message_end& each : list) largest = std::max(largest, each.bytes);
        const auto [from, to] = name;
        // MPI counts in int.
        if (largest > std::numeric_limits<int>::max() - 4096)
          throw plan_error("channel " + std::to_string(from) + " -> " + std::to_string(to) +
                           ": a message of " + std::to_string(largest) +
                           " bytes is too large for MPI");
        const mpi_channel::place at{from, to, seats_.at(sends ? to : from).process,
                                    tag_of(0, from, to)};
        (sends ? sends_ : receives_)[name] =
            std::make_unique<mpi_channel>(by_.on, at, largest, *watch_);
      }
  }

  void open_groups(const plan_view& plan) {
    for (const int number : groups_of(plan)) {
      const group_info& info = plan.groups[static_cast<std::size_t>(number)];
      const std::vector<collective_end> all = group_of(plan, number).collectives;
      const std::int64_t gathered = std::ranges::max(all, {}, &collective_end::gathered).gathered;
      mpi_group::place at{number, plan.rank, {}, info.elements, info.wide, gathered};
      for (const std::int32_t rank : plan.members_of(info))
        at.members.push_back({rank, seats_.at(rank).process, tag_of(1 + number, plan.rank, rank),
                              tag_of(1 + number, rank, plan.rank)});
      std::sort(at.members.begin(), at.members.end(),
                [](const auto& left, const auto& right) { return left.rank < right.rank; });
      const std::int64_t bytes = std::max(info.elements * (info.wide ? 8 : 4), at.gathered);
      if (bytes / info.count > std::numeric_limits<int>::max() - 4096)
        throw plan_error("group " + std::to_string(number) +
                         ": what a member sums or gathers is too large " + "for MPI");
      groups_[{number, plan.rank}] = std::make_unique<mpi_group>(by_.on, std::move(at), *watch_);
    }
  }

  mpi_session& between_;
  state& with_;
  std::chrono::nanoseconds opening_;
  bool opening_began_ = false;
  std::map<int, seat> seats_;  // of each rank
  int most_in_one_ = 0;        // ranks in one process
  mpi_communicators::numbered by_;
  const monitor* step_ = nullptr;
  lost_peers lost_;
  std::optional<mpi_watch> watch_;
  std::map<std::pair<int, int>, std::unique_ptr<mpi_channel>> sends_;
  std::map<std::pair<int, int>, std::unique_ptr<mpi_channel>> receives_;
  std::map<std::pair<int, int>, std::unique_ptr<mpi_group>> groups_;  // by group and rank
};

}  // namespace

std::unique_ptr<transport> make_mpi_transport(mpi_session& between,
                                              std::chrono::nanoseconds opening) {
  return std::make_unique<mpi_transport>(between, *between.state_, opening);
}

}  // namespace stretto::executor
