#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "stretto/memory/recompute.hpp"
#include "stretto/model/transformer/layer.hpp"

namespace stretto::tool {

//! What --recompute of a transformer's ops may say: nothing, the attention core, norms and what
//! latent attention makes of theirs, layer by layer in backwards, all but messages.
inline const std::vector<std::string> recompute_words{"none", "attention", "norms", "layers",
                                                      "full"};
inline constexpr std::string_view recompute_says =
    "none, attention (scores, softmax, dropout, and what is gathered for them), norms (with latent "
    "attention also the queries, keys and values that it makes of theirs), full (of a stage, whose "
    "activations are then there at once), layers (each of them in its backward, right before its "
    "own: of one at a time they are there)";

//! Whether it is a job of its own, and not a part of backwards.
inline bool runs_apart(std::string_view what) { return what != "none" && what != "layers"; }
inline layers_again in_backwards(std::string_view what) {
  return what == "layers" ? layers_again::each : layers_again::none;
}

//! The chain with a second run of such ops before each backward.
//! @param what  one of recompute_words
inline program_chain recomputed(program_chain chain, std::string_view what) {
  constexpr std::string_view core[] = {"gather keys and values", "scores", "softmax",
                                       "attention dropout"};
  constexpr std::string_view norms[] = {"norm",
                                        "cast norm",
                                        "low keys norm",
                                        "low queries norm",
                                        "gather",
                                        "gather low keys",
                                        "gather low queries",
                                        "gather rotary",
                                        "queries",
                                        "keys and values",
                                        "rotary"};
  if (what == "full") return memory::recompute(chain, memory::recompute_full{});
  if (what == "attention") return memory::recompute(chain, memory::recompute_ops{core});
  if (what == "norms") return memory::recompute(chain, memory::recompute_ops{norms});
  return chain;
}

}  // namespace stretto::tool
