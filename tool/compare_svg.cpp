#include "compare_svg.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <limits>

#include "compare_dots.hpp"
#include "plot_axis.hpp"
#include "plot_page.hpp"
#include "plot_places.hpp"
#include "step_options.hpp"
#include "stretto/memory/window_text.hpp"
#include "stretto/plan/svg_style.hpp"

namespace stretto::tool {

namespace {

using detail::escape_xml;

constexpr double wide = 720;  // of the plot
constexpr double high = 420;
constexpr double radius = 5;
constexpr std::size_t most_names = 3;  // on one label
constexpr double tick_height = 36;     // from tick to tick, upwards

class picture {
 public:
  picture(const comparison& common, const std::vector<std::int64_t>& limits,
          const std::vector<comparison_run>& runs)
      : common_(common), limits_(limits), dots_(dots_of(common, runs)) {}

  std::string write() {
    const auto range = [&](std::int64_t compared_dot::*of) {
      return std::minmax_element(
          dots_.all.begin(), dots_.all.end(),
          [&](const compared_dot& one, const compared_dot& other) { return one.*of < other.*of; });
    };
    const auto [lean, full] = range(&compared_dot::peak);
    const auto [brief, slow] = range(&compared_dot::length);
    across_ = plot_axis(units(lean->peak, common_.memory), units(full->peak, common_.memory), wide);
    up_ = plot_axis(units(std::min(brief->length, dots_.bound), common_.time),
                    units(slow->length, common_.time), high);
    for (const std::int64_t tick : up_.ticks(tick_height))
      left_ = std::max(left_, 24 + plot_text_width(in_thousands(tick), 11));
    lay_out_legend();
    places_.inside = {left_, top_, wide + 30, high};
    last_x_ = left_;
    last_y_ = top_;
    open();
    grid();
    lines();
    for (const compared_dot& one : dots_.all) mark(one);
    for (const bool unbeaten : {true, false})
      for (const compared_dot& one : dots_.all)
        if (one.unbeaten == unbeaten) name(one);
    if (unnamed_ > 0)
      words(left_ + wide, top_ + high + 38, "tick", "end",
            "named by tooltips alone: " + std::to_string(unnamed_));
    return text_ + "</svg>\n";
  }

 private:
  struct entry {
    const char* hue;  // of a dot; null: a line
    std::string line;
    std::string words;
    double x = 0, y = 0;
  };

  static double units(std::int64_t value, const finer_unit& of) {
    return static_cast<double>(value) / static_cast<double>(of.times);
  }
  double x_of(const compared_dot& one) const {
    return left_ + across_.at(units(one.peak, common_.memory));
  }
  double y_of(std::int64_t length) const {
    return top_ + high - up_.at(units(length, common_.time));
  }
  const char* hue_of(int chunks) const {
    const std::vector<int>& all = dots_.chunks;
    const auto at = std::find(all.begin(), all.end(), chunks) - all.begin();
    return plot_hues[static_cast<std::size_t>(at) % plot_hues.size()];
  }

  std::string title() const {
    std::string made = count_of(common_.wanted.ranks, "rank") + ", " +
                       count_of(common_.wanted.microbatches, "micro-batch");
    const std::vector<int>& slices = common_.slices;
    for (std::size_t at = 0; at + 1 < slices.size(); ++at)
      made += ", " + std::to_string(slices[at]);
    if (slices.front() > 1)
      made += (slices.size() > 1 ? " or " : ", ") + count_of(slices.back(), "slice");
    const auto add = [&](const char* what, const auto& window) {
      if (window.any())
        made += what + (common_.put_searched ? "auto" : memory::window_text(window));
    };
    add(", recompute ", common_.put.recompute);
    add(", offload ", common_.put.offload);
    return made;
  }
  const char* measure() const { return common_.spans ? "span" : "makespan"; }

  void lay_out_legend() {
    for (const int chunks : dots_.chunks)
      legend_.push_back({hue_of(chunks), "", count_of(chunks, "chunk")});
    legend_.push_back({nullptr, "front", "none is both shorter and leaner"});
    if (dots_.has_bound())
      legend_.push_back(
          {nullptr, "bound", "no order is below: " + in_thousands(common_.time.text(dots_.bound))});
    double x = 16;
    double y = 52;
    for (entry& one : legend_) {
      const double across = 20 + plot_text_width(one.words, 12) + 16;
      if (x > 16 && x + across > left_ + wide + 40) {
        x = 16;
        y += 18;
      }
      one.x = x;
      one.y = y;
      x += across;
    }
    top_ = y + 44;
  }

