#include "transformer_options.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdint>
#include <string>

#include "errors.hpp"
#include "stretto/model/cost.hpp"
#include "stretto/model/program.hpp"

namespace stretto::tool {

namespace {

constexpr int most_replicas = 1 << 20;

}  // namespace

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
  command
      .add_option("--architecture", layers,
                  "gpt: LayerNorm, GELU, biases, dropout; llama: RMSNorm, rotary positions, SwiGLU")
      ->check(CLI::IsMember({"gpt", "llama"}))
      ->capture_default_str();
  command
      .add_option("--attention", attention,
                  "plain: all scores are kept; fused: none are (FlashAttention)")
      ->check(CLI::IsMember({"plain", "fused"}))
      ->capture_default_str();
  const auto other = [&](const char* option, std::int64_t& value, const char* says,
                         std::int64_t most, std::int64_t least = 1) {
    command.add_option(option, value, says)->check(CLI::Range(least, most).description(""));
  };
  other("--window", model.window,
        "Tokens, itself and those before, that each attends to (default: all of these)", 1 << 22);
  other("--window-pattern", model.window_pattern,
        "Every nth layer has no window (default: all have)", 1 << 10);
  other("--kv-heads", model.kv_heads, "Heads of keys and values (default as many as --heads)",
        1 << 20);
  other("--head-width", model.head_width,
        "Features of a head's queries, keys and values (default --hidden by --heads)", 1 << 20);
  other("--kv-rank", model.latent.keys,
        "Latent attention (MLA): numbers of a token that all heads' keys and values are made of",
        1 << 20);
  other("--query-rank", model.latent.queries,
        "With it: that queries are made of (default: of all features)", 1 << 20);
  other("--rotary-width", model.latent.rotary,
        "With it: further features of a head's queries and keys, which alone say positions "
        "(default 0)",
        1 << 20, 0);
  other("--value-width", model.latent.values,
        "With it: of a head's values (default --head-width)", 1 << 20);
  other("--feed-forward", model.feed_forward,
        "Width of the feed-forward (default 4 times --hidden; llama: 8/3 times, rounded up to a "
        "multiple of 256)",
        1 << 22);
  other("--experts", model.experts.count,
        "Experts in place of each feed-forward, every one of its width (default none)", 1 << 16);
  other("--experts-per-token", model.experts.per_token, "Of these each token goes to (default 2)",
        1 << 16);
  other("--shared-experts", model.experts.shared, "Beside these every token goes to (default 0)",
        1 << 10, 0);
  command
      .add_option("--expert-parallel", model.experts.parallel,
                  "Devices among whom the experts are dealt, those of --tensor-parallel and their "
                  "like of other replicas (default 1)")
      ->check(CLI::Range(1, 1 << 16).description(""));
  other("--expert-nodes", model.experts.nodes,
        "Nodes on which a token's experts lie, at most: one copy travels to each (default: one "
        "for each expert)",
        1 << 16);
  command
      .add_option("--expert-scores", scored,
                  "What the score of a token's expert multiplies: results (kept for its gradient) "
                  "or activations (no result is kept; scores go with the tokens; default results)")
      ->check(CLI::IsMember({"results", "activations"}).description(""));
  size("--tensor-parallel", model.tensor_parallel, "Devices that share each layer", 1 << 12);
  command.add_flag("--sequence-parallel", model.sequence_parallel,
                   "They also share what they would each keep");
  size("--context-parallel", model.context_parallel,
       "Devices, each as many as share a layer, among whom every sequence is dealt", 1 << 12);
  command
      .add_option("--context-exchange", exchange,
                  "How they come to one another's keys and values: gather: before they attend to "
                  "them; ring: one device's after the other's, meanwhile; heads: each attends for "
                  "some heads, with all tokens")
      ->check(CLI::IsMember({"gather", "ring", "heads"}))
      ->capture_default_str();
  other("--node-devices", model.node_devices,
        "Devices of a node, between which nothing goes over the network: first those that share a "
        "layer, then a sequence, then replicas (default 8)", 1 << 16);
  command
      .add_option(
          "--precision", precision,
          "mixed: weights and gradients of 2 bytes, master weights and moments "
          "of 12 together; mixed_wide_gradients: the same, and gradients of 4 "
          "(Megatron-LM); single: of 4, 4 and 8, and products at that rate (TF32's, where "
          "tensor cores have it); fp8: as mixed_wide_gradients, and products with a layer's "
          "matrices in FP8 (Transformer Engine, DeepSeek-V3)")
      ->check(CLI::IsMember({"mixed", "mixed_wide_gradients", "single", "fp8"}))
      ->capture_default_str();
}

