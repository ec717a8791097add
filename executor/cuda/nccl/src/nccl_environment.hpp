#pragma once

#include <string>

namespace stretto::executor {

//! Of the NCCL that was loaded, which need not be the one that this was built with.
//! @throws plan_error where it is too old
std::string nccl_version();

//! Looks at what the process's environment has CUDA and NCCL do.
//! @param kernels_loaded  see nccl_settings
//! @param ranks           of this process
//! @throws plan_error where launches may wait for one another, or calls cannot be ended
void check_environment(bool kernels_loaded, int ranks);

//! Blocks that a kernel of a communicator may have, whatever it was made with.
struct block_count {
  int blocks = 0;
  std::string why{};  //!< the variable that goes before what it was made with; empty: none
};
block_count blocks_of_message(int asked);
block_count blocks_of_sum(int asked);

}  // namespace stretto::executor
