#pragma once

#include "stretto/assignment/balanced.hpp"
#include "stretto/assignment/covered.hpp"
#include "stretto/assignment/even.hpp"
#include "stretto/assignment/for_model.hpp"
#include "stretto/assignment/layout.hpp"
#include "stretto/assignment/rank_list.hpp"
#include "stretto/assignment/round_robin.hpp"
#include "stretto/assignment/table.hpp"
