#include "stretto/model/job_text.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

#include "stretto/model/verdict_text.hpp"

namespace {

using stretto::fault;
using stretto::job;
using stretto::job_kind;
using stretto::parse_action;
using stretto::parse_job;
using stretto::reason;
using stretto::to_text;

// The same code at compile time.
static_assert(to_text(job{2, 0, 0, job_kind::forward}) == "2F0");
static_assert(parse_job("1SEND_B3").job == job{1, 3, 0, job_kind::send_backward});
static_assert(parse_action("(0F3;3B1)OVERLAP_F_B").jobs[0].paired);

TEST_CASE("every kind prints as PyTorch's action grammar has it, and is read back") {
  constexpr std::string_view expected[stretto::job_kind_count] = {
      "12F34",          "12B34",       "12I34",         "12W34",      "12R34",
      "12OFFLOAD34",    "12RELOAD34",  "12REDUCE_GRAD", "12UNSHARD",  "12RESHARD",
      "12SEND_F34",     "12RECV_F34",  "12SEND_B34",    "12RECV_B34", "12ALL_REDUCE34",
      "12ALL_GATHER34", "12OPTIMIZER", "12END_STEP"};
  for (int kind = 0; kind < stretto::job_kind_count; ++kind) {
    job work{12, 34, 0, static_cast<job_kind>(kind)};
    if (!stretto::names_microbatch(work.kind)) work.microbatch = 0;
    CHECK(to_text(work).view() == expected[kind]);
    const auto read = parse_job(expected[kind]);
    REQUIRE(read.answer.ok());
    CHECK(read.job == work);
  }
}

TEST_CASE("what is no kind has a mark, because a verdict may name it") {
  const auto none = static_cast<job_kind>(99);
  CHECK(to_text(job{2, 1, 0, none}).view().starts_with("2?"));
  CHECK(stretto::words(none) == "?");
  CHECK(to_text(stretto::refuse(fault::incomplete, reason::unexpected_communication, 1, 0,
                                {2, 1, 0, none}))
            .view()
            .starts_with("rule complete broken on rank 1, step 0, job 2?"));
}

TEST_CASE("text and job are one to one at the ends of every field") {
  for (std::int32_t stage : {0, 7, std::numeric_limits<std::int32_t>::max()})
    for (std::int32_t microbatch : {0, 9, 10, std::numeric_limits<std::int32_t>::max()})
      for (std::int16_t slice :
           {std::int16_t{0}, std::int16_t{3}, std::numeric_limits<std::int16_t>::max()})
        for (int kind = 0; kind < stretto::job_kind_count; ++kind) {
          const job work{stage, microbatch, slice, static_cast<job_kind>(kind)};
          const auto read = parse_job(to_text(work));
          REQUIRE(read.answer.ok());
          CHECK(read.job == work);
        }
  CHECK(to_text(job{2, 0, 1, job_kind::forward}) == "2F0.1");
}

TEST_CASE("pairs print and are read, the first half marked") {
  job forward{0, 3, 0, job_kind::forward, true};
  const job backward{3, 1, 0, job_kind::backward};
  CHECK(to_text(forward, backward) == "(0F3;3B1)OVERLAP_F_B");
  const auto read = parse_action("(0F3;3B1)OVERLAP_F_B");
  REQUIRE(read.answer.ok());
  REQUIRE(read.jobs.size() == 2);
  CHECK(read.jobs[0] == forward);
  CHECK(read.jobs[1] == backward);
  CHECK(parse_action("(3I1;0F3)OVERLAP_F_B").answer.ok());
  CHECK(parse_action("5B2").jobs.size() == 1);
}

TEST_CASE("what is no action is refused with its reason") {
  const auto why = [](std::string_view text) {
    const auto read = parse_action(text);
    CHECK(read.answer.what == (read.answer.ok() ? fault::none : fault::syntax));
    if (!read.answer.ok()) CHECK(read.jobs.empty());
    return read.answer.why;
  };
  for (std::string_view text : {"",
                                "F0",
                                "0",
                                "0X0",
                                "0f0",
                                "0F",
                                "0FB0",
                                "-1F0",
                                "0F-1",
                                " 0F0",
                                "0 F0",
                                "0SEND0",
                                "0SEND_FF0",
                                "0F0.",
                                "0F0.x",
                                "1.5F0",
                                "0OVERLAP_F_B",
                                "()OVERLAP_F_B",
                                "(0F3)OVERLAP_F_B",
                                "(0F3;3B1)",
                                "(0F3;3B1)OVERLAP",
                                "(0F3;1F1)OVERLAP_F_B",
                                "(0F3;3W1)OVERLAP_F_B",
                                "(0F3;3B1;2B2)OVERLAP_F_B",
                                "(0F3,3B1)OVERLAP_F_B",
                                "(0F3;3B1OVERLAP_F_B"}) {
    INFO(std::string(text));
    CHECK(why(text) == reason::bad_token);
  }
  for (std::string_view text :
       {"0F0junk", "0F0 ", "0F0,", "0F0.1.2", "0UNSHARDx", "0UNSHARD ", "(0F3;3B1)OVERLAP_F_B2"}) {
    INFO(std::string(text));
    CHECK(why(text) == reason::trailing_text);
  }
  for (std::string_view text :
       {"2147483648F0", "0F2147483648", "0F0.32768", "99999999999999999999999999F0"}) {
    INFO(std::string(text));
    CHECK(why(text) == reason::out_of_range);
  }
}

TEST_CASE("kinds and slices outside PyTorch's grammar are known as such") {
  int with_form = 0;
  for (int kind = 0; kind < stretto::job_kind_count; ++kind)
    with_form += stretto::has_pytorch_form(static_cast<job_kind>(kind));
  CHECK(with_form == 11);
  CHECK_FALSE(stretto::has_pytorch_form(job_kind::recompute));
  CHECK_FALSE(stretto::has_pytorch_form(job{0, 0, 1, job_kind::forward}));
}

TEST_CASE("a verdict reads as one sentence with everything it holds") {
  CHECK(to_text(stretto::verdict{}) == "ok");
  CHECK(to_text(refuse(fault::unsupported, reason::none)) ==
        "unsupported, and the policy gives no reason");
  CHECK(to_text(refuse(fault::unsupported, reason::chunks_not_one)) ==
        "unsupported: this schedule has one chunk per rank");
  CHECK(to_text(refuse(fault::deadlocked, reason::waits_forever, 1, 0, {1, 1, 0, job_kind::forward},
                       {0, 1, 0, job_kind::forward})) ==
        "rule live broken on rank 1, step 0, job 1F1: it waits for a job that can never run: 0F1");
  auto over = refuse(fault::over_limit, reason::above_limit, 2, 5, {2, 4, 0, job_kind::forward});
  over.amount = 5;
  over.limit = 4;
  CHECK(to_text(over) ==
        "rule bounded broken on rank 2, step 5, job 2F4: memory in use exceeds the rank's limit"
        " (5, at most 4)");
}

TEST_CASE("the longest verdict fits its text") {
  constexpr auto least = std::numeric_limits<std::int32_t>::min();
  const job longest{least, least, std::numeric_limits<std::int16_t>::min(), job_kind::reduce_grad};
  for (int what = 1; what <= static_cast<int>(fault::missharded); ++what)
    for (int why = 0; why < stretto::reason_count; ++why) {
      auto answer = refuse(static_cast<fault>(what), static_cast<reason>(why),
                           std::numeric_limits<int>::max(), std::numeric_limits<int>::max(),
                           longest, longest);
      answer.amount = answer.limit = std::numeric_limits<std::int64_t>::min();
      CHECK_NOTHROW(to_text(answer));
      CHECK(describe(answer.why).empty() == (answer.why == reason::none));
      CHECK_NOTHROW(to_text(longest, longest));
    }
}

}  // namespace
