#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>

#include "stretto/model/job_text.hpp"
#include "stretto/plan/picture.hpp"
#include "stretto/plan/svg_layout.hpp"
#include "stretto/plan/svg_style.hpp"

namespace stretto {

namespace detail {

//! Writes a picture as it is laid out.
class svg_writer {
 public:
  explicit svg_writer(const timeline_picture& picture) : in_(picture), at_(picture) {}

  std::string write() {
    open();
    legend();
    for (int lane = 0; lane < in_.ranks; ++lane) ground(lane);
    for (const picture_bar& bar : in_.bars) draw(bar);
    path();
    for (int rank = 0; rank < static_cast<int>(in_.memory.size()); ++rank) curve(rank);
    axis();
    return text_ + "</svg>\n";
  }

 private:
  static std::string number(double value) {
    char text[32];
    std::snprintf(text, sizeof text, "%.2f", value);
    std::string trimmed = text;
    while (trimmed.back() == '0') trimmed.pop_back();
    if (trimmed.back() == '.') trimmed.pop_back();
    return trimmed;
  }

  void open() {
    text_ += "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"" + number(at_.width) +
             "\" height=\"" + number(at_.height) + "\" viewBox=\"0 0 " + number(at_.width) + " " +
             number(at_.height) + "\" role=\"img\">\n<title>" + escape_xml(in_.title) + ": " +
             escape_xml(in_.subtitle) + "</title>\n<style>\n" + style() + "</style>\n";
    text_ += "<rect class=\"page\" width=\"100%\" height=\"100%\"/>\n";
    words(16, 28, "head", in_.title);
    words(16, 48, "text", in_.subtitle);
  }

  std::string style() const {
    std::string css =
        "text{font-family:Helvetica,Arial,sans-serif}\n"
        ".page{fill:#ffffff}.lane{fill:#e9ecf1}.line{stroke:#9aa3af;stroke-width:1}"
        ".head{font-size:16px;font-weight:bold;fill:#1b1f24}.text{font-size:12px;fill:#3c444d}"
        ".tick{font-size:11px;fill:#57606a}.small{font-size:10px;fill:#57606a}"
        ".curve{fill:#c0507a;fill-opacity:.35;stroke:#c0507a;stroke-width:1}\n"
        "@media (prefers-color-scheme:dark){.page{fill:#15181d}.lane{fill:#2a2f37}"
        ".line{stroke:#6b7480}.head{fill:#f0f3f6}.text{fill:#c9d1d9}.tick,.small{fill:#a9b2bc}}\n";
    css += ".mb{font-size:" + number(at_.font) +
           "px;text-anchor:middle}.key{font-size:9px;text-anchor:middle}"
           ".dark{fill:#000000}.pale{fill:#ffffff}\n";
    if (!in_.path.empty())
      css +=
          ".halo{fill:none;stroke:#ffffff;stroke-width:4}.path{fill:none;stroke:#d40000;"
          "stroke-width:2}\n";
    if (!in_.lanes.empty())
      css +=
          ".stream{font-size:9px;fill:#57606a}"
          "@media (prefers-color-scheme:dark){.stream{fill:#a9b2bc}}\n";
    for (const auto& [kind, there] : at_.chunks_of)
      for (int chunk : there)
        css.append(".")
            .append(fill_class(kind, chunk))
            .append("{fill:")
            .append(at_.colour_of(kind, chunk).hex() + "}");
    return css + "\n";
  }
  static std::string fill_class(job_kind kind, int chunk) {
    std::string name = "k";  // gcc 12 sees an overflow in "k" + std::string
    return name.append(std::to_string(static_cast<int>(kind)))
        .append("c")
        .append(std::to_string(chunk));
  }

  void words(double x, double y, std::string_view style_class, std::string_view what,
             std::string_view anchor = "") {
    text_ += "<text x=\"" + number(x) + "\" y=\"" + number(y) + "\" class=\"" +
             std::string(style_class) + "\"";
    if (!anchor.empty()) text_ += " text-anchor=\"" + std::string(anchor) + "\"";
    text_ += ">" + escape_xml(what) + "</text>\n";
  }
  void box(double x, double y, double wide, double high, const std::string& attribute) {
    text_ += "<rect x=\"" + number(x) + "\" y=\"" + number(y) + "\" width=\"" + number(wide) +
             "\" height=\"" + number(high) + "\" " + attribute;
  }

  void legend() {
    double x = 16;
    double y = 66;
    for (const svg_layout::entry& one : at_.entries) {
      if (at_.breaks_line(x, one)) {
        x = 16;
        y += 20;
      }
      double along = x;
      for (const svg_layout::entry::box& each : one.boxes) {
        box(along, y - 9, svg_layout::swatch, 12, each.look + "/>\n");
        if (!each.words.empty())
          words(along + svg_layout::swatch / 2, y + 0.5, std::string("key ") + each.ink,
                each.words);
        along += svg_layout::swatch;
      }
      words(x + one.indent(), y + 1, "text", one.words);
      x += one.width();
    }
  }

  void ground(int lane) {
    const std::string name = in_.lanes.empty() ? "rank " + std::to_string(lane)
                                               : in_.lanes[static_cast<std::size_t>(lane)].name;
    const double high = at_.height_of(lane);
    const bool narrow = at_.is_narrow(lane);
    words(at_.left - 8, at_.y_of(lane) + high / 2 + (narrow ? 3 : 4), narrow ? "stream" : "text",
          name, "end");
    box(at_.left, at_.y_of(lane), at_.plot, high, "class=\"lane\"/>\n");
  }

