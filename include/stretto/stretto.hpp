#pragma once

//! stretto: pipeline-parallel training schedules, computed and proven at compile time.
//!
//! Where to add what (each is one file, one line in the folder's all.hpp, one test):
//! - a schedule, what runs when:             schedule/concept.hpp
//! - an assignment, which layers sit where:  assignment/concept.hpp
//! - a memory policy, what is kept:          memory/concept.hpp
//! - an overlap policy, which streams:       lowering/streams/concept.hpp
//! - what expands jobs into ops:             lowering/op_programs.hpp
//! - a rule of validity:                     check/all.hpp
//! The compiled executor, which runs plans, is a library of its own (stretto/executor/).

#include "stretto/assignment/all.hpp"
#include "stretto/assignment/unassigned.hpp"
#include "stretto/base/version.hpp"
#include "stretto/check/all.hpp"
#include "stretto/lowering/streams/all.hpp"
#include "stretto/lowering/streams/in_pieces.hpp"
#include "stretto/memory/all.hpp"
#include "stretto/model/bound.hpp"
#include "stretto/model/job_text.hpp"
#include "stretto/model/op_bound.hpp"
#include "stretto/model/slice_lengths.hpp"
#include "stretto/model/transformer/chain.hpp"
#include "stretto/model/verdict_text.hpp"
#include "stretto/plan/arena_report.hpp"
#include "stretto/plan/expanded.hpp"
#include "stretto/plan/pipeline.hpp"
#include "stretto/plan/planned.hpp"
#include "stretto/plan/receive_waits.hpp"
#include "stretto/plan/report.hpp"
#include "stretto/plan/shared.hpp"
#include "stretto/plan/with_ops.hpp"
#include "stretto/schedule/all.hpp"
#include "stretto/schedule/frozen.hpp"
#include "stretto/schedule/merged.hpp"