  void open() {
    text_ = open_plot(left_ + wide + 40, top_ + high + 56,
                      title() + ": memory and " + measure() + " of every schedule",
                      ".front{stroke:#6b7480;stroke-width:1.5;fill:none}"
                      ".bound{stroke:#c0507a;stroke-width:1.5;stroke-dasharray:5 4;fill:none}"
                      ".limit{stroke:#9aa3af;stroke-dasharray:2 3;fill:none}"
                      ".first{font-weight:bold}");
    words(16, 28, "head", "start", title());
    for (const entry& one : legend_) {
      if (one.hue != nullptr)
        text_ += "<circle cx=\"" + plot_number(one.x + 8) + "\" cy=\"" + plot_number(one.y - 4) +
                 "\" r=\"" + plot_number(radius) + "\" fill=\"" + one.hue + "\"/>\n";
      else
        text_ += "<path class=\"" + one.line + "\" d=\"M" + plot_number(one.x) + " " +
                 plot_number(one.y - 4) + "h15\"/>\n";
      words(one.x + 20, one.y, "", "start", one.words);
    }
    const auto scale = [](const plot_axis& of) {
      return of.is_logarithmic() ? ", logarithmic" : "";
    };
    words(16, top_ - 10, "tick", "start", std::string(measure()) + scale(up_));
    words(left_ + wide / 2, top_ + high + 38, "tick", "middle",
          std::string("memory of the fullest rank") + scale(across_));
  }

  void grid() {
    const std::int64_t most = across_.ticks(70).empty() ? 0 : across_.ticks(70).back();
    const double apart = std::max(70.0, plot_text_width(in_thousands(most), 11) + 16);
    for (const std::int64_t tick : across_.ticks(apart)) {
      const double x = left_ + across_.at(static_cast<double>(tick));
      text_ += "<path class=\"grid\" d=\"M" + plot_number(x) + " " + plot_number(top_) + "v" +
               plot_number(high) + "\"/>\n";
      words(x, top_ + high + 18, "tick", "middle", in_thousands(tick));
    }
    for (const std::int64_t tick : up_.ticks(tick_height)) {
      const double y = top_ + high - up_.at(static_cast<double>(tick));
      text_ += "<path class=\"grid\" d=\"M" + plot_number(left_) + " " + plot_number(y) + "h" +
               plot_number(wide) + "\"/>\n";
      words(left_ - 8, y + 4, "tick", "end", in_thousands(tick));
    }
  }

  void lines() {
    if (dots_.has_bound())
      text_ += "<path class=\"bound\" d=\"M" + plot_number(left_) + " " +
               plot_number(y_of(dots_.bound)) + "h" + plot_number(wide) + "\"/>\n";
    double free = left_ + (up_.is_logarithmic() ? 70 : 0);  // of the limits' words
    for (const std::int64_t limit : limits_) {
      if (!across_.holds(static_cast<double>(limit))) continue;
      const double x = left_ + across_.at(static_cast<double>(limit));
      text_ += "<path class=\"limit\" d=\"M" + plot_number(x) + " " + plot_number(top_) + "v" +
               plot_number(high) + "\"/>\n";
      const std::string what = "limit " + std::to_string(limit);
      const double half = plot_text_width(what, 11) / 2;
      if (x - half < free) continue;
      words(x, top_ - 10, "tick", "middle", what);
      free = x + half + 8;
    }
    // Leaner towards the left, and longer: down to each, right to the next.
    std::string path;
    for (auto one = dots_.all.rbegin(); one != dots_.all.rend(); ++one) {
      if (!one->unbeaten) continue;
      const double x = x_of(*one);
      const double y = y_of(one->length);
      if (!path.empty() && x == last_x_ && y == last_y_) continue;  // of other chunks
      if (path.empty())
        path = "M" + plot_number(x) + " " + plot_number(top_);
      else
        places_.lines.push_back({last_x_, last_y_ - 1, x - last_x_, 2});
      path += "H" + plot_number(x) + "V" + plot_number(y);
      places_.lines.push_back({x - 1, std::min(last_y_, y), 2, std::max(0.0, y - last_y_)});
      last_x_ = x;
      last_y_ = y;
    }
    text_ += "<path class=\"front\" d=\"" + path + "H" + plot_number(left_ + wide) + "\"/>\n";
    places_.lines.push_back({last_x_, last_y_ - 1, left_ + wide - last_x_, 2});
  }

