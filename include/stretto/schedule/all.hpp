#pragma once

#include "stretto/schedule/gpipe.hpp"
#include "stretto/schedule/inference.hpp"
#include "stretto/schedule/interleaved.hpp"
#include "stretto/schedule/one_f_one_b.hpp"

namespace stretto::schedule {

//! Types in a row; `for_each` calls a function object with a default-constructed value of each.
template <class... Schedules>
struct schedule_list {
  static constexpr int size = sizeof...(Schedules);

  template <class Visitor>
  static constexpr void for_each(Visitor&& visit) {
    (visit(Schedules{}), ...);
  }
};

//! Every schedule there is: a new one adds its line here.
using all = schedule_list<  //
    gpipe,                  // fill and drain
    one_f_one_b,            // the same bubble with less memory
    interleaved,            // a smaller bubble with more messages
    inference>;             // forwards alone

}  // namespace stretto::schedule
