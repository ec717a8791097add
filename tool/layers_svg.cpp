#include "layers_svg.hpp"

#include <algorithm>
#include <cstdio>
#include <vector>

#include "stretto/plan/svg_layout.hpp"
#include "stretto/plan/svg_palette.hpp"
#include "stretto/plan/svg_style.hpp"

namespace stretto::tool {

namespace {

constexpr double lane = 30;  // from rank to rank
constexpr double high = 24;  // of a bar
constexpr double left = 80;
constexpr double top = 92;
constexpr double plot = 760;             // of the slowest rank
constexpr std::size_t most_title = 120;  // characters: a table of layers can be of any length

using layout = detail::svg_layout;

std::int64_t time_of(const unit_costs& one) {
  return one.both_ways();
}

std::string number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f", value);
  return text;
}

std::string words(double x, double y, const std::string& look, const std::string& what) {
  return "<text x=\"" + number(x) + "\" y=\"" + number(y) + "\" " + look + ">" +
         detail::escape_xml(what) + "</text>\n";
}

std::string cut(const std::string& title) {
  return title.size() <= most_title ? title : title.substr(0, most_title - 3) + "...";
}

std::string upright(double x, double height, const std::string& look) {
  return "<path class=\"" + look + "\" d=\"M" + number(x) + " " + number(top - 4) + "V" +
         number(height) + "\"/>\n";
}

}  // namespace

std::string to_svg(const dealt_layers& dealt, const placement& where, const std::string& title,
                   const std::string& subtitle) {
  const auto range_of = [&](int rank, int chunk) {
    const int stage = where.stage_of(rank, chunk);
    return stage < 0 ? layer_range{} : dealt.stages[static_cast<std::size_t>(stage)];
  };
  const auto visit = [&](int rank, const auto& layer) {
    for (int chunk = 0; chunk < where.chunks; ++chunk) {
      const layer_range held = range_of(rank, chunk);
      for (int at = held.first; at < held.first + held.count; ++at) layer(chunk, at);
    }
  };
  std::int64_t slowest = 1;
  std::int64_t all = 0;
  std::vector<std::string> held;  // by each rank, in words
  double right = 0;
  for (int rank = 0; rank < where.ranks; ++rank) {
    std::int64_t load = 0;
    int count = 0;
    visit(rank, [&](int, int at) {
      load += time_of(dealt.costs[static_cast<std::size_t>(at)]);
      ++count;
    });
    held.push_back(std::to_string(count) + (count == 1 ? " layer, " : " layers, ") +
                   std::to_string(load));
    right = std::max(right, 10 + layout::text_width(held.back(), 12) + 16);
    slowest = std::max(slowest, load);
    all += load;
  }
  const double scale = plot / static_cast<double>(slowest);
  const double width = std::max({left + plot + right, 32 + layout::text_width(cut(title), 16),
                                 32 + layout::text_width(subtitle, 12)});
  const double bottom = top + lane * where.ranks;
  std::string text =
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"" + number(width) + "\" height=\"" +
      number(bottom + 34) + "\" viewBox=\"0 0 " + number(width) + " " + number(bottom + 34) +
      "\" role=\"img\">\n<title>" + detail::escape_xml(title + ": " + subtitle) +
      "</title>\n<style>\n"
      "text{font-family:Helvetica,Arial,sans-serif;font-size:12px;fill:#3c444d}\n"
      ".page{fill:#ffffff}.lane{fill:#e9ecf1}.end{stroke:#c0507a;stroke-width:1.5;fill:none}"
      ".mean{stroke:#6b7480;stroke-width:1.5;stroke-dasharray:5 4;fill:none}"
      ".head{font-size:16px;font-weight:bold;fill:#1b1f24}\n"
      "@media (prefers-color-scheme:dark){text{fill:#c9d1d9}.page{fill:#15181d}"
      ".lane{fill:#2a2f37}.head{fill:#f0f3f6}}\n"
      ".layer{font-size:10px;text-anchor:middle}.dark{fill:#000000}.pale{fill:#ffffff}\n"
      "</style>\n<rect class=\"page\" width=\"100%\" height=\"100%\"/>\n";
  text += words(16, 28, "class=\"head\"", cut(title)) + words(16, 48, "", subtitle);
  // A layer is of no kind of job, so that chunks have all shades of one.
  const detail::palette colours({job_kind::forward}, where.chunks);
  const auto fill_of = [&](int chunk) { return colours.of(job_kind::forward, chunk); };
  double along = 16;
  constexpr int most = 8;  // entries of the legend
  for (int chunk = 0; where.chunks > 1 && chunk < std::min(where.chunks, most); ++chunk) {
    const bool both_ways = where.kind == placement_kind::bidirectional;
    const int each = where.chunks_one_way();
    const std::string name =
        (both_ways ? "direction " + std::to_string(chunk / each) : "") +
        (both_ways && each > 1 ? ", " : "") +
        (!both_ways || each > 1 ? "chunk " + std::to_string(chunk % each) : "") +
        (chunk + 1 == most && where.chunks > most ? " ..." : "");
    text += "<rect x=\"" + number(along) + "\" y=\"61\" width=\"12\" height=\"12\" fill=\"" +
            fill_of(chunk).hex() + "\"/>\n" + words(along + 18, 71, "", name);
    along += 18 + layout::text_width(name, 12) + 14;
  }
  std::string labels;  // above the lines
  for (int rank = 0; rank < where.ranks; ++rank) {
    const double y = top + lane * rank;
    text += words(left - 10, y + 16, "text-anchor=\"end\"", "rank " + std::to_string(rank)) +
            "<rect class=\"lane\" x=\"" + number(left) + "\" y=\"" + number(y) + "\" width=\"" +
            number(plot) + "\" height=\"" + number(high) + "\"/>\n";
    double x = left;
    visit(rank, [&](int chunk, int at) {
      const std::int64_t time = time_of(dealt.costs[static_cast<std::size_t>(at)]);
      const double wide = scale * static_cast<double>(time);
      const detail::colour fill = fill_of(chunk);
      const std::string label = std::to_string(at);
      text += "<rect x=\"" + number(x + 0.5) + "\" y=\"" + number(y) + "\" width=\"" +
              number(std::max(wide - 1, 0.8)) + "\" height=\"" + number(high) + "\" fill=\"" +
              fill.hex() + "\"><title>layer " + label + ", " + std::to_string(time) +
              "</title></rect>\n";
      if (wide > 7.0 * static_cast<double>(label.size()) + 3)
        labels += words(x + wide / 2, y + 16,
                        std::string("class=\"layer ") + detail::ink_on(fill) + "\"", label);
      x += wide;
    });
    text += words(left + plot + 10, y + 16, "", held[static_cast<std::size_t>(rank)]);
  }
  const double mean = left + scale * static_cast<double>(all) / where.ranks;
  text += upright(left + plot, bottom, "end") + upright(mean, bottom, "mean") + labels;
  text +=
      words(left, bottom + 20, "",
            "time of one micro-batch, forwards and backwards; red: the slowest rank; dashed: the "
            "mean of all ranks");
  return text + "</svg>\n";
}

}  // namespace stretto::tool
