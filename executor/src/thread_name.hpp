#pragma once

#include <string>

#if defined(__linux__)
#include <pthread.h>
#endif

namespace stretto::executor {

//! What a rank's thread is called in debuggers and profilers. The kernel keeps 15 letters.
inline std::string thread_name(int rank, const std::string& what) {
  return (std::to_string(rank) + ' ' + what).substr(0, 15);
}

inline void name_this_thread([[maybe_unused]] const std::string& name) {
#if defined(__linux__)
  pthread_setname_np(pthread_self(), name.c_str());
#endif
}

}  // namespace stretto::executor
