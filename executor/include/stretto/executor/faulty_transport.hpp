#pragma once

#include <chrono>
#include <cstdint>
#include <memory>

#include "stretto/executor/transport.hpp"

namespace stretto::executor {

//! What goes wrong with an operation.
enum class mishap : std::uint8_t {
  delay,        //!< it starts late
  drop,         //!< it is never handed on: its stream goes on as if it were done
  duplicate,    //!< it is handed on twice
  wrong_size,   //!< it is handed on with one byte less
  throw_now,    //!< the call that enqueues it throws
  throw_later,  //!< it throws on its stream
};

//! A fault to inject: into the `at`-th operation (message or collective, from 0, over all steps)
//! that `rank` enqueues.
struct injected_fault {
  mishap what = mishap::drop;
  int rank = 0;
  std::int64_t at = 0;
  std::chrono::microseconds delay{0};
};

//! A transport that hands everything on to `inner` and injects one fault: for tests.
std::unique_ptr<transport> make_faulty_transport(std::unique_ptr<transport> inner,
                                                 const injected_fault& fault);

}  // namespace stretto::executor
