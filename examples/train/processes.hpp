// The processes that share one training run.
#pragma once

#include <memory>
#include <string>

#include "pipeline/settings.hpp"

namespace train {

//! This process alone, or those that mpirun has started.
class processes {
 public:
  processes();
  ~processes();

  //! @param transport  loopback: this process alone; mpi
  //! @throws bad_setting when there is no such transport
  void join(const std::string& transport, pipeline_settings& to);

  //! Whether this one prints and writes files.
  bool speaks() const { return number_ == 0; }
  int count() const { return count_; }
  int number() const { return number_; }
  //! Ends the process; with an error, all of them: the others wait for this one.
  int end(int code);

 private:
  struct session;
  std::unique_ptr<session> session_;
  int number_ = 0;
  int count_ = 1;
};

}  // namespace train
