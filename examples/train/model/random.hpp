// Numbers that depend on nothing but their key: the same on every partition and every thread.
#pragma once

#include <cmath>
#include <cstdint>
#include <numbers>

namespace train {

//! The finaliser of SplitMix64 (Steele, Lea, Flood, "Fast splittable pseudorandom number
//! generators", 2014): a bijection on 64 bits that spreads every input bit.
constexpr std::uint64_t mix(std::uint64_t bits) {
  bits = (bits ^ (bits >> 30)) * 0xbf58476d1ce4e5b9u;
  bits = (bits ^ (bits >> 27)) * 0x94d049bb133111ebu;
  return bits ^ (bits >> 31);
}

//! A stream of numbers set by a key of any length, such as (seed, layer).
class random_stream {
 public:
  template <class... Keys>
  explicit constexpr random_stream(std::uint64_t seed, Keys... keys) : state_(mix(seed + golden)) {
    ((state_ = mix((state_ ^ static_cast<std::uint64_t>(keys)) + golden)), ...);
  }

  constexpr std::uint64_t next() { return mix(state_ += golden); }

  //! In [0, 1), 53 bits.
  constexpr double uniform() { return static_cast<double>(next() >> 11) * 0x1p-53; }

  //! Standard normal, by Box and Muller.
  double normal() {
    const double radius = std::sqrt(-2.0 * std::log(1.0 - uniform()));
    return radius * std::cos(2.0 * std::numbers::pi * uniform());
  }

 private:
  static constexpr std::uint64_t golden = 0x9e3779b97f4a7c15u;
  std::uint64_t state_;
};

}  // namespace train
