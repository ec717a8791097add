// Compiling is passing: orders that the tool has just frozen, proven as the headers themselves say
// it, within the default limits of the compilers: a search with odd numbers under its costs and its
// limit, the longest lists, a V, the same with whole backwards, costs that differ by rank, orders
// from files. The search at 8 ranks and 64 micro-batches is damaged.twin.cpp.
#include "stretto/plan/pipeline.hpp"

#include "from_cells.hpp"
#include "from_file.hpp"
#include "interleaved_zb_8x64x2.hpp"
#include "zb_auto_5x13.hpp"
#include "zb_h1_2x3.hpp"
#include "zbv_3x7x2.hpp"
#include "zbv_4x9x2.hpp"

// Behind what they speak of.
#include "from_cells.proof.hpp"
#include "from_file.proof.hpp"
#include "interleaved_zb_8x64x2.proof.hpp"
#include "zb_auto_5x13.proof.hpp"
#include "zb_h1_2x3.proof.hpp"
#include "zbv_3x7x2.proof.hpp"
#include "zbv_4x9x2.proof.hpp"

constexpr stretto::unit_costs costs = frozen_zb_auto_5x13::memory{}.costs();
static_assert(costs.forward == 7 && costs.backward_input == 9 && costs.backward_weight == 4);
static_assert(costs.communication == 2 && frozen_zb_auto_5x13::memory{}.limit() == 6);
static_assert(frozen_zbv_4x9x2::memory{}.costs().whole_saves == 3);
static_assert(frozen_my_order_2_3x4x2::name == "my_order_2");
static_assert(frozen_my_order_2_3x4x2::placement == stretto::placement_kind::wave);
static_assert(frozen_my_order_2_3x4x2::memory{}.limit() == 6);
static_assert(frozen_cells_2x4::placement == stretto::placement_kind::bidirectional);
template <class Table>
constexpr bool has_memory = requires { typename Table::memory; };
static_assert(!has_memory<frozen_zb_h1_2x3> && !has_memory<frozen_zbv_3x7x2>);

using longest = stretto::pipeline<frozen_interleaved_zb_8x64x2::made_for,
                                  stretto::schedule::frozen<frozen_interleaved_zb_8x64x2>>;
static_assert(longest::jobs().total() == 3 * 8 * 64 * 2);
