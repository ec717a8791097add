#include "compare_svg.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <limits>
#include <map>
#include <tuple>

#include "errors.hpp"
#include "step_options.hpp"
#include "stretto/memory/window_text.hpp"
#include "stretto/plan/svg_layout.hpp"
#include "stretto/plan/svg_style.hpp"

namespace stretto::tool {

namespace {

using detail::escape_xml;

constexpr double wide = 720;  // of the plot
constexpr double high = 420;
constexpr double radius = 5;
constexpr std::size_t most_names = 3;  // on one label
// Told apart by those who see few colours (Okabe and Ito, Color Universal Design, 2008).
constexpr std::array<const char*, 6> hues{"#0072b2", "#d55e00", "#009e73",
                                          "#cc79a7", "#e69f00", "#56b4e9"};

constexpr double tick_height = 36;  // from tick to tick, upwards

double text_width(const std::string& words, double size) {
  return detail::svg_layout::text_width(words, size);
}

std::string number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f", value);
  return text;
}

//! Schedules of as many chunks that are alike in both.
struct dot {
  std::int64_t peak;
  std::int64_t length;
  int chunks;
  std::vector<std::string> names{};
  bool unbeaten = false;
};

struct box {
  double x, y, wide, high;

  bool meets(const box& other) const {
    return x < other.x + other.wide && other.x < x + wide && y < other.y + other.high &&
           other.y < y + high;
  }
};

//! From the least to the greatest of what is drawn, with some room, on so many pixels; by its
//! logarithm where the one is many times the other.
class axis {
 public:
  axis(double least, double greatest, double pixels) : pixels_(pixels) {
    logarithmic_ = least > 0 && greatest > 5 * least;
    const double room = std::max((greatest - least) * 0.06, std::abs(greatest) * 0.002 + 1e-3);
    low_ = logarithmic_ ? least / 1.15 : least < 0 ? least - room : std::max(0.0, least - room);
    high_ = logarithmic_ ? greatest * 1.15 : greatest + room;
  }
  double at(double value) const {
    const double part = logarithmic_ ? std::log(value / low_) / std::log(high_ / low_)
                                     : (value - low_) / (high_ - low_);
    return part * pixels_;
  }
  bool is_logarithmic() const { return logarithmic_; }
  bool holds(double value) const { return value >= low_ && value <= high_; }
  //! Whole numbers, so many pixels apart or, by their logarithm, of 1, 2 and 5 times powers of ten.
  std::vector<std::int64_t> ticks(double pixels) const {
    std::vector<std::int64_t> all;
    const auto add = [&](std::int64_t one) {
      if (holds(static_cast<double>(one))) all.push_back(one);
    };
    if (logarithmic_) {
      for (std::int64_t ten = 1; static_cast<double>(ten) <= high_; ten *= 10)
        for (const int times : {1, 2, 5}) add(ten * times);
      return all;
    }
    const std::int64_t distance = detail::tick_distance(pixels_ / (high_ - low_), pixels);
    const auto first = static_cast<std::int64_t>(std::ceil(low_ / static_cast<double>(distance)));
    for (std::int64_t one = first * distance; static_cast<double>(one) <= high_; one += distance)
      add(one);
    return all;
  }

 private:
  double low_, high_, pixels_;
  bool logarithmic_;
};

class picture {
 public:
  picture(const comparison& common, const std::vector<std::int64_t>& limits,
          const std::vector<comparison_run>& runs)
      : common_(common), limits_(limits) {
    std::map<std::tuple<std::int64_t, std::int64_t, int>, std::size_t> place;
    for (const comparison_run& made : runs)
      for (const compared& one : made.all) {
        if (one.forward_only) continue;
        const std::int64_t length = common.length(one);
        const auto [found, fresh] = place.insert({{one.peak(), length, one.chunks}, dots_.size()});
        if (fresh) dots_.push_back({one.peak(), length, one.chunks});
        std::vector<std::string>& names = dots_[found->second].names;
        const std::string name = one.name + (one.slices > 1 ? " in slices" : "");
        if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
        // A greater limit leaves the lower one.
        if (&made == &runs.back() && common.least_bound(one) > 0)
          bound_ = std::min(bound_, common.least_bound(one));
      }
    if (dots_.empty())
      throw bad_input(
          "--format svg: no schedule that trains is there to be drawn; a table says why");
    find_unbeaten();
    for (const dot& one : dots_)
      if (std::find(chunks_.begin(), chunks_.end(), one.chunks) == chunks_.end())
        chunks_.push_back(one.chunks);
    std::sort(chunks_.begin(), chunks_.end());
  }

