#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "stretto/model/job_text.hpp"
#include "stretto/plan/picture.hpp"
#include "stretto/plan/svg_style.hpp"

namespace stretto {

namespace detail {

//! Lays a picture out and writes it.
class svg_writer {
 public:
  explicit svg_writer(const timeline_picture& picture) : in_(picture) { lay_out(); }

  std::string write() {
    open();
    legend();
    for (int rank = 0; rank < in_.ranks; ++rank) lane(rank);
    for (const picture_bar& bar : in_.bars) draw(bar);
    for (int rank = 0; rank < static_cast<int>(in_.memory.size()); ++rank) curve(rank);
    axis();
    return text_ + "</svg>\n";
  }

 private:
  static constexpr double lane_height = 26;
  static constexpr double narrow_height = 9;
  static constexpr double letter = 0.62;  // width of a character over the font size, at most

  static double text_width(std::string_view words, double size) {
    return letter * size * static_cast<double>(words.size());
  }
  //! The micro-batch, and the slice unless it is 0: 3, 3.1.
  static std::string label(const job& work) {
    const std::string slice = work.slice == 0 ? "" : "." + std::to_string(work.slice);
    return std::to_string(work.microbatch) + slice;
  }
  static std::string number(double value) {
    char text[32];
    std::snprintf(text, sizeof text, "%.2f", value);
    std::string trimmed = text;
    while (trimmed.back() == '0') trimmed.pop_back();
    if (trimmed.back() == '.') trimmed.pop_back();
    return trimmed;
  }

  void lay_out() {
    std::int64_t shortest = in_.end > 0 ? in_.end : 1;
    for (const picture_bar& bar : in_.bars) {
      kinds_.insert(bar.what.kind);
      if (!is_labelled(bar)) continue;
      shortest = std::min(shortest, std::max<std::int64_t>(1, bar.when.end - bar.when.start));
      digits_ = std::max(digits_, label(bar.what).size());
      chunks_ = std::max(chunks_, bar.chunk + 1);
    }
    for (const auto& line : in_.memory)
      for (const memory_point& point : line) {
        most_ = std::max(most_, point.level);
        least_ = std::min(least_, point.level);
      }
    left_ = 16 + text_width("rank " + std::to_string(std::max(0, in_.ranks - 1)), 12);
    for (const picture_lane& one : in_.lanes)
      left_ = std::max(left_, 16 + text_width(one.name, one.narrow ? 9 : 12));
    // The last tick's label is centred on the end of the axis.
    right_ = std::max(24.0, 8 + text_width(std::to_string(in_.end), 11) / 2);
    if (!in_.memory.empty())
      right_ = std::max(right_, 24 + text_width("peak " + std::to_string(most_), 10));
    // Wide enough for the micro-batch in the shortest job, within what a page can show.
    const auto units = static_cast<double>(std::max<std::int64_t>(1, in_.end));
    const double wanted =
        (static_cast<double>(digits_) * letter * 11 + 5) / static_cast<double>(shortest) * units;
    const double legend_width = legend_entries().back();
    const double least = std::max({560.0, text_width(in_.title, 16) + 40 - left_,
                                   text_width(in_.subtitle, 12) + 40 - left_,
                                   std::min(legend_width, 900.0) - left_});
    plot_ = std::clamp(wanted, least, std::max(least, 2400.0));
    scale_ = plot_ / units;
    width_ = left_ + plot_ + right_;
    strip_ = in_.memory.empty() ? 0 : 22;
    row_ = lane_height + strip_ + (strip_ > 0 ? 12 : 6);
    legend_rows_ = 1;
    double x = 16;
    for (const double wide : legend_entries(true)) {
      if (x + wide > width_ - 16 && x > 16) {
        ++legend_rows_;
        x = 16;
      }
      x += wide;
    }
    top_ = 58 + 20 * legend_rows_;
    double y = top_;
    for (int lane = 0; lane < in_.ranks; ++lane) {
      const bool alone = in_.lanes.empty();
      if (!alone && lane > 0) y += in_.lanes[static_cast<std::size_t>(lane)].opens ? 14 : 2;
      tops_.push_back(y);
      y += alone ? row_ : height_of(lane);
    }
    bottom_ = y + (in_.lanes.empty() ? 0 : 6);
    height_ = bottom_ + 44;
  }

  bool is_narrow(int lane) const {
    return !in_.lanes.empty() && in_.lanes[static_cast<std::size_t>(lane)].narrow;
  }
  double height_of(int lane) const { return is_narrow(lane) ? narrow_height : lane_height; }
  bool is_labelled(const picture_bar& bar) const {
    return !is_narrow(bar.rank) && (in_.lanes.empty() || is_compute(bar.what.kind));
  }

