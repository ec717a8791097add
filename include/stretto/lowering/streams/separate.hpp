#pragma once

#include "stretto/lowering/streams/concept.hpp"

namespace stretto::overlap {

//! Computation on one stream, every direction of communication on one of its own: a message to a
//! neighbour overlaps with computation and with messages to and from the other. Communication is
//! the more urgent: it is short, and somebody waits for it. Copies to the host and back have a
//! stream of their own, as urgent as computation.
struct separate {
  static constexpr std::string_view name = "separate";
  enum stream_index : int {
    compute,
    send_next,
    receive_previous,
    send_previous,
    receive_next,
    data_parallel,
    offload,
    stream_count
  };

  constexpr int count() const { return stream_count; }
  constexpr stream_info stream(int number) const {
    constexpr std::string_view names[stream_count] = {
        "compute", "send_next", "receive_previous", "send_previous", "receive_next",
        "data_parallel", "offload"};
    return named_stream(names[number], number == compute || number == offload ? 0 : -1);
  }
  constexpr int stream_of(job_kind kind, int rank, int peer, int ranks) const {
    if (kind == job_kind::all_reduce) return data_parallel;
    if (kind == job_kind::offload || kind == job_kind::reload) return offload;
    const bool sends = kind == job_kind::send_forward || kind == job_kind::send_backward;
    if (!sends && kind != job_kind::receive_forward && kind != job_kind::receive_backward)
      return compute;
    // Ranks that are no neighbours share the streams of the next one.
    const bool previous = lowering::side_of(rank, peer, ranks) == 0;
    return sends ? previous ? send_previous : send_next
                 : previous ? receive_previous : receive_next;
  }
};

}  // namespace stretto::overlap
