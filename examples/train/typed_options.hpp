// Values of options as typed, where they are not those of the library's structs.
#pragma once

#include <optional>
#include <string>

#include "options.hpp"

namespace train {

struct typed_options {
  std::optional<std::string> layers;
  std::optional<std::string> layers_per_rank;
  std::string recompute = "none";
  std::string offload = "none";
  std::string precision = "fp32";
  // Empty: the schedule's default.
  std::string remainder, warmup, backwards, split, objective, merge;
  std::optional<std::string> machine;
  std::optional<std::string> csv;
  double deadline = 300;
  int join_timeout = 120;
  double learning_rate = 3e-3;
  bool untied = false;

  //! Reads them, and what follows from several options together.
  //! @throws bad_setting, or early_exit for a file
  void complete(options& made) const;
};

}  // namespace train
