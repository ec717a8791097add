#pragma once

#include "stretto/lowering/streams/receive_lead.hpp"
#include "stretto/lowering/streams/separate.hpp"
#include "stretto/lowering/streams/serial.hpp"
#include "stretto/lowering/streams/typed.hpp"

namespace stretto::overlap {

//! Calls `visit` with every overlap policy.
template <class Visitor>
constexpr void for_each(Visitor&& visit) {
  visit(serial{});
  visit(separate{});
  visit(typed<>{});
}

}  // namespace stretto::overlap
