#include "sweep_svg.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <optional>
#include <vector>

#include "errors.hpp"
#include "plot_axis.hpp"
#include "plot_page.hpp"
#include "step_options.hpp"

namespace stretto::tool {

namespace {

//! Schedules that are alike on all shapes of a panel.
struct drawn_line {
  std::vector<const swept*> all;
  std::vector<std::optional<double>> values;
  std::size_t look;  // of the first of them, the same in all panels
  double end_x = 0, end_y = 0, label_y = 0;
};

class sweep_picture {
 public:
  explicit sweep_picture(const sweep_grid& grid) : grid_(grid), panels_(grid.panels()) {
    for (const sweep_panel& panel : panels_) add_lines(panel);
    double least = std::numeric_limits<double>::infinity();
    double greatest = -least;
    int fewest = std::numeric_limits<int>::max();
    int most = 0;
    for (std::size_t at = 0; at < panels_.size(); ++at) {
      fewest = std::min(fewest, panels_[at].counts.front());
      most = std::max(most, panels_[at].counts.back());
      for (const drawn_line& line : lines_[at])
        for (const std::optional<double>& value : line.values) {
          if (!value) continue;
          least = std::min(least, shown(*value));
          greatest = std::max(greatest, shown(*value));
        }
    }
    if (most_lines() == 0)
      throw bad_input(
          "--format svg: no schedule that trains is there to be drawn; a table says why");
    high_ = std::max(least_high, label_height * static_cast<double>(most_lines() + 1));
    across_ = plot_axis(fewest, most, wide);
    most_count_ = most;
    // Parts are of something: beside nothing they are seen to be small.
    if (grid_.measure().part) least = 0;
    // Ticks are whole numbers.
    while (finer_ < 1'000'000 && (greatest - least) * finer_ < 5 && greatest > least) finer_ *= 10;
    up_ = plot_axis(finer_ * least, finer_ * greatest, high_);
    for (const std::int64_t tick : up_.ticks(tick_height))
      left_ = std::max(left_, 24 + plot_text_width(tick_text(tick), 11));
    for (const auto& lines : lines_)
      for (const drawn_line& line : lines)
        label_width_ = std::max(label_width_, plot_text_width(label_of(line), 12));
  }

  std::string write() {
    const double down = high_ + 78;  // of each panel
    const std::string title = std::string(grid_.measure().title) + " by " + panels_[0].axis +
                              (panels_[0].title.empty() ? of_one() : "");
    text_ = open_plot(left_ + wide + leader_width + label_width_ + 24,
                      44 + down * static_cast<double>(panels_.size()), title,
                      ".line{fill:none;stroke-width:2;stroke-linejoin:round}");
    words(16, 28, "head", "start", title);
    for (std::size_t at = 0; at < panels_.size(); ++at) {
      top_ = 78 + down * static_cast<double>(at);
      grid(panels_[at]);
      // The best lie above the others.
      for (auto line = lines_[at].rbegin(); line != lines_[at].rend(); ++line)
        draw(panels_[at], *line);
      label(lines_[at]);
    }
    if (left_out_ > 0)
      words(left_ + wide + leader_width + label_width_, 28, "tick", "end",
            "not drawn: " + std::to_string(left_out_) + " that end above these");
    return text_ + "</svg>\n";
  }

 private:
  static constexpr double wide = 560;  // of a plot
  static constexpr double least_high = 300;
  static constexpr double tick_height = 36;  // from tick to tick, upwards
  static constexpr double label_height = 15;
  static constexpr double leader_width = 34;
  static constexpr std::size_t most_names = 3;  // on one label
  // With as many hues, so many lines can be told apart.
  static constexpr std::array<const char*, 5> dashes{"", "7 3", "2 3", "9 3 2 3", "4 2"};

  std::size_t most_lines() const {
    std::size_t most = 0;
    for (const auto& lines : lines_) most = std::max(most, lines.size());
    return most;
  }

  void add_lines(const sweep_panel& panel) {
    std::vector<drawn_line> made;
    for (const swept* one : panel.lines) {
      if (one->forward_only) continue;
      std::vector<std::optional<double>> values;
      for (const std::size_t shape : panel.shapes) values.push_back(one->values[shape]);
      const auto same = std::ranges::find(made, values, &drawn_line::values);
      if (same != made.end())
        same->all.push_back(one);
      else if (const std::size_t look = look_of(one); look < plot_hues.size() * dashes.size())
        made.push_back({{one}, values, look});
      else
        ++left_out_;
    }
    lines_.push_back(std::move(made));
  }
  std::size_t look_of(const swept* one) {
    const auto found = std::ranges::find(looks_, one);
    if (found != looks_.end()) return static_cast<std::size_t>(found - looks_.begin());
    looks_.push_back(one);
    return looks_.size() - 1;
  }

  double shown(double value) const { return grid_.measure().part ? 100 * value : value; }
  std::string tick_text(std::int64_t tick) const {
    char text[32];
    std::snprintf(text, sizeof text, "%.15g", static_cast<double>(tick) / finer_);
    return in_thousands(std::string(text)) + (grid_.measure().part ? " %" : "");
  }
  double x_of(int count) const { return left_ + across_.at(count); }
  double y_of(double value) const { return top_ + high_ - up_.at(finer_ * shown(value)); }
  std::string of_one() const {
    const bool of_ranks = panels_[0].axis != std::string("ranks");
    const int count = of_ranks ? grid_.ranks_of(0) : grid_.microbatches_of(0);
    return ", " + count_of(count, of_ranks ? "rank" : "micro-batch");
  }