void transformer_options::add_state(CLI::App& command) {
  command
      .add_option("--data-parallel", data_parallel,
                  "Replicas of the whole pipeline, over which each stage's gradients are summed in "
                  "single precision, and over --context-parallel of each (default: as many as "
                  "weights, experts or what the optimizer keeps are dealt among)")
      ->check(CLI::Range(1, most_replicas).description(""));
  command
      .add_option("--optimizer-shards", model.optimizer_shards,
                  "Data-parallel replicas among whom what the optimizer keeps is dealt, master "
                  "weights included (ZeRO-1, a distributed optimizer; default 1: each has all)")
      ->check(CLI::Range(1, most_replicas).description(""));
  command
      .add_option("--weight-shards", model.weight_shards,
                  "Data-parallel replicas among whom weights are dealt, and with them what the "
                  "optimizer keeps; each gathers a stage's before it uses them (ZeRO-3, FSDP; "
                  "default 1: each has all)")
      ->check(CLI::Range(1, most_replicas).description(""));
  command
      .add_option("--gradient-bytes", gradient_bytes,
                  "Of a weight's gradient, 2 or 4 (default: as --precision has it)")
      ->check(CLI::IsMember({2, 4}).description(""));
  command
      .add_option("--optimizer-bytes", optimizer_bytes,
                  "Of all that the optimizer keeps of a weight, master weight and moments "
                  "(default: as --precision has it)")
      ->check(CLI::Range(0, 64).description(""));
}

void transformer_options::add_dense(CLI::App& command) {
  command
      .add_option("--dense-layers", model.dense_layers,
                  "Layers, the first, with a feed-forward in place of --experts (default 0)")
      ->check(CLI::Range(0, 1 << 20).description(""));
  command
      .add_option("--dense-feed-forward", model.dense_feed_forward,
                  "Its width (default: that of all experts together which a token goes to)")
      ->check(CLI::Range(1, 1 << 22).description(""));
}

void transformer_options::add_head(CLI::App& command, const char* says) {
  command.add_option("--head-pieces", model.head_pieces, says)
      ->check(CLI::Range(1, 1 << 12).description(""));
  command.add_flag("--tied-head", model.tied_head,
                   "The head's matrix is the embeddings': a rank that has both has one");
  command
      .add_option("--further-tokens", model.further_tokens,
                  "Layers with the head, beside --layers, each of which foretells a token further "
                  "ahead (multi-token prediction; default 0)")
      ->check(CLI::Range(0, 64).description(""));
}

