// Devices that share a sequence: what each keeps and takes, what they send one another, and when.
#include "stretto/model/transformer/context.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "stretto/model/program_sound.hpp"
#include "stretto/model/transformer/chain.hpp"
#include "unit/transformer_chains.hpp"

namespace {

using stretto::architecture;
using stretto::attention_kernel;
using stretto::context_exchange;
using stretto::program_chain;
using stretto::transformer;
using transformer_chains::chain_of;
using transformer_chains::change_of_layer;
using transformer_chains::check_rule;
using transformer_chains::measured_chain;
using transformer_chains::one_flop;
using transformer_chains::read_by_weights;

constexpr std::int64_t any_rate = std::int64_t{1} << 40;

//! Models of all that attention is made of, each on one device.
void each_alone(const std::function<void(const transformer&)>& check) {
  for (const architecture layers : {architecture::gpt, architecture::llama})
    for (const attention_kernel attention : {attention_kernel::plain, attention_kernel::fused})
      for (const int shards : {1, 2})
        for (const int slices : {1, 2}) {
          transformer model{.hidden = 64,
                            .heads = 8,
                            .sequence = 192,
                            .microbatch = 2,
                            .vocabulary = 128,
                            .tensor_parallel = shards,
                            .sequence_parallel = shards > 1,
                            .layers = layers,
                            .attention = attention,
                            .kv_heads = 4,
                            .slices = slices};
          CAPTURE(static_cast<int>(layers));
          CAPTURE(static_cast<int>(attention));
          CAPTURE(shards);
          CAPTURE(slices);
          check(model);
          if (slices > 1) continue;
          model.slices = 3;
          model.slice = {96, 144};
          check(model);
          model.slice = {};
          model.slices = 1;
          if (shards > 1) continue;
          model.experts = {.count = 4, .per_token = 2, .parallel = 2};
          check(model);
          if (layers == architecture::gpt) continue;
          model.kv_heads = 0;
          model.latent = {16, 24, 8, 12};
          check(model);
        }
}
//! The same on several, by every exchange that there is for it.
void each_shared(const std::function<void(const transformer&, const transformer& alone)>& check) {
  each_alone([&](const transformer& alone) {
    for (const int devices : {2, 3, 4})
      for (const context_exchange exchange :
           {context_exchange::gather, context_exchange::ring, context_exchange::heads}) {
        transformer model = alone;
        model.context_parallel = devices;
        model.exchange = exchange;
        if (exchange == context_exchange::ring && model.attention == attention_kernel::plain)
          continue;
        CAPTURE(devices);
        CAPTURE(static_cast<int>(exchange));
        if (model.broken_rule() != stretto::transformer_rule::none) {
          const bool heads = exchange == context_exchange::heads;
          CHECK(model.length() % (2 * devices) + model.held() % model.tensor_parallel +
                    (heads ? 4 % (devices * model.tensor_parallel) : 0) >
                0);
          continue;
        }
        check(model, alone);
      }
  });
}

//! What those ops of a layer take that count.
std::int64_t time_of(const transformer& model, const stretto::machine& on, bool split,
                     const std::function<bool(const stretto::op&)>& counts) {
  std::int64_t sum = 0;
  for (const stretto::op& one : chain_of(model, 1, split, on).ops)
    if (counts(one)) sum += one.time;
  return sum;
}

bool between_devices(const stretto::op& one) {
  return one.stream == static_cast<std::uint8_t>(stretto::stream_type::data_parallel) &&
         (one.name.find("keys and values") != std::string_view::npos ||
          one.name.find("for tokens") != std::string_view::npos ||
          one.name.find("for heads") != std::string_view::npos);
}

TEST_CASE("each device keeps its share of a layer, and no more") {
  each_shared([](const transformer& model, const transformer& alone) {
    CHECK(model.tokens() * model.context_parallel == alone.tokens());
    // What a fused kernel makes is kept for its backward; of heads beside what its tokens have of
    // it.
    const std::int64_t twice =
        model.deals_heads() && model.attention == attention_kernel::fused
            ? alone.tokens() * alone.context_width() * 4 / alone.tensor_parallel
            : 0;
    for (const bool split : {false, true})
      for (std::size_t job = 0; job < (split ? 3u : 2u); ++job)
        CHECK(change_of_layer(model, job, split) * model.context_parallel ==
              change_of_layer(alone, job, split) + (job == 0 ? twice : job == 1 ? -twice : 0));
    // What is sent from stage to stage, too.
    program_chain none_yet;
    CHECK(stretto::transformer_writer(model, none_yet).message_bytes() * model.context_parallel ==
          stretto::transformer_writer(alone, none_yet).message_bytes());
  });
}

TEST_CASE("each device computes its share of a layer") {
  const auto computes = [](const stretto::op& one) { return one.stream == 0 && one.time > 1; };
  each_shared([&](const transformer& model, const transformer& alone) {
    if (model.experts.count > 0) return;  // a token more or less for one of a device's
    for (const bool split : {false, true})
      CHECK(time_of(model, one_flop, split, computes) * model.context_parallel ==
            time_of(alone, one_flop, split, computes));
  });
}

TEST_CASE("what devices send one another: all but one part, thrice, a part as often as it goes, "
          "or once what heads need") {
  stretto::machine one_byte{"one byte a ns", any_rate, any_rate, 1};
  each_shared([&](const transformer& model, const transformer&) {
    const std::int64_t devices = model.context_parallel;
    // Keys and values of a device: its own, and of slices before, of equal ones half of the other.
    const std::int64_t tokens = model.slice.end > 0   ? model.slice.end
                                : model.slices == 2 ? (96 + 192) / 2
                                                      : 192;
    const std::int64_t part = tokens / devices * 2 * (model.key_width() + model.value_width()) *
                              4 / model.tensor_parallel;
    if (model.deals_heads()) {
      // All but a part of what its tokens have: queries, keys, values; what is made of them.
      const std::int64_t own =
          model.tokens() * 4 / model.tensor_parallel *
          (model.query_width() + model.key_width() + model.value_width() + model.context_width());
      for (const bool split : {false, true})
        CHECK(
            time_of(model, one_byte, split, between_devices) ==
            doctest::Approx(2 * static_cast<double>(own * (devices - 1) / devices)).epsilon(1e-4));
      return;
    }
    const bool round = model.exchange == context_exchange::ring;
    for (const bool split : {false, true}) {
      CHECK(time_of(model, one_byte, split, between_devices) ==
            part * (3 * devices - (round ? 2 : 3)));
      int sent = 0;
      for (const stretto::op& one : chain_of(model, 1, split).ops) sent += between_devices(one);
      CHECK(sent == (round ? 2 * devices : 3));  // gradients go with keys and values
    }
  });
}

TEST_CASE("messages go over the network where those that share sequences are on several nodes") {
  stretto::machine slow{"ten times", any_rate, any_rate, 10};
  slow.network = 1;
  transformer model{.hidden = 64, .heads = 4, .sequence = 192, .microbatch = 2};
  const auto takes = [&](int devices, int shards, std::int64_t of_node) {
    model.context_parallel = devices;
    model.tensor_parallel = shards;
    model.node_devices = of_node;
    return time_of(model, slow, false, between_devices) * shards;
  };
  const std::int64_t far = takes(4, 1, 3);
  const auto near = doctest::Approx(static_cast<double>(far) / 10).epsilon(0.001);
  CHECK(takes(4, 1, 4) == near);
  CHECK(takes(4, 2, 8) == near);
  CHECK(takes(4, 2, 7) == far);
  CHECK(takes(2, 1, 1) == far * 2 / 3);  // a half of all instead of three quarters
  CHECK(takes(1, 2, 1) == 0);
}

TEST_CASE(
    "a gather has room for all keys and values while they are attended to, a ring for a part") {
  transformer model{.hidden = 64,
                    .heads = 4,
                    .sequence = 3072,
                    .layers = architecture::llama,
                    .attention = attention_kernel::fused,
                    .feed_forward = 4};
  const auto room = [&](int devices, context_exchange exchange, std::size_t job) {
    model.context_parallel = devices;
    model.exchange = exchange;
    const stretto::job_cost cost = measured_chain(chain_of(model, 1, false))[job];
    return cost.peak;
  };
  using enum context_exchange;
  const std::int64_t row = 64 * 4;
  for (const int slices : {1, 2})  // of which the last attends to all
    for (const std::size_t job : {0u, 1u}) {
      CAPTURE(slices);
      CAPTURE(job);
      model.slices = slices;
      // Of many devices what each has is little beside what all have: keys and values, and
      // gradients.
      const std::int64_t all = 3072 * row * (job == 0 ? 2 : 4);
      CHECK(room(96, gather, job) > all * 99 / 100);  // the job gives back what was kept
      CHECK(room(96, gather, job) < all * 5 / 4);
      CHECK(room(96, ring, job) * 4 < all);
    }
}

TEST_CASE("round a ring a device attends to its own first, and to every other one's, in order") {
  transformer model{.hidden = 64,
                    .heads = 4,
                    .sequence = 192,
                    .context_parallel = 3,
                    .exchange = context_exchange::ring,
                    .attention = attention_kernel::fused};
  const program_chain chain = chain_of(model, 1, false);
  // What each op of attention reads, told by who wrote that: "q" or "k" of its own, or a pass.
  std::vector<std::string> writer(chain.buffers.size());
  std::vector<std::string> read;
  int passes = 0;
  for (const stretto::op& one : chain.ops) {
    const bool attends = one.name == "attention" || one.name == "attention back";
    std::string keys;
    for (const stretto::op_use& use : chain.uses_of(one)) {
      const auto buffer = static_cast<std::size_t>(use.buffer);
      const std::string_view name = chain.buffers[buffer].name;
      if (use.how == stretto::touch::reads && attends && name.starts_with("key"))
        keys = std::string(name) + " " + writer[buffer];
      if (use.how == stretto::touch::writes)
        writer[buffer] = between_devices(one) ? std::to_string(passes) : "here";
    }
    passes += between_devices(one) ? 1 : 0;
    if (attends) read.push_back(keys);
  }
  CHECK(read == std::vector<std::string>{"keys here", "keys of another 0", "keys of another 1",
                                         "keys here", "keys of another 2", "keys of another 3"});
  // The gradients of what was here come home last, with what every device has added.
  CHECK(std::ranges::count(writer, "5") == 2);
  std::vector<unsigned> added(
      chain.buffers.size());  // a bit for each time that attention went back
  unsigned step = 1;
  for (const stretto::op& one : chain.ops) {
    if (one.name != "attention back" && !between_devices(one) && !one.name.starts_with("add"))
      continue;
    unsigned sum = 0;
    for (const stretto::op_use& use : chain.uses_of(one))
      if (use.how == stretto::touch::reads &&
          chain.buffers[static_cast<std::size_t>(use.buffer)].name.find("gradient") !=
              std::string_view::npos)
        sum |= added[static_cast<std::size_t>(use.buffer)];
    if (one.name == "attention back") sum = step, step *= 2;
    for (const stretto::op_use& use : chain.uses_of(one))
      if (use.how == stretto::touch::writes) added[static_cast<std::size_t>(use.buffer)] = sum;
  }
  CHECK(step == 8);
  for (std::size_t buffer = 0; buffer < added.size(); ++buffer)
    if (writer[buffer] == "5") CHECK(added[buffer] == 7);
}

TEST_CASE("programs are sound, whole, split and run again, and weights read what they do whole") {
  each_shared([](const transformer& model, const transformer&) {
    for (const bool split : {false, true}) {
      const program_chain chain = chain_of(model, 2, split);
      CHECK(stretto::sound_program(chain).ok());
      for (const stretto::op& one : chain.ops) {
        if (!between_devices(one)) continue;
        // What is sent and what comes are two places.
        for (const stretto::op_use& read : chain.uses_of(one))
          for (const stretto::op_use& written : chain.uses_of(one))
            if (read.how == stretto::touch::reads && written.how == stretto::touch::writes)
              CHECK(chain.storage_of(read.buffer) != chain.storage_of(written.buffer));
      }
      (void)measured_chain(chain);
      (void)measured_chain(stretto::memory::recompute(chain, stretto::memory::recompute_full{}));
    }
    std::vector<std::string> whole = read_by_weights(chain_of(model, 2, false));
    std::vector<std::string> halves = read_by_weights(chain_of(model, 2, true));
    std::ranges::sort(whole);
    std::ranges::sort(halves);
    REQUIRE(!whole.empty());
    CHECK(whole == halves);
  });
}

TEST_CASE("of a window the device with the middle of a sequence attends to most") {
  for (const std::int64_t window : {1, 5, 17, 24, 47, 48, 60, 95, 96, 200})
    for (const int devices : {1, 2, 3, 4})
      for (const int slices : {1, 2})
        for (const stretto::sequence_part slice : {stretto::sequence_part{}, {24, 72}}) {
          const transformer model{.sequence = 96,
                                  .context_parallel = devices,
                                  .attention = attention_kernel::fused,
                                  .window = window,
                                  .slices = slices,
                                  .slice = slice};
          if (slice.end > 0 && slices == 2) continue;
          CAPTURE(window);
          CAPTURE(devices);
          CAPTURE(slices);
          CAPTURE(slice.end);
          // Twice what each device's tokens attend to, one by one, in all its slices.
          std::vector<std::int64_t> twice(static_cast<std::size_t>(devices));
          const std::int64_t half = model.length() / (2 * devices);
          for (std::int64_t token = slice.begin; token < model.seen(); ++token) {
            const std::int64_t part = (token - slice.begin) % model.length() / half;
            const std::int64_t device = std::min(part, 2 * devices - 1 - part);
            twice[static_cast<std::size_t>(device)] += token < window ? 2 * token + 1 : 2 * window;
          }
          const std::int64_t tokens =
              model.held() * (slice.end > 0 ? 1 : slices);  // of each device
          CHECK(model.attends_twice(true) == *std::ranges::max_element(twice) / tokens);
          if (window >= 96) CHECK(model.attends_twice(true) == model.attends_twice());
          // With all tokens of some heads each has what one alone would.
          transformer dealt = model, alone = model;
          dealt.exchange = context_exchange::heads;
          alone.context_parallel = 1;
          CHECK(dealt.attends_twice(true) == alone.attends_twice(true));
        }
}

TEST_CASE("sequences are dealt in equal parts, and go round only where all are attended to") {
  using enum stretto::transformer_rule;
  using enum context_exchange;
  check_rule({.context_parallel = 0}, sizes_positive);
  check_rule({.context_parallel = 2, .node_devices = 0}, sizes_positive);
  check_rule({.sequence = 96, .context_parallel = 48}, none);
  check_rule({.sequence = 96, .context_parallel = 32}, context_divides_sequence);
  check_rule({.sequence = 96, .context_parallel = 12, .slices = 3}, context_divides_sequence);
  check_rule({.sequence = 96, .context_parallel = 16, .slices = 3}, none);
  check_rule({.sequence = 96, .context_parallel = 4, .slices = 3, .slice = {0, 20}},
         context_divides_sequence);
  check_rule({.sequence = 99}, none);
  check_rule(
      {.sequence = 96, .tensor_parallel = 16, .sequence_parallel = true, .context_parallel = 4},
      shards_divide_heads);
  check_rule(
      {.sequence = 96, .tensor_parallel = 8, .sequence_parallel = true, .context_parallel = 4},
      none);
  check_rule({.context_parallel = 16, .exchange = heads}, none);
  check_rule({.context_parallel = 32, .exchange = heads}, context_divides_heads);
  check_rule({.context_parallel = 4, .exchange = heads, .kv_heads = 2}, context_divides_heads);
  check_rule({.tensor_parallel = 8, .context_parallel = 2, .exchange = heads}, none);
  check_rule({.tensor_parallel = 8, .context_parallel = 4, .exchange = heads},
             context_divides_heads);
  check_rule({.exchange = heads, .kv_heads = 1}, none);  // nothing is dealt
  check_rule({.context_parallel = 2, .exchange = ring}, ring_of_fused);
  check_rule({.context_parallel = 2,
          .exchange = ring,
          .attention = attention_kernel::fused,
          .window = 8},
         ring_of_fused);
  check_rule({.context_parallel = 2, .attention = attention_kernel::fused, .window = 8}, none);
  check_rule({.context_parallel = 2, .exchange = ring, .attention = attention_kernel::fused}, none);
}

}  // namespace
