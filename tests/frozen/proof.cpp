// Compiling is passing: orders that the tool has just frozen, proven within the default limits of
// the compilers: a search with odd numbers, costs and a limit, the longest lists, a V. The search at
// 8 ranks and 64 micro-batches is damaged.twin.cpp.
#include "interleaved_zb_8x64x2.hpp"
#include "stretto/plan/pipeline.hpp"
#include "zb_auto_5x13.hpp"
#include "zbv_3x7x2.hpp"

struct six_forwards : stretto::memory::release_early {
  constexpr std::int64_t limit() const { return 6; }
};

template <class Table, class Memory = stretto::memory::release_early>
using step = stretto::pipeline<Table::made_for, stretto::schedule::frozen<Table>,
                               stretto::assignment::unassigned, Memory>;

static_assert(stretto::valid<step<frozen_zb_auto_5x13, six_forwards>>);
static_assert(stretto::valid<step<frozen_interleaved_zb_8x64x2>>);
static_assert(stretto::valid<step<frozen_zbv_3x7x2>>);
static_assert(step<frozen_interleaved_zb_8x64x2>::jobs().total() == 3 * 8 * 64 * 2);