void transformer_options::settle(int count, const std::string& layers_text, int slices) {
  model.bytes = precision == "mixed"    ? mixed_precision
                : precision == "single" ? single_precision
                : precision == "fp8"    ? fp8_precision
                                        : mixed_precision_wide_gradients;
  model.bytes.gradient = gradient_bytes.value_or(static_cast<int>(model.bytes.gradient));
  model.bytes.optimizer = optimizer_bytes.value_or(static_cast<int>(model.bytes.optimizer));
  model.layers = layers == "llama" ? architecture::llama : architecture::gpt;
  model.attention = attention == "fused" ? attention_kernel::fused : attention_kernel::plain;
  if (scored == "activations") model.experts.scores = expert_scores::activations;
  model.exchange = exchange == "ring"    ? context_exchange::ring
                   : exchange == "heads" ? context_exchange::heads
                                         : context_exchange::gather;
  model.slices = slices;
  refuse_experts_alone();
  refuse_context_alone();
  refuse_latent_alone();
  refuse(model.broken_rule());
  const int dealt =
      std::max({model.weight_shards, model.optimizer_shards, model.expert_replicas()});
  const int shared = model.context_parallel;
  const int pipelines = data_parallel.value_or((dealt + shared - 1) / shared);
  if (pipelines > most_replicas / shared)
    throw bad_option("--context-parallel", std::to_string(shared),
                     "times --data-parallel " + std::to_string(pipelines) + " is more than " +
                         std::to_string(most_replicas));
  replicas = pipelines * shared;
  if (devices() == 1 && replicas == 1 && model.node_devices != transformer{}.node_devices)
    throw bad_option("--node-devices", std::to_string(model.node_devices),
                     "has a meaning only where several devices share a layer, a sequence or "
                     "experts, or hold replicas");
  refuse_replicas();
  refuse_overflow();
  // What one micro-batch keeps in all layers, and the weights.
  const double tokens = static_cast<double>(model.sequence) * static_cast<double>(model.microbatch);
  const double hidden = static_cast<double>(model.hidden);
  const double wide = static_cast<double>(model.feed_forward_width());
  const double scores =
      model.attention == attention_kernel::fused ? 4 : 10 * static_cast<double>(model.sequence);
  // What each token meets of feed-forwards, and how many there are.
  const expert_mixture& mixed = model.experts;
  const auto met = static_cast<double>(mixed.count == 0 ? 1 : mixed.per_token + mixed.shared);
  const auto held =
      static_cast<double>(mixed.count == 0 ? 1 : mixed.count / mixed.parallel + mixed.shared);
  const double dense = model.dense_layers > 0 ? static_cast<double>(model.dense_width()) : 0;
  const double widths = attention_widths();
  const double kept =
      tokens *
      (16 * hidden + 4 * widths + std::max(met * (6 * wide + 8 * hidden), 6 * dense + 8 * hidden) +
       4 * static_cast<double>(mixed.count) + scores * static_cast<double>(model.heads) +
       8 * (1.0 + model.further_tokens) * static_cast<double>(model.vocabulary));
  const double weights = hidden * (hidden + widths + 3 * std::max(wide * held, dense)) +
                         static_cast<double>(model.latent.keys + model.latent.queries) * widths;
  const double all = static_cast<double>(count) + model.further_tokens;
  if ((kept * all > 1e15) ||
      20 * (weights * all + 2.0 * hidden * static_cast<double>(model.vocabulary)) > 1e15)
    throw bad_input("--hidden " + std::to_string(model.hidden) + " --sequence " +
                    std::to_string(model.sequence) + " --batch " +
                    std::to_string(model.microbatch) + " --vocabulary " +
                    std::to_string(model.vocabulary) + " --layers " + layers_text +
                    ": the model passes 1e15 bytes");
}

void transformer_options::refuse_huge(const program_chain& chain) const {
  for (const program_buffer& one : chain.buffers)
    if (one.bytes > job_table_view::most_memory)
      throw bad_input("--sequence " + std::to_string(model.sequence) + " --batch " +
                      std::to_string(model.microbatch) + ": \"" + std::string(one.name) +
                      "\" takes " + std::to_string(one.bytes) +
                      " bytes, and a buffer may have at most 2^46");
}

void transformer_options::refuse_machine(const machine& on) const {
  if (model.bytes.operands() == 1 && on.fp8 == 0)
    throw bad_option("--precision", precision,
                     std::string(on.name) + " has no rate for it (\"fp8\" in a machine's file)");
}

