// What a checkpoint is written to, until it is complete and takes the place of the one before it.
#pragma once

#include <filesystem>
#include <optional>
#include <string_view>

#include "pipeline/checkpoint_file.hpp"

namespace train {

//! A file beside another, "FILE.new-PID": several runs that save to FILE write one each. Until it
//! has FILE's place it has the sticky bit, which else no file has, by which what a killed process
//! has left is told from whatever else may be called so; and it is locked, by which others see that
//! somebody writes it. It is gone at the end, unless it was put in its place.
class fresh_file {
 public:
  explicit fresh_file(std::filesystem::path file);
  ~fresh_file();
  fresh_file(const fresh_file&) = delete;
  fresh_file& operator=(const fresh_file&) = delete;

  // Of all of these, where one cannot be done `errno` says why.
  bool open() const { return to_ && to_->open(); }
  bool write(std::string_view text) const { return to_->write(text); }
  bool sync() const { return to_->sync(); }
  //! In FILE's place.
  bool put();

 private:
  std::filesystem::path file_, name_;
  std::optional<descriptor> to_;
};

//! Removes those beside the file that nobody writes any more. None are, where the file system has
//! no locks, or no such bit.
void remove_leftovers(const std::filesystem::path& file);

}  // namespace train
