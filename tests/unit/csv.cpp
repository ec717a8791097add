#include "stretto/plan/csv.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "stretto/check/standstill.hpp"
#include "stretto/schedule/gpipe.hpp"
#include "support/csv_files.hpp"

namespace {

using csv_files::accept;
using csv_files::contents;
using csv_files::files;
using stretto::csv_cells;
using stretto::csv_fault;
using stretto::csv_format;
using stretto::csv_result;
using stretto::fault;
using stretto::job;
using stretto::job_kind;
using stretto::job_lists;
using stretto::job_table;
using stretto::read_csv;
using stretto::reason;
using stretto::write_csv;

TEST_CASE("every file that PyTorch wrote is valid, and is written back byte for byte") {
  const auto good = files("csv");
  CHECK(good.size() == 13);
  for (const auto& path : good) {
    INFO(path.filename().string());
    const std::string text = contents(path);
    const csv_result read = read_csv(text);
    REQUIRE(read.answer.ok());
    const bool messages = path.string().find("compute_comms") != std::string::npos;
    CHECK(read.schedule.format ==
          (messages ? csv_format::compute_comms : csv_format::compute_only));
    CHECK(accept(text).sentence() == "ok");
    std::string written;
    REQUIRE(write_csv(read.schedule.lists.rows(), read.schedule.where(), written).ok());
    if (text.find(",,") == std::string::npos) CHECK(written == text);
    CHECK(accept(written).ok());
  }
}

TEST_CASE("the sentence names row, rank, cell and rule") {
  CHECK(accept("0F0,0B0\n1F0,1X0\n").sentence() ==
        "row 2 (rank 1), cell 2, \"1X0\": syntax: not an action: expected STAGE TYPE [MICROBATCH],"
        " as in 2F0, or of a forward and a backward (2F1;2B0)OVERLAP_F_B");
  CHECK(accept("0F0,0B0,0F1,0B1\n1F1,1B1,1F0,1B0\n").sentence() ==
        "row 1 (rank 0), cell 2, \"0B0\": rule live broken: it waits for a job that can never run:"
        " 1B0");
}

TEST_CASE(
    "a number that is mistyped is named with its cell, whichever it is and whatever it becomes") {
  const std::string good = contents(
      std::filesystem::path(STRETTO_CSV_DIR "/csv/interleaved1f1b_p4_v2_m8_compute_only.csv"));
  //! What is said when `meant` becomes `put`.
  const auto typed = [&](const std::string& meant, const std::string& put) {
    const std::size_t at = good.find("," + meant + ",");
    REQUIRE(at != std::string::npos);
    return accept(std::string(good).replace(at + 1, meant.size(), put)).sentence();
  };
  CHECK(
      typed("4F0", "12F0") ==
      "row 1 (rank 0), cell 5, \"12F0\": rule complete broken, job 8F0: the job is missing, which "
      "this cell asks for");
  CHECK(typed("4F0", "8F0") ==
        "row 1 (rank 0), cell 5, \"8F0\": rule complete broken, job 8F1: the job is missing, which "
        "this cell asks for");
  const auto check = [&](const std::string& meant, const std::string& put) {
    if (put == meant) return;
    INFO(meant, " as ", put, ": ", typed(meant, put));
    CHECK(typed(meant, put).find(", \"" + put + "\": rule ") != std::string::npos);
  };
  for (const std::string meant : {"4F0", "5F3", "7B0", "2B6"}) {
    for (const int stage : {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 2147483647})
      check(meant, std::to_string(stage) + meant.substr(1));
    for (const int microbatch : {0, 1, 4, 7, 8, 9, 15, 2147483647})
      check(meant, meant.substr(0, 2) + std::to_string(microbatch));
  }
}

TEST_CASE("of lists that stand still, the way around of who waits for whom is told") {
  const auto around = [](std::string_view text, int from) {
    const auto read = read_csv(text);
    REQUIRE(read.answer.ok());
    std::string told;
    const job_table table(read.schedule.where().ranks, read.schedule.chunks);
    for (const stretto::verdict& each :
         stretto::check::standstill(read.schedule.input(table.view()), from))
      told += std::to_string(each.rank) + ':' + std::string(to_text(each.where).view()) + '<' +
              std::string(to_text(each.other).view()) + ' ';
    return told;
  };
  CHECK(around("0F0,0B0\n1F0,1B0\n", 0).empty());
  const std::string two = "0F0,0B0,0F1,0B1\n1F1,1B1,1F0,1B0\n";
  CHECK(around(two, 0) == "0:0B0<1B0 1:1F1<0F1 ");
  CHECK(around(two, 1) == "1:1F1<0F1 0:0B0<1B0 ");
  // Rank 2 is not of the circle, but waits for it.
  CHECK(around("0F0,0B0,0F1,0B1\n1F1,1B1,1F0,1B0\n2F0,2B0,2F1,2B1\n", 2) ==
        "2:2F0<1F0 1:1F1<0F1 0:0B0<1B0 ");
  CHECK(around("0F0,0SEND_F0,0F1,0SEND_F1,0RECV_B0,0B0,0RECV_B1,0B1\n"
               "1RECV_F1,1F1,1RECV_F0,1F0,1B0,1SEND_B0,1B1,1SEND_B1\n",
               0) == "0:0SEND_F0<1RECV_F0 1:1RECV_F1<0SEND_F1 ");
  // What is waited for is in no list; what is out of range says nothing of who waits.
  const job_table table(2, 1);
  for (const int stage : {1, 7}) {
    job_lists lists(2, 1);
    stretto::job_sink out = lists.sink();
    out.push(1, {stage, 0, 0, job_kind::forward});
    const stretto::replay_input input{
        .rows = lists.rows(), .where = {.ranks = 2}, .microbatches = 1, .costs = table.view()};
    CHECK(stretto::check::standstill(input, 0).empty());
    CHECK(stretto::check::standstill(input, 1).size() == (stage == 1 ? 1 : 0));
  }
}

TEST_CASE("line ends, spaces and bubbles") {
  const std::string plain = "0F0,0B0\n1F0,1B0\n";
  for (std::string_view same :
       {"0F0,0B0\r\n1F0,1B0\r\n", "0F0,0B0\n1F0,1B0", "0F0,0B0\r\n1F0,1B0\n",
        " 0F0 ,\t0B0\n 1F0,1B0 \n", "0F0,,,0B0\n,1F0,1B0\n", "0F0,0B0,,\r\n,1F0,1B0,\r\n"}) {
    INFO(std::string(same));
    const auto read = read_csv(same);
    REQUIRE(read.answer.ok());
    std::string written;
    REQUIRE(write_csv(read.schedule.lists.rows(), read.schedule.where(), written).ok());
    CHECK(written == "0F0,0B0\r\n1F0,1B0\r\n");
  }
  // Cells count bubbles too.
  const auto late = accept("0F0,,0B0\n,1F0,,1B0,1F0\n");
  CHECK(late.what.why == reason::duplicate);
  CHECK(late.row == 2);
  CHECK(late.cell == 5);
  CHECK(late.sentence() ==
        "row 2 (rank 1), cell 5, \"1F0\": rule complete broken: the job stands here a second time, "
        "the first time in cell 2");
  // A format with communication has no bubbles.
  const auto bubble = accept("0UNSHARD,0F0,,0B0\n");
  CHECK(bubble.what.what == fault::syntax);
  CHECK(bubble.row == 1);
  CHECK(bubble.cell == 3);
}

TEST_CASE("what is no schedule at all is refused, whatever its numbers") {
  const auto broken = [](std::string_view text, fault what, reason why, int row, int cell) {
    INFO(std::string(text.substr(0, 60)));
    const csv_fault found = accept(text);
    CHECK(found.what.what == what);
    CHECK(found.what.why == why);
    CHECK(found.row == row);
    CHECK(found.cell == cell);
  };
  broken("", fault::syntax, reason::empty_row, 0, 0);
  broken("\n", fault::syntax, reason::empty_row, 1, 0);
  broken("0F0,0B0\n\n", fault::syntax, reason::empty_row, 2, 0);
  broken("0F0,0B0\n,,\n", fault::syntax, reason::empty_row, 2, 0);
  CHECK(accept("\"0F0\", \" 0B0 \",\"\"\n").ok());  // as spreadsheets write them
  for (const char* const quoted : {"\"0F0,0B0\n", "\"\"0F0\"\",0B0\n", "\",0B0\n"})
    broken(quoted, fault::syntax, reason::bad_token, 1, 1);
  broken(
      "\xEF\xBB\xBF"
      "0F0,0B0\n",
      fault::syntax, reason::bad_token, 1, 1);
  broken("0F0\r,0B0\n", fault::syntax, reason::trailing_text, 1, 1);
  broken(std::string_view("0F0\0,0B0\n", 9), fault::syntax, reason::trailing_text, 1, 1);
  broken("0F0,0R0,0B0\n", fault::syntax, reason::no_form, 1, 2);
  broken("0F0.1,0B0.1\n", fault::syntax, reason::no_form, 1, 1);
  broken("0F0,0B0\n1UNSHARD,1F0,1B0\n", fault::rendezvous, reason::unexpected_communication, 2, 1);
  broken("0UNSHARD\n", fault::incomplete, reason::missing, 0, 0);
  broken("1F0,1B0\n", fault::incomplete, reason::missing, 1, 1);
  broken("2147483647F0,0F0\n", fault::incomplete, reason::missing, 1, 1);
  broken("0F2147483647,0B2147483647\n", fault::incomplete, reason::missing, 1, 1);
  broken("0B2147483647\n", fault::incomplete, reason::missing, 1, 1);
  broken("0F2147483648\n", fault::syntax, reason::out_of_range, 1, 1);
  broken("0F0,0B0,2147483647SEND_F0\n", fault::incomplete, reason::out_of_range, 1, 3);
  broken("0F0,0B0,0SEND_F2147483647\n", fault::incomplete, reason::out_of_range, 1, 3);
}

TEST_CASE("whatever is done to a file, the answer is a verdict with a place, or a schedule") {
  std::uint32_t seed = 1;
  const auto draw = [&](std::size_t below) {
    seed = seed * 1664525u + 1013904223u;
    return (seed >> 8) % static_cast<std::uint32_t>(below);
  };
  constexpr std::string_view letters = "0123456789FBIWSENDRCV_();,.\r\n \0-";
  int accepted = 0;
  int refused = 0;
  for (const auto& path : files("csv")) {
    const std::string good = contents(path);
    for (int round = 0; round < 120; ++round) {
      std::string text = good;
      for (std::uint32_t change = 0; change <= draw(3); ++change) {
        const std::size_t at = draw(text.size());
        switch (draw(4)) {
          case 0:
            text[at] = letters[draw(letters.size())];
            break;
          case 1:
            text.erase(at, 1 + draw(12));
            break;
          case 2:
            text.insert(at, 1, letters[draw(letters.size())]);
            break;
          default:
            text.insert(at, text.substr(draw(text.size()), draw(12)));
            break;
        }
      }
      const csv_fault found = accept(text);
      (found.ok() ? accepted : refused) += 1;
      CHECK(found.ok() == (found.sentence() == "ok"));
    }
  }
  CHECK(accepted > 0);  // spaces and line ends, mostly
  CHECK(refused > 1000);
}

TEST_CASE("where all may be said, slices, second runs, copies and two directions are read") {
  const auto read = [](std::string_view text) {
    CHECK(read_csv(text).answer.ok() == (text.find_first_of(".RO") == std::string_view::npos));
    const csv_result made = read_csv(text, csv_cells::all);
    REQUIRE_MESSAGE(made.answer.ok(), made.answer.sentence());
    CHECK(accept(text, csv_cells::all).sentence() == "ok");
    std::string written;
    REQUIRE(
        write_csv(made.schedule.lists.rows(), made.schedule.where(), written, csv_cells::all).ok());
    CHECK(written == text);
    return made.schedule;
  };
  const auto plain = read("0F0,0B0\r\n1F0,1B0\r\n");
  CHECK_FALSE(plain.beyond_pytorch);
  CHECK(plain.slices == 1);
  const auto sliced = read("0F0,0F0.1,0F0.2,0B0.2,0B0.1,0B0\r\n");
  CHECK(sliced.beyond_pytorch);
  CHECK(sliced.slices == 3);
  CHECK(sliced.microbatches == 1);
  const auto runs_again = read("0F0,0R0,0B0\r\n");
  CHECK(runs_again.beyond_pytorch);
  CHECK(runs_again.format == csv_format::compute_only);
  const auto copied = read("0F0,0OFFLOAD0,0F1,0B1,0RELOAD0,0B0\r\n");
  CHECK(copied.format == csv_format::compute_only);
  CHECK(copied.beyond_pytorch);
}

TEST_CASE("stages that lie both ways are told from those that lie on a wrong rank") {
  const auto both = [](std::string_view text) {
    const csv_result made = read_csv(text, csv_cells::all);
    return made.answer.ok() && made.schedule.two_directions;
  };
  const std::string two = "0F0,1F1,1B1,0B0\r\n1F0,0F1,1B0,0B1\r\n";
  CHECK(both(two));
  CHECK(accept(two, csv_cells::all).ok());
  CHECK(accept(two).what.why == reason::wrong_rank);
  const csv_result read = read_csv(two, csv_cells::all);
  CHECK(read.schedule.beyond_pytorch);
  CHECK(read.schedule.chunks == 1);
  CHECK(read.schedule.where().chunks == 2);
  CHECK(read.schedule.lies_as() == stretto::placement_kind::bidirectional);
  std::string written;
  REQUIRE(
      write_csv(read.schedule.lists.rows(), read.schedule.where(), written, csv_cells::all).ok());
  CHECK(written == two);
  // Three micro-batches, two of them one way, on three ranks, whose middle has one stage.
  const std::string three =
      "0F0,0F1,2F2,0B0,0B1,2B2\n1F0,1F1,1F2,1B0,1B1,1B2\n2F0,2F1,0F2,2B0,2B1,0B2\n";
  CHECK(both(three));
  CHECK(read_csv(three, csv_cells::all).schedule.stage_to_rank ==
        std::vector<std::int32_t>{0, 1, 2});
  // A number that is mistyped makes no direction of its own.
  const std::string one_way = "0F0,0F1,0B0,0F2,0B1,0F3,0B2,0B3\n1F0,1B0,1F1,1B1,1F2,1B2,1F3,1B3\n";
  CHECK(accept(one_way, csv_cells::all).ok());
  CHECK_FALSE(both(one_way));
  for (std::size_t at = 0; at < one_way.size(); ++at)
    for (const char digit : {'0', '1', '2', '3', '7'}) {
      if (one_way[at] < '0' || one_way[at] > '9' || one_way[at] == digit) continue;
      std::string typed = one_way;
      typed[at] = digit;
      INFO(typed);
      CHECK_FALSE(both(typed));
      CHECK_FALSE(accept(typed, csv_cells::all).ok());
    }
  // Nor is what goes the wrong way, or nowhere, accepted.
  for (const char* wrong :
       {"0F0,1F1,1B1,0B0\n1F0,0F1,1B0\n", "0F1,1F0,1B0,0B1\n1F1,0F0,1B1,0B0\n",
        "0F0,1F1,1B1,0B0,1F2\n1F0,0F1,1B0,0B1\n", "0F0,1F1,1B1,0B0\n1F0,0F1,1B0,0B1,1B1\n"}) {
    INFO(wrong);
    const csv_fault found = accept(wrong, csv_cells::all);
    CHECK(found.what.what == fault::incomplete);
    CHECK(found.row > 0);
  }
  // Every file that is refused stays so, and at the same place.
  for (const auto& path : files("csv_invalid")) {
    INFO(path.filename().string());
    const std::string text = contents(path);
    CHECK(accept(text, csv_cells::all).sentence() == accept(text).sentence());
  }
  for (const auto& path : files("csv")) {
    const csv_result same = read_csv(contents(path), csv_cells::all);
    REQUIRE(same.answer.ok());
    CHECK_FALSE(same.schedule.beyond_pytorch);
  }
}

TEST_CASE("a slice that is mistyped is named with its cell") {
  const std::string good =
      "0F0,0F0.1,0F1,0F1.1,0B0.1,0B0,0B1.1,0B1\n1F0,1F0.1,1B0.1,1B0,1F1,1F1.1,1B1.1,1B1\n";
  REQUIRE(accept(good, csv_cells::all).ok());
  for (const std::string meant : {"0F0.1", "1F1.1", "0B1.1", "1B0.1"})
    for (const std::string slice : {".2", ".3", ".9", ".32767", ""}) {
      std::string typed = good;
      const std::string put = meant.substr(0, 3) + slice;
      typed.replace(typed.find(meant), meant.size(), put);
      const csv_fault found = accept(typed, csv_cells::all);
      INFO(meant, " as ", put, ": ", found.sentence());
      CHECK(found.what.what == fault::incomplete);
      CHECK(found.row == 1 + (meant[0] - '0'));
      if (!slice.empty()) CHECK(found.text == put);
    }
}

TEST_CASE("a wave is found from the rows") {
  const stretto::schedule::gpipe schedule{stretto::placement_kind::wave};
  const stretto::shape sizes{.ranks = 3, .microbatches = 2, .chunks = 2};
  job_lists lists(3, schedule.capacity(sizes));
  auto sink = lists.sink();
  REQUIRE(schedule.emit(sizes, job_table(3, 2).view(), sink).ok());
  const auto where = place(stretto::placement_kind::wave, sizes);
  std::string text;
  REQUIRE(write_csv(lists.rows(), where, text).ok());
  const auto read = read_csv(text);
  REQUIRE(read.answer.ok());
  CHECK(read.schedule.stage_to_rank == std::vector<std::int32_t>{0, 1, 2, 2, 1, 0});
  CHECK(read.schedule.chunks == 2);
  CHECK(read.schedule.microbatches == 2);
  CHECK(read.schedule.where().chunk_of(5, 0) == 1);
}

TEST_CASE("export refuses by name what has no form, and leaves the text alone") {
  const std::int32_t count = 2;
  std::string out = "before";
  const auto refused = [&](const job& second, const stretto::placement& where) {
    const job jobs[] = {{0, 0, 0, job_kind::forward}, second};
    const auto answer = write_csv({jobs, &count, 1, 2}, where, out);
    CHECK(answer.what == fault::unsupported);
    CHECK(out == "before");
    return answer;
  };
  for (const job& work : {job{0, 0, 0, job_kind::recompute}, job{0, 0, 1, job_kind::forward},
                          job{0, 0, 0, job_kind::offload}, job{0, 0, 0, job_kind::optimizer},
                          job{0, 0, 0, job_kind::all_reduce}, job{0, 0, 0, job_kind::end_step}}) {
    const auto answer = refused(work, {});
    CHECK(answer.why == reason::no_form);
    CHECK(answer.step == 1);
    CHECK(answer.where == work);
  }
  CHECK(refused({}, {stretto::placement_kind::bidirectional, 2}).why ==
        reason::placement_not_served);
  for (const job& work : {job{0, 0, 0, job_kind::optimizer}, job{0, 0, 1, job_kind::unshard}}) {
    const std::int32_t one = 1;
    const auto answer = write_csv({&work, &one, 1, 1}, {}, out, csv_cells::all);
    CHECK(answer.why == reason::no_form);
    CHECK(out == "before");
  }
  // Nor gathers of ranks that have no messages and live on them, which nobody would read.
  const job gathers[] = {{0, 0, 0, job_kind::unshard},
                         {0, 0, 0, job_kind::forward},
                         {1, 0, 0, job_kind::unshard},
                         {1, 0, 0, job_kind::forward}};
  const std::int32_t both[] = {2, 2};
  const auto alone = write_csv({gathers, both, 2, 2}, {.ranks = 2}, out);
  CHECK(alone.why == reason::unexpected_communication);
  CHECK(alone.rank == 0);
  CHECK(alone.step == 0);
  CHECK(out == "before");
  std::string one_rank;
  CHECK(write_csv({gathers, both, 1, 2}, {}, one_rank).ok());
  CHECK(one_rank == "0UNSHARD,0F0\r\n");
  // Nor is half a pair written as what it is not.
  for (const int half : {0, 1}) {
    job jobs[] = {{0, 0, 0, job_kind::forward}, {0, 1, 0, job_kind::forward}};
    jobs[0].paired = half == 0;
    jobs[1].paired = true;
    const auto answer = write_csv({jobs, &count, 1, 2}, {}, out);
    CHECK(answer.what == fault::incomplete);
    CHECK(answer.why == reason::not_a_pair);
    CHECK(answer.step == half);
    CHECK(out == "before");
  }
}

}  // namespace
