#pragma once

#include <string_view>

#include "stretto/lowering/streams/concept.hpp"
#include "stretto/model/stream_type.hpp"

namespace stretto::overlap {

//! `separate` on the streams of an enum: the library's, or a user's. What the step of a pipeline
//! needs is found by the names of the enumerators, which are those of stream_type; where one is
//! missing its like takes its place (send_next that of send_previous, receive_previous that of
//! receive_next), and where there is none, the stream that computes. Whatever else the enum has is
//! there for ops; a stream of theirs that stream_traits gives one of these names is refused, as it
//! would carry nothing.
template <StreamType Stream = stream_type>
struct typed {
  static_assert(stream_traits<Stream>::count <= max_streams,
                "stretto: an enum of streams has at most stretto::max_streams enumerators");
  static constexpr std::string_view name = "typed";

  constexpr int count() const {
    static_assert(called_alike(),
                  "stretto: a stream that stream_traits calls send_next, send_previous, "
                  "receive_next, receive_previous, data_parallel or offload must be the enumerator "
                  "of that name: by that it is found");
    static_assert(
        computes_first(),
        "stretto: stages compute on the first enumerator of an enum of streams: one that is "
        "called compute must be it, and none that carries messages, sums or copies");
    return stream_traits<Stream>::count;
  }
  constexpr stream_info stream(int number) const {
    const auto one = static_cast<Stream>(number);
    return named_stream(stream_traits<Stream>::name(one), stream_traits<Stream>::priority(one));
  }
  constexpr int stream_of(job_kind kind, int rank, int peer, int ranks) const {
    if (kind == job_kind::all_reduce) return data_parallel();
    if (kind == job_kind::offload || kind == job_kind::reload) return offload();
    const bool sends = is_send(kind);
    if (!sends && !is_receive(kind)) return 0;
    const bool previous = lowering::side_of(rank, peer, ranks) == 0;
    return sends ? previous ? send_previous() : send_next()
                 : previous ? receive_previous() : receive_next();
  }

 private:
  //! The stream of what carries messages, sums or copies by that name; -1: it is none of theirs.
  static constexpr int carrier(std::string_view word) {
    if (word == "send_next") return send_next();
    if (word == "send_previous") return send_previous();
    if (word == "receive_next") return receive_next();
    if (word == "receive_previous") return receive_previous();
    if (word == "data_parallel") return data_parallel();
    return word == "offload" ? offload() : -1;
  }
  static constexpr std::string_view called(int one) {
    return stream_traits<Stream>::name(static_cast<Stream>(one));
  }
  static constexpr bool called_alike() {
    for (int one = 0; one < stream_traits<Stream>::count; ++one)
      if (const int found = carrier(called(one)); found >= 0 && found != one) return false;
    return true;
  }
  static constexpr bool computes_first() {
    if constexpr (requires { Stream::compute; })
      if (static_cast<int>(Stream::compute) != 0) return false;
    for (int one = 1; one < stream_traits<Stream>::count; ++one)
      if (called(one) == "compute") return false;
    return carrier(called(0)) < 0;
  }
  static constexpr int data_parallel() {
    if constexpr (requires { Stream::data_parallel; })
      return static_cast<int>(Stream::data_parallel);
    else
      return 0;
  }
  static constexpr int offload() {
    if constexpr (requires { Stream::offload; })
      return static_cast<int>(Stream::offload);
    else
      return 0;
  }
  static constexpr int send_next() {
    if constexpr (requires { Stream::send_next; })
      return static_cast<int>(Stream::send_next);
    else
      return 0;
  }
  static constexpr int receive_previous() {
    if constexpr (requires { Stream::receive_previous; })
      return static_cast<int>(Stream::receive_previous);
    else
      return 0;
  }
  static constexpr int send_previous() {
    if constexpr (requires { Stream::send_previous; })
      return static_cast<int>(Stream::send_previous);
    else
      return send_next();
  }
  static constexpr int receive_next() {
    if constexpr (requires { Stream::receive_next; })
      return static_cast<int>(Stream::receive_next);
    else
      return receive_previous();
  }
};

}  // namespace stretto::overlap
