// The frozen table says a limit that its order does not keep. Its twin is proof.cpp.
// expected: stretto: over_limit: the rank needs more memory than its limit
// expected: <stretto::fault::over_limit, stretto::reason::above_limit, 0, 5,
#include "damaged/zb_auto_5x13.hpp"
#include "stretto/plan/pipeline.hpp"
#include "zb_auto_5x13.proof.hpp"
