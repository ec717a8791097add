#include "processes.hpp"

#ifdef STRETTO_TRAIN_WITH_MPI
#include "stretto/executor/mpi.hpp"
#endif

namespace train {

#ifdef STRETTO_TRAIN_WITH_MPI

struct processes::session {
  stretto::executor::mpi_session mpi;
};

void processes::join(const std::string& transport, pipeline_settings& to) {
  if (transport == "loopback") return;
  if (transport != "mpi") throw bad_setting("transport", transport, "it is loopback or mpi");
  session_ = std::make_unique<session>();
  auto& mpi = session_->mpi;
  number_ = mpi.process();
  count_ = mpi.processes();
  to.between = &mpi;
  to.make_transport = [&mpi] { return stretto::executor::make_mpi_transport(mpi); };
}

int processes::end(int code) {
  if (code != 0 && count_ > 1) session_->mpi.abandon(code);
  session_.reset();
  return code;
}

#else

struct processes::session {};

void processes::join(const std::string& transport, pipeline_settings&) {
  if (transport == "mpi")
    throw bad_setting("transport", transport, "this program was built without MPI");
  if (transport != "loopback") throw bad_setting("transport", transport, "it is loopback or mpi");
}

int processes::end(int code) {
  return code;
}

#endif

processes::processes() = default;
processes::~processes() = default;

}  // namespace train
