#pragma once

#include <nccl.h>

#include <string>
#include <string_view>
#include <vector>

//! NCCL between simulated GPUs, for the functions that the executor calls (nccl.cpp), linked in its
//! place. Messages and sums are work on the GPUs' streams, and bytes really go from one to the
//! other. Calls are kept with those of the CUDA runtime. What one communicator has is done in the
//! order of the calls, and sends wait for their receives. Calls on communicators that do not block
//! are in progress for a while; in groups nothing happens before the end.
namespace stretto::test::nccl {

struct made {
  std::string name{};
  int size = 0;
  int rank = 0;
  int device = 0;
  int blocking = 1;
  int blocks = 0;
  int cluster = 0;
  int share = 1;
};

//! Forgets everything; gpu::reset() comes first.
void reset();
//! All communicators, one for each rank in them, in the order of the calls.
const std::vector<made>& communicators();
int alive();
//! That the calling thread has begun and not ended.
int open_groups();
//! How often arenas are registered now.
int registered();
//! How many were aborted, and in how many groups.
int aborted();
int aborting_groups();
//! How many were revoked, and in how many groups.
int revoked();
int revoking_groups();
//! Communicators are between processes from now on, until the next reset: ids that this one makes
//! name the folder, an absolute path, and who is given them finds the others there.
void share_between_processes(const std::string& folder);
//! Says that it is of this version (NCCL_VERSION_CODE).
void be_version(int code);

//! The n-th call from now on, of any function or of the one named, fails.
void fail_call(int n, ncclResult_t code, std::string_view function = {});
bool has_failed();
//! All communicators of the name report the error from now on, and nothing on them ends.
void fail_async(const std::string& name, ncclResult_t code);
//! Nothing on communicators of the name ends from now on.
//! @param calls  nor do calls
void stall(const std::string& name, bool calls);
//! Whether no communicator that is to be destroyed comes back from it from now on.
void hold_destroyed(bool holds);

}  // namespace stretto::test::nccl
