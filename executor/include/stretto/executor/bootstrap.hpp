#pragma once

#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "stretto/executor/monitor.hpp"

namespace stretto::executor {

//! Why the processes of a job do not find one another, or do not exchange what they should.
class bootstrap_error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

//! How the processes of one job, each of which holds one rank or several, find one another and
//! exchange a few small strings before the first step. All of them make the same calls in the same
//! order, each from one thread at a time. After a call that has thrown, every further one throws.
class bootstrap {
 public:
  virtual ~bootstrap() = default;

  //! Which process of the job this is, from 0, of how many.
  virtual int process() const = 0;
  virtual int processes() const = 0;

  //! Gives every process the strings of all, in the order of the processes.
  //! @param what  names the exchange: at most 256 letters, none of them 0, the same in every
  //!              process
  //! @param mine  at most 64 MiB
  //! @throws bootstrap_error when a process has not come by then, has left, or is at another
  //!         exchange, which the text names; it is thrown within a second after `limit`.
  virtual std::vector<std::string> all_gather(std::string_view what, std::string_view mine,
                                              time_point limit) = 0;

  //! Gives process 0 the strings of all, in the order of the processes, and the others none: they
  //! may return before all have come. Otherwise as all_gather, which a bootstrap that knows no
  //! other way does.
  virtual std::vector<std::string> gather(std::string_view what, std::string_view mine,
                                          time_point limit) {
    std::vector<std::string> all = all_gather(what, mine, limit);
    if (process() != 0) all.clear();
    return all;
  }

  //! Returns when every process has called it.
  //! @throws bootstrap_error as all_gather does.
  void barrier(std::string_view what, time_point limit) {
    static_cast<void>(all_gather(what, {}, limit));
  }

  //! Between exchanges, without waiting: which process has failed, and why, as far as is known;
  //! empty: none, or this bootstrap does not tell. One that has left in peace has not failed.
  virtual std::string failure() noexcept { return {}; }
  //! Tells the others that this process has failed, where failure() does. Its last call.
  virtual void abandon(std::string_view /*why*/) noexcept {}
};

//! For processes that are threads of this one: one for each.
//! @throws bootstrap_error when `processes` is not positive, or more than 2^20: no bootstrap keeps
//!         count of so many.
std::vector<std::unique_ptr<bootstrap>> make_local_bootstraps(int processes);

}  // namespace stretto::executor
