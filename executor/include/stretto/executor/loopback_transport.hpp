#pragma once

#include <memory>

#include "stretto/executor/transport.hpp"

namespace stretto::executor {

//! Between the ranks of one process; all of them must be in it.
//! @param capacity messages that a channel holds. 0: rendezvous, the sender's stream waits until
//!        the receiver has taken the message, which is copied once. N: the sender waits only while
//!        N messages are under way, each copied twice through memory set aside by open().
//!
//! Where a send meets its receive, job and size of both are compared; a difference is an error that
//! names the channel, both instructions and both sizes.
//! @throws plan_error when capacity is negative.
std::unique_ptr<transport> make_loopback_transport(int capacity = 0);

}  // namespace stretto::executor