  void mark(const compared_dot& one) {
    const double x = x_of(one);
    const double y = y_of(one.length);
    std::string names;
    for (const std::string& name : one.names) names += (names.empty() ? "" : ", ") + name;
    // Of another number of chunks there may be one already.
    double r = radius;
    for (const plot_box& other : places_.taken)
      if (std::abs(other.x + other.wide / 2 - x) < 0.5 &&
          std::abs(other.y + other.high / 2 - y) < 0.5)
        r += 3;
    const bool ring = r > radius;
    text_ += "<circle cx=\"" + plot_number(x) + "\" cy=\"" + plot_number(y) + "\" r=\"" +
             plot_number(r) + "\" " +
             (ring ? "fill=\"none\" stroke-width=\"2\" stroke=\"" : "fill=\"") +
             hue_of(one.chunks) + "\"" + (one.unbeaten || ring ? "" : " fill-opacity=\"0.55\"") +
             "><title>" +
             escape_xml(names + ", " + count_of(one.chunks, "chunk") + ": " + measure() + " " +
                        common_.time.text(one.length) + ", peak " + common_.memory.text(one.peak)) +
             "</title></circle>\n";
    places_.taken.push_back({x - r, y - r, 2 * r, 2 * r});
  }

  //! What no other beats is called by fewer of its names rather than by none.
  void name(const compared_dot& one) {
    std::size_t told = std::min(one.names.size(), most_names);
    while (!is_named(one, told))
      if (!one.unbeaten || --told == 0) return void(++unnamed_);
  }
  //! Beside its dot, or further off with a line there, where it meets nothing.
  bool is_named(const compared_dot& one, std::size_t told) {
    std::string label;
    for (std::size_t at = 0; at < told; ++at) label += (at == 0 ? "" : ", ") + one.names[at];
    if (one.names.size() > told) label += " +" + std::to_string(one.names.size() - told);
    const double across = plot_text_width(label, 12) + 2;
    const double x = x_of(one);
    const double y = y_of(one.length);
    // Clear of the rings around the dot, which those of other numbers of chunks are.
    const auto here = std::count_if(dots_.all.begin(), dots_.all.end(), [&](const auto& other) {
      return other.peak == one.peak && other.length == one.length;
    });
    const double away = 6 + 3 * static_cast<double>(here);
    constexpr std::array<double, 13> downs{4, -8, 17, -20, 29, -32, 41, -44, 53, -56, 65, -68, 77};
    for (const bool avoids_lines : {true, false})
      for (const double down : downs)
        for (const bool right : {true, false}) {
          const double begin = right ? x + away : x - away - across;
          const plot_box place{begin, y + down - 11, across, 14};
          if (!places_.is_free(place, avoids_lines)) continue;
          const double end = right ? begin - 2 : begin + across;
          if (std::abs(down - 4) <= 14) {
            if (!is_nearest(one, end, y + down - 4)) continue;
          } else {
            if (!places_.is_clear(x, y, end, y + down - 4)) continue;
            text_ += "<path class=\"leader\" d=\"M" + plot_number(x) + " " + plot_number(y) + "L" +
                     plot_number(end) + " " + plot_number(y + down - 4) + "\"/>\n";
          }
          words(right ? begin : begin + across, y + down, one.unbeaten ? "name first" : "name",
                right ? "start" : "end", label);
          places_.taken.push_back(place);
          return true;
        }
    return false;
  }
  //! Whether what begins there is taken for the name of this dot and not for another's.
  bool is_nearest(const compared_dot& mine, double x, double y) const {
    const auto far = [&](const compared_dot& one) {
      return std::hypot(x_of(one) - x, y_of(one.length) - y);
    };
    return std::all_of(dots_.all.begin(), dots_.all.end(), [&](const compared_dot& other) {
      const bool here = other.peak == mine.peak && other.length == mine.length;
      return here || far(other) > far(mine) + 2;
    });
  }
  void words(double x, double y, const std::string& look, const char* anchor,
             const std::string& what) {
    text_ += plot_words(x, y, look, anchor, what);
  }

  const comparison& common_;
  const std::vector<std::int64_t>& limits_;
  compared_dots dots_;
  std::vector<entry> legend_;
  double left_ = 84;  // of the plot, and its top
  double top_ = 0;
  plot_axis across_{0, 1, 1};
  plot_axis up_{0, 1, 1};
  plot_places places_;
  double last_x_ = 0;
  double last_y_ = 0;
  int unnamed_ = 0;
  std::string text_;
};

}  // namespace

std::string to_svg(const comparison& common, const std::vector<std::int64_t>& limits,
                   const std::vector<comparison_run>& runs) {
  return picture(common, limits, runs).write();
}

}  // namespace stretto::tool
