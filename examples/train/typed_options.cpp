#include "typed_options.hpp"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <memory>
#include <vector>

#include "model/kernels.hpp"
#include "pipeline/order_file.hpp"
#include "stretto/assignment/described.hpp"
#include "stretto/memory/window_text.hpp"
#include "stretto/schedule/options.hpp"
#ifdef STRETTO_TRAIN_WITH_MACHINES
#include "tool/errors.hpp"
#include "tool/machine_file.hpp"
#endif

namespace train {
namespace {

//! "4,4,4,4". CLI11's own lists pass over what is empty between two commas.
std::vector<std::int32_t> read_layers(const std::string& typed) {
  constexpr std::int32_t most = 1 << 16;
  std::vector<std::int32_t> made;
  for (const char* at = typed.data();; ++at) {
    std::int32_t value = 0;
    const auto read = std::from_chars(at, typed.data() + typed.size(), value);
    at = read.ptr;
    const bool end = at == typed.data() + typed.size();
    if (read.ec != std::errc() || value < 1 || value > most || (!end && *at != ','))
      throw bad_setting("layers-per-rank", typed,
                        "numbers from 1 to " + std::to_string(most) + " with commas between them");
    made.push_back(value);
    if (end) return made;
  }
}

constexpr int most_blocks = 4096;

//! "14".
int read_blocks(const std::string& typed) {
  int blocks = 0;
  const char* const end = typed.data() + typed.size();
  const auto read = std::from_chars(typed.data(), end, blocks);
  if (read.ec != std::errc() || read.ptr != end || blocks < 1 || blocks > most_blocks)
    throw bad_setting("layers", typed, "from 1 to " + std::to_string(most_blocks) + " blocks");
  return blocks;
}

//! "none", "all", "2/3".
stretto::memory::recompute_window read_recompute(const std::string& typed) {
  if (const auto made = stretto::memory::read_window(typed)) return *made;
  throw bad_setting("recompute", typed, "expected none, all, or a part of micro-batches as in 2/3");
}

//! "none", "all", "2/3,lag=1,prefetch=2".
stretto::memory::offload_window read_offload(const std::string& typed) {
  if (const auto made = stretto::memory::read_offload(typed)) return *made;
  throw bad_setting(
      "offload", typed,
      "expected none, all, or a part of micro-batches as in 2/3; behind it, if wanted, "
      ",lag=1 and ,prefetch=1");
}

//! What a word spells; nothing where there is none.
template <class Kind>
std::optional<Kind> read_word(const std::string& option, const std::string& typed) {
  const std::optional<Kind> made = stretto::schedule::spelt<Kind>(typed);
  if (made || typed.empty()) return made;
  std::string words;
  for (const auto& one : stretto::schedule::spellings<Kind>)
    words += (words.empty()                                      ? ""
              : &one == &stretto::schedule::spellings<Kind>.back() ? " or "
                                                                 : ", ") +
             std::string(one.word);
  throw bad_setting(option, typed, "expected " + words);
}

//! "fp32", "bf16".
precision read_precision(const std::string& typed) {
  if (typed == "bf16") return precision::bf16;
  if (typed == "fp32") return precision::fp32;
  throw bad_setting("precision", typed, "expected fp32 or bf16");
}

//! Of the host, whose kernels are what `stretto calibrate` measures.
void read_machine(const std::string& path, options& made) {
  if (made.device != "host")
    throw bad_setting("machine", path,
                      "its kernels are the host's, and --device is " + made.device);
#ifdef STRETTO_TRAIN_WITH_MACHINES
  try {
    made.machine = std::make_shared<stretto::tool::measured_machine>(
        stretto::tool::measured_machine::read("--machine", path));
  } catch (const stretto::tool::bad_input& wrong) {
    throw early_exit(2, wrong.what());
  }
  made.pipeline.machine = &made.machine->view();
  if (const std::string_view kernel = missing_kernel(*made.pipeline.machine); !kernel.empty())
    throw bad_setting(
        "machine", path,
        "it lacks the kernel \"" + std::string(kernel) + "\", which stretto calibrate measures");
#else
  throw bad_setting("machine", path, "this trainer was built without the tool that writes it");
#endif
}

}  // namespace

void typed_options::complete(options& made) const {
  if (csv) {
    const order_file read = read_order(*csv);
    made.pipeline.schedule = *csv;
    made.pipeline.order = read.order;
    made.pipeline.ranks = read.sizes.ranks;
    made.pipeline.microbatches = read.sizes.microbatches;
    made.pipeline.chunks = read.sizes.chunks;
    made.pipeline.slices = read.sizes.slices;
  }
  made.pipeline.recompute = read_recompute(recompute);
  made.pipeline.offload = read_offload(offload);
  made.pipeline.products = read_precision(precision);
  stretto::schedule::options& told = made.pipeline.options;
  told.remainder = read_word<stretto::schedule::remainder_kind>("remainder", remainder);
  told.warmup = read_word<stretto::schedule::warmup_kind>("warmup", warmup);
  told.backwards = read_word<stretto::schedule::backwards_kind>("backwards", backwards);
  told.split = read_word<stretto::schedule::split_kind>("split", split);
  told.objective = read_word<stretto::schedule::objective_kind>("objective", objective);
  told.merge = read_word<stretto::schedule::merge_kind>("merge", merge);
  if (layers_per_rank) made.pipeline.layers_per_rank = read_layers(*layers_per_rank);
  // Told the layers of every rank, nobody need say how many that makes.
  const auto& per_rank = made.pipeline.layers_per_rank;
  const int ends = 1 + made.model.head_pieces;  // the embedding, and the head or its pieces
  std::int64_t sum = -ends;
  for (const std::int32_t count : per_rank) sum += count;
  if (layers && layers->find_first_not_of("-0123456789") == std::string::npos) {
    made.model.layers = read_blocks(*layers);
  } else if (layers) {
    if (layers_per_rank)
      throw bad_setting("layers-per-rank", *layers_per_rank,
                        "--layers " + *layers + " says already who holds what");
    const stretto::assignment::described how(*layers);
    if (!how.complaint().empty()) throw bad_setting("layers", *layers, how.complaint());
    if (how.layers() <= ends || how.layers() > most_blocks + ends)
      throw bad_setting("layers", *layers,
                        "embedding, blocks and " + made.model.head_words() + " are from " +
                            std::to_string(ends + 1) + " to " +
                            std::to_string(most_blocks + ends) + " layers");
    made.pipeline.layers = *layers;
    made.model.layers = how.layers() - ends;
  } else if (!per_rank.empty()) {
    made.model.layers = static_cast<int>(std::clamp<std::int64_t>(sum, 1, 1 << 16));
  }
  made.model.tied = !untied;
  if (made.pipeline.graph) made.pipeline.trace_steps = 0;
  made.learning.rate = {.peak = learning_rate,
                        .floor = learning_rate / 10,
                        .warmup = std::min(20L, made.steps / 10),
                        .steps = made.steps};
  made.join_timeout = std::chrono::seconds(join_timeout);
  // Also what "never" may look like fits into nanoseconds.
  made.pipeline.deadline =
      std::chrono::nanoseconds(static_cast<std::int64_t>(std::min(deadline, 1e9) * 1e9) + 1);
  if (made.model.width % made.model.heads != 0)
    throw bad_setting("heads", std::to_string(made.model.heads),
                      "the width, " + std::to_string(made.model.width) + ", is no multiple of it");
  if (machine) read_machine(*machine, made);
}

}  // namespace train
