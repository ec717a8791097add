// Our orders against those of other systems, entry by entry. Each file says where its own are from.
#include <doctest/doctest.h>

#include <algorithm>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "laws/order_laws.hpp"
#include "stretto/schedule/all.hpp"
#include "stretto/schedule/any.hpp"

namespace {

using stretto::reason;
using stretto::shape;
using namespace stretto::schedule;

//! One entry of a golden file: which schedule, under which options, and its rows; or that the other
//! system turns the shape down.
struct entry {
  int line = 0;  //!< of the header, from 1
  std::string schedule;
  shape sizes{};
  int group = -1;         //!< -1: the header does not say
  std::string remainder;  //!< empty: the header does not say
  std::string warmup;
  std::string backwards;
  std::string split;
  std::string placement;
  bool refused = false;
  std::vector<std::vector<stretto::job>> rows;
};

[[noreturn]] void fail_at(const std::string& file, int line, const std::string& what) {
  throw std::runtime_error(file + ":" + std::to_string(line) + ": " + what);
}

entry read_header(const std::string& file, int line, const std::string& text) {
  entry read;
  read.line = line;
  std::istringstream words(text);
  words >> read.schedule;
  for (std::string word; !read.refused && words >> word;) {
    const auto equals = word.find('=');
    const std::string key = word.substr(0, equals);
    const std::string value = equals == std::string::npos ? "" : word.substr(equals + 1);
    if (key == "refused:")
      read.refused = true;  // the rest is the other system's sentence
    else if (key == "p")
      read.sizes.ranks = std::stoi(value);
    else if (key == "m")
      read.sizes.microbatches = std::stoi(value);
    else if (key == "v")
      read.sizes.chunks = std::stoi(value);
    else if (key == "k")
      read.sizes.slices = std::stoi(value);
    else if (key == "group")
      read.group = std::stoi(value);
    else if (key == "remainder")
      read.remainder = value;
    else if (key == "warmup")
      read.warmup = value;
    else if (key == "backwards")
      read.backwards = value;
    else if (key == "split")
      read.split = value;
    else if (key == "placement")
      read.placement = value;
    else
      fail_at(file, line, "unknown word " + word);
  }
  return read;
}

//! The jobs of a row, of which some are marked as pairs.
std::vector<stretto::job> read_row(const std::string& file, int line, const std::string& text) {
  std::vector<stretto::job> row;
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    const auto action = stretto::parse_action(word);
    if (!action.answer) fail_at(file, line, "not an action: " + word);
    for (const stretto::job& work : action.jobs) row.push_back(work);
  }
  return row;
}

std::vector<entry> read_file(const std::string& file) {
  std::ifstream in(std::string(STRETTO_GOLDEN_DIR) + "/" + file);
  if (!in) throw std::runtime_error(file + ": cannot be opened");
  std::vector<entry> entries;
  int line = 0;
  const auto next = [&](std::string& text) {
    while (std::getline(in, text)) {
      ++line;
      if (!text.empty() && text.front() != '#') return true;
    }
    return false;
  };
  for (std::string text; next(text);) {
    entry read = read_header(file, line, text);
    for (int rank = 0; !read.refused && rank < read.sizes.ranks; ++rank) {
      if (!next(text)) fail_at(file, line, "a row is missing");
      read.rows.push_back(read_row(file, line, text));
    }
    entries.push_back(read);
  }
  return entries;
}

//! Sets the options that the header asks for; false when the schedule has no such option or value.
template <class Schedule>
bool set_options(const entry& asked, Schedule& schedule) {
  if (asked.group >= 0) {
    if constexpr (requires { schedule.group; })
      schedule.group = asked.group;
    else
      return false;
  }
  if (!asked.remainder.empty()) {
    if constexpr (requires { schedule.remainder; })
      schedule.remainder = asked.remainder == "last" ? remainder_kind::last : remainder_kind::first;
    else
      return false;
  }
  if (!asked.warmup.empty()) {
    if constexpr (requires { schedule.warmup; })
      schedule.warmup = asked.warmup == "all"    ? warmup_kind::all
                        : asked.warmup == "half" ? warmup_kind::half
                                                 : warmup_kind::paired;
    else
      return false;
  }
  if (!asked.backwards.empty()) {
    if constexpr (requires { schedule.backwards; })
      schedule.backwards = backwards_kind::early;
    else
      return false;
  }
  if (!asked.split.empty()) {
    if constexpr (requires { schedule.split; })
      schedule.split = asked.split == "partial" ? split_kind::partial : split_kind::full;
    else
      return false;
  }
  if (!asked.placement.empty()) {
    if constexpr (requires { schedule.placement; })
      schedule.placement = stretto::placement_kind::bidirectional;
    else
      return false;
  }
  return (asked.placement.empty() || asked.placement == "bidirectional") &&
         (asked.split.empty() || asked.split == "partial") &&
         (asked.remainder.empty() || asked.remainder == "last" || asked.remainder == "first") &&
         (asked.backwards.empty() || asked.backwards == "early") &&
         (asked.warmup.empty() || asked.warmup == "all" || asked.warmup == "half" ||
          asked.warmup == "paired");
}

