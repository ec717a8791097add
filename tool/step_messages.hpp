#pragma once

#include "step.hpp"

namespace stretto::tool {

//! The compute lists with sends and receives; the lists themselves if they hold messages.
//! @throws broken_schedule when the messages break a rule
job_lists with_messages(const step& from);
//! The same of a generated step as PyTorch's runtime wants it (plan/csv_comms.hpp).
//! @param gathered  of how many stages at once a rank has the weights
job_lists with_pytorch_comms(const step& from, int gathered);

}  // namespace stretto::tool
