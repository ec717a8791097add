// What training has come to, in a file: layer by layer, each in one piece, so that it does not
// matter how many ranks, chunks and shards wrote it, nor how many go on with it; the head as one
// layer, in whatever pieces it is.
#pragma once

#include <filesystem>
#include <stdexcept>
#include <string>
#include <vector>

#include "pipeline/pipeline.hpp"

namespace train {

//! A file that is no checkpoint, is damaged, or is one of another model: which file, and why.
struct bad_checkpoint : std::runtime_error {
  bad_checkpoint(const std::filesystem::path& file, const std::string& why_)
      : std::runtime_error(file.string() + ": " + why_), why(why_) {}
  std::string why;
};

//! Numbers to save of which not all are finite: there is nothing to go on with.
struct diverged_checkpoint : bad_checkpoint {
  using bad_checkpoint::bad_checkpoint;
};

//! FILE.previous, of the file that links lead to: what it held before it was last saved.
std::filesystem::path previous_of(const std::filesystem::path& file);

//! Why no checkpoint could be written there now, nor put in the place of what is there; empty: it
//! could. Only checkpoints make way, and what symbolic links lead to, not the links.
std::string why_not_saved(const std::filesystem::path& file);

//! Writes parameters, both moments, the step, the seed and what training went by, each part with
//! its checksum. The file is there as a whole or not at all, whatever happens meanwhile; what it
//! held before is then found as FILE.previous (where the file system knows no hard links, for a
//! moment only there). Nor is it torn where several runs save to one file: it is the last one's.
//! Between steps only. Of several processes, all call it, and one writes: the others return after
//! it, and wait for it pipeline::at_files.
//! @throws stretto::executor::bootstrap_error when a process does not come in time, or has failed;
//!         bad_checkpoint when it cannot be written, where this process writes, and
//!         diverged_checkpoint when not all numbers are finite; the old file is as it was
void save_checkpoint(const std::filesystem::path& file, const pipeline& from);

//! Sets a pipeline of the same model and seed to what the file holds. The next step is the one that
//! would have followed. Bit-equal to training without the break where micro-batches and settings of
//! learning are the same, too. Of several processes, all call it: each reads the layers that it
//! holds, of a file which may lie elsewhere for others, but must be the same.
//! @return what training goes by from now on and did not when the file was saved, as in
//!         "--clip 2.0, which was 1.0"; empty: all is the same, or the file does not say
//! @throws bad_checkpoint in all processes, with what one of them has found; the pipeline is as it
//!         was, unless the file changes meanwhile
std::vector<std::string> load_checkpoint(const std::filesystem::path& file, pipeline& into);

}  // namespace train
