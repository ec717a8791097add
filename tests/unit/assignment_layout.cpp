#include <doctest/doctest.h>

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "stretto/assignment/covered.hpp"
#include "stretto/assignment/layout.hpp"
#include "stretto/model/verdict_text.hpp"

namespace {

using stretto::placement;
using stretto::placement_kind;
using stretto::reason;
using stretto::assignment::deal_layout;
using stretto::assignment::layer_range;
using stretto::assignment::layout;
using stretto::assignment::read_layout;

static_assert(stretto::assignment::Policy<layout<"Et|L">>);
static_assert(layout<"Et*3|(tt|)*29,m|L">{}.layers() == 64);
static_assert([] {
  std::array<layer_range, 4> stages{};
  return layout<"Ett|(t|)*2,L">{}.assign({placement_kind::wave, 2, 2}, stages).ok() &&
         stages == std::array<layer_range, 4>{{{0, 3}, {3, 1}, {4, 1}, {5, 1}}};
}());

// The stages written out: `Et|tt||L`.
std::string unrolled(std::string_view text) {
  const auto size = read_layout(text);
  if (!size.answer.ok()) return std::string(to_text(size.answer).view());
  std::vector<std::int32_t> per_stage(static_cast<std::size_t>(size.stages));
  std::vector<char> letters(static_cast<std::size_t>(size.layers));
  CHECK(read_layout(text, per_stage, letters).answer.ok());
  std::string written;
  auto at = letters.begin();
  for (const auto count : per_stage) {
    written += std::string(at, at + count) + '|';
    at += count;
  }
  CHECK(at == letters.end());
  written.pop_back();
  return written;
}

TEST_CASE("layouts unroll as Megatron-LM's do") {
  CHECK(unrolled("Ettt|tt|m|L") == "Ettt|tt|m|L");
  CHECK(unrolled("Et*3|(tt|)*3,m|L") == "Ettt|tt|tt|tt|m|L");
  CHECK(unrolled("tt(t|tt|m)*1,mL") == "ttt|tt|mmL");
  CHECK(unrolled("tt(tt|t|t)*2,tt") == "tttt|t|ttt|t|ttt");
  CHECK(unrolled("(ttt)*3") == "ttttttttt");
  CHECK(unrolled("tt,(t|)*2") == "ttt|t|");
  CHECK(unrolled("(|tt)*2,t") == "|tt|ttt");
  CHECK(unrolled("E|*3L") == "E|||L");
  CHECK(unrolled("E,t*0 | L") == "E|L");
  CHECK(unrolled("E((t|)*2t|)*2L") == "Et|t|t|t|t|t|L");
  CHECK(unrolled("").empty());
  const auto size = read_layout("Et*3|(tt|)*29,m|L");
  CHECK(size.stages == 32);
  CHECK(size.layers == 64);
}

TEST_CASE("what is no layout is told by its character") {
  const struct {
    const char* text;
    reason why;
    int character;
  } cases[] = {{"Et|dL", reason::bad_layout, 4},
               {"Et|(tL", reason::bad_layout, 4},
               {"Et|t)L", reason::bad_layout, 5},
               {"Et*|L", reason::bad_layout, 3},
               {"Et*x", reason::bad_layout, 3},
               {"*3", reason::bad_layout, 1},
               {"Et*3*2", reason::bad_layout, 5},
               {"Et*-3", reason::bad_layout, 3},
               {"tEt", reason::layout_order, 2},
               {"EtE", reason::layout_order, 3},
               {"(E)*2t", reason::layout_order, 2},
               {"EtLt", reason::layout_order, 4},
               {"EtLL", reason::layout_order, 4},
               {"Etmt", reason::layout_order, 4},
               {"t*1000001", reason::layout_too_long, 3},
               {"t*99999999999999999999", reason::layout_too_long, 3},
               {"(t*1000)*1001", reason::layout_too_long, 2},
               {"((()*1000)*1000)*1000", reason::layout_too_long, 2}};
  for (const auto& one : cases) {
    INFO(one.text);
    const auto size = read_layout(one.text);
    CHECK(size.answer.what == stretto::fault::misassigned);
    CHECK(size.answer.why == one.why);
    CHECK(size.answer.amount == one.character);
    CHECK(size.answer.limit == static_cast<int>(std::string_view(one.text).size()));
  }
  const std::string deep(100'000, '(');
  CHECK(read_layout(deep + std::string(deep.size(), ')')).answer.amount == 65);
  CHECK(unrolled("Et|dL") ==
        "misassigned: a layout is made of E, t, m, L, |, X*n and (...)*n (character 4 of 5)");
}

TEST_CASE("a layout's stages are those of the placement, empty ones too") {
  const placement where{placement_kind::looped, 2, 2};
  std::array<layer_range, 4> stages{};
  REQUIRE(deal_layout("Ett||tt|L", where, stages).ok());
  CHECK(stages == std::array<layer_range, 4>{{{0, 3}, {3, 0}, {3, 2}, {5, 1}}});
  CHECK(stretto::assignment::covered(stages, 6, where, true).ok());
  const auto answer = deal_layout("Ett|tt|L", where, stages);
  CHECK(to_text(answer) == "misassigned: each stage needs one layer count (counts: 3, must be 4)");
  CHECK(deal_layout("E|t|t|L", where, std::span(stages).first(3)).what == stretto::fault::capacity);
}

}  // namespace
