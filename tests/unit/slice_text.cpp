#include "stretto/model/slice_text.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace {

using stretto::balanced_slices;
using stretto::read_slices;
using stretto::sequence_part;
using stretto::transformer;

TEST_CASE("what texts say of a sequence's slices") {
  const transformer model{.hidden = 64, .heads = 1, .sequence = 48};
  using parts = std::vector<sequence_part>;
  CHECK(read_slices("equal", model, 3) == parts{{0, 16}, {16, 32}, {32, 48}});
  CHECK(read_slices("equal", model, 1) == parts{{0, 48}});
  CHECK(read_slices("30,1,17", model, 3) == parts{{0, 30}, {30, 31}, {31, 48}});
  CHECK(read_slices("48", model, 1) == parts{{0, 48}});
  for (const int slices : {1, 2, 5, 48})
    CHECK(read_slices("balanced", model, slices) == balanced_slices(model, slices));
  CHECK(read_slices("balanced:8", model, 4) == balanced_slices(model, 4, 8));
  CHECK(read_slices("balanced:9223372036854775807", model, 1) == parts{{0, 48}});

  // In lengths that every device can have its part of.
  transformer shared = model;
  shared.sequence_parallel = true;
  shared.tensor_parallel = 4;
  CHECK(read_slices("balanced", shared, 5) == balanced_slices(model, 5, 4));
  CHECK(read_slices("balanced:1", shared, 5) == balanced_slices(model, 5));

  // Of devices that share a sequence each has two parts of a slice.
  transformer dealt{.hidden = 64, .heads = 4, .sequence = 960, .context_parallel = 2};
  CHECK(read_slices("balanced", dealt, 4) == balanced_slices(dealt, 4, 4));
  dealt.tensor_parallel = 4;
  CHECK(read_slices("balanced", dealt, 4) == balanced_slices(dealt, 4, 4));
  dealt.sequence_parallel = true;
  CHECK(read_slices("balanced", dealt, 4) == balanced_slices(dealt, 4, 8));
  for (const sequence_part& part : read_slices("balanced", dealt, 4)) {
    dealt.slice = part;
    CHECK(dealt.broken_rule() == stretto::transformer_rule::none);
  }
}

TEST_CASE("texts that cut no such slices are refused with the rule") {
  const transformer model{.hidden = 64, .heads = 1, .sequence = 48};
  const auto refused = [&](std::string_view text, int slices, const char* words) {
    CAPTURE(text);
    CHECK_THROWS_WITH_AS(read_slices(text, model, slices), words, std::invalid_argument);
  };
  const char* const expected = "expected balanced, balanced:N, equal, or the tokens of each slice";
  for (const std::string_view text :
       {"", "equals", "Balanced", ",", "1,", ",47", "16,,32", "16, 32", "0,48", "-1,49", "+16,32",
        "16;32", "1e1,38", "16,99999999999999999999", "9223372036854775807,1", "0x10,32"})
    refused(text, 2, expected);
  const char* const behind = "after balanced comes nothing, or :N, of which lengths are multiples";
  for (const std::string_view text : {"balanced8", "balanced:", "balanced:0", "balanced:-8",
                                      "balanced:8,8", "balanced: 8", "balanced,48"})
    refused(text, 2, behind);
  refused("equal", 5, "a sequence of 48 tokens makes no 5 slices of one length");
  refused("balanced", 49, "a sequence of 48 tokens has fewer multiples of 1 than 49 slices");
  refused("balanced:20", 4, "a sequence of 48 tokens has fewer multiples of 20 than 4 slices");
  refused("balanced:9223372036854775807", 2,
          "a sequence of 48 tokens has fewer multiples of 9223372036854775807 than 2 slices");
  refused("16,16,16", 2,
          "these are 3 slices of 48 tokens, and wanted are 2 slices of a sequence of 48 tokens");
  refused("16,16", 2,
          "these are 2 slices of 32 tokens, and wanted are 2 slices of a sequence of 48 tokens");
  refused("40,40", 2,
          "these are 2 slices of 80 tokens, and wanted are 2 slices of a sequence of 48 tokens");
  refused("47", 1,
          "these are 1 slice of 47 tokens, and wanted are 1 slice of a sequence of 48 tokens");
}

}  // namespace