  std::string write() {
    const auto range = [&](std::int64_t dot::*of) {
      return std::minmax_element(dots_.begin(), dots_.end(), [&](const dot& one, const dot& other) {
        return one.*of < other.*of;
      });
    };
    const auto [lean, full] = range(&dot::peak);
    const auto [brief, slow] = range(&dot::length);
    across_ = axis(units(lean->peak, common_.memory), units(full->peak, common_.memory), wide);
    up_ = axis(units(std::min(brief->length, bound_), common_.time),
               units(slow->length, common_.time), high);
    for (const std::int64_t tick : up_.ticks(tick_height))
      left_ = std::max(left_, 24 + text_width(std::to_string(tick), 11));
    lay_out_legend();
    last_x_ = left_;
    last_y_ = top_;
    open();
    grid();
    lines();
    for (const dot& one : dots_) mark(one);
    for (const bool unbeaten : {true, false})
      for (const dot& one : dots_)
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
  double x_of(const dot& one) const { return left_ + across_.at(units(one.peak, common_.memory)); }
  double y_of(std::int64_t length) const {
    return top_ + high - up_.at(units(length, common_.time));
  }
  const char* hue_of(int chunks) const {
    const auto at = std::find(chunks_.begin(), chunks_.end(), chunks) - chunks_.begin();
    return hues[static_cast<std::size_t>(at) % hues.size()];
  }

  //! From the shortest on, those that need less than all before.
  void find_unbeaten() {
    std::sort(dots_.begin(), dots_.end(), [](const dot& one, const dot& other) {
      return std::tie(one.length, one.peak, one.chunks) <
             std::tie(other.length, other.peak, other.chunks);
    });
    std::int64_t least = std::numeric_limits<std::int64_t>::max();
    std::int64_t length = 0;
    for (dot& one : dots_) {
      // Of another number of chunks the same may be there twice.
      one.unbeaten = one.peak < least || (one.peak == least && one.length == length);
      if (one.peak >= least) continue;
      least = one.peak;
      length = one.length;
    }
  }

  std::string title() const {
    std::string made = std::to_string(common_.wanted.ranks) + " ranks, " +
                       std::to_string(common_.wanted.microbatches) + " micro-batches";
    if (common_.wanted.slices > 1) made += ", " + std::to_string(common_.wanted.slices) + " slices";
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
    for (const int chunks : chunks_)
      legend_.push_back({hue_of(chunks), "", count_of(chunks, "chunk")});
    legend_.push_back({nullptr, "front", "none is both shorter and leaner"});
    if (has_bound())
      legend_.push_back({nullptr, "bound", "no order is below: " + common_.time.text(bound_)});
    double x = 16;
    double y = 52;
    for (entry& one : legend_) {
      const double across = 20 + text_width(one.words, 12) + 16;
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
    const std::string width = number(left_ + wide + 40);
    const std::string height = number(top_ + high + 56);
    text_ = "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"" + width + "\" height=\"" + height +
            "\" viewBox=\"0 0 " + width + " " + height + "\" role=\"img\">\n<title>" +
            escape_xml(title() + ": memory and " + measure() + " of every schedule") +
            "</title>\n<style>\n"
            "text{font-family:Helvetica,Arial,sans-serif;font-size:12px;fill:#3c444d}\n"
            ".page{fill:#ffffff}.grid{stroke:#e9ecf1;fill:none}.tick{font-size:11px;fill:#57606a}"
            ".front{stroke:#6b7480;stroke-width:1.5;fill:none}"
            ".bound{stroke:#c0507a;stroke-width:1.5;stroke-dasharray:5 4;fill:none}"
            ".limit{stroke:#9aa3af;stroke-dasharray:2 3;fill:none}.leader{stroke:#9aa3af;fill:none}"
            ".name{paint-order:stroke;stroke:#ffffff;stroke-width:3px;stroke-linejoin:round}"
            ".first{font-weight:bold}.head{font-size:16px;font-weight:bold;fill:#1b1f24}\n"
            "@media (prefers-color-scheme:dark){text{fill:#c9d1d9}.page{fill:#15181d}"
            ".grid{stroke:#2a2f37}.tick{fill:#a9b2bc}.name{stroke:#15181d}.head{fill:#f0f3f6}}\n"
            "</style>\n<rect class=\"page\" width=\"100%\" height=\"100%\"/>\n";
    words(16, 28, "head", "start", title());
    for (const entry& one : legend_) {
      if (one.hue != nullptr)
        text_ += "<circle cx=\"" + number(one.x + 8) + "\" cy=\"" + number(one.y - 4) + "\" r=\"" +
                 number(radius) + "\" fill=\"" + one.hue + "\"/>\n";
      else
        text_ += "<path class=\"" + one.line + "\" d=\"M" + number(one.x) + " " +
                 number(one.y - 4) + "h15\"/>\n";
      words(one.x + 20, one.y, "", "start", one.words);
    }
    const auto scale = [](const axis& of) { return of.is_logarithmic() ? ", logarithmic" : ""; };
    words(16, top_ - 10, "tick", "start", std::string(measure()) + scale(up_));
    words(left_ + wide / 2, top_ + high + 38, "tick", "middle",
          std::string("memory of the fullest rank") + scale(across_));
  }

  void grid() {
    const std::int64_t most = across_.ticks(70).empty() ? 0 : across_.ticks(70).back();
    const double apart = std::max(70.0, text_width(std::to_string(most), 11) + 16);
    for (const std::int64_t tick : across_.ticks(apart)) {
      const double x = left_ + across_.at(static_cast<double>(tick));
      text_ += "<path class=\"grid\" d=\"M" + number(x) + " " + number(top_) + "v" + number(high) +
               "\"/>\n";
      words(x, top_ + high + 18, "tick", "middle", std::to_string(tick));
    }
    for (const std::int64_t tick : up_.ticks(tick_height)) {
      const double y = top_ + high - up_.at(static_cast<double>(tick));
      text_ += "<path class=\"grid\" d=\"M" + number(left_) + " " + number(y) + "h" + number(wide) +
               "\"/>\n";
      words(left_ - 8, y + 4, "tick", "end", std::to_string(tick));
    }
  }

  bool has_bound() const { return bound_ < std::numeric_limits<std::int64_t>::max(); }

  void lines() {
    if (has_bound())
      text_ += "<path class=\"bound\" d=\"M" + number(left_) + " " + number(y_of(bound_)) + "h" +
               number(wide) + "\"/>\n";
    double free = left_ + (up_.is_logarithmic() ? 70 : 0);  // of the limits' words
    for (const std::int64_t limit : limits_) {
      if (!across_.holds(static_cast<double>(limit))) continue;
      const double x = left_ + across_.at(static_cast<double>(limit));
      text_ += "<path class=\"limit\" d=\"M" + number(x) + " " + number(top_) + "v" + number(high) +
               "\"/>\n";
      const std::string what = "limit " + std::to_string(limit);
      const double half = text_width(what, 11) / 2;
      if (x - half < free) continue;
      words(x, top_ - 10, "tick", "middle", what);
      free = x + half + 8;
    }
    // Leaner towards the left, and longer: down to each, right to the next.
    std::string path;
    for (auto one = dots_.rbegin(); one != dots_.rend(); ++one) {
      if (!one->unbeaten) continue;
      const double x = x_of(*one);
      const double y = y_of(one->length);
      if (!path.empty() && x == last_x_ && y == last_y_) continue;  // of other chunks
      if (path.empty())
        path = "M" + number(x) + " " + number(top_);
      else
        taken_lines_.push_back({last_x_, last_y_ - 1, x - last_x_, 2});
      path += "H" + number(x) + "V" + number(y);
      taken_lines_.push_back({x - 1, std::min(last_y_, y), 2, std::max(0.0, y - last_y_)});
      last_x_ = x;
      last_y_ = y;
    }
    text_ += "<path class=\"front\" d=\"" + path + "H" + number(left_ + wide) + "\"/>\n";
    taken_lines_.push_back({last_x_, last_y_ - 1, left_ + wide - last_x_, 2});
  }

  void mark(const dot& one) {
    const double x = x_of(one);
    const double y = y_of(one.length);
    std::string names;
    for (const std::string& name : one.names) names += (names.empty() ? "" : ", ") + name;
    // Of another number of chunks there may be one already.
    double r = radius;
    for (const box& other : taken_)
      if (std::abs(other.x + other.wide / 2 - x) < 0.5 &&
          std::abs(other.y + other.high / 2 - y) < 0.5)
        r += 3;
    const bool ring = r > radius;
    text_ += "<circle cx=\"" + number(x) + "\" cy=\"" + number(y) + "\" r=\"" + number(r) + "\" " +
             (ring ? "fill=\"none\" stroke-width=\"2\" stroke=\"" : "fill=\"") +
             hue_of(one.chunks) + "\"" + (one.unbeaten || ring ? "" : " fill-opacity=\"0.55\"") +
             "><title>" +
             escape_xml(names + ", " + count_of(one.chunks, "chunk") + ": " + measure() + " " +
                        common_.time.text(one.length) + ", peak " + common_.memory.text(one.peak)) +
             "</title></circle>\n";
    taken_.push_back({x - r, y - r, 2 * r, 2 * r});
  }

  //! What no other beats is called by fewer of its names rather than by none.
  void name(const dot& one) {
    std::size_t told = std::min(one.names.size(), most_names);
    while (!is_named(one, told))
      if (!one.unbeaten || --told == 0) return void(++unnamed_);
  }
  //! Beside its dot, or further off with a line there, where it meets nothing.
  bool is_named(const dot& one, std::size_t told) {
    std::string label;
    for (std::size_t at = 0; at < told; ++at) label += (at == 0 ? "" : ", ") + one.names[at];
    if (one.names.size() > told) label += " +" + std::to_string(one.names.size() - told);
    const double across = text_width(label, 12) + 2;
    const double x = x_of(one);
    const double y = y_of(one.length);
    constexpr std::array<double, 13> downs{4, -8, 17, -20, 29, -32, 41, -44, 53, -56, 65, -68, 77};
    for (const bool avoids_lines : {true, false})
      for (const double down : downs)
        for (const bool right : {true, false}) {
          const double begin = right ? x + 9 : x - 9 - across;
          const box place{begin, y + down - 11, across, 14};
          if (!is_free(place, avoids_lines)) continue;
          const double end = right ? begin - 2 : begin + across;
          if (std::abs(down - 4) <= 14) {
            if (!is_nearest(one, end, y + down - 4)) continue;
          } else {
            if (!is_clear(x, y, end, y + down - 4)) continue;
            text_ += "<path class=\"leader\" d=\"M" + number(x) + " " + number(y) + "L" +
                     number(end) + " " + number(y + down - 4) + "\"/>\n";
          }
          words(right ? begin : begin + across, y + down, one.unbeaten ? "name first" : "name",
                right ? "start" : "end", label);
          taken_.push_back(place);
          return true;
        }
    return false;
  }
  bool is_free(const box& place, bool avoids_lines) const {
    const auto meets = [&](const box& other) { return place.meets(other); };
    return place.x > left_ && place.x + place.wide < left_ + wide + 30 && place.y > top_ &&
           place.y + place.high < top_ + high &&
           std::none_of(taken_.begin(), taken_.end(), meets) &&
           !(avoids_lines && std::any_of(taken_lines_.begin(), taken_lines_.end(), meets));
  }

  //! Whether what begins there is taken for the name of this dot and not for another's.
  bool is_nearest(const dot& mine, double x, double y) const {
    const auto far = [&](const dot& one) {
      return std::hypot(x_of(one) - x, y_of(one.length) - y);
    };
    return std::all_of(dots_.begin(), dots_.end(), [&](const dot& other) {
      const bool here = other.peak == mine.peak && other.length == mine.length;
      return here || far(other) > far(mine) + 2;
    });
  }
  //! Whether a line from a dot meets no name, and no other dot.
  bool is_clear(double x, double y, double end_x, double end_y) const {
    for (int step = 0; step <= 16; ++step) {
      const double part = step / 16.0;
      const box here{x + part * (end_x - x) - 1, y + part * (end_y - y) - 1, 2, 2};
      for (const box& other : taken_) {
        const bool own = other.meets({x - 1, y - 1, 2, 2});
        if (!own && other.meets(here)) return false;
      }
    }
    return true;
  }

  void words(double x, double y, const std::string& look, const char* anchor,
             const std::string& what) {
    text_ += "<text x=\"" + number(x) + "\" y=\"" + number(y) + "\" class=\"" + look +
             "\" text-anchor=\"" + anchor + "\">" + escape_xml(what) + "</text>\n";
  }

  const comparison& common_;
  const std::vector<std::int64_t>& limits_;
  std::vector<dot> dots_;  // the shortest first
  std::vector<int> chunks_;
  std::vector<entry> legend_;
  double left_ = 84;  // of the plot, and its top
  double top_ = 0;
  std::int64_t bound_ = std::numeric_limits<std::int64_t>::max();
  axis across_{0, 1, 1};
  axis up_{0, 1, 1};
  std::vector<box> taken_;        // by dots and names
  std::vector<box> taken_lines_;  // by the line of those that none beats
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
