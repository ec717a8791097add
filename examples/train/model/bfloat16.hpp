// Brain floating point: the upper half of a float, its sign, its exponent and 7 bits behind the
// point.
#pragma once

#include <cstdint>

#include "model/everywhere.hpp"

namespace train {

//! A number in bf16, as GPUs have it in memory.
enum class bfloat16 : std::uint16_t {};

//! The nearest number in bf16, of two as near the one with an even last bit; beyond the largest
//! infinity. What is not a number stays none, and quiet.
TRAIN_EVERYWHERE constexpr bfloat16 rounded(float value) {
  const auto bits = __builtin_bit_cast(std::uint32_t, value);  // std::bit_cast is the host's alone
  if ((bits & 0x7fff'ffffu) > 0x7f80'0000u)
    return static_cast<bfloat16>((bits >> 16 | 0x40u) & 0xffffu);
  return static_cast<bfloat16>((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}

//! The same number.
TRAIN_EVERYWHERE constexpr float widened(bfloat16 value) {
  return __builtin_bit_cast(float, static_cast<std::uint32_t>(value) << 16);
}

//! What is held as either, in single precision ...
TRAIN_EVERYWHERE constexpr float in_float(float value) {
  return value;
}
TRAIN_EVERYWHERE constexpr float in_float(bfloat16 value) {
  return widened(value);
}
//! ... and back.
TRAIN_EVERYWHERE constexpr void hold(float value, float& to) {
  to = value;
}
TRAIN_EVERYWHERE constexpr void hold(float value, bfloat16& to) {
  to = rounded(value);
}

//! In what numbers are kept that are computed in single precision.
enum class precision {
  fp32,
  bf16,
};

}  // namespace train
