// What runs again of a transformer: of a stage before its backward, or of each layer in it.
#include <doctest/doctest.h>

#include <cstdint>
#include <functional>
#include <map>
#include <random>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "stretto/memory/recompute.hpp"
#include "stretto/model/program_sound.hpp"
#include "stretto/model/transformer/chain.hpp"
#include "unit/transformer_chains.hpp"

namespace {

using stretto::program_chain;
using stretto::transformer;
using transformer_chains::chain_of;
using transformer_chains::change_of_layer;
using transformer_chains::measured_chain;
using transformer_chains::one_flop;
namespace memory = stretto::memory;

TEST_CASE("full recomputation keeps a layer's input, a selective one all but the scores") {
  const transformer model{
      .hidden = 512, .heads = 8, .sequence = 256, .bytes = stretto::mixed_precision};
  const std::int64_t sbh = model.tokens() * model.hidden;
  CHECK(change_of_layer(model, 0, false, true) == 0);
  const program_chain chain = chain_of(model, 2, false);
  CHECK(measured_chain(memory::recompute(chain, memory::recompute_full{}))[0].change == 2 * sbh);
  constexpr std::string_view core[] = {"scores", "softmax", "attention dropout"};
  CHECK(measured_chain(memory::recompute(chain, memory::recompute_ops{core}))[0].change ==
        2 * 34 * sbh);
}

TEST_CASE("where backwards run layers again, one is there at a time, of which its input is kept") {
  using stretto::layers_again;
  const auto chain = [](const transformer& model, int layers, bool split, layers_again again,
                        const stretto::machine& on = {}) {
    const std::vector<std::int32_t> counts(3, layers);
    return stretto::transformer_chain(model, {.ranks = 3, .chunks = 1}, 1,
                                      stretto::transformer_parts(counts), split, on, again);
  };
  const auto times = [](const program_chain& of) {
    std::vector<std::int64_t> made;
    for (const stretto::program& job : of.programs) {
      made.push_back(0);
      for (const stretto::op& one : of.ops_of(job)) made.back() += one.time;
    }
    return made;
  };
  std::vector<transformer> models;
  for (const stretto::architecture made_of :
       {stretto::architecture::gpt, stretto::architecture::llama})
    for (const std::int64_t experts : {0, 8})
      for (const int t : {1, 4})
        models.push_back({.hidden = 512,
                          .heads = 8,
                          .sequence = 256,
                          .tensor_parallel = t,
                          .sequence_parallel = t > 1,
                          .bytes = stretto::mixed_precision,
                          .layers = made_of,
                          .experts = {.count = experts, .parallel = experts > 0 ? t : 1},
                          .dense_layers = experts > 0 ? 2 : 0});
  for (const transformer& model : models)
    for (const bool split : {false, true}) {
      CAPTURE(model.tensor_parallel);
      const std::int64_t input = model.tokens() * 512 * 2 / model.tensor_parallel;
      const auto once = measured_chain(chain(model, 6, split, layers_again{}));
      const program_chain again = chain(model, 6, split, layers_again::each());
      CHECK(stretto::sound_program(again).ok());
      const auto each = measured_chain(again);
      const auto full = measured_chain(memory::recompute(chain(model, 6, split, layers_again{}),
                                                         memory::recompute_full{}));
      CHECK(each[0].change == 6 * input);
      CHECK(full[0].change == input);
      // Each layer keeps what it needs for its weights' gradients, if these are made apart.
      CHECK(each[1].change + (split ? each[2].change : 0) == -6 * input);
      if (split) CHECK(each[2].change == once[2].change);
      if (!split) CHECK(each[1].peak < once[0].change / 2);
      const program_chain timed = chain(model, 6, split, layers_again::each(), one_flop);
      const auto plain = times(chain(model, 6, split, layers_again{}, one_flop));
      CHECK(times(timed)[0] == plain[0]);
      CHECK(times(timed)[1] == plain[0] + plain[1]);
      if (split) CHECK(times(timed)[2] == plain[2]);
      // Of the first two alone: the others keep all, and take no longer.
      const program_chain some = chain(model, 6, split, layers_again{2}, one_flop);
      CHECK(stretto::sound_program(some).ok());
      if (model.dense_layers == 0) {
        CHECK(measured_chain(some)[0].change == once[0].change / 6 * 4 + 2 * input);
        CHECK(3 * (times(some)[1] - plain[1]) == plain[0]);
      }
    }
}

//! What every buffer of a chain holds after each op: numbers that tell an op's name and all that it
//! has read apart.
class contents {
 public:
  explicit contents(const program_chain& chain)
      : chain_(chain), of_(chain.buffers.size()) {}
  //! @return of what the op has read, in its order
  std::uint64_t run(const stretto::op& one) {
    std::uint64_t read = std::hash<std::string_view>{}(one.name);
    for (const stretto::op_use& use : chain_.uses_of(one))
      if (use.how == stretto::touch::reads) read = mixed(read, at(use.buffer));
    std::uint64_t made = read;
    for (const stretto::op_use& use : chain_.uses_of(one))
      if (use.how == stretto::touch::writes) at(use.buffer) = made = mixed(made, 1);
    return read;
  }

