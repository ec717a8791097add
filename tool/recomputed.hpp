#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "stretto/memory/recompute.hpp"

namespace stretto::tool {

//! What --recompute of a transformer's ops may say: nothing, the attention core, all but messages.
inline const std::vector<std::string> recompute_words{"none", "attention", "full"};

//! The chain with a second run of such ops before each backward.
//! @param what  one of recompute_words
inline program_chain recomputed(program_chain chain, std::string_view what) {
  constexpr std::string_view core[] = {"scores", "softmax", "attention dropout"};
  if (what == "full") return memory::recompute(chain, memory::recompute_full{});
  if (what == "attention") return memory::recompute(chain, memory::recompute_ops{core});
  return chain;
}

}  // namespace stretto::tool