  void draw(const picture_bar& bar) {
    const double x = at_.x_of(bar.when.start);
    const double wide = at_.x_of(bar.when.end) - x;
    const double high = bar.half == 0 ? at_.height_of(bar.rank) : svg_layout::lane_height / 2;
    const double y = at_.y_of(bar.rank) + (bar.half == 2 ? high : 0);
    const double gap = std::min(1.0, wide / 5);
    text_ += "<g>";
    box(x + gap / 2, y + 0.5, wide - gap, high - 1,
        "rx=\"1.5\" class=\"" + fill_class(bar.what.kind, bar.chunk) + "\"><title>" +
            std::string(to_text(bar.what).view()) + ": " + in_units(bar.when.start, in_.parts) +
            " to " + in_units(bar.when.end, in_.parts) + "</title></rect>");
    if (at_.is_labelled(bar) && at_.fits(bar))
      words(x + wide / 2, y + high / 2 + 3.5,
            std::string("mb ") + ink_on(at_.colour_of(bar.what.kind, bar.chunk)),
            at_.label(bar.what));
    text_ += "</g>\n";
  }

  //! Around all that follow one another on a lane, and from lane to lane; on a lighter line, to be
  //! seen on any colour.
  void path() {
    std::string lines;
    for (std::size_t at = 0; at < in_.path.size();) {
      const picture_bar& first = in_.path[at];
      std::int64_t end = first.when.end;
      for (++at; at < in_.path.size(); end = in_.path[at++].when.end)
        if (in_.path[at].rank != first.rank || in_.path[at].when.start != end) break;
      const double x = at_.x_of(first.when.start);
      const double y = at_.y_of(first.rank);
      const double high = at_.height_of(first.rank);
      const double right = at_.x_of(end);
      lines += "M" + number(x) + " " + number(y) + "H" + number(right) + "v" + number(high) + "H" +
               number(x) + "Z";
      if (at == in_.path.size()) break;
      // From where the one ends, to where the next one starts: of its lane the nearer edge.
      const picture_bar& next = in_.path[at];
      const double there = at_.y_of(next.rank);
      const bool down = next.rank > first.rank;
      const double from = next.rank == first.rank ? y + high / 2 : down ? y + high : y;
      const double to = next.rank == first.rank ? y + high / 2
                        : down                  ? there
                                                : there + at_.height_of(next.rank);
      lines += "M" + number(right) + " " + number(from) + "L" + number(at_.x_of(next.when.start)) +
               " " + number(to);
    }
    if (lines.empty()) return;
    text_ +=
        "<path class=\"halo\" d=\"" + lines + "\"/>\n<path class=\"path\" d=\"" + lines + "\"/>\n";
  }

  void curve(int rank) {
    const auto& line = in_.memory[static_cast<std::size_t>(rank)];
    const double floor = at_.floor_of(rank);
    std::string path = "M" + number(at_.left) + " " + number(floor);
    std::int64_t peak = line.empty() ? 0 : line.front().level;
    const auto rise = [&](std::int64_t level) { path += "V" + number(floor - at_.rise_of(level)); };
    std::int64_t before = 0;
    for (std::size_t at = 0; at < line.size();) {
      const std::int64_t time = line[at].time;
      std::int64_t most = line[at].level, level = most;
      for (; at < line.size() && line[at].time == time; ++at)
        level = line[at].level, most = std::max(most, level);
      path += "H" + number(at_.x_of(time));
      // What is gone and back at once is no dip; what is there for no time counts.
      if (most > std::max(before, level)) rise(most);
      rise(level);
      peak = std::max(peak, most);
      before = level;
    }
    path += "H" + number(at_.left + at_.plot) + "V" + number(floor) + "Z";
    text_ += "<path class=\"curve\" d=\"" + path + "\"/>\n";
    words(at_.left + at_.plot + 8, floor - at_.strip / 2 + 4, "small",
          "peak " + std::to_string(peak));
  }

  void axis() {
    const double y = at_.bottom + 2;
    text_ += "<path class=\"line\" fill=\"none\" d=\"M" + number(at_.left) + " " + number(y) + "H" +
             number(at_.left + at_.plot);
    const std::int64_t end = in_.end / in_.parts;
    const std::int64_t distance =
        tick_distance(at_.scale * static_cast<double>(in_.parts),
                      svg_layout::text_width(std::to_string(end), 11) + 16);
    for (std::int64_t at = 0; at <= end; at += distance)
      text_ += "M" + number(at_.x_of(at * in_.parts)) + " " + number(y) + "v5";
    text_ += "\"/>\n";
    for (std::int64_t at = 0; at <= end; at += distance)
      words(at_.x_of(at * in_.parts), y + 17, "tick", std::to_string(at), "middle");
    words(at_.left, y + 34, "tick", in_.unit.empty() ? "time" : "time, " + in_.unit);
  }

  const timeline_picture& in_;
  svg_layout at_;
  std::string text_;
};

}  // namespace detail

//! Draws a timeline: one lane per rank, jobs as bars, colour by kind and chunk (svg_palette.hpp),
//! the micro-batch (and slice) inside where it fits, the lane's ground where the rank is idle;
//! below a lane what is beside its jobs (copies to the host and back, sums of gradients, gathers of
//! weights) and its memory, if there; the critical path outlined. Follows the reader's light or
//! dark theme. Needs no font file or script.
inline std::string to_svg(const timeline_picture& picture) {
  for (const beside_jobs& one : all_beside_jobs)
    if (!(picture.*one.bars).empty()) return detail::svg_writer(with_lanes_beside(picture)).write();
  return detail::svg_writer(picture).write();
}

}  // namespace stretto