void transformer_options::refuse_experts_alone() const {
  const expert_mixture& mixed = model.experts;
  if (model.dense_feed_forward > 0 && model.dense_layers == 0)
    throw bad_option("--dense-feed-forward", std::to_string(model.dense_feed_forward),
                     "has a meaning only with --dense-layers");
  if (mixed.count > 0) return;
  const auto alone = [](const char* option, std::int64_t value) {
    throw bad_option(option, std::to_string(value), "has a meaning only with --experts");
  };
  if (model.dense_layers > 0) alone("--dense-layers", model.dense_layers);
  if (mixed.shared > 0) alone("--shared-experts", mixed.shared);
  if (mixed.nodes > 0) alone("--expert-nodes", mixed.nodes);
  if (mixed.parallel > 1) alone("--expert-parallel", mixed.parallel);
  if (mixed.scores != expert_scores::results)
    throw bad_option("--expert-scores", scored, "has a meaning only with --experts");
  if (mixed.per_token != expert_mixture{}.per_token) alone("--experts-per-token", mixed.per_token);
}

void transformer_options::refuse_context_alone() const {
  if (model.exchange != context_exchange::gather && model.context_parallel == 1)
    throw bad_option("--context-exchange", exchange, "has a meaning only with --context-parallel");
}

void transformer_options::refuse_latent_alone() const {
  const latent_attention& latent = model.latent;
  if (latent.keys > 0) return;
  const auto alone = [](const char* option, std::int64_t value) {
    if (value > 0)
      throw bad_option(option, std::to_string(value), "has a meaning only with --kv-rank");
  };
  alone("--query-rank", latent.queries);
  alone("--rotary-width", latent.rotary);
  alone("--value-width", latent.values);
}

void transformer_options::refuse_replicas() const {
  if (model.weight_shards > 1 && model.optimizer_shards > 1 &&
      model.optimizer_shards % model.weight_shards != 0)
    throw bad_option("--optimizer-shards", std::to_string(model.optimizer_shards),
                     "is no multiple of --weight-shards " + std::to_string(model.weight_shards) +
                         ", among whom what the optimizer keeps is dealt with the weights");
  //! @param each  devices of a replica that are among them
  const auto no_multiple_of = [&](const char* option, int value, int each) {
    const int shared = model.context_parallel;
    const auto times = [](const char* what, int count) {
      return count > 1 ? std::string(" times ") + what + " " + std::to_string(count)
                       : std::string();
    };
    if (replicas % (value / each) != 0)
      throw bad_option(option, std::to_string(value),
                       "--data-parallel " + std::to_string(replicas / shared) +
                           times("--context-parallel", shared) + times("--tensor-parallel", each) +
                           " is no multiple of it");
  };
  no_multiple_of("--optimizer-shards", model.optimizer_shards, 1);
  no_multiple_of("--weight-shards", model.weight_shards, 1);
  if (model.experts.count > 0)
    no_multiple_of("--expert-parallel", model.experts.parallel, model.tensor_parallel);
}

void transformer_options::refuse_dense(std::int64_t of) const {
  if (model.dense_layers > of)
    throw bad_option("--dense-layers", std::to_string(model.dense_layers),
                     "--layers has " + std::to_string(of));
}

void transformer_options::refuse_long_ring(int of_job) const {
  constexpr int most = 1024;
  if (model.ring_steps() > 1 && model.ring_steps() > most / of_job)
    throw bad_option("--context-parallel", std::to_string(model.context_parallel),
                     "round the ring each of a job's layers (" + std::to_string(of_job) +
                         ") attends as often, and an order is sought for at most " +
                         std::to_string(most) + " times");
}

std::string transformer_options::told_replicas() const {
  const int shared = model.context_parallel;
  return std::to_string(replicas / shared) + (replicas == shared ? " replica" : " replicas") +
         (shared > 1 ? " of " + std::to_string(shared) + " that share sequences" : "");
}

double transformer_options::widest_head() const {
  return static_cast<double>(std::max({model.hidden, model.query_width(), model.key_width(),
                                       model.value_width(), model.context_width()}));
}