//! Where the orders first differ; empty when they do not.
std::string difference(const entry& theirs, const stretto::job_rows& ours) {
  for (int rank = 0; rank < ours.ranks; ++rank) {
    const auto& row = theirs.rows[static_cast<std::size_t>(rank)];
    const auto mine = ours.row(rank);
    const std::string place = "rank " + std::to_string(rank) + " step ";
    for (std::size_t step = 0; step < row.size() && step < mine.size(); ++step)
      if (!(row[step] == mine[step]))
        return place + std::to_string(step) + ": theirs " +
               std::string(stretto::to_text(row[step]).view()) + ", ours " +
               std::string(stretto::to_text(mine[step]).view());
    if (row.size() != mine.size())
      return place + std::to_string(std::min(row.size(), mine.size())) + ": theirs has " +
             std::to_string(row.size()) + " jobs, ours " + std::to_string(mine.size());
  }
  return "";
}

struct tally {
  int compared = 0;     //!< equal, job by job
  int served = 0;       //!< turned down there, served and valid here
  int meaningless = 0;  //!< turned down by both: more micro-batches a group than there are
};

void compare(const entry& theirs, const any& schedule, tally& seen) {
  const auto answer = schedule.supports(theirs.sizes);
  if (theirs.refused && answer.why == reason::group_above_microbatches) {
    ++seen.meaningless;
    return;
  }
  REQUIRE(answer.ok());
  CHECK(laws::broken_law(schedule, theirs.sizes) == "");
  if (theirs.refused) {
    ++seen.served;
    return;
  }
  CHECK(difference(theirs, laws::emitted(schedule, theirs.sizes).rows()) == "");
  ++seen.compared;
}

tally compare_file(const std::string& file) {
  const auto entries = read_file(file);
  REQUIRE(!entries.empty());
  tally seen;
  for (const entry& theirs : entries) {
    INFO(file, ":", theirs.line);
    bool known = false;
    all::for_each([&](auto schedule) {
      if (schedule.name != std::string_view(theirs.schedule)) return;
      known = true;
      REQUIRE(set_options(theirs, schedule));
      compare(theirs, schedule, seen);
    });
    CHECK(known);
  }
  MESSAGE(file, ": ", seen.compared, " orders equal, ", seen.served,
          " shapes served that it refuses, ", seen.meaningless, " refused by both");
  return seen;
}

}  // namespace

TEST_CASE("the orders of Paddle, PyTorch, Megatron-LM, DeepSpeed and of papers' authors") {
  struct expectation {
    const char* file;
    tally counts;
  };
  const expectation files[] = {
      {"paddle_fthenb.txt", {37, 0, 0}},
      {"paddle_1f1b.txt", {37, 4, 0}},
      {"paddle_vpp_dyn.txt", {111, 0, 0}},
      {"paddle_vpp_static.txt", {69, 54, 0}},
      {"paddle_vpp_unbalanced.txt", {31, 0, 0}},
      {"paddle_vpp_overlap.txt", {15, 0, 0}},
      {"paddle_vpp_balanced_memory.txt", {9, 0, 0}},
      {"pytorch.txt", {126, 17, 0}},
      {"megatron.txt", {149, 85, 34}},
      {"deepspeed.txt", {50, 0, 0}},
      {"paddle_eager_1f1b.txt", {30, 7, 0}},
      {"paddle_zb_h1.txt", {37, 4, 0}},
      {"pytorch_zero_bubble.txt", {194, 12, 0}},
      {"zero_bubble.txt", {21, 0, 0}},
      {"zbv.txt", {42, 0, 0}},
      {"v_1f1b.txt", {12, 0, 0}},
      {"seq_1f1b.txt", {24, 0, 0}},
      {"dualpipe.txt", {35, 0, 0}},
      {"bitpipe.txt", {4, 0, 0}},
  };
  for (const auto& [file, expected] : files) {
    const tally seen = compare_file(file);
    CHECK(seen.compared == expected.compared);
    CHECK(seen.served == expected.served);
    CHECK(seen.meaningless == expected.meaningless);
  }
}

TEST_CASE("the comparison itself: a changed order, a missing file and a bad word are seen") {
  auto entries = read_file("paddle_1f1b.txt");
  const auto found = std::find_if(entries.begin(), entries.end(), [](const entry& one) {
    return !one.refused && one.sizes.ranks == 4;
  });
  REQUIRE(found != entries.end());
  const auto ours = laws::emitted(one_f_one_b{}, found->sizes);
  CHECK(difference(*found, ours.rows()) == "");
  entry changed = *found;
  std::swap(changed.rows[1][0], changed.rows[1][1]);
  CHECK(difference(changed, ours.rows()) == "rank 1 step 0: theirs 1F1, ours 1F0");
  changed = *found;
  changed.rows[2].pop_back();
  CHECK(difference(changed, ours.rows()) != "");
  changed = *found;
  changed.rows[0][3].paired = true;
  CHECK(difference(changed, ours.rows()) != "");
  CHECK_THROWS_AS(read_file("no_such_file.txt"), std::runtime_error);
  CHECK_THROWS_AS(read_header("-", 1, "gpipe p=2 q=3"), std::runtime_error);
  CHECK_THROWS_AS(read_row("-", 1, "0F0 0F1x"), std::runtime_error);
}