  struct entry {
    std::string fill;
    std::string words;
  };
  std::vector<entry> entries() const {
    std::vector<entry> all;
    for (job_kind kind : kinds_) {
      const std::string words(words_for(kind));
      const std::string named =
          is_compute(kind) || in_.lanes.empty() ? std::string(letters(kind)) + " " + words : words;
      if (all.empty() || all.back().words != named)
        all.push_back({shade(colour_of(kind), 0, 1).hex(), named});
    }
    all.push_back({"", "idle"});
    const job_kind first = kinds_.empty() ? job_kind::forward : *kinds_.begin();
    for (int chunk = 0; chunks_ > 1 && chunk < std::min(chunks_, 8); ++chunk)
      all.push_back({shade(colour_of(first), chunk, chunks_).hex(),
                     in_.shades + " " + std::to_string(chunk)});
    if (chunks_ > 8) all.back().words += " ...";
    if (!in_.memory.empty()) all.push_back({"memory", "memory"});
    return all;
  }
  //! Widths of the legend's entries, or their sum alone.
  std::vector<double> legend_entries(bool each = false) const {
    std::vector<double> widths;
    double sum = 32;
    for (const entry& one : entries()) {
      widths.push_back(18 + text_width(one.words, 12) + 14);
      sum += widths.back();
    }
    return each ? widths : std::vector<double>{sum};
  }

  double x_of(std::int64_t time) const { return left_ + scale_ * static_cast<double>(time); }
  double y_of(int rank) const { return tops_[static_cast<std::size_t>(rank)]; }

  void open() {
    text_ += "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"" + number(width_) +
             "\" height=\"" + number(height_) + "\" viewBox=\"0 0 " + number(width_) + " " +
             number(height_) + "\" role=\"img\">\n<title>" + escape_xml(in_.title) + ": " +
             escape_xml(in_.subtitle) + "</title>\n<style>\n" + style() + "</style>\n";
    text_ += "<rect class=\"page\" width=\"100%\" height=\"100%\"/>\n";
    words(16, 28, "head", in_.title);
    words(16, 48, "text", in_.subtitle);
  }

  std::string style() const {
    const double narrow = scale_ * shortest_bar();
    std::string css =
        "text{font-family:Helvetica,Arial,sans-serif}\n"
        ".page{fill:#ffffff}.lane{fill:#e9ecf1}.line{stroke:#9aa3af;stroke-width:1}"
        ".head{font-size:16px;font-weight:bold;fill:#1b1f24}.text{font-size:12px;fill:#3c444d}"
        ".tick{font-size:11px;fill:#57606a}.small{font-size:10px;fill:#57606a}"
        ".curve{fill:#c0507a;fill-opacity:.35;stroke:#c0507a;stroke-width:1}\n"
        "@media (prefers-color-scheme:dark){.page{fill:#15181d}.lane{fill:#2a2f37}"
        ".line{stroke:#6b7480}.head{fill:#f0f3f6}.text{fill:#c9d1d9}.tick,.small{fill:#a9b2bc}}\n";
    css += ".mb{font-size:" +
           number(std::clamp((narrow - 2) / (letter * static_cast<double>(digits_)), 6.5, 11.0)) +
           "px;text-anchor:middle}.dark{fill:#10151b}.pale{fill:#ffffff}\n";
    if (!in_.lanes.empty())
      css += ".stream{font-size:9px;fill:#57606a}"
             "@media (prefers-color-scheme:dark){.stream{fill:#a9b2bc}}\n";
    for (job_kind kind : kinds_)
      for (int chunk = 0; chunk < chunks_; ++chunk)
        css.append(".").append(fill_class(kind, chunk)).append("{fill:").append(
            shade(colour_of(kind), chunk, chunks_).hex() + "}");
    return css + "\n";
  }
  double shortest_bar() const {
    double shortest = static_cast<double>(std::max<std::int64_t>(1, in_.end));
    for (const picture_bar& bar : in_.bars)
      if (is_labelled(bar))
        shortest = std::min(shortest, static_cast<double>(bar.when.end - bar.when.start));
    return shortest;
  }
  static std::string fill_class(job_kind kind, int chunk) {
    std::string name = "k";  // gcc 12 sees an overflow in "k" + std::string
    return name.append(std::to_string(static_cast<int>(kind))).append("c").append(
        std::to_string(chunk));
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
    for (const entry& one : entries()) {
      const double wide = 18 + text_width(one.words, 12) + 14;
      if (x + wide > width_ - 16 && x > 16) {
        x = 16;
        y += 20;
      }
      const std::string look = one.fill.empty()       ? "class=\"lane\""
                               : one.fill == "memory" ? "class=\"curve\""
                                                      : "fill=\"" + one.fill + "\"";
      box(x, y - 9, 12, 12, look + "/>\n");
      words(x + 18, y + 1, "text", one.words);
      x += wide;
    }
  }