double transformer_options::attention_widths() const {
  return static_cast<double>(model.query_width()) + static_cast<double>(model.key_width()) +
         static_cast<double>(model.value_width()) + static_cast<double>(model.context_width()) +
         2 * static_cast<double>(model.latent.keys + model.latent.queries) +
         static_cast<double>(model.latent.rotary);
}

//! What is counted of the largest op stays in 64 bits.
void transformer_options::refuse_overflow() const {
  const auto times = [](double all, auto each) { return all * static_cast<double>(each); };
  const std::int64_t blocks =
      model.experts.count == 0 ? 1 : model.experts.per_token + model.experts.shared;
  // An attention's backward has five products, of which each sees no more than all.
  const double widest = std::max(
      {times(5, model.sequence), times(1, model.vocabulary),
       times(static_cast<double>(model.wide()), blocks),
       model.dense_layers > 0 ? static_cast<double>(model.wide_of(model.dense_width())) : 0,
       times(1, model.latent.keys + model.latent.rotary), times(1, model.latent.queries),
       3 * widest_head()});
  double operations = 2 * widest * widest_head();
  for (const std::int64_t one : {model.sequence, model.microbatch})
    operations = times(operations, one);
  const std::string heads = model.head_width == 0
                                ? ""
                                : " --heads " + std::to_string(model.heads) + " --head-width " +
                                      std::to_string(model.head_width);
  if (operations / model.tensor_parallel > 9e18)
    throw bad_input("--hidden " + std::to_string(model.hidden) + heads + " --sequence " +
                    std::to_string(model.sequence) + " --batch " +
                    std::to_string(model.microbatch) +
                    ": the operations of one product pass 64 bits");
}

