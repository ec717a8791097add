#pragma once

#include <cstdint>
#include <vector>

#include "cost_cut.hpp"
#include "cost_options.hpp"
#include "stretto/model/cost.hpp"
#include "stretto/model/placement.hpp"

namespace stretto::tool {

//! The job table that the options ask for. Options that speak of another number of chunks than the
//! placement has are added up over a rank's chunks, and the sum is cut evenly; a placement of two
//! replicas gives each the whole sum. With --layers they speak of layers, which are dealt to the
//! placement's stages whatever those are, and a job costs what its stage's layers do.
//!
//! The file of --costs is one object; every key may be left out:
//!   {"communication": 1,             time of one hop between ranks
//!    "node_ranks": 4, "between_nodes": 9,  of a hop to a rank of another node, which has so many
//!    "serial_links": true,           a rank's messages to another one follow one another
//!    "loss": 2,                      added to F, I and W of the last stage (and so twice to B)
//!    "base": 10, "limit": [40, 50],  memory: one number for all ranks, or one per rank
//!    "jobs": [{"rank": 0, "chunk": 1, "kind": "F", "cost": 3, "change": 1, "peak": 2}]}
//! An entry of "jobs" without rank or chunk speaks for all of them, and so it is with "microbatch"
//! and "slice", each a number or a list of such; later entries win; what no entry gives comes from
//! --cost, --memory, --copy and --again. Kinds are F, B, I, W, R, OFFLOAD, RELOAD, REDUCE_GRAD,
//! UNSHARD. A whole backward takes what I and W take together, less --whole-saves, unless an entry
//! gives its cost, and keeps what they keep, unless one gives its change or peak.
//! @param dealt  is given how many layers each stage has, with --layers
//! @throws bad_input naming option, value and rule
job_table make_costs(const cost_options& options, const placement& where, const cost_cut& cut = {},
                     std::vector<std::int32_t>* dealt = nullptr);

//! Takes what data-parallel replicas do together out of it.
void leave_out_replicas(job_table& table);

}  // namespace stretto::tool
