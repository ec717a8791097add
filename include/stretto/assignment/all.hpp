#pragma once

#include "stretto/assignment/even.hpp"
#include "stretto/assignment/round_robin.hpp"
