// A training step's order from a file, instead of a schedule by its name.
#pragma once

#include <string>

#include "stretto/model/shape.hpp"
#include "stretto/schedule/any.hpp"

namespace train {

//! An order, which serves one shape, as a schedule.
struct order_file {
  stretto::schedule::any order;
  stretto::shape sizes;
};

//! Reads PyTorch's CSV, and cells of slices and of two directions, jobs without messages, as
//! `stretto check` does, and proves the lists before anything is made of them. Stages must lie
//! looped, in a wave or both ways, as the trainer lays its own.
//! @throws bad_setting with row, cell and rule
order_file read_order(const std::string& path);

}  // namespace train
