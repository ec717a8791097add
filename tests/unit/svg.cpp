#include "stretto/plan/svg.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "stretto/schedule/gpipe.hpp"
#include "stretto/schedule/interleaved.hpp"
#include "stretto/schedule/seq_1f1b.hpp"
#include "stretto/schedule/zb_h1.hpp"

namespace {

using stretto::draw_simulated;
using stretto::job_lists;
using stretto::job_table;
using stretto::timeline_picture;
using stretto::to_svg;

template <class Schedule>
timeline_picture picture(const Schedule& schedule, const stretto::shape& sizes,
                         const stretto::unit_costs& costs, bool memory) {
  job_lists lists(sizes.ranks, schedule.capacity(sizes));
  auto sink = lists.sink();
  const job_table table(sizes.ranks, sizes.chunks, costs);
  REQUIRE(schedule.emit(sizes, table.view(), sink).ok());
  const stretto::replay_input input{.rows = lists.rows(),
                                    .where = place(schedule.placed(), sizes),
                                    .microbatches = sizes.microbatches,
                                    .slices = sizes.slices,
                                    .costs = table.view()};
  std::vector<stretto::rank_report> ranks(static_cast<std::size_t>(sizes.ranks));
  std::vector<stretto::job_time> times(static_cast<std::size_t>(sizes.ranks * lists.rows().stride));
  const auto all = measure(input, ranks, times);
  REQUIRE(all.answer.ok());
  timeline_picture made = draw_simulated(input, all, times, memory);
  made.title = std::string(Schedule::name) + " with a title & <signs> that must be escaped";
  return made;
}

struct box {
  double left, top, right, bottom;
};

double attribute(std::string_view element, std::string_view name) {
  const std::string key = " " + std::string(name) + "=\"";
  const std::size_t at = element.find(key);
  return at == std::string_view::npos
             ? -1
             : std::atof(std::string(element.substr(at + key.size())).c_str());
}

//! Every text of the picture with the space it takes: widths of letters are at most 0.62 em.
std::vector<box> texts(const std::string& svg) {
  std::vector<box> all;
  const std::size_t size_at = svg.find(".mb{font-size:");
  const std::map<std::string, double> sizes{{"head", 16},
                                            {"text", 12},
                                            {"tick", 11},
                                            {"small", 10},
                                            {"key dark", 9},
                                            {"key pale", 9},
                                            {"mb dark", std::atof(svg.c_str() + size_at + 14)},
                                            {"mb pale", std::atof(svg.c_str() + size_at + 14)}};
  for (std::size_t at = svg.find("<text"); at != std::string::npos;
       at = svg.find("<text", at + 1)) {
    const std::size_t close = svg.find('>', at);
    const std::string_view head(svg.data() + at, close - at);
    const std::size_t style = head.find("class=\"") + 7;
    const std::string name(head.substr(style, head.find('"', style) - style));
    const double size = sizes.at(name);
    std::size_t letters = 0;
    bool entity = false;
    for (char letter : svg.substr(close + 1, svg.find("</text>", at) - close - 1)) {
      if (letter == '&') entity = true;
      if (!entity) ++letters;
      if (letter == ';' && entity) {
        entity = false;
        ++letters;
      }
    }
    const double wide = 0.62 * size * static_cast<double>(letters);
    const double x = attribute(head, "x");
    const double y = attribute(head, "y");
    const bool middle = name.starts_with("mb") || name.starts_with("key") ||
                        head.find("\"middle\"") != std::string_view::npos;
    const double left = middle                                           ? x - wide / 2
                        : head.find("\"end\"") != std::string_view::npos ? x - wide
                                                                         : x;
    all.push_back({left, y - 0.75 * size, left + wide, y + 0.25 * size});
  }
  return all;
}

void check_layout(const timeline_picture& drawn) {
  const std::string svg = to_svg(drawn);
  const double width = attribute(svg, "width");
  const double height = attribute(svg, "height");
  CHECK(width > 0);
  auto all = texts(svg);
  CHECK(all.size() > static_cast<std::size_t>(drawn.ranks) + 3);
  int outside = 0;
  int overlaps = 0;
  for (const box& one : all)
    outside += one.left < 0 || one.right > width || one.top < 0 || one.bottom > height;
  std::sort(all.begin(), all.end(), [](const box& a, const box& b) { return a.left < b.left; });
  for (std::size_t a = 0; a < all.size(); ++a)
    for (std::size_t b = a + 1; b < all.size() && all[b].left < all[a].right - 0.05; ++b)
      overlaps += all[b].top < all[a].bottom - 0.05 && all[a].top < all[b].bottom - 0.05;
  CHECK(outside == 0);
  CHECK(overlaps == 0);
}

TEST_CASE("no text leaves the picture or runs into another, whatever the shape and the costs") {
  for (const int ranks : {1, 2, 4, 12})
    for (const int microbatches : {1, 8, 33, 120})
      for (const int chunks : {1, 2, 10})
        for (const std::int64_t unit : {1, 7, 1'000'000'000}) {
          CAPTURE(ranks);
          CAPTURE(microbatches);
          CAPTURE(chunks);
          CAPTURE(unit);
          const stretto::shape sizes{
              .ranks = ranks, .microbatches = microbatches, .chunks = chunks};
          if (ranks * microbatches * chunks > 2000) continue;
          check_layout(picture(stretto::schedule::interleaved{}, sizes,
                               {.forward = unit,
                                .backward_input = unit,
                                .backward_weight = unit,
                                .communication = unit / 3},
                               chunks != 2));
        }
}

TEST_CASE("slices follow the micro-batch, and the labels still fit") {
  for (const int microbatches : {1, 8, 33})
    for (const int slices : {2, 11, 40}) {
      CAPTURE(microbatches);
      CAPTURE(slices);
      const stretto::shape sizes{.ranks = 2, .microbatches = microbatches, .slices = slices};
      check_layout(picture(stretto::schedule::seq_1f1b{}, sizes, {}, true));
    }
  const std::string svg = to_svg(picture(stretto::schedule::seq_1f1b{},
                                         {.ranks = 2, .microbatches = 3, .slices = 2}, {}, false));
  CHECK(svg.find(">2.1</text>") != std::string::npos);
  CHECK(svg.find(">2.0</text>") != std::string::npos);
}

//! Labels of jobs in the picture.
std::ptrdiff_t labels(const std::string& svg) {
  std::ptrdiff_t count = 0;
  for (std::size_t at = svg.find("class=\"mb "); at != std::string::npos;
       at = svg.find("class=\"mb ", at + 1))
    ++count;
  return count;
}

TEST_CASE("a few narrow jobs make a picture no wider, and labels no smaller") {
  const stretto::shape sizes{.ranks = 4, .microbatches = 8};
  const auto drawn = [&](std::int64_t input, std::int64_t weight) {
    const timeline_picture made =
        picture(stretto::schedule::zb_h1{}, sizes,
                {.forward = 20, .backward_input = input, .backward_weight = weight}, false);
    check_layout(made);
    return to_svg(made);
  };
  const std::string alike = drawn(20, 20);
  const std::string narrow = drawn(20, 1);
  CHECK(labels(alike) == 3 * 32);
  CHECK(labels(narrow) == 2 * 32);  // none in what takes 1
  CHECK(attribute(narrow, "width") <= attribute(alike, "width"));
  CHECK(narrow.find(".mb{font-size:11px") != std::string::npos);
  // Half as long is long enough to be read.
  CHECK(labels(drawn(20, 10)) == 3 * 32);
}

TEST_CASE("where not all labels fit, each that does is there, as large as it can be") {
  const stretto::shape sizes{.ranks = 3, .microbatches = 12, .slices = 4};
  const timeline_picture drawn = picture(stretto::schedule::seq_1f1b{}, sizes, {}, false);
  check_layout(drawn);
  const std::string svg = to_svg(drawn);
  // All backwards, of two units; of forwards those of micro-batches of one digit.
  CHECK(labels(svg) == 3 * 4 * (12 + 10));
  CHECK(std::atof(svg.c_str() + svg.find(".mb{font-size:") + 14) > 7);
}

TEST_CASE("the legend shows the colours that jobs have in the picture, and no others") {
  const auto fills_after = [](const std::string& svg, const std::string& before) {
    std::set<std::string> found;
    for (std::size_t at = svg.find(before); at != std::string::npos; at = svg.find(before, at + 1))
      found.insert(svg.substr(at + before.size(), 7));
    return found;
  };
  for (const int chunks : {1, 2, 3}) {
    const std::string svg =
        to_svg(picture(stretto::schedule::interleaved{},
                       {.ranks = 2, .microbatches = 4, .chunks = chunks}, {}, false));
    const std::string style =
        svg.substr(svg.find(".k0c0{"), svg.find("</style>") - svg.find(".k0c0{"));
    const auto jobs = fills_after(style, "{fill:");
    CHECK(jobs.size() == static_cast<std::size_t>(2 * chunks));
    CHECK(fills_after(svg, "height=\"12\" fill=\"") == jobs);
    const bool numbered = svg.find(">numbered by chunk</text>") != std::string::npos;
    CHECK(numbered == (chunks > 1));
  }
}

TEST_CASE("a critical path goes around what follows one another, and from lane to lane") {
  timeline_picture drawn;
  drawn.ranks = 2;
  drawn.end = 10;
  const auto bar = [](int rank, stretto::job_kind kind, std::int64_t start, std::int64_t end) {
    return stretto::picture_bar{rank, 0, {rank, 0, 0, kind}, {start, end}, 0};
  };
  using enum stretto::job_kind;
  drawn.bars = {bar(0, forward, 0, 2), bar(1, forward, 3, 4), bar(1, backward, 4, 6),
                bar(0, backward, 7, 9)};
  CHECK(to_svg(drawn).find("path\"") == std::string::npos);
  drawn.path = drawn.bars;
  const auto lines_of = [](const std::string& svg) {
    const std::string begins = "<path class=\"path\" d=\"";
    const std::size_t at = svg.find(begins);
    REQUIRE(at != std::string::npos);
    const std::string lines = svg.substr(at + begins.size());
    return lines.substr(0, lines.find('"'));
  };
  const auto boxes = [](const std::string& lines) { return std::ranges::count(lines, 'Z'); };
  const auto links = [](const std::string& lines) { return std::ranges::count(lines, 'L'); };
  const std::string svg = to_svg(drawn);
  check_layout(drawn);
  CHECK(svg.find(">critical path</text>") != std::string::npos);
  CHECK(boxes(lines_of(svg)) == 3);  // 1F0 and 1B0 are in one
  CHECK(links(lines_of(svg)) == 2);
  // Beside the jobs: a sum has a lane of its own.
  drawn.sums = {bar(1, reduce_grad, 6, 8)};
  drawn.path = {drawn.bars[0], drawn.bars[1], drawn.bars[2], drawn.sums[0]};
  const std::string beside = to_svg(drawn);
  CHECK(boxes(lines_of(beside)) == 3);
  CHECK(links(lines_of(beside)) == 2);
  CHECK(to_svg(with_lanes_beside(drawn)) == beside);
  CHECK(with_lanes_beside(drawn).path.back().rank == 3);
}

TEST_CASE("a job of no length is left out, an empty picture is still one") {
  const auto drawn = picture(stretto::schedule::gpipe{}, {.ranks = 2, .microbatches = 2},
                             {.forward = 0, .backward_input = 0, .backward_weight = 0}, true);
  CHECK(drawn.bars.empty());
  check_layout(drawn);
  CHECK(to_svg({}).ends_with("</svg>\n"));
}

TEST_CASE("bars stand where the times say, the halves of a pair share a lane") {
  timeline_picture drawn;
  drawn.title = "t";
  drawn.ranks = 1;
  drawn.end = 10;
  drawn.bars = {{0, 0, {0, 1, 0, stretto::job_kind::forward, true}, {2, 6}, 1},
                {0, 0, {0, 0, 0, stretto::job_kind::backward}, {2, 6}, 2}};
  const std::string svg = to_svg(drawn);
  std::vector<box> bars;
  double lane_left = -1;
  double lane_right = -1;
  for (std::size_t at = svg.find("<rect"); at != std::string::npos;
       at = svg.find("<rect", at + 1)) {
    const std::string_view head(svg.data() + at, svg.find('>', at) - at);
    const double x = attribute(head, "x");
    const double y = attribute(head, "y");
    const box here{x, y, x + attribute(head, "width"), y + attribute(head, "height")};
    if (head.find("class=\"k") != std::string_view::npos) bars.push_back(here);
    if (head.find("class=\"lane\"") != std::string_view::npos && here.right - here.left > 100) {
      lane_left = here.left;
      lane_right = here.right;
    }
  }
  REQUIRE(bars.size() == 2);
  const double unit = (lane_right - lane_left) / 10;
  for (const box& bar : bars) {
    CHECK(bar.left == doctest::Approx(lane_left + 2 * unit).epsilon(0.01));
    CHECK(bar.right == doctest::Approx(lane_left + 6 * unit).epsilon(0.01));
  }
  CHECK(bars[0].bottom <= bars[1].top);
  CHECK(svg.find("0F1: 2 to 6") != std::string::npos);
}

TEST_CASE("text in titles cannot break the file") {
  const std::string svg = to_svg(picture(stretto::schedule::gpipe{}, {}, {}, false));
  CHECK(svg.find("title &amp; &lt;signs&gt; that") != std::string::npos);
  CHECK(svg.find("<signs>") == std::string::npos);
}

}  // namespace

TEST_CASE(
    "memory that is given back and taken at once draws no dip, and what is there for no time "
    "counts") {
  const auto steps = [](std::vector<stretto::memory_point> line) {
    timeline_picture made;
    made.ranks = 1;
    made.end = 10;
    made.bars.resize(1);
    made.bars[0].when = {0, 10};
    made.memory = {std::move(line)};
    const std::string svg = to_svg(made);
    const std::size_t at = svg.find("class=\"curve\" d=\"");
    const std::string path = svg.substr(at, svg.find("/>", at) - at);
    const std::size_t peak = svg.find(">peak ") + 6;
    return std::to_string(std::count(path.begin(), path.end(), 'V')) + " peak " +
           svg.substr(peak, svg.find('<', peak) - peak);
  };
  // The last is where the path closes.
  CHECK(steps({{0, 2}}) == "2 peak 2");
  CHECK(steps({{0, 2}, {5, 1}, {5, 2}, {5, 0}, {5, 2}, {8, 1}}) == "4 peak 2");
  CHECK(steps({{0, 2}, {5, 3}, {5, 1}}) == "4 peak 3");
  CHECK(steps({}) == "1 peak 0");
}
