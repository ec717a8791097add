#include "stretto/model/slice_lengths.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <stdexcept>
#include <vector>

#include "stretto/memory/liveness.hpp"
#include "stretto/model/transformer/chain.hpp"

namespace {

using stretto::attention_kernel;
using stretto::balanced_slices;
using stretto::sequence_part;
using stretto::transformer;

//! Multiply-adds of a layer's forward, counted token by token: product with weights, and keys.
std::int64_t counted(const transformer& model, const sequence_part& slice) {
  transformer whole = model;
  whole.sequence = 0;
  const std::int64_t weights = whole.layer_products();
  std::int64_t sum = 0;
  for (std::int64_t token = slice.begin; token < slice.end; ++token) {
    // A fused kernel sees each token's own keys (twice that, by two products, less half of one).
    const std::int64_t keys =
        model.attention == attention_kernel::fused ? 2 * token + 1 : 2 * slice.end;
    sum += weights + keys * model.hidden;
  }
  return sum;
}

//! The least that the longest of so many slices takes, of all cuts.
std::int64_t least(const transformer& model, std::int64_t begin, int slices,
                   std::int64_t multiple) {
  if (slices == 1) return counted(model, {begin, model.sequence});
  std::int64_t found = INT64_MAX;
  for (std::int64_t end = begin + multiple; end < model.sequence; end += multiple) {
    const std::int64_t mine = counted(model, {begin, end});
    if (mine >= found) break;
    if (model.sequence - end < slices - 1) break;
    found = std::min(found, std::max(mine, least(model, end, slices - 1, multiple)));
  }
  return found;
}

TEST_CASE("no cut of a sequence has a shorter longest slice") {
  for (const attention_kernel attention : {attention_kernel::plain, attention_kernel::fused})
    for (const std::int64_t hidden : {1, 2, 16})
      for (const std::int64_t sequence : {1, 2, 7, 24, 40})
        for (const int slices : {1, 2, 3, 4, 5})
          for (const std::int64_t multiple : {1, 3, 8}) {
            const transformer model{
                .hidden = hidden, .heads = 1, .sequence = sequence, .attention = attention};
            CAPTURE(hidden);
            CAPTURE(sequence);
            CAPTURE(slices);
            CAPTURE(multiple);
            if ((sequence + multiple - 1) / multiple < slices) {
              CHECK_THROWS_AS(balanced_slices(model, slices, multiple), std::invalid_argument);
              continue;
            }
            const std::vector<sequence_part> made = balanced_slices(model, slices, multiple);
            REQUIRE(made.size() == static_cast<std::size_t>(slices));
            std::int64_t longest = 0;
            std::int64_t begin = 0;
            for (const sequence_part& one : made) {
              CHECK(one.begin == begin);
              CHECK(one.end > begin);
              CHECK((one.end % multiple == 0 || one.end == sequence));
              begin = one.end;
              longest = std::max(longest, counted(model, one));
            }
            CHECK(begin == sequence);
            CHECK(longest == least(model, 0, slices, multiple));
          }
  CHECK_THROWS_AS(balanced_slices({}, 0), std::invalid_argument);
  CHECK_THROWS_AS(balanced_slices({}, 1, 0), std::invalid_argument);
  CHECK(balanced_slices({.sequence = 5}, 1, INT64_MAX) == std::vector{sequence_part{0, 5}});
}

// Lengths can be constants.
constexpr std::array<std::int64_t, 4> lengths = [] {
  const auto made = balanced_slices({.hidden = 64, .heads = 1, .sequence = 8192}, 4, 128);
  return std::array{made[0].end, made[1].end, made[2].end, made[3].end};
}();
static_assert(lengths[3] == 8192 && lengths[0] > 2048 && lengths[0] % 128 == 0);

//! Of the middle one of three ranks, with one layer: what its forward and its backward take, and
//! what the forward keeps.
struct taken {
  std::int64_t forward = 0, backward = 0, kept = 0;
};
taken taken_by(const transformer& model, const stretto::machine& on) {
  const std::vector<std::int32_t> counts(3, 1);
  const auto chain =
      stretto::transformer_chain(model, {.ranks = 3, .chunks = 1}, 1,
                                 stretto::transformer_parts(counts), false, on);
  taken made;
  for (std::size_t job = 0; job < 2; ++job)
    for (const auto& op : chain.ops_of(chain.programs[job]))
      (job == 0 ? made.forward : made.backward) += op.time;
  std::vector<stretto::job_cost> costs(chain.programs.size());
  REQUIRE(stretto::memory::measure_chain(chain, costs).ok());
  made.kept = costs[0].change;
  return made;
}

const stretto::machine& h100 = *stretto::find_machine("h100");

TEST_CASE("what is given of a sequence takes its part") {
  for (const attention_kernel attention : {attention_kernel::plain, attention_kernel::fused})
    for (const int t : {1, 4}) {
      CAPTURE(static_cast<int>(attention));
      CAPTURE(t);
      const transformer whole{.hidden = 512,
                              .heads = 8,
                              .sequence = 4096,
                              .microbatch = 2,
                              .tensor_parallel = t,
                              .sequence_parallel = t > 1,
                              .attention = attention,
                              .kv_heads = 4};
      // The whole sequence is one slice, and none.
      transformer one = whole;
      one.slice = {0, 4096};
      CHECK(!one.sliced());
      const taken all = taken_by(whole, h100);
      CHECK(taken_by(one, h100).forward == all.forward);
      CHECK(taken_by(one, h100).backward == all.backward);
      CHECK(taken_by(one, h100).kept == all.kept);

      // Four of the same length: on the average what `slices` says, to the ns that each op is
      // rounded; each later one takes longer.
      transformer mean = whole;
      mean.slices = 4;
      const taken average = taken_by(mean, h100);
      taken sum;
      taken before;
      for (std::int64_t slice = 0; slice < 4; ++slice) {
        transformer part = mean;
        part.slice = {slice * 1024, (slice + 1) * 1024};
        CHECK(part.sliced());
        CHECK(part.broken_rule() == stretto::transformer_rule::none);
        const taken mine = taken_by(part, h100);
        CHECK(mine.forward > before.forward);
        CHECK(mine.backward > before.backward);
        CHECK(mine.kept >= before.kept);
        sum.forward += mine.forward, sum.backward += mine.backward, sum.kept += mine.kept;
        before = mine;
      }
      if (attention == attention_kernel::fused) {
        CHECK(sum.forward ==
              doctest::Approx(4 * static_cast<double>(average.forward)).epsilon(0.02));
        CHECK(sum.backward ==
              doctest::Approx(4 * static_cast<double>(average.backward)).epsilon(0.02));
        CHECK(sum.kept == 4 * average.kept);
      } else {  // whose mean has the room, and the products, of the last
        CHECK(before.kept == average.kept);
        CHECK(before.forward == average.forward);
        CHECK(sum.kept < 4 * average.kept);
      }
    }
}

TEST_CASE("a short slice behind a long sequence takes what reading its keys and values takes") {
  for (const attention_kernel attention : {attention_kernel::plain, attention_kernel::fused}) {
    const transformer model{.hidden = 4096,
                            .heads = 32,
                            .sequence = 1 << 20,
                            .bytes = stretto::mixed_precision,
                            .attention = attention,
                            .slices = 2,
                            .slice = {(1 << 20) - 1, 1 << 20}};
    const std::vector<std::int32_t> counts(3, 1);
    const auto chain =
        stretto::transformer_chain(model, {.ranks = 3, .chunks = 1}, 1,
                                   stretto::transformer_parts(counts), false, h100);
    std::int64_t longest = 0;
    std::int64_t all = 0;
    for (const auto& op : chain.ops_of(chain.programs[0])) {
      longest = std::max(longest, op.time);
      all += op.time;
    }
    // Of a million tokens, at 3000 bytes a nanosecond; one op reads both, or two one of them each.
    const std::int64_t keys = (std::int64_t{4096} << 20) * 2 / 3000;
    CHECK(longest > (attention == attention_kernel::fused ? 2 * keys : keys));
    CHECK(all > 2 * keys);
    CHECK(all < 2 * keys + keys / 2);
  }
}

TEST_CASE("a slice that is no part of the sequence breaks its rule") {
  using enum stretto::transformer_rule;
  const auto rule_of = [](sequence_part slice, std::int64_t sequence = 100, bool split = false) {
    return transformer{.sequence = sequence,
                       .tensor_parallel = 2,
                       .sequence_parallel = split,
                       .slices = 3,
                       .slice = slice}
        .broken_rule();
  };
  // What is given counts, whatever `slices` says.
  CHECK(transformer{.sequence = 100, .slice = {0, 10}}.sliced());
  CHECK(!transformer{.sequence = 100, .slices = 4, .slice = {0, 100}}.sliced());
  CHECK(rule_of({}) == slices_divide_sequence);
  CHECK(rule_of({0, 10}) == none);
  CHECK(rule_of({99, 100}) == none);
  CHECK(rule_of({0, 101}) == part_of_sequence);
  CHECK(rule_of({-1, 10}) == part_of_sequence);
  CHECK(rule_of({10, 10}) == part_of_sequence);
  CHECK(rule_of({10, 0}) == part_of_sequence);
  CHECK(rule_of({1, 10}, 100, true) == shards_divide_heads);
  CHECK(rule_of({1, 11}, 100, true) == none);
}

}  // namespace
