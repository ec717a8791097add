#include "recomputation.hpp"

#include <algorithm>
#include <array>
#include <span>
#include <sstream>
#include <string_view>

#include "errors.hpp"
#include "stretto/memory/recompute.hpp"

namespace stretto::tool {

namespace {

//! Ops that a word stands for.
struct recomputed_ops {
  std::string_view word;
  std::vector<std::string_view> names;
};

const std::array<recomputed_ops, 4>& known() {
  static const std::array<recomputed_ops, 4> all{{
      {"attention", {"gather keys and values", "scores", "softmax", "attention dropout"}},
      {"norms",
       {"norm", "cast norm", "low keys norm", "low queries norm", "gather", "gather low keys",
        "gather low queries", "gather rotary", "queries", "keys and values", "rotary"}},
      {"activations", {"gelu", "swiglu", "experts activation", "shared activation"}},
      {"feed-forward",
       {"cast norm", "gather", "widen", "gelu", "swiglu", "permute", "dispatch", "experts widen",
        "experts activation", "experts narrow", "combine", "shared widen", "shared activation",
        "shared narrow"}},
  }};
  return all;
}

//! Of a word that goes with others.
const recomputed_ops* find(std::string_view word) {
  const auto found = std::ranges::find(known(), word, &recomputed_ops::word);
  return found == known().end() ? nullptr : &*found;
}

}  // namespace

void recomputation::add(CLI::App& command, const std::string& where) {
  command
      .add_option("--recompute", text_,
                  "What forwards do not keep and do again" + where +
                      ": none, full (of a stage, whose activations are then there at once), layers "
                      "(each of them in its backward, right before its own: of one at a time they "
                      "are there), layers:4 (so many of each stage, the first), or some of "
                      "attention (scores, softmax, dropout, and what is gathered for them), norms "
                      "(with latent attention also the queries, keys and values that it makes of "
                      "theirs), activations (GELU or SwiGLU, of experts too), feed-forward "
                      "(from its norm on; of experts also the tokens' way to them): "
                      "norms,activations")
      ->capture_default_str();
  command.add_flag("--recompute-inside", inside_,
                   "In backwards, each op right before one needs it, so that one layer's "
                   "activations come back at a time, and not by a job of its own");
}

std::vector<std::string> recomputation::words() const {
  std::vector<std::string> made;
  std::istringstream all(text_);
  for (std::string word; std::getline(all, word, ',');) made.push_back(word);
  return made;
}

layers_again recomputation::again() const {
  if (!by_layers()) return {};
  return by_some_layers() ? layers_again{some_layers()} : layers_again::each();
}

std::int64_t recomputation::some_layers() const {
  const std::string digits = text_.substr(text_.find(':') + 1);
  const bool number = !digits.empty() && digits.size() <= 6 &&
                      digits.find_first_not_of("0123456789") == std::string::npos;
  if (!number || std::stoll(digits) == 0)
    throw bad_option("--recompute", text_, "expected a number of layers, from 1 to 999999");
  return std::stoll(digits);
}

void recomputation::settle(const transformer& model, int slices) const {
  const bool alone = text_ == "none" || text_ == "full" || by_layers();
  if (by_some_layers()) (void)some_layers();
  std::vector<std::string> before;
  for (const std::string& word : words()) {
    if (!alone && find(word) == nullptr) {
      const bool known_alone = word == "none" || word == "full" || word.starts_with("layers");
      throw bad_option("--recompute", text_,
                       known_alone ? word + " goes with no other"
                                   : "expected none, full, layers, layers:N, or some of attention, "
                                     "norms, activations, feed-forward");
    }
    if (std::ranges::find(before, word) != before.end())
      throw bad_option("--recompute", text_, "has " + word + " twice");
    if (word == "attention" && model.attention == attention_kernel::fused)
      throw bad_option("--recompute", text_, "--attention fused keeps none of that");
    before.push_back(word);
  }
  if (before.empty() || text_.ends_with(','))
    throw bad_option("--recompute", text_, "has an empty word");
  if (inside_ && (!any() || by_layers()))
    throw bad_input(any() ? "--recompute-inside: --recompute layers is so in any case"
                          : "--recompute-inside: has a meaning only with --recompute");
  if (any() && slices > 1) throw bad_option("--recompute", text_, "a slice cannot be recomputed");
}

program_chain recomputation::of(const program_chain& chain) const {
  if (!any() || by_layers()) return chain;
  const auto run = [&](const auto& marks) {
    return inside_ ? memory::recompute_in_backward(chain, marks)
                   : memory::recompute(chain, marks);
  };
  if (text_ == "full") return run(memory::recompute_full{});
  std::vector<std::string_view> names;
  for (const std::string& word : words())
    names.insert(names.end(), find(word)->names.begin(), find(word)->names.end());
  return run(memory::recompute_ops{names});
}

}  // namespace stretto::tool
