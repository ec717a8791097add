#pragma once

#include "stretto/schedule/bitpipe.hpp"
#include "stretto/schedule/chimera.hpp"
#include "stretto/schedule/dualpipe.hpp"
#include "stretto/schedule/dualpipe_v.hpp"
#include "stretto/schedule/eager_1f1b.hpp"
#include "stretto/schedule/gpipe.hpp"
#include "stretto/schedule/grouped.hpp"
#include "stretto/schedule/hanayo.hpp"
#include "stretto/schedule/inference.hpp"
#include "stretto/schedule/interleaved.hpp"
#include "stretto/schedule/interleaved_zb.hpp"
#include "stretto/schedule/kfkb.hpp"
#include "stretto/schedule/looped_bfs.hpp"
#include "stretto/schedule/one_f_one_b.hpp"
#include "stretto/schedule/paired_1f1b.hpp"
#include "stretto/schedule/seq_1f1b.hpp"
#include "stretto/schedule/v_1f1b.hpp"
#include "stretto/schedule/v_auto.hpp"
#include "stretto/schedule/v_half.hpp"
#include "stretto/schedule/v_min.hpp"
#include "stretto/schedule/zb_auto.hpp"
#include "stretto/schedule/zb_h1.hpp"
#include "stretto/schedule/zb_h1_light.hpp"
#include "stretto/schedule/zb_h2.hpp"
#include "stretto/schedule/zbv.hpp"
#include "stretto/schedule/zbv_greedy.hpp"

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
    eager_1f1b,             // messages have a round's time on their way
    kfkb,                   // or that of their group
    paired_1f1b,            // backwards of one micro-batch beside forwards of another
    seq_1f1b,               // a smaller bubble with less memory, micro-batches cut in slices
    interleaved,            // a smaller bubble with more messages
    hanayo,                 // nearly the same with 1F1B's memory, laid as waves
    looped_bfs,             // chunk after chunk
    zb_h1,                  // split backwards fill the end
    zb_h1_light,            // with few of them split
    zb_h2,                  // more forwards ahead fill the start too
    zb_auto,                // made for the costs at hand, within a limit of memory
    interleaved_zb,         // split backwards with chunks
    grouped,                // the same in small groups, with less memory
    v_1f1b,                 // whole backwards on a V, with less memory than 1F1B
    v_half,                 // half of 1F1B's memory and bubble
    v_min,                  // a third of its memory
    zbv,                    // no bubble with 1F1B's memory, laid as a V
    zbv_greedy,             // the same for the costs at hand, within a limit of memory
    v_auto,                 // the best of these for the costs and the limit
    chimera,                // two replicas in opposite directions
    bitpipe,                // the same with chunks, laid as waves
    dualpipe,               // the same, backwards of one beside forwards of the other
    dualpipe_v,             // the same with one replica, laid as a V
    inference>;             // forwards alone

}  // namespace stretto::schedule