void transformer_options::refuse(transformer_rule broken) const {
  const expert_mixture& mixed = model.experts;
  const auto because = [](const char* option, std::int64_t value, const std::string& why) {
    throw bad_option(option, std::to_string(value), why);
  };
  const auto no_multiple = [](const std::string& what, std::int64_t value) {
    return what + " " + std::to_string(value) + " is no multiple of it";
  };
  const std::int64_t shards = model.tensor_parallel;
  switch (broken) {
    case transformer_rule::none:
      return;
    case transformer_rule::sizes_positive:  // whose options say so
      throw bad_input(std::string(describe(broken)));
    case transformer_rule::heads_divide_hidden:
      because("--heads", model.heads,
              "--hidden is no multiple of it, which --head-width need not be");
      return;
    case transformer_rule::kv_heads_divide_heads:
      because("--kv-heads", model.kv_heads, "--heads is no multiple of it");
      return;
    case transformer_rule::pattern_of_window:
      because("--window-pattern", model.window_pattern, "has a meaning only with --window");
      return;
    case transformer_rule::window_of_fused:
      because("--window", model.window, "goes with --attention fused: plain makes all scores");
      return;
    case transformer_rule::latent_keys:  // refused above
      throw bad_input(std::string(describe(broken)));
    case transformer_rule::latent_of_llama:
      because("--kv-rank", model.latent.keys, "goes with --architecture llama");
      return;
    case transformer_rule::latent_of_heads:
      because("--kv-rank", model.latent.keys,
              "makes keys and values for each of --heads " + std::to_string(model.heads) +
                  ", and --kv-heads says " + std::to_string(model.kv_heads));
      return;
    case transformer_rule::slices_divide_sequence:
      because("--slices", model.slices,
              "--sequence " + std::to_string(model.sequence) + " is no multiple of it");
      return;
    case transformer_rule::part_of_sequence:  // which commands choose within it
      throw bad_input(std::string(describe(broken)));
    case transformer_rule::context_divides_sequence:
      because(
          "--context-parallel", model.context_parallel,
          (model.slices == 1 ? "--sequence " + std::to_string(model.length())
                             : "a slice of --sequence, " + std::to_string(model.length()) + ",") +
              " is no multiple of twice it");
      return;
    case transformer_rule::ring_of_fused:
      throw bad_option("--context-exchange", exchange,
                       model.window > 0 ? "does not go with --window"
                                        : "goes with --attention fused");
    case transformer_rule::context_divides_heads:
      because("--context-parallel", model.context_parallel,
              (model.heads % (shards * model.context_parallel) != 0
                   ? "--heads " + std::to_string(model.heads)
                   : "--kv-heads " + std::to_string(model.kv_heads)) +
                  " is no multiple of it" +
                  (shards > 1 ? " times --tensor-parallel " + std::to_string(shards) : "") +
                  ", among whom --context-exchange heads deals them");
      return;
    case transformer_rule::shards_divide_heads:
      if (model.heads % shards != 0)
        because("--tensor-parallel", shards, no_multiple("--heads", model.heads));
      if (model.vocabulary % shards != 0)
        because("--tensor-parallel", shards,
                no_multiple("--vocabulary", model.vocabulary) + "; padded, " +
                    std::to_string((model.vocabulary / shards + 1) * shards) + " is one");
      because(
          "--tensor-parallel", shards,
          no_multiple(model.context_parallel > 1 ? "what --context-parallel leaves of --sequence"
                      : model.slices == 1        ? "--sequence"
                                                 : "a slice of --sequence",
                      model.held()) +
              ", which --sequence-parallel splits");
      return;
    case transformer_rule::shards_divide_widths:
      because("--tensor-parallel", shards,
              model.kv_heads % shards != 0
                  ? no_multiple("--kv-heads", model.kv_heads)
                  : no_multiple("--feed-forward", model.feed_forward_width()));
      return;
    case transformer_rule::pieces_divide_vocabulary:
      because("--head-pieces", model.head_pieces,
              "--vocabulary " + std::to_string(model.vocabulary) +
                  (model.tensor_parallel == 1
                       ? " is no multiple of it"
                       : " is no multiple of it times --tensor-parallel " +
                             std::to_string(model.tensor_parallel)));
      return;
    case transformer_rule::tied_head_whole:
      because("--head-pieces", model.head_pieces, "cuts no head that is tied (--tied-head)");
      return;
    case transformer_rule::further_head_whole:
      because("--head-pieces", model.head_pieces,
              "cuts no head that foretells further tokens (--further-tokens)");
      return;
    case transformer_rule::dense_beside_experts:  // refused above
    case transformer_rule::dense_width_alone:
      throw bad_input(std::string(describe(broken)));
    case transformer_rule::experts_by_rows:
      because("--experts", mixed.count,
              "of layers with experts devices share the rows: with --tensor-parallel " +
                  std::to_string(shards) + " goes --sequence-parallel");
      return;
    case transformer_rule::experts_among_shards:
      because("--expert-parallel", mixed.parallel,
              "is no multiple of --tensor-parallel " + std::to_string(shards) +
                  ", of whose devices each has experts of its own");
      return;
    case transformer_rule::experts_for_token:
      because("--experts-per-token", mixed.per_token,
              "there are --experts " + std::to_string(mixed.count));
      return;
    case transformer_rule::experts_dealt:
      because("--expert-parallel", mixed.parallel,
              "--experts " + std::to_string(mixed.count) + " is no multiple of it");
      return;
    case transformer_rule::optimizer_dealt:
    case transformer_rule::weights_dealt:
      const bool weights = broken == transformer_rule::weights_dealt;
      because(weights ? "--weight-shards" : "--optimizer-shards",
              weights ? model.weight_shards : model.optimizer_shards,
              "is no multiple of --expert-parallel " + std::to_string(mixed.parallel) +
                  (shards > 1 ? " by --tensor-parallel " + std::to_string(shards) : "") +
                  ", so that not as many replicas hold each expert");
  }
}

}  // namespace stretto::tool