  std::string label_of(const drawn_line& line) const {
    std::string made;
    for (std::size_t at = 0; at < std::min(line.all.size(), most_names); ++at)
      made += (at == 0 ? "" : ", ") + line.all[at]->in_words(grid_.several_chunks());
    if (line.all.size() > most_names) made += " +" + std::to_string(line.all.size() - most_names);
    return made;
  }
  std::string names_of(const drawn_line& line) const {
    std::string made;
    for (const swept* one : line.all)
      made += (made.empty() ? "" : ", ") + one->in_words(grid_.several_chunks());
    return made;
  }
  static std::string stroke_of(const drawn_line& line) {
    const char* dash = dashes[line.look / plot_hues.size() % dashes.size()];
    return std::string("stroke=\"") + plot_hues[line.look % plot_hues.size()] + "\"" +
           (*dash == '\0' ? "" : std::string(" stroke-dasharray=\"") + dash + "\"");
  }

  void grid(const sweep_panel& panel) {
    const auto scale = [](const plot_axis& of) {
      return of.is_logarithmic() ? std::string(", logarithmic") : std::string();
    };
    if (!panel.title.empty()) words(left_, top_ - 10, "", "start", panel.title);
    words(left_ + wide, top_ - 10, "tick", "end", grid_.measure().title + scale(up_));
    double free = 0;  // of the counts' words
    for (const int count : panel.counts) {
      const double x = x_of(count);
      text_ += "<path class=\"grid\" d=\"M" + plot_number(x) + " " + plot_number(top_) + "v" +
               plot_number(high_) + "\"/>\n";
      const double half = plot_text_width(std::to_string(count), 11) / 2;
      if (x - half < free) continue;
      words(x, top_ + high_ + 18, "tick", "middle", std::to_string(count));
      free = x + half + 6;
    }
    words(left_ + wide / 2, top_ + high_ + 38, "tick", "middle", panel.axis + scale(across_));
    for (const std::int64_t tick : up_.ticks(tick_height)) {
      const double y = top_ + high_ - up_.at(static_cast<double>(tick));
      text_ += "<path class=\"grid\" d=\"M" + plot_number(left_) + " " + plot_number(y) + "h" +
               plot_number(wide) + "\"/>\n";
      words(left_ - 8, y + 4, "tick", "end", tick_text(tick));
    }
  }

  //! Between shapes that it does not serve there is no line.
  void draw(const sweep_panel& panel, drawn_line& line) {
    std::string path;
    std::string dots;
    bool there = false;
    for (std::size_t at = 0; at < line.values.size(); ++at) {
      const std::optional<double>& value = line.values[at];
      if (value) {
        line.end_x = x_of(panel.counts[at]);
        line.end_y = y_of(*value);
        path += (there ? "L" : "M") + plot_number(line.end_x) + " " + plot_number(line.end_y);
        dots += "<circle cx=\"" + plot_number(line.end_x) + "\" cy=\"" + plot_number(line.end_y) +
                "\" r=\"3\" fill=\"" + plot_hues[line.look % plot_hues.size()] + "\"><title>" +
                detail::escape_xml(names_of(line) + ", " + std::to_string(panel.counts[at]) + " " +
                                   panel.axis + ": " + grid_.measure().text(*value)) +
                "</title></circle>\n";
      }
      there = value.has_value();
    }
    text_ += "<path class=\"line\" " + stroke_of(line) + " d=\"" + path + "\"/>\n" + dots;
  }

  //! Beside the plot, from top to bottom as the lines end, none on another.
  void label(std::vector<drawn_line>& lines) {
    std::vector<drawn_line*> order;
    for (drawn_line& line : lines) order.push_back(&line);
    std::ranges::stable_sort(order, {}, [](const drawn_line* one) { return one->end_y; });
    double free = top_ + label_height / 2;
    for (drawn_line* one : order) {
      one->label_y = std::max(one->end_y, free);
      free = one->label_y + label_height;
    }
    double least = top_ + high_;
    for (auto one = order.rbegin(); one != order.rend(); ++one) {
      (*one)->label_y = std::min((*one)->label_y, least);
      least = (*one)->label_y - label_height;
    }
    const double x = left_ + wide + leader_width;
    for (const drawn_line* one : order) {
      // Over the plot it is no line of the plot's.
      const bool ends_early = one->end_x < left_ + across_.at(most_count_) - 1;
      text_ += std::string("<path class=\"leader\"") +
               (ends_early ? " stroke-dasharray=\"1 4\"" : "") + " d=\"M" +
               plot_number(one->end_x + 4) + " " + plot_number(one->end_y) + "L" +
               plot_number(x - 20) + " " + plot_number(one->label_y) +
               "\"/>\n<path class=\"line\" " + stroke_of(*one) + " d=\"M" + plot_number(x - 20) +
               " " + plot_number(one->label_y) + "h16\"/>\n";
      words(x, one->label_y + 4, "", "start", label_of(*one));
    }
  }

  void words(double x, double y, const std::string& look, const char* anchor,
             const std::string& what) {
    text_ += plot_words(x, y, look, anchor, what);
  }

  const sweep_grid& grid_;
  std::vector<sweep_panel> panels_;
  std::vector<std::vector<drawn_line>> lines_;  // of each panel
  std::vector<const swept*> looks_;
  int left_out_ = 0;
  int most_count_ = 1;
  double left_ = 64;  // of the plots, and the top of the one at hand
  double top_ = 0;
  double high_ = least_high;
  double label_width_ = 0;
  double finer_ = 1;  // in so many parts of a unit the upright axis is
  plot_axis across_{0, 1, 1};
  plot_axis up_{0, 1, 1};
  std::string text_;
};

}  // namespace

std::string to_svg(const sweep_grid& grid) {
  return sweep_picture(grid).write();
}

}  // namespace stretto::tool
