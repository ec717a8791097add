#pragma once

#include <concepts>
#include <cstdint>
#include <string_view>
#include <type_traits>

namespace stretto {

//! The most streams of a plan.
inline constexpr int max_streams = 8;

//! Where an op runs, by default. What concerns streams takes any enum for which stream_traits says
//! the same: an enumerator more of the user's own needs nothing of the library.
enum class stream_type : std::uint8_t {
  compute,
  tensor_parallel,
  send_next,
  receive_previous,
  send_previous,
  receive_next,
  data_parallel,
  offload,
};

//! What is known of an enum of streams. To be specialised for one's own:
//! - `count`: enumerators, from 0 on without gaps; the first is where stages compute.
//! - `name(one)`: at most 23 letters, for traces and profilers.
//! - `priority(one)`: lower is more urgent, as in CUDA; computation has 0.
template <class Stream>
struct stream_traits;

template <>
struct stream_traits<stream_type> {
  static constexpr int count = 8;
  static constexpr std::string_view name(stream_type one) {
    constexpr std::string_view names[] = {"compute",          "tensor_parallel", "send_next",
                                          "receive_previous", "send_previous",   "receive_next",
                                          "data_parallel",    "offload"};
    return names[static_cast<int>(one)];
  }
  //! Communication is short, and somebody waits for it; a copy to the host is neither.
  static constexpr int priority(stream_type one) {
    return one == stream_type::compute || one == stream_type::offload ? 0 : -1;
  }
};

//! An enum of streams: stream_traits is specialised for it with `count`, at most max_streams,
//! `name(one)` and `priority(one)`, of which lower is more urgent.
template <class Stream>
concept StreamType = std::is_enum_v<Stream> && requires(Stream one) {
  { stream_traits<Stream>::count } -> std::convertible_to<int>;
  requires stream_traits<Stream>::count <= max_streams;
  { stream_traits<Stream>::name(one) } -> std::convertible_to<std::string_view>;
  { stream_traits<Stream>::priority(one) } -> std::convertible_to<int>;
};

}  // namespace stretto
