// Signals that ask a run to end: before its first step, or after one.
#pragma once

namespace train {

//! What a run that was asked to, and has saved what it came to since it began, ends with.
inline constexpr int ended_early = 3;

//! While it is there, the first SIGINT, SIGTERM or SIGUSR1 is kept, and all later ones end the
//! process as they would without it. Those that are ignored already (nohup) stay so. So is SIGPIPE,
//! which from then on is ignored. There is one at a time.
class early_end {
 public:
  early_end();
  ~early_end();
  early_end(const early_end&) = delete;
  early_end& operator=(const early_end&) = delete;

  //! The signal that has come; 0: none.
  int signal() const;
};

//! "SIGTERM".
const char* name_of_signal(int number);

}  // namespace train
