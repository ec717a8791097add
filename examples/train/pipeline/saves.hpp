// The checkpoints of a run (--save), one after the other in one file.
#pragma once

#include <filesystem>
#include <string>
#include <utility>

#include "pipeline/pipeline.hpp"

namespace train {

//! One that cannot be written ends no training: the file keeps what it held, and the next is tried.
class saves {
 public:
  explicit saves(std::filesystem::path file) : file_(std::move(file)) {}

  //! Saves what training has come to. Of several processes, all call it, and the one that writes is
  //! told.
  //! @param last  none follows
  //! @return why the file could not be written; else empty
  //! @throws diverged_checkpoint
  std::string add(const pipeline& from, bool last);
  //! Whether the file is without what was to be saved last.
  bool lacks_last() const { return lacks_last_; }
  //! "--save FILE: not written 1 of 5 times, after step 200: cannot be written: No space
  //! left on device; it has step 500"; empty: it was each time.
  std::string complaint() const;

 private:
  std::filesystem::path file_;
  long times_ = 0, failed_ = 0;
  long saved_step_ = 0, failed_step_ = 0;  // 0: none yet
  bool lacks_last_ = false;
  std::string why_;
};

}  // namespace train