 private:
  static std::uint64_t mixed(std::uint64_t one, std::uint64_t other) {
    std::uint64_t sum = one * 0x9e3779b97f4a7c15u + other;
    return (sum ^ sum >> 31) * 0xbf58476d1ce4e5b9u;
  }
  std::uint64_t& at(std::int32_t buffer) {
    return of_[static_cast<std::size_t>(chain_.storage_of(buffer))];
  }
  const program_chain& chain_;
  std::vector<std::uint64_t> of_;
};

//! What a chain's backwards read: by name, and of how many so named it is.
using read_by = std::map<std::pair<std::string, int>, std::uint64_t>;

//! @param leave_out  names of ops that run again, and may do so in backwards
read_by read_by_backwards(const program_chain& chain, const std::set<std::string>& leave_out) {
  contents held(chain);
  read_by made;
  std::map<std::string, int> count;
  for (const stretto::program& job : chain.programs)
    for (const stretto::op& one : chain.ops_of(job)) {
      const std::uint64_t read = held.run(one);
      const std::string name(one.name);
      const bool forward =
          job.kind == stretto::job_kind::forward || job.kind == stretto::job_kind::recompute;
      if (!forward && !leave_out.contains(name)) made[{name, ++count[name]}] = read;
    }
  return made;
}

TEST_CASE("what runs again right before it is needed is what it was, and is there layer by layer") {
  const std::vector<std::vector<std::string_view>> all{
      {"scores", "softmax", "attention dropout"},
      {"norm", "gather"},
      {"gelu", "swiglu", "experts activation", "shared activation"},
      {"scores", "softmax", "norm", "swiglu", "widen", "gather", "dispatch", "permute",
       "experts widen", "experts activation"}};
  for (const stretto::architecture made_of :
       {stretto::architecture::gpt, stretto::architecture::llama})
    for (const std::int64_t experts : {0, 8})
      for (const int t : {1, 4})
        for (const bool split : {false, true})
          for (const auto& names : all) {
            const transformer model{
                .hidden = 512,
                .heads = 8,
                .sequence = 256,
                .tensor_parallel = t,
                .sequence_parallel = t > 1,
                .bytes = stretto::mixed_precision,
                .layers = made_of,
                .experts = {.count = experts, .shared = experts > 0 ? 1 : 0,
                            .parallel = experts > 0 ? 2 * t : 1}};
            CAPTURE(static_cast<int>(made_of));
            CAPTURE(experts);
            CAPTURE(t);
            CAPTURE(split);
            CAPTURE(names.front());
            const memory::recompute_ops marks{names};
            std::int64_t above[2];  // what a backward needs beside what there is before it
            for (const int layers : {2, 6}) {
              const program_chain plain = chain_of(model, layers, split, one_flop);
              const program_chain inside = memory::recompute_in_backward(plain, marks);
              const program_chain apart = memory::recompute(plain, marks);
              CHECK(stretto::sound_program(inside).ok());
              const std::set<std::string> second(names.begin(), names.end());
              const read_by found = read_by_backwards(plain, second);
              REQUIRE(found.size() > 10);
              CHECK(read_by_backwards(inside, second) == found);
              CHECK(read_by_backwards(apart, second) == found);
              const auto once = measured_chain(plain), made = measured_chain(inside);
              const auto job = measured_chain(apart);
              REQUIRE(made.size() == once.size());
              REQUIRE(job.size() == once.size() + 1);
              CHECK(made[0].change == job[0].change);
              CHECK(made[0].change < once[0].change);
              std::int64_t longer = 0;
              for (std::size_t at = 0; at < made.size(); ++at)
                longer += made[at].time - once[at].time;
              CHECK(longer == job[1].time);
              CHECK(longer > 0);
              above[layers == 2 ? 0 : 1] = made[1].peak;
              if (!split) CHECK(job[1].change + job[2].peak >= made[1].peak);
            }
            if (!split) CHECK(above[0] == above[1]);  // of one layer, however many there are
          }
}

TEST_CASE("of random chains what backwards read is what it was") {
  std::mt19937 random(20);
  const auto below = [&](unsigned count) { return static_cast<int>(random() % count); };
  std::int64_t ran_again = 0;
  for (int round = 0; round < 20000; ++round) {
    program_chain chain;
    std::vector<std::int32_t> forwards, backwards;
    for (int at = 0; at < 7; ++at)
      forwards.push_back(at > 1 && below(4) == 0
                             ? chain.view("view", forwards[static_cast<std::size_t>(at - 1)])
                             : chain.buffer("forward", 10));
    for (int at = 0; at < 3; ++at) backwards.push_back(chain.buffer("backward", 10));
    static const std::string_view names[] = {"a", "b", "c", "d", "e", "f", "g", "h"};
    const auto any = [&](const std::vector<std::int32_t>& of) {
      return of[static_cast<std::size_t>(below(static_cast<unsigned>(of.size())))];
    };
    std::vector<std::int32_t> written;  // none is read before
    const auto add = [&](std::string_view name, int most_written,
                         const std::vector<std::int32_t>& to) {
      std::vector<stretto::op_use> touched;
      for (int more = written.empty() ? 0 : below(3); more > 0; --more)
        touched.push_back(stretto::reads(any(written)));
      for (int more = 1 + below(static_cast<unsigned>(most_written)); more > 0; --more)
        touched.push_back(stretto::writes(any(to)));
      chain.add(name, touched, {});
      for (const stretto::op_use& use : touched) {
        const auto& buffers = chain.buffers;
        for (std::size_t at = 0; at < buffers.size(); ++at)
          if (buffers[at].storage == chain.storage_of(use.buffer))
            written.push_back(static_cast<std::int32_t>(at));
      }
    };
    chain.begin(stretto::job_kind::forward, 0);
    for (const std::string_view name : names) add(name, 2, forwards);
    const bool split = below(2) == 0;
    chain.begin(split ? stretto::job_kind::backward_input : stretto::job_kind::backward, 0);
    for (int at = 0; at < 8; ++at) {
      if (split && at == 4) chain.begin(stretto::job_kind::backward_weight, 0);
      add("back", 1, below(4) == 0 ? forwards : backwards);
    }
    std::vector<std::string_view> marked;
    for (const std::string_view name : names)
      if (below(3) > 0) marked.push_back(name);
    const program_chain inside =
        memory::recompute_in_backward(chain, memory::recompute_ops{marked});
    CAPTURE(round);
    const std::set<std::string> second(std::begin(names), std::end(names));
    const read_by found = read_by_backwards(chain, second);
    CHECK(read_by_backwards(inside, second) == found);
    CHECK(read_by_backwards(memory::recompute(chain, memory::recompute_ops{marked}), second) ==
          found);
    ran_again += static_cast<std::int64_t>(inside.ops.size() - chain.ops.size());
  }
  CHECK(ran_again > 10000);
}

}  // namespace