  void lane(int rank) {
    const std::string name = in_.lanes.empty() ? "rank " + std::to_string(rank)
                                               : in_.lanes[static_cast<std::size_t>(rank)].name;
    const double high = height_of(rank);
    words(left_ - 8, y_of(rank) + high / 2 + (is_narrow(rank) ? 3 : 4),
          is_narrow(rank) ? "stream" : "text", name, "end");
    box(left_, y_of(rank), plot_, high, "class=\"lane\"/>\n");
  }

  void draw(const picture_bar& bar) {
    const double x = x_of(bar.when.start);
    const double wide = x_of(bar.when.end) - x;
    const double high = bar.half == 0 ? height_of(bar.rank) : lane_height / 2;
    const double y = y_of(bar.rank) + (bar.half == 2 ? high : 0);
    const double gap = std::min(1.0, wide / 5);
    text_ += "<g>";
    box(x + gap / 2, y + 0.5, wide - gap, high - 1,
        "rx=\"1.5\" class=\"" + fill_class(bar.what.kind, bar.chunk) + "\"><title>" +
            std::string(to_text(bar.what).view()) + ": " + std::to_string(bar.when.start) + " to " +
            std::to_string(bar.when.end) + "</title></rect>");
    // By the widest label, so that bars of one length are all labelled or none.
    if (is_labelled(bar) && wide - 2 >= letter * 6.5 * static_cast<double>(digits_))
      words(x + wide / 2, y + high / 2 + 3.5,
            shade(colour_of(bar.what.kind), bar.chunk, chunks_).light() ? "mb dark" : "mb pale",
            label(bar.what));
    text_ += "</g>\n";
  }

  void curve(int rank) {
    const auto& line = in_.memory[static_cast<std::size_t>(rank)];
    const double floor = y_of(rank) + lane_height + 4 + strip_;
    const double span = static_cast<double>(std::max<std::int64_t>(1, most_ - least_));
    const auto height_of = [&](std::int64_t level) {
      return floor - strip_ * static_cast<double>(level - least_) / span;
    };
    std::string path = "M" + number(left_) + " " + number(floor);
    std::int64_t peak = line.empty() ? 0 : line.front().level;
    for (const memory_point& point : line) {
      path += "H" + number(x_of(point.time)) + "V" + number(height_of(point.level));
      peak = std::max(peak, point.level);
    }
    path += "H" + number(left_ + plot_) + "V" + number(floor) + "Z";
    text_ += "<path class=\"curve\" d=\"" + path + "\"/>\n";
    words(left_ + plot_ + 8, floor - strip_ / 2 + 4, "small", "peak " + std::to_string(peak));
  }

  void axis() {
    const double y = bottom_ + 2;
    text_ += "<path class=\"line\" fill=\"none\" d=\"M" + number(left_) + " " + number(y) + "H" +
             number(left_ + plot_);
    const std::string longest = std::to_string(in_.end);
    const std::int64_t distance = tick_distance(scale_, text_width(longest, 11) + 16);
    for (std::int64_t at = 0; at <= in_.end; at += distance)
      text_ += "M" + number(x_of(at)) + " " + number(y) + "v5";
    text_ += "\"/>\n";
    for (std::int64_t at = 0; at <= in_.end; at += distance)
      words(x_of(at), y + 17, "tick", std::to_string(at), "middle");
    words(left_, y + 34, "tick", in_.unit.empty() ? "time" : "time, " + in_.unit);
  }

  const timeline_picture& in_;
  std::string text_;
  std::set<job_kind> kinds_;
  std::size_t digits_ = 1;  // of the longest label
  int chunks_ = 1;
  int legend_rows_ = 1;
  std::int64_t most_ = 0;
  std::int64_t least_ = 0;
  std::vector<double> tops_;  // of the lanes
  double bottom_ = 0;
  double left_ = 0, right_ = 0, plot_ = 0, scale_ = 1, width_ = 0, height_ = 0, top_ = 0, row_ = 0,
         strip_ = 0;
};

}  // namespace detail

//! Draws a timeline: one lane per rank, jobs as bars, colour by kind, shade by chunk, the
//! micro-batch (and slice) inside where it fits, the lane's ground where the rank is idle; below a
//! lane its memory, if there. Follows the reader's light or dark theme. Needs no font file or
//! script.
inline std::string to_svg(const timeline_picture& picture) {
  return detail::svg_writer(picture).write();
}

}  // namespace stretto
