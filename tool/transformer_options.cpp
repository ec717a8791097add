#include "transformer_options.hpp"

#include <CLI/CLI.hpp>
#include <cstdint>

#include "errors.hpp"

namespace stretto::tool {

void transformer_options::add(CLI::App& command) {
  const auto size = [&](const char* option, auto& value, const char* says, std::int64_t most) {
    command.add_option(option, value, says)
        ->check(CLI::Range(std::int64_t{1}, most).description(""))
        ->capture_default_str();
  };
  size("--hidden", model.hidden, "Features per token", 1 << 20);
  size("--heads", model.heads, "Attention heads", 1 << 20);
  size("--sequence", model.sequence, "Tokens per sequence", 1 << 22);
  size("--batch", model.microbatch, "Sequences per micro-batch", 1 << 16);
  size("--vocabulary", model.vocabulary, "Distinct tokens", 1 << 24);
  size("--tensor-parallel", model.tensor_parallel, "Devices that share each layer", 1 << 12);
  command.add_flag("--sequence-parallel", model.sequence_parallel,
                   "They also share what they would each keep");
  command
      .add_option("--precision", precision, "mixed: half precision, with master weights; single")
      ->check(CLI::IsMember({"mixed", "single"}))
      ->capture_default_str();
}

void transformer_options::settle(int layers, const std::string& layers_text) {
  model.bytes = precision == "mixed" ? mixed_precision : single_precision;
  const std::int64_t t = model.tensor_parallel;
  if (model.hidden % model.heads != 0)
    throw bad_option("--heads", std::to_string(model.heads), "--hidden is no multiple of it");
  if (model.heads % t != 0 || model.vocabulary % t != 0 ||
      (model.sequence_parallel && model.sequence % t != 0))
    throw bad_option("--tensor-parallel", std::to_string(t),
                     "--heads and --vocabulary, and --sequence where it is split, must be "
                     "multiples of it");
  // What one micro-batch keeps in all layers, and the weights.
  const double tokens = static_cast<double>(model.sequence) * static_cast<double>(model.microbatch);
  const double hidden = static_cast<double>(model.hidden);
  const double kept =
      tokens *
      (40 * hidden + 10 * static_cast<double>(model.heads) * static_cast<double>(model.sequence) +
       8 * static_cast<double>(model.vocabulary));
  if ((kept * layers > 1e15) ||
      20 * hidden * (13 * hidden * layers + 2.0 * static_cast<double>(model.vocabulary)) > 1e15)
    throw bad_input("--hidden " + std::to_string(model.hidden) + " --layers " + layers_text +
                    ": the model passes 1e15 bytes");
}

}  // namespace stretto::tool
