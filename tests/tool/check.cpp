#include <doctest/doctest.h>

#include <sstream>
#include <string>

#include "run_tool.hpp"

namespace {

using tool_tests::outcome;
using tool_tests::run;
using tool_tests::temporary;

TEST_CASE("what the tool writes with messages passes its own check, of every schedule") {
  std::istringstream names(run("list").out);
  const temporary file("lowered.csv");
  int plain = 0;
  int chunked = 0;
  for (std::string line; std::getline(names, line);) {
    const std::string name = line.substr(0, line.find(' '));
    for (const std::string chunks : {"", " --chunks 5"}) {
      INFO(name, chunks);
      const outcome made = run("schedule " + name + " --ranks 4 --microbatches 8 --comms" + chunks +
                               " --format csv -o " + file.path());
      if (made.exit != 0) {
        const bool both_ways = made.err.find("has no form in PyTorch's CSV") != std::string::npos;
        CHECK((both_ways || made.err.find("--chunks 5") != std::string::npos));
        continue;
      }
      const outcome checked = run("check " + file.path());
      INFO(checked.err);
      CHECK(checked.exit == 0);
      CHECK(checked.out.find("compute_comms: ok; rank 0 holds the weights of ") !=
            std::string::npos);
      CHECK(run("check " + file.path() + " --gathered 3").exit == 0);
      ++(chunks.empty() ? plain : chunked);
    }
  }
  CHECK(plain == 23);  // all but two that run both ways
  CHECK(chunked >= 8);
}

TEST_CASE("who waits for whom, to the job that is in no list") {
  const temporary file("lowered.csv");
  REQUIRE(
      run("schedule 1f1b --ranks 3 --microbatches 3 --comms --format csv -o " + file.path()).exit ==
      0);
  std::string text = tool_tests::contents(file.path());
  const auto drop = [&](const std::string& cell) {
    const std::size_t at = text.find(cell + ",");
    REQUIRE(at != std::string::npos);
    text.erase(at, cell.size() + 1);
  };
  drop("1SEND_F1");
  file.write(text);
  const outcome checked = run("check " + file.path());
  CHECK(checked.exit == 1);
  CHECK_MESSAGE(checked.err.find("waits for 1SEND_F1, which is in no list") != std::string::npos,
                checked.err);
}

TEST_CASE("what a job needs of its own rank, or waits for, is told when it is in no list") {
  const temporary file("missing.csv");
  const auto told = [&](const std::string& text) {
    file.write(text);
    return run("check " + file.path()).err;
  };
  const std::string needs = ": it stands before a job of its own rank that it needs: ";
  CHECK(told("0F0,0SEND_F0,0RECV_B0,0B0\n1F0,1B0,1SEND_B0\n") ==
        "stretto: " + file.path() + ": row 2 (rank 1), cell 1, \"1F0\": rule ordered broken" +
            needs + "1RECV_F0, which is in no list\n");
  CHECK(told("0F0,0SEND_F0,0B0,0RECV_B0\n1RECV_F0,1F0,1B0,1SEND_B0\n")
            .ends_with(needs + "0RECV_B0\n"));
  CHECK(told("0F0,0SEND_F0,0RECV_B0,0B0\n1RECV_F0,1F0,1B0\n")
            .ends_with("it waits for a partner that never comes: 1SEND_B0, which is in no list\n"));
}

TEST_CASE("one micro-batch goes but one way: what is out of place is on a wrong rank") {
  const temporary file("swapped.csv");
  file.write("0F0,1B0\n1F0,0B0\n");
  CHECK(run("check " + file.path()).err ==
        "stretto: " + file.path() +
            ": row 1 (rank 0), cell 2, \"1B0\": rule complete broken: the placement puts this "
            "stage on another rank: 1F0\n");
}

TEST_CASE("of two directions a micro-batch goes the one that its number says") {
  const temporary file("other_way.csv");
  file.write(
      "0F0,1F4,1B4,0F1,0B0,1F5,1B5,0F2,0B1,1F6,1B6,0B2,1F7,1B7,1F3,1B3\n"
      "0F4,1F0,1B0,0F5,0B4,1F1,1B1,0F6,0B5,1F2,1B2,0F7,0B6,0B7,0F3,0B3\n");
  CHECK(run("check " + file.path()).err ==
        "stretto: " + file.path() +
            ": row 1 (rank 0), cell 15, \"1F3\": rule complete broken: of two directions, the "
            "second half of the micro-batches goes from the last rank to the first: the job lies "
            "on the other rank of its stage's two\n");
}

TEST_CASE("who asks for a micro-batch or slice that others hardly have is named, in whatever row") {
  const temporary file("asked.csv");
  const auto told = [&](const std::string& text) {
    file.write(text);
    const std::string err = run("check " + file.path()).err;
    return err.substr(err.find(": ", 10) + 2);
  };
  const std::string asks = ": the job is missing, which this cell asks for\n";
  CHECK(told(tool_tests::contents(STRETTO_CSV_DIR "/csv_invalid/torch_1f1b_ir_last_rank.csv")) ==
        "row 2 (rank 1), cell 3, \"1F2\": rule complete broken, job 0F2" + asks);
  CHECK(told("0F0,0F1,0F2,0I0,0W0,0I1,0W1\n1F0,1I0,1F1,1W0,1I1,1W1\n") ==
        "row 1 (rank 0), cell 3, \"0F2\": rule complete broken, job 1F2" + asks);
  CHECK(told("0F0,0F0.1,0F1,0F1.1,0B0.1,0B0,0B1.1,0B1\n"
             "1F0,1F0.1,1F1.2,1F1.1,1F1,1F0.2,1B0.1,1B0\n") ==
        "row 2 (rank 1), cell 3, \"1F1.2\": rule complete broken, job 0F0.2" + asks);
  // As many jobs of it are there as not: then what is missing is told with its own row.
  CHECK(told("0F0,0F1,0B0,0B1\n1F0,1B0\n") ==
        "row 2 (rank 1): rule complete broken, job 1F1: the job is missing\n");
  CHECK(told("0F0,0F1,0F2,0F3\n1F0,1F1,1F2\n") ==
        "row 2 (rank 1): rule complete broken, job 1F3: the job is missing\n");
}

TEST_CASE("who waits for whom all the way around, or for eight ranks") {
  const temporary file("around.csv");
  for (const int ranks : {2, 9, 10}) {
    // Each rank begins with its second stage, which the stage before it has to go ahead of.
    std::string text, said;
    for (int rank = 0; rank < ranks; ++rank)
      text += std::to_string(ranks + rank) + "F0," + std::to_string(rank) + "F0\n";
    for (int rank = ranks - 1; rank > 0 && rank > ranks - 9; --rank)
      said += "; rank " + std::to_string(rank) + " stands at " + std::to_string(ranks + rank) +
              "F0, which waits for " + std::to_string(ranks + rank - 1) + "F0";
    if (ranks == 10) said += "; and so on, 10 ranks";
    file.write(text);
    const outcome checked = run("check " + file.path());
    CHECK(checked.exit == 1);
    CHECK_MESSAGE(
        checked.err.ends_with("can never run: " + std::to_string(ranks - 1) + "F0" + said + "\n"),
        checked.err);
  }
  // The first of a pair is in its list, too.
  file.write(
      "0F0,0F1,2F1,(2F0;2B1)OVERLAP_F_B,2B0,0B1,0B0\n"
      "1F0,3F0,1F1,3F1,3B1,3B0,1B1,1B0\n");
  const outcome checked = run("check " + file.path());
  CHECK_MESSAGE(checked.err.ends_with("; rank 1 stands at 3F0, which waits for 2F0\n"),
                checked.err);
}

TEST_CASE("where weights are gathered and gradients reduced: what is wrong, with its cell") {
  const std::string dir = STRETTO_CSV_DIR "/csv_invalid/";
  const struct {
    const char* file;
    const char* says;
  } cases[] = {
      {"dropped_before_forward.csv",
       "row 1 (rank 0), cell 4, \"0F0\": rule sharded broken: the weights of its stage are not "
       "gathered here"},
      {"gathered_on_one_rank.csv",
       "row 1 (rank 0), cell 1, \"0F0\": rule sharded broken: the weights of its stage are not "
       "gathered here"},
      {"dropped_twice.csv",
       "row 2 (rank 1), cell 12, \"1RESHARD\": rule sharded broken: the weights of its stage are "
       "not gathered here"},
      {"gathered_for_reduced.csv",
       "row 1 (rank 0), cell 45, \"0UNSHARD\": rule sharded broken: the weights of its stage are "
       "gathered already"},
      {"never_dropped.csv",
       "row 2 (rank 1), cell 1, \"1UNSHARD\": rule sharded broken: the weights that it gathers are "
       "never dropped"},
      {"not_reduced.csv",
       "row 1 (rank 0), cell 44, \"0B3\": rule sharded broken, job 0REDUCE_GRAD: the job is "
       "missing, which this cell asks for"},
      {"reduced_twice.csv",
       "row 1 (rank 0), cell 11, \"0REDUCE_GRAD\": rule sharded broken: the job stands here a "
       "second time, the first time in cell 10"},
      {"reduced_before_backward.csv",
       "row 1 (rank 0), cell 9, \"0REDUCE_GRAD\": rule ordered broken: it stands before a job of "
       "its own rank that it needs: 0B1"},
      {"reduced_without_backward.csv",
       "row 2 (rank 1), cell 7, \"1REDUCE_GRAD\": rule sharded broken: its stage has no gradients "
       "to reduce"}};
  for (const auto& one : cases)
    CHECK(run("check " + dir + one.file).err ==
          "stretto: " + dir + one.file + ": " + one.says + "\n");
}

TEST_CASE("how a file lays stages over ranks is told where there is more than one way") {
  const temporary file("laid.csv");
  const auto check = [&](const std::string& text) {
    file.write(text);
    return run("check " + file.path()).out;
  };
  CHECK(check("0F0,2F0,2B0,0B0\n1F0,3F0,3B0,1B0\n")
            .ends_with("4 stages, looped, compute_only: ok\n"));
  CHECK(
      check("0F0,3F0,3B0,0B0\n1F0,2F0,2B0,1B0\n").ends_with("4 stages, wave, compute_only: ok\n"));
  CHECK(check("0F0,1F0,1B0,0B0\n2F0,3F0,3B0,2B0\n")
            .ends_with("4 stages, neither looped nor wave, compute_only: ok\n"));
  CHECK(check("1F0,1B0\n0F0,0B0\n")
            .ends_with("2 stages, neither looped nor wave, compute_only: ok\n"));
  CHECK(check("0F0,0B0\n1F0,1B0\n").ends_with("2 stages, compute_only: ok\n"));
}

TEST_CASE("of how many stages a rank holds the weights, if a file says so at all") {
  const temporary file("mine.csv");
  const auto check = [&](const std::string& text, const std::string& options) {
    file.write(text);
    return run("check " + file.path() + options);
  };
  const std::string ok = "mine.csv: 1 rank, 1 micro-batch, 2 chunks, 2 stages, compute_comms: ok";
  // Both at once, and one at a time.
  const std::string both =
      "0UNSHARD,1UNSHARD,0F0,1F0,1B0,1REDUCE_GRAD,1RESHARD,0B0,0REDUCE_GRAD,0RESHARD\n";
  const std::string each =
      "0UNSHARD,0F0,0RESHARD,1UNSHARD,1F0,1B0,1RESHARD,0UNSHARD,0B0,0RESHARD\n";
  CHECK(check(both, "").out.ends_with(
      ok + "; rank 0 holds the weights of 2 stages at once, and no rank of more\n"));
  CHECK(check(each, " --gathered 1")
            .out.ends_with(ok +
                           "; rank 0 holds the weights of 1 stage at once, and no rank of more\n"));
  const outcome above = check(both, " --gathered 1");
  CHECK(above.exit == 1);
  CHECK(above.err ==
        "stretto: " + file.path() +
            ": row 1 (rank 0), cell 2, \"1UNSHARD\": rule sharded broken: the rank holds the "
            "weights of more stages at once than it may (2, at most 1)\n");
  CHECK(
      check("0UNSHARD,0F0,0SEND_F0,0RESHARD\n"
            "1UNSHARD,2UNSHARD,1RECV_F0,1F0,2F0,1RESHARD,2RESHARD\n",
            "")
          .out.ends_with("; rank 1 holds the weights of 2 stages at once, and no rank of more\n"));
  // Gradients alone, or neither.
  for (const std::string plain :
       {"0F0,1F0,1B0,1REDUCE_GRAD,0B0,0REDUCE_GRAD\n", "0F0,1F0,1B0,0B0\n"}) {
    CHECK(check(plain, "").out.ends_with(": ok\n"));
    const outcome idle = check(plain, " --gathered 2");
    CHECK(idle.exit == 2);
    CHECK(idle.err == "stretto: --gathered 2: " + file.path() + " gathers no weights (UNSHARD)\n");
  }
  CHECK(check(both, " --gathered 0").exit == 2);
}

}  // namespace

TEST_CASE("what a job needs is named as the lists have it, whole or split") {
  const temporary file("needs.csv");
  const auto told = [&](const std::string& text) {
    file.write(text);
    const outcome ran = run("check " + file.path());
    CHECK(ran.exit == 1);
    return ran.err;
  };
  CHECK(
      told("0F0,0SEND_F0,0RECV_B0,0I0,0W0\n1RECV_F0,1F0,1SEND_B0,1I0,1W0\n").find("needs: 1I0\n") !=
      std::string::npos);
  CHECK(told("0F0,1F0,0I0,0W0,1B0\n").find("needs: 1B0\n") != std::string::npos);
  CHECK(told("0F0,0I0,0F1,0W0,0I1,0W1\n1F0,1F1,1B0,1B1\n").find("never run: 1B0") !=
        std::string::npos);
  CHECK(told("0F0,0B0,0F1,0B1\n1F0,1F1,1I0,1W0,1I1,1W1\n").find("never run: 1I0") !=
        std::string::npos);
}
